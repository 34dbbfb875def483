"""Options of a stream: what they mean, and how mistakes in them are reported."""

from __future__ import annotations

from typing import Any

import pytest

from twinlake.errors import UnsupportedFeature, UserError
from twinlake.spark.streaming.source_options import SourceOptions


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"startingVersion": "3"}, "starting_version", 3),
        ({"startingversion": 0}, "starting_version", 0),
        ({"startingVersion": "Latest"}, "starting_version", "latest"),
        ({"startingTimestamp": "1970-01-02"}, "starting_timestamp", 86_400_000),
        ({"ignoreDeletes": "TRUE"}, "ignore_deletes", True),
        ({"ignoreDeletes": False}, "ignore_deletes", False),
        ({"ignoreChanges": True}, "ignore_changes", True),
        ({"ignoreFileDeletion": "true"}, "ignore_changes", True),
        ({"skipChangeCommits": "true"}, "skip_change_commits", True),
        ({"failOnDataLoss": "false"}, "fail_on_data_loss", False),
        ({}, "fail_on_data_loss", True),
        ({"withEventTimeOrder": "true", "eventTimeColumn": "at"}, "event_time", "at"),
        ({"withEventTimeOrder": "false", "eventTimeColumn": "at"}, "event_time", None),
        ({"allowSourceColumnDrop": "always"}, "allow_drop", True),
        ({"readChangeFeed": "false"}, "change_feed", False),
        ({"readChangeFeed": True}, "change_feed", True),
        ({"readChangeData": "true"}, "change_feed", True),
        ({"somethingOfSpark": "x"}, "starting_version", None),
    ],
)
def test_an_option_is_understood(given: dict[str, Any], field: str, value: object) -> None:
    assert getattr(SourceOptions.parse(given), field) == value


@pytest.mark.parametrize(
    ("text", "size"),
    [("100", 100), ("1b", 1), ("2k", 2048), ("2 KB", 2048), ("10m", 10 << 20), ("1g", 1 << 30)],
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert SourceOptions.parse({"maxBytesPerTrigger": text}).limits.max_bytes == size


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxFilesPerTrigger", "0"),
        ("maxFilesPerTrigger", "-1"),
        ("maxFilesPerTrigger", "many"),
        ("maxFilesPerTrigger", "²"),
        ("maxBytesPerTrigger", "10x"),
        ("maxBytesPerTrigger", "0"),
        ("startingVersion", "-1"),
        ("startingVersion", "one"),
        ("startingVersion", "1.5"),
        ("ignoreDeletes", "yes"),
        ("failOnDataLoss", "1"),
        ("excludeRegex", "("),
        ("allowSourceColumnDrop", "7x"),
    ],
)
def test_a_value_that_does_not_parse_is_named(name: str, value: str) -> None:
    with pytest.raises(UserError, match=name) as raised:
        SourceOptions.parse({name: value})
    assert raised.value.delta_class == "DELTA_ILLEGAL_OPTION"
    assert raised.value.fields == {"option": name, "value": value}


def test_a_time_that_does_not_parse_is_refused() -> None:
    with pytest.raises(UserError, match="not a point in time"):
        SourceOptions.parse({"startingTimestamp": "yesterday"})


def test_two_places_to_begin_are_refused() -> None:
    with pytest.raises(UserError, match="Both startingVersion and startingTimestamp"):
        SourceOptions.parse({"startingVersion": 1, "startingTimestamp": "2024-01-01"})


def test_an_order_by_no_column_is_refused() -> None:
    with pytest.raises(UserError, match="eventTimeColumn"):
        SourceOptions.parse({"withEventTimeOrder": "true"})


@pytest.mark.parametrize("name", ["schemaTrackingLocation", "schemaLocation"])
def test_what_is_not_there_yet_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=name):
        SourceOptions.parse({name: "true"})


def test_a_function_call_knows_its_options() -> None:
    with pytest.raises(UserError, match="maxFilePerTrigger") as raised:
        SourceOptions.parse({"maxFilePerTrigger": 3}, strict=True)
    assert "maxFilesPerTrigger" in raised.value.why
