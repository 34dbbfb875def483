"""Which files change what a statement does, by the meaning of SQL: no code of twinlake decides it.

A statement is a step of a workload on columns of numbers and text. DuckDB evaluates its
conditions on the rows, and plain Python says what the statement does with them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import duckdb

from tests.support.engines import workloads as w

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

__all__ = ["COLUMNS", "files_that_matter"]

Row = tuple[Any, ...]
#: The columns of the tables, as DuckDB and Spark both understand them.
COLUMNS: Final[Mapping[str, str]] = {"id": "BIGINT", "p": "INT", "a": "INT", "s": "STRING"}
_TEXT: Final = re.compile(r"'((?:\\.|[^'\\])*)'")
_CONDITION: Final = "condition"


def files_that_matter(
    step: w.Step,
    files: Mapping[str, Sequence[Row]],
    source: Sequence[Row],
    partition: str | None,
) -> set[str]:
    """The files whose rows change what the statement does, each by leaving out its rows."""
    rows = [(path, row) for path, found in files.items() for row in found]
    meaning = _Meaning.of(step, [row for _, row in rows], source, partition)
    whole = meaning.result(frozenset(range(len(rows))))
    return {
        path
        for path in files
        if meaning.result(frozenset(i for i, (own, _) in enumerate(rows) if own != path)) != whole
    }


@dataclass(frozen=True)
class _Meaning:
    """What a statement does to which rows, every condition evaluated once on all of them."""

    step: w.Step
    source: int
    #: By clause: the target rows, or the source rows of an insert, for which its condition holds.
    holds: tuple[frozenset[Any], ...]
    #: Pairs of a target row and a source row that a MERGE matches.
    pairs: frozenset[tuple[int, int]] = frozenset()

    @classmethod
    def of(
        cls, step: w.Step, rows: Sequence[Row], source: Sequence[Row], partition: str | None
    ) -> _Meaning:
        with duckdb.connect() as db:
            _fill(db, "t", rows)
            _fill(db, "s", source)
            if not isinstance(step, w.Merge):
                where = _replaced(step, partition)
                return cls(step, len(source), (_numbers(db, "t", where),))
            pairs = frozenset(
                db.sql(f"SELECT t.n, s.n FROM t, s WHERE {_duck(step.on)}").fetchall()
            )
            holds: list[frozenset[Any]] = []
            for name, given in step.clauses:
                condition = given.get(_CONDITION)
                if name.startswith("whenMatched"):
                    text = "true" if condition is None else _duck(condition)
                    found = db.sql(f"SELECT t.n, s.n FROM t, s WHERE {text}").fetchall()
                    holds.append(frozenset(found) & pairs)
                else:
                    holds.append(_numbers(db, "t" if "BySource" in name else "s", condition))
            return cls(step, len(source), tuple(holds), pairs)

    def result(self, live: frozenset[int]) -> Counter[Hashable]:
        """The rows that are deleted, updated and inserted where only some target rows are there."""
        if not isinstance(self.step, w.Merge):
            return Counter(self.holds[0] & live)
        pairs = [(t, s) for t, s in self.pairs if t in live]
        done: list[Hashable] = []
        done += [self._first("whenMatched", pair) for pair in pairs]
        alone = live - {t for t, _ in pairs}
        done += [self._first("whenNotMatchedBySource", row) for row in alone]
        new = set(range(self.source)) - {s for _, s in pairs}
        done += [self._first("whenNotMatchedInsert", row) for row in new]
        return Counter(one for one in done if one is not None)

    def _first(self, kind: str, row: Any) -> Hashable:
        """The first clause of a kind that acts on a row; ``None`` if there is none."""
        assert isinstance(self.step, w.Merge)
        for number, (name, _) in enumerate(self.step.clauses):
            if name.startswith(kind) and row in self.holds[number]:
                return kind, number, row
        return None


def _replaced(step: w.Step, partition: str | None) -> str | None:
    """The condition on the rows that a statement deletes or updates; ``None``: all."""
    match step:
        case w.Delete(where=where) | w.Update(where=where):
            return where
        case w.Write(replace_where=str(where)):
            return where
        case w.Write(dynamic=True) if partition is not None:
            return f"EXISTS (SELECT 1 FROM s WHERE s.{partition} <=> t.{partition})"
        case w.Write(mode="overwrite"):
            return None
        case _:
            raise TypeError(f"{step} changes no rows that are there")


def _numbers(db: duckdb.DuckDBPyConnection, name: str, where: str | None) -> frozenset[int]:
    text = "true" if where is None else _duck(where)
    return frozenset(n for (n,) in db.sql(f"SELECT n FROM {name} WHERE {text}").fetchall())


def _duck(text: str) -> str:
    """A condition of Spark's in the SQL of DuckDB."""
    parts = re.split(r"('(?:\\.|[^'\\])*')", text)
    return "".join(
        _TEXT.sub(_literal, part)
        if part.startswith("'")
        else part.replace("`", '"').replace("<=>", "IS NOT DISTINCT FROM")
        for part in parts
    )


def _literal(found: re.Match[str]) -> str:
    text = re.sub(r"\\(.)", r"\1", found[1])
    return "'" + text.replace("'", "''") + "'"


def _fill(db: duckdb.DuckDBPyConnection, name: str, rows: Sequence[Row]) -> None:
    columns = ", ".join(f'"{column}" {kind}' for column, kind in COLUMNS.items())
    db.execute(f"CREATE TABLE {name} (n BIGINT, {columns})")
    for number, row in enumerate(rows):
        db.execute(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", [number, *row])
