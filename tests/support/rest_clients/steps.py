"""A script of changes that every client makes in its own words, beside a model of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.support.engines.three_engines import Engine, Model
from twinlake.table import Table

if TYPE_CHECKING:
    from tests.support.rest_clients.clients import RestClient

__all__ = ["PLAIN_STEPS", "SCHEMA_STEPS", "Script", "TwinlakeRows"]

Row = dict[str, Any]


def _append(client: Engine, model: Model) -> None:
    rows = model.new_rows(4)
    client.append(rows)
    model.rows |= {row["id"]: row for row in rows}


def _every_third(model: Model) -> list[int]:
    return sorted(model.rows)[::3]


def _delete(client: Engine, model: Model) -> None:
    ids = _every_third(model)
    client.delete(ids)
    model.rows = {number: row for number, row in model.rows.items() if number not in ids}


def _update(client: Engine, model: Model) -> None:
    ids = _every_third(model)
    client.update(ids, "changed")
    model.rows |= {number: {**model.rows[number], "name": "changed"} for number in ids}


def _merge(client: Engine, model: Model) -> None:
    rows = [{**model.rows[number], "n": -1} for number in _every_third(model)]
    rows += model.new_rows(2)
    client.merge(rows)
    model.rows |= {row["id"]: row for row in rows}


def _overwrite(client: Engine, model: Model) -> None:
    rows = model.new_rows(7)
    client.overwrite(rows)
    model.rows = {row["id"]: row for row in rows}


def _optimize(client: Engine, _model: Model) -> None:
    client.optimize()


def _add_column(client: Engine, model: Model) -> None:
    client.add_column("extra STRING")
    model.columns.append("extra STRING")
    model.rows = {number: {**row, "extra": None} for number, row in model.rows.items()}


def _rename_column(client: RestClient, model: Model) -> None:
    client.rename_column("day", "born")
    model.rows = {number: _renamed(row, "day", "born") for number, row in model.rows.items()}


def _renamed(row: Row, old: str, new: str) -> Row:
    return {new if name == old else name: value for name, value in row.items()}


def _widen_column(client: RestClient, _model: Model) -> None:
    client.widen_column("n", "BIGINT")


def _drop_column(client: RestClient, model: Model) -> None:
    client.drop_column("tags")
    for row in model.rows.values():
        row.pop("tags")


PLAIN_STEPS: Final[dict[str, Callable[[Any, Model], None]]] = {
    "append": _append,
    "append again": _append,
    "delete": _delete,
    "update": _update,
    "merge": _merge,
    "optimize": _optimize,
    "overwrite": _overwrite,
    "delete from the new": _delete,
    "add column": _add_column,
    "append with the column": _append,
    "merge again": _merge,
}
#: After these the model makes no rows any more.
SCHEMA_STEPS: Final[dict[str, Callable[[Any, Model], None]]] = {
    "rename column": _rename_column,
    "widen column": _widen_column,
    "drop column": _drop_column,
    "delete after all": _delete,
}


@dataclass(kw_only=True)
class Script:
    """The rows that a table must have, now and at each snapshot that a step left behind."""

    folder: Path
    seed: int = 1
    model: Model = field(init=False)
    snapshots: dict[int, list[Row]] = field(default_factory=dict)
    """By the id of the snapshot, as long as the columns stay."""

    def __post_init__(self) -> None:
        self.model = Model(Random(self.seed))

    @property
    def rows(self) -> list[Row]:
        """Those of the newest version."""
        return list(self.model.rows.values())

    def remember(self, snapshot_id: int | None) -> None:
        """The rows of the current snapshot, which a change of columns leaves as it is."""
        if snapshot_id is not None:
            self.snapshots.setdefault(snapshot_id, [dict(row) for row in self.rows])


class TwinlakeRows(Engine):
    """twinlake in this process, straight on the log."""

    name = "twinlake"

    def __init__(self, folder: Path) -> None:
        super().__init__(None, folder)  # type: ignore[arg-type]

    def _arrow(self, table: Table, rows: list[Row]) -> Any:
        import pyarrow as pa

        from twinlake.schema import to_arrow

        return pa.Table.from_pylist(rows, to_arrow(table.schema, field_ids=False))

    def append(self, rows: Any) -> None:
        table = Table.open(self.folder)
        table.append(self._arrow(table, rows))

    def overwrite(self, rows: Any) -> None:
        table = Table.open(self.folder)
        table.overwrite(self._arrow(table, rows))

    def delete(self, ids: Any) -> None:
        if ids:
            Table.open(self.folder).delete(f"id IN ({', '.join(map(str, ids))})")

    def update(self, ids: Any, name: str) -> None:
        if ids:
            where = f"id IN ({', '.join(map(str, ids))})"
            Table.open(self.folder).update({"name": f"'{name}'"}, where=where)

    def merge(self, rows: Any) -> None:
        table = Table.open(self.folder)
        table.merge(self._arrow(table, rows), on="id")

    def add_column(self, column: str) -> None:
        Table.open(self.folder).add_column(column)

    def optimize(self) -> None:
        Table.open(self.folder).optimize()
