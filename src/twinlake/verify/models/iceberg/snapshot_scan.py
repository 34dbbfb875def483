"""Reading a version, and reading the history that says what should have been read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.verify.models.iceberg.values import (
    EqualityDeleteFile,
    FileEntry,
    IcebergDataFile,
    PositionDeleteFile,
    Predicate,
    Record,
    Row,
    Table,
    TableVersion,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "KEY",
    "ROW",
    "Expected",
    "ScannedFiles",
    "dangling",
    "deleted_positions",
    "expected",
    "history",
    "live_data",
    "live_deletes",
    "matches",
    "scan",
]

#: History rules: a delete removes the key, or the very rows that it saw.
KEY, ROW = "key", "row"

#: The rows that a scan found, with their positions, file by file.
ScannedFiles = list[tuple[IcebergDataFile, list[tuple[int, Row]]]]
#: What the history says of one id: the values of col2 and col3, and the row's birth.
Expected = tuple[str | None, str | None, int]

GONE: Expected = (None, None, 0)


def matches(row: Iterable[str | None], predicate: Predicate | None) -> bool:
    """Whether a row has the wanted values; without a predicate every row has."""
    return predicate is None or all(
        wanted is None or wanted == value for wanted, value in zip(predicate, row, strict=True)
    )


def live_data(version: TableVersion) -> Iterator[tuple[FileEntry, IcebergDataFile]]:
    """The data files of a version."""
    for entry in version.data.entries:
        if entry.is_live and isinstance(entry.file, IcebergDataFile):
            yield entry, entry.file


def live_deletes(version: TableVersion) -> Iterator[tuple[FileEntry, PositionDeleteFile]]:
    """The delete files of a version."""
    if version.deletes is not None:
        for entry in version.deletes.entries:
            if entry.is_live and isinstance(entry.file, PositionDeleteFile):
                yield entry, entry.file


def deleted_positions(version: TableVersion) -> dict[tuple[str, int], int]:
    """Every deleted position with the greatest sequence number of a delete file that has it."""
    found: dict[tuple[str, int], int] = {}
    for entry, file in live_deletes(version):
        for position in file.positions:
            found[position] = max(entry.sequence_number, found.get(position, 0))
    return found


def deleted_ids(version: TableVersion) -> dict[str, int]:
    """Every id that an equality delete names, with the greatest sequence number of one."""
    found: dict[str, int] = {}
    for entry in version.deletes.entries if version.deletes is not None else ():
        if entry.is_live and isinstance(entry.file, EqualityDeleteFile):
            for row_id in entry.file.ids:
                found[row_id] = max(entry.sequence_number, found.get(row_id, 0))
    return found


def scan(
    version: TableVersion,
    predicate: Predicate | None = None,
    *,
    without: frozenset[str] = frozenset(),
    equality_hides_equal: bool = False,
) -> ScannedFiles:
    """The rows of a version that match, with their positions, file by file.

    A position delete hides a row if its sequence number is at least the data file's, an equality
    delete only if it is greater. Files of which no row survives are left out. ``without`` names
    data files whose deletes are ignored; ``equality_hides_equal`` is a mutant of the rule.
    """
    gone, ids = deleted_positions(version), deleted_ids(version)
    result: ScannedFiles = []
    for entry, file in live_data(version):
        rows = [
            (index, row)
            for index, row in enumerate(file.rows)
            if (gone.get((file.path, index), -1) < entry.sequence_number or file.path in without)
            and ids.get(row[0], -1) < entry.sequence_number + (not equality_hides_equal)
            and matches(row, predicate)
        ]
        if rows:
            result.append((file, rows))
    return result


def dangling(version: TableVersion) -> list[tuple[str, int]]:
    """Deleted positions whose data file is not in the version."""
    live = {file.path for _, file in live_data(version)}
    return [
        position
        for _, file in live_deletes(version)
        for position in file.positions
        if position[0] not in live
    ]


def expected(table: Table, rule: str) -> dict[str, Expected]:
    """What the history says every id holds in the newest version; absent ids have no row."""
    rows: dict[str, Expected] = {}
    for version in table:
        for record in version.recorded:
            now = rows.get(record.id, GONE)
            if rule == KEY or record.born == now[2] or _inserts(record, version):
                rows[record.id] = _apply(record, now)
    return {key: row for key, row in rows.items() if row[0] is not None or row[1] is not None}


def _inserts(record: Record, version: TableVersion) -> bool:
    return record.born == version.sequence_number


def _apply(record: Record, now: Expected) -> Expected:
    born = record.born if record.value is not None else 0
    if record.column == 1:
        # The record of the second column of a delete still has to find the row.
        return (record.value, now[1], record.born if now[1] is not None else born)
    return (now[0], record.value, record.born if now[0] is not None else born)


def history(table: Table, row_id: str, column: int) -> list[tuple[int, str | None]]:
    """The linearised history of one column of one row: ``(version, value)`` in order."""
    return [
        (number, record.value)
        for number, version in enumerate(table)
        for record in version.recorded
        if record.id == row_id and record.column == column
    ]
