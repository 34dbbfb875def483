"""What metadata requires of a protocol: the functions Delta has for it, under Delta's names.

``required_minimum_protocol`` and ``check_protocol_requirements`` keep the numbers of Delta 1.x;
nothing that writes a protocol reads them. The others go by the registry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from twinlake.errors import Code, UserError
from twinlake.protocol import feature_predicates as on
from twinlake.protocol import features, keys
from twinlake.protocol.feature_lookup import (
    FEATURES,
    auto_enabled_features,
    dependency_closure,
    implied_features,
    minimum_versions,
)
from twinlake.protocol.policies import Policy, find_policy
from twinlake.protocol.properties.protocol_keys import ProtocolRequest
from twinlake.protocol.protocol import Protocol

if TYPE_CHECKING:
    from twinlake.protocol.feature import Predicate
    from twinlake.protocol.metadata import Metadata

__all__ = [
    "APPEND_ONLY_WRITER_VERSION_1X",
    "ProtocolInMetadata",
    "check_protocol_requirements",
    "extract_automatically_enabled_features",
    "min_protocol_components_from_automatically_enabled_features",
    "min_protocol_components_from_metadata",
    "required_minimum_protocol",
    "upgrade_protocol_from_metadata_for_existing_table",
]

APPEND_ONLY_WRITER_VERSION_1X: Final = 3
"""Delta 1.x asked for 3 where 2 is enough; loose, never unsafe."""

Components = tuple[int, int, frozenset[str]]

_REQUIRED_1X: Final[tuple[tuple[str, Predicate, tuple[int, int]], ...]] = (
    (features.INVARIANTS, on.trait(on.INVARIANT), (0, 2)),
    (features.APPEND_ONLY, on.flag(keys.APPEND_ONLY), (0, APPEND_ONLY_WRITER_VERSION_1X)),
    (features.CHECK_CONSTRAINTS, on.constrained, (0, 3)),
    (features.GENERATED_COLUMNS, on.trait(on.GENERATED), (0, 4)),
    (features.CHANGE_DATA_FEED, on.flag(keys.ENABLE_CHANGE_DATA_FEED), (0, 4)),
    (features.IDENTITY_COLUMNS, on.trait(on.IDENTITY), (0, 6)),
    (features.COLUMN_MAPPING, on.mapped, (2, 5)),
)


class ProtocolInMetadata(UserError, AssertionError):
    """The protocol is asked for in the configuration, where it must not be stored."""

    def __str__(self) -> str:
        return self.what


def required_minimum_protocol(
    metadata: Metadata, identity: Literal["refuse", "allow"] = "refuse"
) -> tuple[Protocol, tuple[str, ...]]:
    """The least versions for the metadata, as Delta 1.x counted, and the features it uses.

    ``identity="refuse"`` raises for IDENTITY columns as Delta 1.x did.

    >>> from twinlake.protocol import Metadata
    >>> required_minimum_protocol(Metadata(configuration={"delta.enableChangeDataFeed": "true"}))
    (Protocol(0, 4), ('changeDataFeed',))
    """
    if identity not in ("refuse", "allow"):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"identity is {identity!r}.",
            why="It says what to do with IDENTITY columns.",
            fix='Pass `identity="refuse"` or `identity="allow"`.',
            fields={"identity": identity},
        )
    reader = writer = 0
    used: list[str] = []
    for name, test, (min_reader, min_writer) in _REQUIRED_1X:
        if not test(metadata, frozenset()):
            continue
        if name == features.IDENTITY_COLUMNS and identity == "refuse":
            columns = on.columns_of(metadata, on.IDENTITY)
            raise UserError(
                Code.FEATURE_ENABLE,
                "IDENTITY column is not supported",
                why=f"These columns are IDENTITY columns: {', '.join(columns)}.",
                fix='Pass `identity="allow"`.',
                fields={"columns": list(columns)},
            )
        reader, writer = max(reader, min_reader), max(writer, min_writer)
        used.append(name)
    return Protocol(reader, writer), tuple(used)


def check_protocol_requirements(
    metadata: Metadata, current: Protocol, identity: Literal["refuse", "allow"] = "refuse"
) -> Protocol | None:
    """The protocol the table must move to, as Delta 1.x counted; None if it has enough."""
    _assert_no_protocol_properties(metadata)
    required, used = required_minimum_protocol(metadata, identity)
    if current.uses_lists:
        missing = frozenset(used) - current.feature_names
        return current.with_added(missing) if missing else None
    reader = max(required.min_reader_version, current.min_reader_version)
    writer = max(required.min_writer_version, current.min_writer_version)
    raised = current.at(reader, writer)
    return None if raised == current else raised


def _assert_no_protocol_properties(metadata: Metadata) -> None:
    found = {key.lower(): key for key in metadata.configuration}
    for key in (keys.MIN_READER_VERSION, keys.MIN_WRITER_VERSION):
        if key.lower() in found:
            _refuse(f"Should not have the protocol version ({key}) as part of table properties")
    for folded, key in found.items():
        if (
            folded.startswith(keys.FEATURE_PREFIX)
            or folded == keys.IGNORE_PROTOCOL_DEFAULTS.lower()
        ):
            _refuse(f"Should not have {key} as part of table properties")


def _refuse(sentence: str) -> None:
    raise ProtocolInMetadata(
        Code.PROPERTY_INVALID,
        sentence,
        why="The protocol has an action of its own in the log.",
        fix="Strip the properties that ask for a protocol before storing metadata.",
    )


def extract_automatically_enabled_features(
    metadata: Metadata, protocol: Protocol | None = None
) -> frozenset[str]:
    """The features listed for writers or switched on by metadata, with all they require.

    >>> from twinlake.protocol import Metadata
    >>> twin = Metadata(configuration={"delta.enableIcebergCompatV2": "true"})
    >>> sorted(extract_automatically_enabled_features(twin))
    ['columnMapping', 'icebergCompatV2']
    """
    current = protocol or Protocol(3, 7, (), ())
    listed = (current.writer_features or frozenset()) & FEATURES.keys()
    return dependency_closure(listed | auto_enabled_features(metadata, current.feature_names))


def min_protocol_components_from_automatically_enabled_features(
    metadata: Metadata, current: Protocol | None = None
) -> Components:
    """The least versions for the automatically enabled features, from (0, 0) up."""
    features = extract_automatically_enabled_features(metadata, current)
    return (*minimum_versions(features, floor=(0, 0)), features)


def min_protocol_components_from_metadata(
    metadata: Metadata, policy: str | Policy = "minimal"
) -> Components:
    """The least versions and the features for a new table, session defaults left aside.

    Looks at the metadata, at ``delta.feature.*`` and, where both are given, at
    ``delta.minReaderVersion`` and ``delta.minWriterVersion``.
    """
    asked = ProtocolRequest.of(metadata.configuration)
    features = dependency_closure(asked.features | auto_enabled_features(metadata, asked.features))
    if asked.min_reader_version is not None and asked.min_writer_version is not None:
        features |= implied_features(asked.min_reader_version, asked.min_writer_version)
    least = find_policy(policy).extend(Protocol(1, 1), features)
    return least.min_reader_version, least.min_writer_version, least.supported_features


def upgrade_protocol_from_metadata_for_existing_table(
    metadata: Metadata, current: Protocol, policy: str | Policy = "bundled"
) -> Protocol | None:
    """The protocol an existing table must move to for this metadata; None if it has enough."""
    upgraded = current.upgraded_for(metadata, policy=policy)
    return None if upgraded == current else upgraded
