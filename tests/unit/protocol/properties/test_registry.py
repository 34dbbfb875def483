"""Known properties: strict when they are set, lenient when they are read."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from twinlake.errors import Code, UserError
from twinlake.protocol import (
    FEATURES,
    PROPERTIES,
    Metadata,
    canonical_key,
    is_protocol_key,
    is_secret,
    parse_properties,
    partition_zone,
    property_value,
    render_property_table,
    strip_protocol_keys,
)

DAY = 86_400_000


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"delta.appendOnly": "true"}, {"delta.appendOnly": "true"}),
        ({"DELTA.APPENDONLY": "TRUE"}, {"delta.appendOnly": "TRUE"}),
        ({"delta.enableDeletionVectors": True}, {"delta.enableDeletionVectors": "true"}),
        ({"delta.checkpointInterval": 5}, {"delta.checkpointInterval": "5"}),
        ({"delta.columnMapping.mode": "ID"}, {"delta.columnMapping.mode": "id"}),
        ({"delta.isolationLevel": "serializable"}, {"delta.isolationLevel": "Serializable"}),
        ({"delta.Constraints.MyCheck": "a > 0"}, {"delta.constraints.MyCheck": "a > 0"}),
        (
            {"delta.feature.rowtracking": "supported"},
            {"delta.feature.rowTracking": "supported"},
        ),
        ({"owner": "", "x.Y": "z"}, {"owner": "", "x.Y": "z"}),
        ({"twinlake.note": "x"}, {"twinlake.note": "x"}),
        (
            {"twinlake.partitiontimezone": "Europe/Berlin"},
            {"twinlake.partitionTimeZone": "Europe/Berlin"},
        ),
        ({"twinlake.partitionTimeZone": "-03:30"}, {"twinlake.partitionTimeZone": "-03:30"}),
        (
            {"delta.logRetentionDuration": " interval 1 day "},
            {"delta.logRetentionDuration": " interval 1 day "},
        ),
        (
            {"delta.universalFormat.enabledFormats": "iceberg"},
            {"delta.universalFormat.enabledFormats": "iceberg"},
        ),
    ],
)
def test_accepted(given: dict[str, object], stored: dict[str, str]) -> None:
    assert parse_properties(given) == stored


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.appendOnly", "yes"),
        # Delta's own parsers of switches, numbers and words do not forgive blanks either.
        ("delta.appendOnly", " true"),
        ("delta.appendOnly", "false\n"),
        ("delta.checkpointInterval", " 5"),
        ("delta.columnMapping.mode", "id "),
        ("delta.isolationLevel", " Serializable"),
        ("delta.feature.rowTracking", " supported"),
        ("delta.checkpointInterval", "0"),
        ("delta.checkpointInterval", "ten"),
        ("delta.checkpointInterval", "1" * 5000),
        ("delta.dataSkippingNumIndexedCols", "-2"),
        ("delta.columnMapping.mode", "names"),
        ("delta.checkpointPolicy", "v3"),
        ("delta.isolationLevel", "SnapshotIsolation"),
        ("delta.logRetentionDuration", "interval 1 month"),
        ("delta.logRetentionDuration", "interval -1 days"),
        ("delta.logRetentionDuration", "interval"),
        ("delta.logRetentionDuration", "seven days"),
        ("delta.universalFormat.enabledFormats", "iceberg,paper"),
        ("delta.targetFileSize", "huge"),
        ("delta.minReaderVersion", "two"),
        ("twinlake.partitionTimeZone", "Europe/Atlantis"),
        ("twinlake.partitionTimeZone", "../UTC"),
        ("twinlake.partitionTimeZone", "+24:00"),
        ("twinlake.partitionTimeZone", " UTC"),
        ("twinlake.partitionTimeZone", "+2"),
        ("twinlake.partitionTimeZone", ""),
        ("delta.constraints.", "a > 0"),
        ("delta.constraints.c", " "),
        ("delta.feature.rowTracking", "maybe"),
        ("delta.feature.nothing", "supported"),
        ("delta.appendOnly", None),
        ("delta.appendOnly", 1.5),
        ("", "x"),
        ("k", "\ud800"),
        ("k" * 5000, "x"),
        ("owner", "x" * 1_000_001),
    ],
    ids=lambda value: str(value)[:30].encode("ascii", "replace").decode(),
)
def test_refused(key: str, value: object) -> None:
    with pytest.raises(UserError) as caught:
        parse_properties({key: value})
    assert caught.value.code in {Code.PROPERTY_INVALID, Code.FEATURE_UNKNOWN}
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize(
    ("key", "value", "delta_class"),
    [
        ("delta.apendOnly", "true", "DELTA_UNKNOWN_CONFIGURATION"),
        ("delta.feature.nothing", "supported", "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"),
        ("delta.feature.rowTracking", "on", "DELTA_UNSUPPORTED_FEATURE_STATUS"),
        ("delta.minWriterVersion", "x", "DELTA_PROTOCOL_PROPERTY_NOT_INT"),
    ],
)
def test_delta_names_of_refusals(key: str, value: str, delta_class: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_properties({key: value})
    assert caught.value.delta_class == delta_class


def test_did_you_mean() -> None:
    with pytest.raises(UserError) as caught:
        parse_properties({"delta.enableChangeDataFeeds": "true"})
    assert caught.value.fix == "Did you mean `delta.enableChangeDataFeed`?"
    with pytest.raises(UserError) as feature:
        parse_properties({"delta.feature.deletionVector": "supported"})
    assert "delta.feature.deletionVectors" in feature.value.fix


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(UserError) as caught:
        parse_properties({"delta.appendOnly": "x", "delta.nope": "1", "fine": "1"})
    assert caught.value.fields["properties"] == ["delta.appendOnly", "delta.nope"]
    with pytest.raises(UserError, match="given twice"):
        parse_properties({"delta.appendOnly": "true", "delta.appendonly": "false"})


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("interval 7 days", 7 * DAY),
        ("7 DAYS", 7 * DAY),
        ("interval 1 week", 7 * DAY),
        ("INTERVAL 1 day 2 hours 3 minutes 4 seconds", DAY + 7_384_000),
        ("interval 0.5 seconds", 500),
        ("interval 1500 microseconds", 1),
        ("interval 24 hours", DAY),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    key = "delta.logRetentionDuration"
    assert property_value(Metadata(configuration={key: text}), key) == milliseconds


@pytest.mark.parametrize(
    ("stored", "hours"),
    [
        ({}, 0),
        ({"twinlake.partitionTimeZone": "Z"}, 0),
        ({"twinlake.partitionTimeZone": "America/New_York"}, -5),
        ({"twinlake.partitionTimeZone": "+03:00"}, 3),
        ({"twinlake.partitionTimeZone": "nowhere"}, 0),
    ],
    ids=str,
)
def test_zone_of_partition_timestamps(stored: dict[str, str], hours: int) -> None:
    zone = partition_zone(Metadata(configuration=stored))
    assert datetime(2024, 1, 31, tzinfo=zone).utcoffset() == timedelta(hours=hours)


def test_values_in_force() -> None:
    assert property_value(Metadata(), "delta.checkpointInterval") == 10
    assert property_value(Metadata(), "delta.logRetentionDuration") == 30 * DAY
    assert property_value(Metadata(), "delta.setTransactionRetentionDuration") is None
    # A value that another writer stored wrongly does not make the table unreadable.
    broken = Metadata(configuration={"delta.checkpointInterval": "often"})
    assert property_value(broken, "delta.checkpointInterval") == 10
    for text in (" true", "yes", ""):
        broken = Metadata(configuration={"delta.appendOnly": text})
        assert (
            property_value(broken, "delta.appendOnly") is broken.flag("delta.appendOnly") is False
        )


@pytest.mark.parametrize("key", PROPERTIES)
def test_defaults_can_be_parsed(key: str) -> None:
    row = PROPERTIES[key]
    assert canonical_key(key.upper()) == key
    if row.default is not None:
        row.parse(row.default)


def test_features_are_switched_by_known_properties() -> None:
    mentioned = {
        part
        for row in FEATURES.values()
        for part in row.auto_text.split("`")
        if part.startswith("delta.") and "*" not in part
    }
    removed = {
        key
        for row in FEATURES.values()
        if row.removal
        for key in (*row.removal.first_set, *row.removal.first_unset, *row.removal.unset)
    }
    assert {part.split("=")[0] for part in mentioned} | removed <= PROPERTIES.keys()


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("fs.s3a.secret.key", True),
        ("fs.s3a.access.key", True),
        ("aws_secret_access_key", True),
        ("fs.azure.account.key.x", True),
        ("fs.azure.sas.container", True),
        ("db.password", True),
        ("apiToken", True),
        ("delta.appendOnly", False),
        ("owner", False),
        ("sasquatch", False),
        ("primary.key", False),
    ],
)
def test_secrets(key: str, secret: bool) -> None:
    assert is_secret(key) is secret


def test_known_properties_are_no_secrets() -> None:
    assert not any(is_secret(key) for key in PROPERTIES)


def test_steering_is_stripped() -> None:
    asked = {
        "delta.minReaderVersion": "1",
        "DELTA.MINWRITERVERSION": "2",
        "delta.Feature.anything": "supported",
        "delta.ignoreProtocolDefaults": "true",
    }
    assert all(is_protocol_key(key) for key in asked)
    assert strip_protocol_keys({**asked, "delta.appendOnly": "true"}) == {
        "delta.appendOnly": "true"
    }


def test_property_table_has_a_line_for_each() -> None:
    assert len(render_property_table().splitlines()) == len(PROPERTIES) + 2
