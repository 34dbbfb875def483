"""How protocols grow under either policy."""

from __future__ import annotations

import pytest

from twinlake.errors import UnsupportedFeature, UserError
from twinlake.protocol import MINIMAL, POLICIES, Metadata, Protocol, find_policy

BASE = {"appendOnly", "invariants"}
IGNORE = {"delta.ignoreProtocolDefaults": "true"}


def listed(*names: str, reader: int = 1) -> Protocol:
    return Protocol(reader, 7, None, BASE | set(names))


@pytest.mark.parametrize(
    ("configuration", "bundled", "minimal"),
    [
        ({}, Protocol(1, 2), Protocol(1, 2)),
        ({"delta.columnMapping.mode": "name"}, Protocol(2, 5), listed("columnMapping", reader=2)),
        ({"delta.appendOnly": "true"}, Protocol(1, 2), Protocol(1, 2)),
        (
            {"delta.appendOnly": "true"} | IGNORE,
            Protocol(1, 2),
            Protocol(1, 7, None, {"appendOnly"}),
        ),
        (
            {"delta.enableRowTracking": "true"},
            listed("domainMetadata", "rowTracking"),
            listed("domainMetadata", "rowTracking"),
        ),
        (
            {"delta.enableDeletionVectors": "true"},
            Protocol(3, 7, {"deletionVectors"}, BASE | {"deletionVectors"}),
            Protocol(3, 7, {"deletionVectors"}, BASE | {"deletionVectors"}),
        ),
        (IGNORE, Protocol(1, 1), Protocol(1, 1)),
        ({"delta.minWriterVersion": "4"}, Protocol(1, 4), Protocol(1, 4)),
        (
            {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"},
            Protocol(3, 7, (), ()),
            Protocol(1, 1),
        ),
        ({"delta.minReaderVersion": "3", "delta.minWriterVersion": "5"}, Protocol(2, 5), None),
        (
            {"delta.enableIcebergCompatV2": "true"},
            listed("icebergCompatV2", "columnMapping", reader=2),
            listed("icebergCompatV2", "columnMapping", reader=2),
        ),
        (
            {"delta.feature.typeWidening-preview": "supported", "delta.enableTypeWidening": "true"},
            Protocol(3, 7, {"typeWidening-preview"}, BASE | {"typeWidening-preview"}),
            Protocol(3, 7, {"typeWidening-preview"}, BASE | {"typeWidening-preview"}),
        ),
    ],
)
def test_new_table(
    configuration: dict[str, str], bundled: Protocol, minimal: Protocol | None
) -> None:
    metadata = Metadata(configuration=configuration)
    assert Protocol.for_new_table(metadata) == bundled
    assert Protocol.for_new_table(metadata, policy="minimal") == (minimal or bundled)


FEED = Metadata(configuration={"delta.enableChangeDataFeed": "true"})
ALL_1_4 = BASE | {"checkConstraints", "changeDataFeed", "generatedColumns"}


@pytest.mark.parametrize(
    ("start", "configuration", "bundled", "minimal"),
    [
        (Protocol(1, 2), dict(FEED.configuration), Protocol(1, 4), listed("changeDataFeed")),
        (
            Protocol(1, 4),
            {"delta.enableDeletionVectors": "true"},
            Protocol(3, 7, {"deletionVectors"}, ALL_1_4 | {"deletionVectors"}),
            Protocol(3, 7, {"deletionVectors"}, ALL_1_4 | {"deletionVectors"}),
        ),
        (
            Protocol(2, 5),
            {"delta.enableDeletionVectors": "true"},
            Protocol(
                3,
                7,
                {"deletionVectors", "columnMapping"},
                ALL_1_4 | {"deletionVectors", "columnMapping"},
            ),
            None,
        ),
        (
            Protocol(2, 5),
            {"delta.enableRowTracking": "true"},
            Protocol(2, 7, None, ALL_1_4 | {"columnMapping", "rowTracking", "domainMetadata"}),
            None,
        ),
        (
            Protocol(1, 7, None, {"rowTracking", "domainMetadata"}),
            {"delta.columnMapping.mode": "id"},
            Protocol(2, 7, None, {"rowTracking", "domainMetadata", "columnMapping"}),
            None,
        ),
        (
            Protocol(3, 7, {"mystery"}, {"mystery"}),
            {"delta.appendOnly": "true"},
            Protocol(3, 7, {"mystery"}, {"mystery", "appendOnly"}),
            None,
        ),
        (Protocol(1, 4), {"delta.minWriterVersion": "2"}, Protocol(1, 4), None),
        (Protocol(1, 2), {"delta.minWriterVersion": "4"}, Protocol(1, 4), None),
        (
            Protocol(1, 2),
            {"delta.feature.deletionVectors": "supported"},
            Protocol(3, 7, {"deletionVectors"}, BASE | {"deletionVectors"}),
            None,
        ),
    ],
)
def test_existing_table(
    start: Protocol, configuration: dict[str, str], bundled: Protocol, minimal: Protocol | None
) -> None:
    metadata = Metadata(configuration=configuration)
    assert start.upgraded_for(metadata) == bundled
    assert start.upgraded_for(metadata, policy="minimal") == (minimal or bundled)


def test_session_defaults_are_for_new_tables_and_can_be_ignored() -> None:
    prefix = "spark.databricks.delta.properties.defaults."
    session = {prefix + "minWriterVersion": "4", prefix + "feature.rowTracking": "supported"}
    names = ALL_1_4 | {"rowTracking", "domainMetadata"}
    assert Protocol.for_new_table(session=session) == Protocol(1, 7, None, names)
    ignoring = Metadata(configuration=IGNORE)
    assert Protocol.for_new_table(ignoring, session=session) == Protocol(1, 1)


def test_upgrade_by_hand() -> None:
    assert Protocol(1, 2).upgraded_to(2, 5) == Protocol(2, 5)
    assert Protocol(1, 2).upgraded_to(3, 7) == Protocol(3, 7, (), BASE)
    assert Protocol(1, 2).upgraded_to(3, 7, policy=MINIMAL) == Protocol(1, 2)
    with pytest.raises(UserError) as lowered:
        Protocol(2, 5).upgraded_to(1, 4)
    assert lowered.value.delta_class == "DELTA_INVALID_PROTOCOL_DOWNGRADE"
    with pytest.raises(UnsupportedFeature):
        Protocol(1, 2).upgraded_to(4, 8)


def test_policies_go_by_name() -> None:
    assert find_policy("minimal") is MINIMAL
    assert sorted(POLICIES) == ["bundled", "minimal"]
    with pytest.raises(UserError, match="bundled, minimal"):
        find_policy("greedy")
