"""Which tables the matrix has: all of them, and the few that every run of the tests takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.support.matrix.columns import GROUPS
from tests.support.matrix.run import TableOfCells
from tests.support.matrix.settings import FEATURES, settings_of
from tests.support.matrix.writers import WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["all_tables", "some_tables"]

_GROUPS_WITH_FILES: Final = (
    "primitives",
    "dates and times before 1900",
    "nested",
    "char and varchar",
    "partitions before 1900",
)
_KEPT_BY_FILES: Final = (
    "default",
    "legacy calendar",
    "int96",
    "milliseconds",
    "no field ids",
    "legacy format",
    "char as string",
)
"""The groups and settings that matter to a table that gets its feature when it has files."""


def all_tables() -> Iterator[TableOfCells]:
    """Every group under every feature by every writer."""
    for feature in FEATURES:
        for group in GROUPS:
            for writer in WRITERS:
                yield from _tables(group, feature, writer)


def _tables(group: str, feature: str, writer: str) -> Iterator[TableOfCells]:
    """Where files are there before the feature, each setting has a table of its own.

    One file that cannot be taken over refuses all of the table.
    """
    together, chosen = settings_of(group), WRITERS[writer]
    if feature not in chosen.features:
        return
    if chosen.finish is not None:
        if group not in _GROUPS_WITH_FILES:
            return
        alone = (setting for settings in together for setting in settings)
        together = [(setting,) for setting in alone if setting.name in _KEPT_BY_FILES]
    for settings in together:
        yield TableOfCells(GROUPS[group], feature, chosen, settings)


_SOME: Final = (
    ("primitives", "icebergCompatV2", "Delta Spark", ("default", "int96", "legacy format")),
    ("primitives", "icebergWriterCompatV1", "twinlake native", ("default", "int96")),
    ("primitives", "none", "Delta Spark", ("default", "no dictionary")),
    (
        "dates and times before 1900",
        "icebergCompatV2",
        "Delta Spark",
        ("default", "legacy calendar"),
    ),
    (
        "dates and times before 1900",
        "icebergWriterCompatV1",
        "twinlake small frames",
        ("default", "legacy calendar"),
    ),
    ("nested", "icebergCompatV1", "Delta Spark", ("default", "no field ids")),
    ("nested", "icebergCompatV3", "twinlake Arrow", ("default", "legacy format")),
    ("char and varchar", "icebergCompatV2", "Delta Spark", ("default", "char as string")),
    ("partitions", "icebergWriterCompatV3", "twinlake small frames", ("default",)),
    ("partitions before 1900", "icebergCompatV2", "Delta Spark", ("default", "legacy calendar")),
    ("primitives", "icebergCompatV2", "Delta Spark, then upgrade", ("legacy calendar",)),
)


def some_tables() -> Iterator[TableOfCells]:
    """A slice in which every feature, every reader and most writers occur."""
    for group, feature, writer, names in _SOME:
        chosen = tuple(s for s in settings_of(group)[0] if s.name in names)
        yield TableOfCells(GROUPS[group], feature, WRITERS[writer], chosen)
