"""Real processes that change the rows of one table without Spark, each those of its own ids.

A process writes down what it is about to do, and afterwards whether it was acknowledged or lost to
another commit, in one line each: killed at any moment it leaves exactly what it knew. Every attempt
has a tag, which its commit repeats as ``userMetadata``.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.spark.workers import PARTS, apply, notes_of, strays

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.synchronize import Barrier

__all__ = [
    "IDS",
    "Journal",
    "RowTable",
    "RowWriter",
    "by_id",
    "change_rows",
    "iceberg_rows_by_id",
    "tagged_versions",
]

IDS = 1_000_000
"""How many ids a writer has for itself."""

_OPERATIONS = {"write": 30, "delete": 20, "update": 20, "upsert": 20, "optimize": 10}
"""How often each comes, in percent."""

Note = dict[str, Any]
Rows = dict[int, int]


# The side of the writer.


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWriter:
    """What a process is told."""

    table: str
    name: str
    number: int
    folder: str
    """Where the notes go."""
    changes: int | None = None
    """How many changes it makes; None for as many as it can."""
    until: str | None = None
    """A file: while it is not there, the writer goes on after its last change."""
    options: Mapping[str, Any] | None = None
    """How to open the table where it is in an object store."""

    @property
    def journal(self) -> Path:
        """The file of its notes."""
        return Path(self.folder, f"{self.name}.notes")

    def is_done(self, changes: int) -> bool:
        """Whether that many changes are enough."""
        if self.changes is None or changes < self.changes:
            return False
        return self.until is None or os.path.exists(self.until)  # noqa: PTH110


def change_rows(writer: RowWriter, start: Barrier | None = None) -> None:
    """Change rows, all writers released together; who loses starts again from a newer version."""
    from twinlake import ConflictError, Table

    dice = random.Random(writer.name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    journal = os.open(writer.journal, flags)

    def note(**fields: object) -> None:
        os.write(journal, json.dumps({**fields, "at": time.time()}).encode() + b"\n")

    table = Table.open(writer.table, durable=False, options=writer.options)
    if start is not None:
        start.wait(120)
    for number, (op, what) in enumerate(_changes(dice, writer.number * IDS)):
        if writer.is_done(number):
            break
        if writer.changes is not None and number >= writer.changes:
            time.sleep(0.2)  # leaves the processor to whoever it waits for
        if dice.random() < 0.5:  # else from what it knows, with what others did to be found out
            table = table.refresh()
        for attempt in count():
            tag = f"{writer.name}-{number}-{attempt}"
            note(begin=tag, op=op, what=what)
            try:
                table = _change(table, op, what, tag)
            except ConflictError as error:
                note(lost=tag, error=type(error).__name__, winner=error.winner)
                time.sleep(dice.uniform(0, 0.01 * (attempt + 1)))
                table = table.refresh()
            else:
                said = [str(warning) for warning in table.warnings]
                note(done=tag, version=table.version, warnings=said)
                break


def _changes(dice: random.Random, first: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """What a writer does, as the notes describe it."""
    top = first
    for number in count():
        (op,) = (
            dice.choices(list(_OPERATIONS), list(_OPERATIONS.values())) if number else ("write",)
        )
        low = dice.randrange(first, top) if top > first else first
        some = [low, min(low + dice.randrange(1, 12), top)]
        match op:
            case "write":
                yield op, {"insert": [top, top + 10], "value": number}
                top += 10
            case "delete":
                yield op, {"gone": some, "only": dice.randrange(PARTS)}
            case "update":
                yield op, {"updated": some, "add": number}
            case "upsert":
                # Some are there, some were deleted, some are new.
                yield op, {"source": [max(first, top - 6), top + 4], "value": number}
                top += 4
            case _:
                # One partition only: in the other one writers seldom meet in a file.
                yield op, {"only": 0}


def _change(table: Any, op: str, what: Mapping[str, Any], tag: str) -> Any:
    match op:
        case "write":
            return table.append(_rows(what["insert"], what["value"]), user_metadata=tag)
        case "delete":
            where = f"part = {what['only']} AND {_between(what['gone'])}"
            return table.delete(where, user_metadata=tag)
        case "update":
            new = {"value": f"value + {what['add']}"}
            return table.update(new, where=_between(what["updated"]), user_metadata=tag)
        case "upsert":
            return table.merge(_rows(what["source"], what["value"]), on="id", user_metadata=tag)
        case _:
            return table.optimize(f"part = {what['only']}", user_metadata=tag)


def _between(ids: list[int]) -> str:
    return f"id >= {ids[0]} AND id < {ids[1]}"


def _rows(ids: list[int], value: int) -> dict[str, list[int]]:
    numbers = list(range(*ids))
    return {
        "id": numbers,
        "value": [value] * len(numbers),
        "part": [number % PARTS for number in numbers],
    }


def _apply(op: str, what: Mapping[str, Any], rows: Rows) -> None:
    """What a change does to the rows of its writer, id to value."""
    match op:
        case "update":
            for number in rows.keys() & set(range(*what["updated"])):
                rows[number] += what["add"]
        case "upsert":
            rows |= dict.fromkeys(range(*what["source"]), what["value"])
        case _:
            apply(op, what, rows)


# The side of the test.


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table as a newcomer finds it, and what lies in its folder."""

    path: Path
    table: Any
    rows: Rows
    tagged: Mapping[str, int]
    """Versions by the tag of their commit."""
    strays: Mapping[str, float]
    """Files that no version ever named, with the time they were written."""

    @classmethod
    def read(cls, path: Path) -> RowTable:
        """Open it from scratch and read every version of the log and all rows."""
        from twinlake import Table
        from twinlake.log import CACHE, check_checksum, read_checksum

        CACHE.forget(Table.open(path, durable=False).location)
        table = Table.open(path, durable=False)
        checksum = read_checksum(table.snapshot.store, table.version)
        if checksum is not None:
            check_checksum(table.snapshot, checksum)
        found = by_id(table.to_arrow().to_pylist())
        return cls(path, table, found, tagged_versions(table), strays(path, table))


