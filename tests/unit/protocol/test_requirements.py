"""Delta's own functions from metadata to protocol, with the figures of the source document."""

from __future__ import annotations

import pytest

from twinlake.errors import TwinlakeError, UserError
from twinlake.protocol import (
    Metadata,
    Protocol,
    check_protocol_requirements,
    extract_automatically_enabled_features,
    min_protocol_components_from_automatically_enabled_features,
    min_protocol_components_from_metadata,
    required_minimum_protocol,
    upgrade_protocol_from_metadata_for_existing_table,
)
from twinlake.schema import INTEGER, TIMESTAMP_NTZ, DataType, Struct, StructField


def table(configuration: dict[str, str] | None = None, *columns: StructField) -> Metadata:
    return Metadata(configuration=configuration or {}).with_schema(Struct(columns))


def column(name: str = "a", kind: DataType = INTEGER, **metadata: object) -> StructField:
    return StructField(name, kind, metadata={k.replace("__", "."): v for k, v in metadata.items()})


INVARIANT = column("i", delta__invariants='{"expression":{"expression":"i > 0"}}')
GENERATED = column("g", delta__generationExpression="a + 1")
IDENTITY = column("n", delta__identity__start=1, delta__identity__step=1)
APPEND_ONLY = {"delta.appendOnly": "true"}
CHECK = {"delta.constraints.c": "a > 0"}
FEED = {"delta.enableChangeDataFeed": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}


def test_defaults_of_the_constructor() -> None:
    assert (Protocol().min_reader_version, Protocol().min_writer_version) == (1, 3)
    assert Protocol().reader_features is None
    assert Protocol().writer_features is None


def test_demo_append_only_table() -> None:
    protocol = Protocol.for_new_table(Metadata(configuration=APPEND_ONLY))
    assert protocol.min_reader_version == 1
    assert protocol.min_writer_version == 2
    assert protocol.writer_features is None
    assert Protocol.apply(Metadata(configuration=APPEND_ONLY)) == protocol
    assert Protocol.apply(None) == Protocol(1, 2)


@pytest.mark.parametrize("key", ["delta.minReaderVersion", "delta.minWriterVersion"])
def test_versions_among_the_properties_are_an_assertion_error(key: str) -> None:
    with pytest.raises(AssertionError) as caught:
        check_protocol_requirements(Metadata(configuration={key: "2"}), Protocol())
    assert str(caught.value) == (
        f"Should not have the protocol version ({key}) as part of table properties"
    )
    assert isinstance(caught.value, TwinlakeError)


@pytest.mark.parametrize("key", ["delta.feature.rowTracking", "delta.ignoreProtocolDefaults"])
def test_other_steering_properties_are_an_assertion_error(key: str) -> None:
    with pytest.raises(AssertionError, match=key):
        check_protocol_requirements(Metadata(configuration={key: "supported"}), Protocol())


@pytest.mark.parametrize(
    ("metadata", "protocol", "used"),
    [
        (table(), Protocol(0, 0), ()),
        (table({}, StructField("a", INTEGER, nullable=False)), Protocol(0, 0), ()),
        (table({}, INVARIANT), Protocol(0, 2), ("invariants",)),
        (table(APPEND_ONLY), Protocol(0, 3), ("appendOnly",)),
        (table(CHECK), Protocol(0, 3), ("checkConstraints",)),
        (table({}, GENERATED), Protocol(0, 4), ("generatedColumns",)),
        (table(FEED), Protocol(0, 4), ("changeDataFeed",)),
        (table({}, IDENTITY), Protocol(0, 6), ("identityColumns",)),
        (table(MAPPED), Protocol(2, 5), ("columnMapping",)),
        (table(MAPPED, IDENTITY), Protocol(2, 6), ("identityColumns", "columnMapping")),
        (
            table(APPEND_ONLY | CHECK | FEED | MAPPED, INVARIANT, GENERATED, IDENTITY),
            Protocol(2, 6),
            (
                "invariants",
                "appendOnly",
                "checkConstraints",
                "generatedColumns",
                "changeDataFeed",
                "identityColumns",
                "columnMapping",
            ),
        ),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else "",
)
def test_required_minimum(metadata: Metadata, protocol: Protocol, used: tuple[str, ...]) -> None:
    assert required_minimum_protocol(metadata, identity="allow") == (protocol, used)


def test_identity_is_refused_by_default() -> None:
    with pytest.raises(UserError, match="IDENTITY column is not supported"):
        required_minimum_protocol(table({}, IDENTITY))
    with pytest.raises(UserError):
        required_minimum_protocol(table(), identity="perhaps")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("metadata", "current", "expected"),
    [
        (table(), Protocol(1, 2), None),
        (table(APPEND_ONLY), Protocol(1, 3), None),
        (table(APPEND_ONLY), Protocol(1, 2), Protocol(1, 3)),
        (table(FEED), Protocol(1, 2), Protocol(1, 4)),
        (table(MAPPED), Protocol(1, 6), Protocol(2, 6)),
        (table(FEED), Protocol(1, 7, None, {"changeDataFeed"}), None),
        (
            table(FEED),
            Protocol(1, 7, None, {"rowTracking", "domainMetadata"}),
            Protocol(1, 7, None, {"rowTracking", "domainMetadata", "changeDataFeed"}),
        ),
    ],
)
def test_check_protocol_requirements(
    metadata: Metadata, current: Protocol, expected: Protocol | None
) -> None:
    assert check_protocol_requirements(metadata, current) == expected


