"""Rules about the protocol: which features a table has to list, and which it must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.rule import Finding
from twinlake.compat.rules.schema_index import index_schema
from twinlake.errors import how_to_drop_feature
from twinlake.protocol import features, find_feature, keys
from twinlake.schema import CURRENT_DEFAULT_KEY, render_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.compat.rule import Case
    from twinlake.protocol import Protocol

__all__ = [
    "ALLOWED",
    "NAMED_APART",
    "allowed_features",
    "column_mapping_is_readable",
    "column_mapping_is_supported",
    "deletion_vectors_are_off",
    "deletion_vectors_are_unsupported",
    "disallowed_features",
    "feature_and_base_are_listed",
    "feature_is_listed",
    "feature_is_listed_on_version_seven",
    "features_named_apart",
    "reader_knows_column_mapping",
    "writer_version_is_seven",
]

_WRITER_LISTS: Final = 7

#: May be supported, as long as a rule of its own finds them not in use.
_IDLE: Final = frozenset(
    {
        features.INVARIANTS,
        features.CHANGE_DATA_FEED,
        features.CHECK_CONSTRAINTS,
        features.IDENTITY_COLUMNS,
        features.GENERATED_COLUMNS,
        features.ROW_TRACKING,
    }
)
_WRITER_V1: Final = _IDLE | {
    features.APPEND_ONLY,
    features.COLUMN_MAPPING,
    features.ICEBERG_WRITER_COMPAT_V1,
    features.ICEBERG_COMPAT_V2,
    features.DOMAIN_METADATA,
    features.VACUUM_PROTOCOL_CHECK,
    features.V2_CHECKPOINT,
    features.IN_COMMIT_TIMESTAMP,
    features.CLUSTERING,
    features.TIMESTAMP_NTZ,
    features.TYPE_WIDENING,
}
_WRITER_V3: Final = _WRITER_V1 | {
    features.ICEBERG_COMPAT_V3,
    features.ICEBERG_WRITER_COMPAT_V3,
    features.DELETION_VECTORS,
    features.VARIANT_TYPE,
    features.VARIANT_TYPE_PREVIEW,
    features.VARIANT_SHREDDING,
    features.VARIANT_SHREDDING_PREVIEW,
    features.ALLOW_COLUMN_DEFAULTS,
    features.GEOSPATIAL,
}
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    features.ICEBERG_WRITER_COMPAT_V1: _WRITER_V1,
    features.ICEBERG_WRITER_COMPAT_V3: _WRITER_V3,
}
"""The features a table may support, by the writer feature that is enabled."""

_COLLATIONS: Final = frozenset((features.COLLATIONS, features.COLLATIONS_PREVIEW))
NAMED_APART: Final[Mapping[str, frozenset[str]]] = {
    features.ICEBERG_WRITER_COMPAT_V1: _COLLATIONS
    | {
        features.ALLOW_COLUMN_DEFAULTS,
        features.VARIANT_TYPE,
        features.VARIANT_TYPE_PREVIEW,
        features.VARIANT_SHREDDING,
        features.VARIANT_SHREDDING_PREVIEW,
    },
    features.ICEBERG_WRITER_COMPAT_V3: _COLLATIONS,
}
"""Features that the writer feature excludes by name, besides not allowing them."""

_NO_DEFAULT: Final = (
    "Leave DEFAULT out of the column; to take away a default that is there run "
    '`Table.alter_column(COLUMN, default="")` or `twinlake alter PATH --default COLUMN=`.'
)


def allowed_features(case: Case) -> frozenset[str]:
    """The features that the writer feature allows."""
    return ALLOWED[case.compat.feature]


def column_mapping_is_readable(protocol: Protocol) -> bool:
    """Whether readers need column mapping: reader version 2, or 3 that lists it."""
    return protocol.min_reader_version == 2 or features.COLUMN_MAPPING in (
        protocol.reader_features or ()
    )


def writer_version_is_seven(case: Case) -> Iterator[Finding]:
    """Only writer version 7 can list features."""
    found = case.subject.protocol.min_writer_version
    if found != _WRITER_LISTS:
        yield Finding(
            path="minWriterVersion",
            found=str(found),
            wanted=str(_WRITER_LISTS),
            message=f"the table is on writer version {found}, and {case.compat} needs 7",
        )


def _listed(case: Case, *names: str) -> Iterator[Finding]:
    listed = case.subject.protocol.writer_features or frozenset()
    for name in names:
        if name not in listed:
            yield Finding(
                path=name,
                found="not listed",
                wanted="listed in writerFeatures",
                message=f"feature {name} is not in the writerFeatures of the protocol",
            )


def feature_is_listed_on_version_seven(case: Case) -> Iterator[Finding]:
    """A compat feature needs writer version 7 and has to be listed by name."""
    yield from writer_version_is_seven(case)
    yield from feature_is_listed(case)


def feature_is_listed(case: Case) -> Iterator[Finding]:
    """The compat feature itself is listed."""
    yield from _listed(case, case.compat.feature)


def feature_and_base_are_listed(case: Case) -> Iterator[Finding]:
    """A writer feature and its base are both listed."""
    yield from _listed(case, COMPATS[case.compat.base or ""].feature, case.compat.feature)


def reader_knows_column_mapping(case: Case) -> Iterator[Finding]:
    """The reader side of column mapping."""
    protocol = case.subject.protocol
    if not column_mapping_is_readable(protocol):
        yield Finding(
            path=features.COLUMN_MAPPING,
            found=f"reader version {protocol.min_reader_version} without it",
            wanted="reader version 2, or 3 with columnMapping in readerFeatures",
            message="the protocol does not require column mapping of readers",
        )


def column_mapping_is_supported(case: Case) -> Iterator[Finding]:
    """Both sides of column mapping."""
    protocol = case.subject.protocol
    sides = {
        "readers": column_mapping_is_readable(protocol),
        "writers": features.COLUMN_MAPPING in protocol.writer_requirements,
    }
    missing = " and ".join(side for side, known in sides.items() if not known)
    if missing:
        yield Finding(
            path=features.COLUMN_MAPPING,
            found=f"protocol {protocol}",
            wanted="columnMapping for readers and writers",
            message=f"the protocol does not require column mapping of {missing}",
        )


def deletion_vectors_are_unsupported(case: Case) -> Iterator[Finding]:
    """The feature must not be there at all."""
    if case.subject.protocol.is_supported(features.DELETION_VECTORS):
        yield Finding(
            path=features.DELETION_VECTORS,
            found="supported",
            wanted="not supported",
            message=f"the protocol has deletionVectors, which {case.compat} does not allow",
        )


def deletion_vectors_are_off(case: Case) -> Iterator[Finding]:
    """The feature may be there, but new deletion vectors must not be written."""
    subject = case.subject
    if subject.protocol.is_supported(features.DELETION_VECTORS) and subject.metadata.flag(
        keys.ENABLE_DELETION_VECTORS
    ):
        yield Finding(
            path=keys.ENABLE_DELETION_VECTORS,
            found="true",
            wanted="false",
            message=f"deletion vectors are enabled, which {case.compat} does not allow",
        )


def disallowed_features(case: Case) -> Iterator[Finding]:
    """Every supported feature has to be known to be harmless."""
    outside = case.subject.protocol.feature_names - allowed_features(case)
    for name in sorted(outside - NAMED_APART[case.compat.feature]):
        yield Finding(
            path=name,
            found="supported",
            wanted="not supported",
            message=f"feature {name} is not among those that {case.compat} allows",
            fix=_way_out(name),
        )


def _way_out(name: str) -> str:
    """How the feature leaves a table, if it can."""
    feature = find_feature(name)
    if feature is None:
        return f"{name} is not known here: drop it with the client that added it."
    removal = feature.removal
    if removal is None or removal.never:
        return f"{name} cannot be dropped: copy the rows to a new table without it."
    # The quick drop of such a feature would put checkpointProtection in its place.
    whole = feature.history_protected or removal.only_with_truncation
    if whole:
        return f"Run {how_to_drop_feature(name, truncate_history=True)}."
    return f"Run {how_to_drop_feature(name)}."


def _defaults(case: Case) -> Iterator[Finding]:
    """Columns with a default, also where the feature that goes with it is missing."""
    for entry in index_schema(case.subject.metadata).fields_with(CURRENT_DEFAULT_KEY):
        where = render_path(entry.path)
        yield Finding(
            path=where,
            found=f"DEFAULT {entry.field.metadata[CURRENT_DEFAULT_KEY]}",
            wanted="no default",
            message=f"column {where} has a default value",
            fix=_NO_DEFAULT,
        )


def features_named_apart(case: Case) -> Iterator[Finding]:
    """The features whose mere support is ruled out by name."""
    defaults = (
        tuple(_defaults(case))
        if features.ALLOW_COLUMN_DEFAULTS in NAMED_APART[case.compat.feature]
        else ()
    )
    yield from defaults
    for name in sorted(case.subject.protocol.feature_names & NAMED_APART[case.compat.feature]):
        yield Finding(
            path=name,
            found="supported",
            wanted="not supported",
            message=f"feature {name} must not even be supported under {case.compat}",
            # A default that is being added brings the feature along.
            fix=_NO_DEFAULT
            if defaults and name == features.ALLOW_COLUMN_DEFAULTS
            else _way_out(name),
        )