def tagged_versions(table: Any) -> dict[str, int]:
    """Versions by the tag of their commit; a version that is not there is an error."""
    history = table.history()
    assert [commit.version for commit in history] == list(range(table.version, -1, -1))
    tags = Counter(c.user_metadata for c in history if c.user_metadata is not None)
    assert not [tag for tag, times in tags.items() if times > 1]
    return {c.user_metadata: c.version for c in history if c.user_metadata is not None}


def by_id(rows: list[dict[str, Any]]) -> Rows:
    """The rows, id to value; one that is there twice, or in the wrong partition, is an error."""
    twice = [number for number, times in Counter(row["id"] for row in rows).items() if times > 1]
    assert not twice, f"rows {sorted(twice)[:5]} are there twice"
    assert all(row["part"] == row["id"] % PARTS for row in rows)
    return {row["id"]: row["value"] for row in rows}


def iceberg_rows_by_id(path: Path) -> Rows:
    """The rows as PyIceberg reads them."""
    from tests.support.iceberg.both_sides import iceberg_rows

    return by_id(iceberg_rows(path))


@dataclass(slots=True)
class Journal:
    """What a writer was told, held against the log."""

    path: Path
    rows: Rows = field(default_factory=dict)
    """The rows it must have left."""
    lost: list[Note] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    """Those that it committed."""
    began: float = 0.0
    """When its last change began."""
    in_flight: str | None = None
    """The tag of a change of which it heard nothing any more; it may be there or not."""

    @classmethod
    def read(cls, path: Path, tagged: Mapping[str, int]) -> Journal:
        """Follow the notes; whatever they say and the log does not is an error."""
        found, notes = cls(path), notes_of(path)
        begun = [note for note in notes if "begin" in note]
        done = {note["done"]: note for note in notes if "done" in note}
        found.lost = [note for note in notes if "lost" in note]
        lost = {note["lost"] for note in found.lost}
        for note in begun:
            tag = note["begin"]
            assert tag not in lost or tag not in tagged, f"{tag} lost and is there"
            if tag in lost:
                continue
            before = dict(found.rows)
            if tag in done or tag in tagged:
                _apply(note["op"], note["what"], found.rows)
            if tag in tagged:
                # A Spark driver knows the newest version, which may be another one's.
                assert tag not in done or done[tag]["version"] >= tagged[tag]
                found.versions.append(tagged[tag])
            elif tag in done:
                assert found.rows == before, f"{tag} was acknowledged and is lost"
            if tag not in done:
                assert note is begun[-1]
                found.in_flight = tag
        found.warnings = [text for note in done.values() for text in note.get("warnings", ())]
        found.began = begun[-1]["at"] if begun else 0.0
        return found
