"""The account of table features that Delta published with version 2.4, step by step."""

from __future__ import annotations

import json

import pytest

from twinlake.errors import UnsupportedFeature
from twinlake.protocol import FEATURES, Metadata, Protocol, implied_features

SIX = {
    "deletionVectors",
    "checkConstraints",
    "generatedColumns",
    "invariants",
    "changeDataFeed",
    "appendOnly",
}
FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}


def test_the_story_of_table_t1() -> None:
    plain = Metadata()
    created = Protocol.for_new_table(plain)
    assert json.dumps({"protocol": created.to_dict()}, separators=(",", ":")) == (
        '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'
    )
    with_feed = plain.with_configuration(FEED)
    second = created.upgraded_for(with_feed)
    assert second.to_dict() == {"minReaderVersion": 1, "minWriterVersion": 4}
    third = second.upgraded_for(with_feed.with_configuration(VECTORS))
    assert (third.min_reader_version, third.min_writer_version) == (3, 7)
    assert third.reader_features == frozenset({"deletionVectors"})
    assert third.writer_features == frozenset(SIX)


@pytest.mark.parametrize(
    ("name", "reads"),
    [
        ("appendOnly", False),
        ("invariants", False),
        ("checkConstraints", False),
        ("changeDataFeed", False),
        ("generatedColumns", False),
        ("columnMapping", True),
        ("identityColumns", False),
        ("deletionVectors", True),
    ],
    ids=str,
)
def test_who_must_understand_a_feature(name: str, reads: bool) -> None:
    assert FEATURES[name].is_reader is reads


LEGACY_1_4 = {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "changeDataFeed",
    "generatedColumns",
}


@pytest.mark.parametrize(
    ("versions", "names"),
    [
        ((1, 1), set()),
        ((1, 2), {"appendOnly", "invariants"}),
        ((1, 3), {"appendOnly", "invariants", "checkConstraints"}),
        ((1, 4), LEGACY_1_4),
        ((1, 5), LEGACY_1_4),
        ((2, 4), LEGACY_1_4),
        ((2, 3), {"appendOnly", "invariants", "checkConstraints"}),
        ((2, 5), LEGACY_1_4 | {"columnMapping"}),
        ((1, 6), LEGACY_1_4 | {"identityColumns"}),
        ((2, 6), LEGACY_1_4 | {"columnMapping", "identityColumns"}),
    ],
    # The order of a set differs from process to process, and so would the names of the tests.
    ids=lambda value: "-".join(map(str, sorted(value))),
)
def test_legacy_versions_stand_for_features(versions: tuple[int, int], names: set[str]) -> None:
    assert implied_features(*versions) == names
    assert Protocol(*versions).supported_features == names


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(1, 7, None, {"rowTracking"}),
        Protocol(2, 7, None, {"columnMapping"}),
        Protocol(3, 7, (), ()),
    ],
    ids=str,
)
def test_nothing_is_implied_beside_lists(protocol: Protocol) -> None:
    assert protocol.implicit_features == frozenset()


LISTED = Protocol(3, 7, {"deletionVectors"}, SIX)


@pytest.mark.parametrize(
    ("protocol", "client", "read", "write"),
    [
        (LISTED, SIX, True, True),
        (LISTED, SIX - {"deletionVectors"}, False, False),
        (LISTED, {"deletionVectors"}, True, False),
        (LISTED, SIX - {"changeDataFeed"}, True, False),
        (Protocol(1, 2), {"appendOnly", "invariants"}, True, True),
        (Protocol(1, 2), {"appendOnly"}, True, False),
        (Protocol(1, 4), {"appendOnly", "invariants"}, True, False),
        (Protocol(1, 4), LEGACY_1_4, True, True),
        (Protocol(1, 5), LEGACY_1_4, True, True),
        (Protocol(2, 5), LEGACY_1_4, False, False),
        (Protocol(2, 5), LEGACY_1_4 | {"columnMapping"}, True, True),
        (Protocol(2, 7, None, {"columnMapping"}), {"rowTracking"}, False, False),
        (Protocol(2, 7, None, {"columnMapping"}), {"columnMapping"}, True, True),
        (Protocol(1, 7, None, {"rowTracking"}), set(), True, False),
    ],
)
def test_three_subset_checks(protocol: Protocol, client: set[str], read: bool, write: bool) -> None:
    outcomes = {
        protocol.check_readable: read,
        protocol.check_writable: write,
        protocol.check_read_write: read and write,
    }
    for check, allowed in outcomes.items():
        if allowed:
            check(client)
        else:
            with pytest.raises(UnsupportedFeature):
                check(client)


def test_a_new_client_with_two_features() -> None:
    client = {"appendOnly", "invariants"}
    Protocol(1, 2).check_read_write(client)
    used = Metadata(name="t1", configuration=FEED)
    with pytest.raises(UnsupportedFeature) as caught:
        Protocol(1, 4).check_read_write(client, metadata=used)
    assert caught.value.fields["features"] == ["changeDataFeed"]
    with pytest.raises(UnsupportedFeature) as strict:
        Protocol(1, 4).check_writable(client)
    assert strict.value.fields["features"] == [
        "changeDataFeed",
        "checkConstraints",
        "generatedColumns",
    ]
    # Merely supported, not used: the finer gate lets the client in.
    Protocol(1, 4).check_read_write(client, metadata=Metadata(name="t1"))
