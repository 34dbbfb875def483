"""Rules about the protocol: which features a table has to list, and which it must not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.compat_feature import COMPATS
from twinlake.compat.rule import Finding
from twinlake.compat.rules.schema_index import schema_facts
from twinlake.errors import how_to_drop_feature
from twinlake.protocol import find_feature
from twinlake.schema import CURRENT_DEFAULT_KEY, render_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.compat.rule import Case
    from twinlake.protocol import Protocol

__all__ = [
    "ALLOWED",
    "COLUMN_MAPPING",
    "DEFAULTS",
    "DELETION_VECTORS",
    "DELETION_VECTORS_KEY",
    "NAMED_APART",
    "allowed_features",
    "column_mapping_is_readable",
    "column_mapping_is_supported",
    "deletion_vectors_are_off",
    "deletion_vectors_are_unsupported",
    "disallowed_features",
    "feature_is_listed",
    "features_named_apart",
    "promise_is_listed",
    "promises_are_listed",
    "reader_knows_column_mapping",
    "writer_version_is_seven",
]

COLUMN_MAPPING: Final = "columnMapping"
DEFAULTS: Final = "allowColumnDefaults"
DELETION_VECTORS: Final = "deletionVectors"
DELETION_VECTORS_KEY: Final = "delta.enableDeletionVectors"
_WRITER_LISTS: Final = 7

#: May be supported, as long as a rule of its own finds them not in use.
_IDLE: Final = frozenset(
    ("invariants", "changeDataFeed", "checkConstraints", "identityColumns", "generatedColumns",
     "rowTracking")
)  # fmt: skip
_WRITER_V1: Final = _IDLE | {
    "appendOnly",
    COLUMN_MAPPING,
    "icebergWriterCompatV1",
    "icebergCompatV2",
    "domainMetadata",
    "vacuumProtocolCheck",
    "v2Checkpoint",
    "inCommitTimestamp",
    "clustering",
    "timestampNtz",
    "typeWidening",
}
_WRITER_V3: Final = _WRITER_V1 | {
    "icebergCompatV3",
    "icebergWriterCompatV3",
    DELETION_VECTORS,
    "variantType",
    "variantType-preview",
    "variantShredding",
    "variantShredding-preview",
    DEFAULTS,
    "geospatial",
}
ALLOWED: Final[Mapping[str, frozenset[str]]] = {
    "icebergWriterCompatV1": _WRITER_V1,
    "icebergWriterCompatV3": _WRITER_V3,
}
"""The features a table may support, by the writer promise it makes."""

_COLLATIONS: Final = frozenset(("collations", "collations-preview"))
NAMED_APART: Final[Mapping[str, frozenset[str]]] = {
    "icebergWriterCompatV1": _COLLATIONS
    | {
        DEFAULTS,
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
    },
    "icebergWriterCompatV3": _COLLATIONS,
}
"""Features that the writer promise rules out by name, besides leaving them off its list."""

_NO_DEFAULT: Final = (
    "Leave DEFAULT out of the column; to take away a default that is there run "
    '`Table.alter_column(COLUMN, default="")` or `twinlake alter PATH --default COLUMN=`.'
)


def allowed_features(case: Case) -> frozenset[str]:
    """The features that the writer promise lets a table support."""
    return ALLOWED[case.compat.feature]


def column_mapping_is_readable(protocol: Protocol) -> bool:
    """Whether readers are told of column mapping: by the integer 2, or by the list of 3."""
    return protocol.min_reader_version == 2 or COLUMN_MAPPING in (protocol.reader_features or ())


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


def feature_is_listed(case: Case) -> Iterator[Finding]:
    """The promise is a feature of writer version 7 and has to be listed by name."""
    yield from writer_version_is_seven(case)
    yield from promise_is_listed(case)


def promise_is_listed(case: Case) -> Iterator[Finding]:
    """The promise itself is listed."""
    yield from _listed(case, case.compat.feature)


def promises_are_listed(case: Case) -> Iterator[Finding]:
    """A writer promise and the one it stands on are both listed."""
    yield from _listed(case, COMPATS[case.compat.base or ""].feature, case.compat.feature)


def reader_knows_column_mapping(case: Case) -> Iterator[Finding]:
    """The reader side of column mapping."""
    protocol = case.subject.protocol
    if not column_mapping_is_readable(protocol):
        yield Finding(
            path=COLUMN_MAPPING,
            found=f"reader version {protocol.min_reader_version} without it",
            wanted="reader version 2, or 3 with columnMapping in readerFeatures",
            message="the protocol does not tell readers of column mapping",
        )


def column_mapping_is_supported(case: Case) -> Iterator[Finding]:
    """Both sides of column mapping."""
    protocol = case.subject.protocol
    sides = {
        "readers": column_mapping_is_readable(protocol),
        "writers": COLUMN_MAPPING in protocol.writer_requirements,
    }
    missing = " and ".join(side for side, known in sides.items() if not known)
    if missing:
        yield Finding(
            path=COLUMN_MAPPING,
            found=f"protocol {protocol}",
            wanted="columnMapping for readers and writers",
            message=f"the protocol does not tell {missing} of column mapping",
        )


def deletion_vectors_are_unsupported(case: Case) -> Iterator[Finding]:
    """The feature must not be there at all."""
    if case.subject.protocol.is_supported(DELETION_VECTORS):
        yield Finding(
            path=DELETION_VECTORS,
            found="supported",
            wanted="not supported",
            message=f"the protocol has deletionVectors, which {case.compat} does not allow",
        )


def deletion_vectors_are_off(case: Case) -> Iterator[Finding]:
    """The feature may be there, but new deletion vectors must not be written."""
    subject = case.subject
    if subject.protocol.is_supported(DELETION_VECTORS) and subject.metadata.flag(
        DELETION_VECTORS_KEY
    ):
        yield Finding(
            path=DELETION_VECTORS_KEY,
            found="true",
            wanted="false",
            message=f"deletion vectors are switched on, which {case.compat} does not allow",
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
    for fact in schema_facts(case.subject.metadata).fields_with(CURRENT_DEFAULT_KEY):
        where = render_path(fact.path)
        yield Finding(
            path=where,
            found=f"DEFAULT {fact.field.metadata[CURRENT_DEFAULT_KEY]}",
            wanted="no default",
            message=f"column {where} has a default value",
            fix=_NO_DEFAULT,
        )


def features_named_apart(case: Case) -> Iterator[Finding]:
    """The features whose mere support is ruled out by name."""
    defaults = tuple(_defaults(case)) if DEFAULTS in NAMED_APART[case.compat.feature] else ()
    yield from defaults
    for name in sorted(case.subject.protocol.feature_names & NAMED_APART[case.compat.feature]):
        yield Finding(
            path=name,
            found="supported",
            wanted="not supported",
            message=f"feature {name} must not even be supported under {case.compat}",
            # A default that is being added brings the feature along.
            fix=_NO_DEFAULT if defaults and name == DEFAULTS else _way_out(name),
        )
