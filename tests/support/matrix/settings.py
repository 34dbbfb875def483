"""What the cells of the matrix differ in besides types: compat features and writer settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.support.matrix.columns import GROUPS

__all__ = ["DEFAULT", "FEATURES", "SETTINGS", "Setting", "settings_of"]

FEATURES: Final[Mapping[str, Mapping[str, str]]] = {
    "none": {},
    "icebergCompatV1": {
        "delta.columnMapping.mode": "name",
        "delta.enableIcebergCompatV1": "true",
    },
    "icebergCompatV2": {
        "delta.columnMapping.mode": "id",
        "delta.enableIcebergCompatV2": "true",
    },
    "icebergCompatV3": {
        "delta.columnMapping.mode": "id",
        "delta.enableIcebergCompatV3": "true",
        "delta.enableRowTracking": "true",
    },
    "icebergWriterCompatV1": {"delta.enableIcebergWriterCompatV1": "true"},
    "icebergWriterCompatV3": {"delta.enableIcebergWriterCompatV3": "true"},
}
"""The table properties of each compat feature; ``none`` is the control for readers of Delta."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Session settings under which rows are written."""

    name: str
    conf: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = tuple(GROUPS)
    """The groups whose files may change by it."""
    at_creation: bool = False
    """Whether it changes the table that CREATE TABLE makes, too: then it has a table of its own."""


_PARQUET: Final = "spark.sql.parquet"
_TEMPORAL: Final = (
    "primitives",
    "dates and times before 1900",
    "timestamps",
    "partitions",
    "partitions before 1900",
)
_TEXT: Final = ("char and varchar", "partitions by char")
_LEGACY_CALENDAR: Final = {
    f"{_PARQUET}.datetimeRebaseModeInWrite": "LEGACY",
    f"{_PARQUET}.int96RebaseModeInWrite": "LEGACY",
}

DEFAULT: Final = Setting(name="default")
SETTINGS: Final = (
    DEFAULT,
    Setting(name="legacy calendar", conf=_LEGACY_CALENDAR, groups=_TEMPORAL),
    Setting(
        name="int96",
        conf={f"{_PARQUET}.outputTimestampType": "INT96"},
        groups=(*_TEMPORAL, "nested"),
    ),
    Setting(
        name="int96, legacy calendar",
        conf={**_LEGACY_CALENDAR, f"{_PARQUET}.outputTimestampType": "INT96"},
        groups=_TEMPORAL,
    ),
    Setting(
        name="milliseconds",
        conf={f"{_PARQUET}.outputTimestampType": "TIMESTAMP_MILLIS"},
        groups=_TEMPORAL,
    ),
    Setting(name="no field ids", conf={f"{_PARQUET}.fieldId.write.enabled": "false"}),
    Setting(name="legacy format", conf={f"{_PARQUET}.writeLegacyFormat": "true"}),
    Setting(name="no dictionary", conf={"parquet.enable.dictionary": "false"}),
    Setting(name="pages of version 2", conf={"parquet.writer.version": "v2"}),
    Setting(
        name="small row groups",
        conf={"parquet.block.size": "64", "parquet.page.size": "64"},
    ),
    Setting(
        name="char as string",
        conf={"spark.sql.legacy.charVarcharAsString": "true"},
        groups=_TEXT,
    ),
    Setting(
        name="table made with char as string",
        conf={"spark.sql.legacy.charVarcharAsString": "true"},
        groups=_TEXT,
        at_creation=True,
    ),
    Setting(
        name="table made with char as varchar",
        conf={"spark.sql.charAsVarchar": "true"},
        groups=_TEXT,
        at_creation=True,
    ),
    Setting(
        name="no padding by readers",
        conf={"spark.sql.readSideCharPadding": "false"},
        groups=_TEXT,
    ),
)
"""Spark and Delta settings that change data files."""


def settings_of(group: str) -> list[tuple[Setting, ...]]:
    """The settings of a group: those of one table each."""
    chosen = [setting for setting in SETTINGS if group in setting.groups]
    shared = tuple(setting for setting in chosen if not setting.at_creation)
    return [shared, *((setting,) for setting in chosen if setting.at_creation)]