@pytest.mark.parametrize(
    ("metadata", "protocol", "features"),
    [
        (table(APPEND_ONLY), None, {"appendOnly"}),
        (
            table({"delta.enableIcebergWriterCompatV1": "true"}),
            None,
            {"icebergWriterCompatV1", "icebergCompatV2", "columnMapping"},
        ),
        # Only what is listed comes from the protocol, not what legacy versions imply.
        (table(FEED), Protocol(1, 4), {"changeDataFeed"}),
        (
            table(FEED),
            Protocol(1, 7, None, {"rowTracking", "someoneElses"}),
            {"changeDataFeed", "rowTracking", "domainMetadata"},
        ),
    ],
)
def test_extract_automatically_enabled(
    metadata: Metadata, protocol: Protocol | None, features: set[str]
) -> None:
    assert extract_automatically_enabled_features(metadata, protocol) == features


def test_components_from_automatically_enabled_features() -> None:
    components = min_protocol_components_from_automatically_enabled_features
    assert components(table(APPEND_ONLY)) == (0, 2, frozenset({"appendOnly"}))
    # Properties that steer are not looked at here.
    assert components(table({"delta.feature.rowTracking": "supported"})) == (0, 0, frozenset())
    assert components(table(), Protocol(1, 7, None, {"appendOnly"})) == (
        0,
        2,
        frozenset({"appendOnly"}),
    )


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        (APPEND_ONLY, (1, 7, {"appendOnly"})),
        (
            APPEND_ONLY | {"delta.minReaderVersion": "1", "delta.minWriterVersion": "2"},
            (1, 2, {"appendOnly", "invariants"}),
        ),
        # One of the two keys alone is not enough.
        (APPEND_ONLY | {"delta.minWriterVersion": "2"}, (1, 7, {"appendOnly"})),
        (
            {"delta.feature.clustering": "supported"},
            (1, 7, {"clustering", "domainMetadata"}),
        ),
        ({"delta.feature.DELETIONVECTORS": "enabled"}, (3, 7, {"deletionVectors"})),
    ],
)
def test_components_from_metadata(
    configuration: dict[str, str], expected: tuple[int, int, set[str]]
) -> None:
    reader, writer, features = min_protocol_components_from_metadata(table(configuration))
    assert (reader, writer, set(features)) == expected


def test_existing_table_with_enough_is_left_alone() -> None:
    upgrade = upgrade_protocol_from_metadata_for_existing_table
    assert upgrade(table(FEED), Protocol(1, 4)) is None
    assert upgrade(table(FEED), Protocol(2, 4)) is None
    assert upgrade(table(), Protocol(1, 1)) is None


def test_identity_on_an_existing_table() -> None:
    upgrade = upgrade_protocol_from_metadata_for_existing_table
    assert upgrade(table({}, IDENTITY), Protocol(1, 4)) == Protocol(1, 6)


def test_timestamp_ntz_must_be_added_by_hand() -> None:
    metadata = table({}, column("t", TIMESTAMP_NTZ))
    assert Protocol.for_new_table(metadata) == Protocol(
        3, 7, {"timestampNtz"}, {"timestampNtz", "appendOnly", "invariants"}
    )
    with pytest.raises(UserError) as caught:
        upgrade_protocol_from_metadata_for_existing_table(metadata, Protocol(1, 2))
    assert caught.value.delta_class == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"
    assert caught.value.fields["features"] == ["timestampNtz"]
    by_hand = metadata.with_configuration({"delta.feature.timestampNtz": "supported"})
    assert Protocol(1, 2).upgraded_for(by_hand).is_supported("timestampNtz")


def test_what_a_listed_feature_requires_is_added_without_a_word() -> None:
    lacking = Protocol(3, 7, {"timestampNanos"}, {"timestampNanos"})
    for metadata in (table({}), table({}, column("t", TIMESTAMP_NTZ))):
        assert lacking.upgraded_for(metadata).is_supported("timestampNtz")


def test_not_null_brings_invariants_on_both_kinds_of_table() -> None:
    metadata = table({}, StructField("a", INTEGER, nullable=False))
    assert Protocol(1, 1).upgraded_for(metadata) == Protocol(1, 2)
    listed = Protocol(1, 7, None, {"rowTracking", "domainMetadata"})
    assert listed.upgraded_for(metadata).is_supported("invariants")
