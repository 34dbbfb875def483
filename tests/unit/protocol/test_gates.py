"""What a client is told when it may not."""

from __future__ import annotations

import pytest

from twinlake.errors import Code, UnsupportedFeature
from twinlake.protocol import (
    CLIENT_FEATURES,
    FEATURES,
    Client,
    Metadata,
    Protocol,
    read_blockers,
    write_blockers,
)
from twinlake.schema import INTEGER, Struct, StructField

SIX = {
    "deletionVectors",
    "checkConstraints",
    "generatedColumns",
    "invariants",
    "changeDataFeed",
    "appendOnly",
}


def test_read_error_names_the_feature_the_table_and_the_support() -> None:
    table = Protocol(3, 7, {"deletionVectors"}, SIX)
    with pytest.raises(UnsupportedFeature) as caught:
        table.check_readable({"columnMapping", "appendOnly"}, table="orders")
    error = caught.value
    assert error.code is Code.FEATURE_READ
    assert error.delta_class == "DELTA_UNSUPPORTED_FEATURES_FOR_READ"
    assert error.fields["features"] == ["deletionVectors"]
    assert error.fields["supported"] == ["appendOnly", "columnMapping"]
    assert str(error) == (
        'TWIN-FEATURE-READ  Table "orders" cannot be read by this client: '
        "it needs deletionVectors.\n"
        "  why: To read, this client supports: appendOnly, columnMapping.\n"
        "  fix: Use a client that supports it, or drop with such a client: deletionVectors."
    )


def test_write_error_names_what_is_lacking() -> None:
    table = Protocol(2, 7, None, {"columnMapping", "rowTracking", "domainMetadata"})
    with pytest.raises(UnsupportedFeature) as caught:
        table.check_writable({"columnMapping", "domainMetadata"})
    assert caught.value.code is Code.FEATURE_WRITE
    assert caught.value.delta_class == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"
    assert caught.value.fields["features"] == ["rowTracking"]


def test_reading_is_judged_before_writing() -> None:
    table = Protocol(3, 7, {"deletionVectors"}, SIX)
    with pytest.raises(UnsupportedFeature) as caught:
        table.check_read_write(set())
    assert caught.value.code is Code.FEATURE_READ
    table.check_writable(SIX)
    with pytest.raises(UnsupportedFeature):
        table.check_read_write(Client(readers=frozenset(), writers=frozenset(SIX)))


@pytest.mark.parametrize(
    "protocol", [Protocol(4, 7, {"x"}, {"x"}), Protocol(1, 8), Protocol(0, 0)], ids=str
)
def test_versions_come_before_features(protocol: Protocol) -> None:
    with pytest.raises(UnsupportedFeature) as caught:
        protocol.check_read_write(set())
    assert caught.value.code is Code.PROTOCOL_VERSION
    assert caught.value.delta_class == "DELTA_INVALID_PROTOCOL_VERSION"


def test_unknown_names_block() -> None:
    table = Protocol(3, 7, {"quantum"}, {"quantum", "appendOnly"})
    assert read_blockers(table) == ("quantum",)
    assert write_blockers(table) == ("quantum",)


def test_old_integers_count_as_column_mapping_only_with_its_writer_side() -> None:
    assert read_blockers(Protocol(2, 4), set()) == ()
    assert read_blockers(Protocol(2, 5), set()) == ("columnMapping",)
    assert read_blockers(Protocol(1, 5), set()) == ()
    assert read_blockers(Protocol(2, 7, None, {"columnMapping"}), set()) == ("columnMapping",)
    assert read_blockers(Protocol(2, 7, None, {"rowTracking"}), set()) == ()


@pytest.mark.parametrize(
    ("configuration", "blocked"),
    [
        ({}, ()),
        ({"delta.constraints.c": "a > 0"}, ("checkConstraints",)),
        ({"delta.enableChangeDataFeed": "true"}, ("changeDataFeed",)),
    ],
)
def test_finer_gate_on_idle_legacy_features(
    configuration: dict[str, str], blocked: tuple[str, ...]
) -> None:
    not_null = Struct((StructField("a", INTEGER, nullable=False),))
    metadata = Metadata(configuration=configuration).with_schema(not_null)
    for protocol in (Protocol(1, 4), Protocol(1, 4).denormalized()):
        assert write_blockers(protocol, {"appendOnly"}, metadata=metadata) == blocked


def test_finer_gate_does_not_excuse_native_features() -> None:
    table = Protocol(3, 7, {"deletionVectors"}, {"deletionVectors"})
    assert write_blockers(table, set(), metadata=Metadata()) == ("deletionVectors",)
    assert write_blockers(Protocol(2, 5), set(), metadata=Metadata()) == ("columnMapping",)


def test_metadata_must_not_use_what_lists_do_not_name() -> None:
    vectors = Metadata(name="t", configuration={"delta.enableDeletionVectors": "true"})
    with pytest.raises(UnsupportedFeature) as caught:
        Protocol(3, 7, (), ()).check_metadata(vectors)
    assert caught.value.delta_class == "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"
    assert caught.value.fields["features"] == ["deletionVectors"]
    # Evaluated for lists only; and the preview name stands for the stable one.
    Protocol(1, 2).check_metadata(vectors)
    widening = Metadata(configuration={"delta.enableTypeWidening": "true"})
    preview = {"typeWidening-preview"}
    Protocol(3, 7, preview, preview).check_metadata(widening)
    not_null = Metadata().with_schema(Struct((StructField("a", INTEGER, nullable=False),)))
    Protocol(3, 7, (), ()).check_metadata(not_null)


def test_twinlake_promises_only_known_features() -> None:
    assert CLIENT_FEATURES.readers <= FEATURES.keys()
    assert CLIENT_FEATURES.writers <= FEATURES.keys()
    assert "catalogManaged" not in CLIENT_FEATURES.readers
    readers_needed = {name for name in CLIENT_FEATURES.writers if FEATURES[name].is_reader}
    assert readers_needed <= CLIENT_FEATURES.readers
    for protocol in (Protocol(1, 1), Protocol(2, 6), Protocol(3, 7, {"deletionVectors"}, SIX)):
        protocol.check_read_write()


@pytest.mark.parametrize(
    "name",
    [
        "icebergCompatV1",
        "icebergCompatV2",
        "icebergCompatV3",
        "icebergWriterCompatV1",
        "icebergWriterCompatV3",
    ],
)
def test_twinlake_writes_what_promises_something_to_iceberg(name: str) -> None:
    assert write_blockers(Protocol(3, 7, (), ()).with_feature(name)) == ()


@pytest.mark.parametrize("name", ["catalogManaged", "collations", "variantShredding"])
def test_twinlake_does_not_write_what_it_does_not_enforce(name: str) -> None:
    protocol = Protocol(3, 7, (), ()).with_feature(name)
    assert name in write_blockers(protocol)
