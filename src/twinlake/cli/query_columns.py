"""Which columns of a table a query reads, as DuckDB's own plan has it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

__all__ = ["scanned_columns"]

_SCAN: Final = "ARROW_SCAN"
_PRUNES_COLUMNS: Final = "unused_columns"


def scanned_columns(
    connection: Any, sql: str, names: Sequence[str], schema: pa.Schema
) -> tuple[str, ...]:
    """The columns that the query needs of the table that goes by these names.

    All of them wherever the plan leaves a doubt: a column too many costs time, one too few would be
    read as nulls.
    """
    everything = tuple(schema.names)
    if any("\n" in name for name in everything):
        return everything  # the plan has one name a line
    found = _scans(_plan(connection, sql, names, schema))
    if found is None:
        return everything
    needed = set[str]()
    for shown in found:
        # A field of a struct is shown with it, by the same dot that a name may have.
        owners = {name for name in everything if shown == name or shown.startswith(f"{name}.")}
        if not owners:
            return everything
        needed |= owners
    return tuple(name for name in everything if name in needed)


def _plan(connection: Any, sql: str, names: Sequence[str], schema: pa.Schema) -> list[Any]:
    """The plan on an empty table; nothing but columns is left out of it."""
    empty = schema.empty_table()
    every = connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
    # Other optimizers show the columns of a filter with the filter, in SQL.
    disabled = ",".join(name for (name,) in every if name != _PRUNES_COLUMNS)
    connection.execute(f"SET disabled_optimizers = '{disabled}'")
    try:
        for name in names:
            connection.register(name, empty)
        rows = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()
        return [node for _, text in rows for node in json.loads(text)]
    except Exception:
        return []  # the query itself will say what is wrong with it
    finally:
        for name in names:
            connection.unregister(name)
        connection.execute("RESET disabled_optimizers")


def _scans(plan: Sequence[Any]) -> list[str] | None:
    """The columns that scans of the plan list; None if there is no scan that says them."""
    scans = [node for node in _nodes(plan) if node.get("name", "").strip() == _SCAN]
    shown = [scan.get("extra_info", {}).get("Projections") for scan in scans]
    if not shown or None in shown:
        return None
    lists = [one if isinstance(one, list) else [one] if one else [] for one in shown]
    return [name for one in lists for name in one]


def _nodes(plan: Sequence[Any]) -> Iterator[Any]:
    for node in plan:
        yield node
        yield from _nodes(node.get("children", ()))
