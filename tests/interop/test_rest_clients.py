"""PyIceberg and DuckDB change twin tables through the catalog; all readers hold the same rows."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.three_engines import COLUMNS, Model, Workload
from tests.support.iceberg.both_sides import as_text
from tests.support.rest_clients.agreement import all_agree
from tests.support.rest_clients.clients import DuckDb, PyIceberg
from tests.support.rest_clients.steps import PLAIN_STEPS, SCHEMA_STEPS, Script, TwinlakeRows
from tests.support.scale import scale
from twinlake.table import Table

if TYPE_CHECKING:
    from tests.support.rest_clients.clients import RestClient
    from tests.support.servers.catalog import CatalogServer

pytestmark = pytest.mark.process

_CHANGES = scale(16, 200)


def clients(catalog_server: CatalogServer, catalog_duck: Any, table: str) -> dict[str, RestClient]:
    """Both on one table."""
    folder = Path()
    return {
        "PyIceberg": PyIceberg(catalog_server.address.pyiceberg(), folder, table),
        "DuckDB": DuckDb(catalog_duck, folder, table),
    }


def current_snapshot(catalog_server: CatalogServer, table: str) -> int | None:
    found: int | None = (
        catalog_server.address.pyiceberg().load_table(table).metadata.current_snapshot_id
    )
    return found


# PyIceberg 0.12 cannot write format 3, on any server.
@pytest.mark.parametrize(
    ("writer", "format_version"), [("PyIceberg", 2), ("DuckDB", 2), ("DuckDB", 3)]
)
def test_every_change_of_a_client(
    catalog_server: CatalogServer, catalog_duck: Any, writer: str, format_version: int
) -> None:
    name = f"n.{writer}_{format_version}".lower()
    both = clients(catalog_server, catalog_duck, name)
    client, readers = both[writer], list(both.values())
    client.create(COLUMNS, "p", **{"format-version": str(format_version)})
    script = Script(folder=catalog_server.folder_of(name))

    for step, change in PLAIN_STEPS.items():
        change(client, script.model)
        all_agree(script.folder, script.rows, readers, step=step)
        script.remember(current_snapshot(catalog_server, name))
    for snapshot, rows in script.snapshots.items():
        for reader in readers:
            found = as_text(_without_new_columns(reader.rows(snapshot), rows))
            assert found == as_text(rows), (reader.name, snapshot)
    for step, change in SCHEMA_STEPS.items():
        change(client, script.model)
        all_agree(script.folder, script.rows, readers, step=step)
    report = Table.open(script.folder).verify_twin(rows=True)
    assert report.agrees, report.findings[:3]


def _without_new_columns(
    found: list[dict[str, Any]], wanted: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """DuckDB shows an old snapshot with the columns of today."""
    names = set(wanted[0]) if wanted else set[str]()
    return [{name: row[name] for name in row if name in names} for row in found]


def test_other_readers(
    catalog_server: CatalogServer, catalog_duck: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Polars through PyIceberg, and PyIceberg without the catalog, from the disk."""
    import polars as pl

    from tests.support.iceberg.both_sides import iceberg_rows

    name = "n.readers"
    client = clients(catalog_server, catalog_duck, name)["DuckDB"]
    client.create(COLUMNS)
    script = Script(folder=catalog_server.folder_of(name))
    for step in ("append", "append again", "delete"):
        PLAIN_STEPS[step](client, script.model)

    # Its own planner is a package of its own.
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    frame = pl.scan_iceberg(catalog_server.address.pyiceberg().load_table(name)).collect()

    assert as_text(frame.to_dicts()) == as_text(script.rows)
    assert as_text(iceberg_rows(script.folder)) == as_text(script.rows)


@pytest.mark.parametrize("format_version", [2, 3])
def test_clients_by_turns(
    catalog_server: CatalogServer, catalog_duck: Any, format_version: int
) -> None:
    """Random changes by one after the other, twinlake on the log among them."""
    name = f"n.turns_{format_version}"
    both = clients(catalog_server, catalog_duck, name)
    both["DuckDB"].create(COLUMNS, "p", **{"format-version": str(format_version)})
    folder = catalog_server.folder_of(name)
    writers = [both["DuckDB"], TwinlakeRows(folder)]
    if format_version == 2:
        writers.append(both["PyIceberg"])
    for one in both.values():
        one.folder = folder
    workload = Workload(writers, Model(Random(format_version)))

    for at in range(_CHANGES):
        workload.step(at)
        rows = workload.model.rows.values()
        all_agree(folder, rows, list(both.values()), step="\n".join(workload.steps[-4:]))

    assert min(workload.done[writer.name] for writer in writers) >= _CHANGES // 16, workload.done


def test_the_same_changes_by_rest_and_by_delta(
    catalog_server: CatalogServer, catalog_duck: Any, tmp_path: Path
) -> None:
    """One workload twice: rows and schemas are equal after every change."""
    name = "n.same"
    both = clients(catalog_server, catalog_duck, name)
    both["PyIceberg"].create(COLUMNS, "p")
    by_rest = catalog_server.folder_of(name)
    for one in both.values():
        one.folder = by_rest
    by_delta = tmp_path / "t"
    properties = {"delta.enableIcebergWriterCompatV1": "true", "twinlake.iceberg.sync": "commit"}
    Table.create(by_delta, COLUMNS, partition_by=["p"], properties=properties, durable=False)
    rest = Workload([both["PyIceberg"], both["DuckDB"]], Model(Random(7)))
    delta = Workload([TwinlakeRows(by_delta)], Model(Random(7)))

    for at in range(_CHANGES):
        rest.step(at)
        delta.step(0)
        ours, theirs = Table.open(by_delta), Table.open(by_rest)
        assert as_text(ours.to_arrow().to_pylist()) == as_text(theirs.to_arrow().to_pylist())
        assert _columns(ours) == _columns(theirs), rest.steps[-1]
    assert rest.model.snapshot() == delta.model.snapshot()


def _columns(table: Table) -> list[tuple[str, str, bool]]:
    return [(field.name, str(field.type), field.nullable) for field in table.schema]
