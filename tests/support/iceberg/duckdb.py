"""DuckDB with its Iceberg extension, both from Python packages, so that nothing is downloaded."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from tests.support.iceberg.both_sides import as_text

__all__ = ["connect", "duck_rows", "scanned"]

Row = dict[str, Any]


def connect(*extensions: str) -> Any | str:
    """A connection that can read Iceberg tables, or why there is none."""
    try:
        import duckdb
    except ImportError:
        return "DuckDB is not installed; run `make setup`"
    names = extensions or ("avro", "iceberg")
    paths = [_extension(name, duckdb.__version__) for name in names]
    if None in paths:
        return (
            f"DuckDB {duckdb.__version__} has no Iceberg extension here; install the packages "
            f"{', '.join(f'duckdb-extension-{name}' for name in names)} of the same version"
        )
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for path in paths:
        connection.execute(f"LOAD '{path}'")
    return connection


def _extension(name: str, version: str) -> Path | None:
    """The file of an extension that came as a Python package, for this version of DuckDB."""
    found = importlib.util.find_spec(f"duckdb_extension_{name}")
    if found is None or found.submodule_search_locations is None:
        return None
    folder = Path(next(iter(found.submodule_search_locations)))
    path = folder / "extensions" / f"v{version}" / f"{name}.duckdb_extension"
    return path if path.exists() else None


def duck_rows(
    duck: Any, folder: Path, snapshot: int | None = None, where: str = "true"
) -> list[Row]:
    """The rows that DuckDB returns of a snapshot, or of the current one."""
    option = "" if snapshot is None else f", snapshot_from_id={snapshot}"
    query = f"SELECT * FROM iceberg_scan('{folder}/_iceberg'{option}) WHERE {where}"
    rows: list[Row] = duck.execute(query).to_arrow_table().to_pylist()
    return rows


def scanned(duck: Any, folder: Path, snapshot: int | None = None, where: str = "true") -> list[str]:
    """The same in a form that compares."""
    return as_text(duck_rows(duck, folder, snapshot, where))
