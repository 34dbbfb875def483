"""PyIceberg and DuckDB change twin tables through the catalog; all readers hold the same rows."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.three_engines import COLUMNS, Model, Workload
from tests.support.iceberg.both_sides import as_text
from tests.support.not_run import not_run
from tests.support.rest_clients.agreement import all_agree
from tests.support.rest_clients.clients import DuckDb, PyIceberg, duckdb_on_catalog
from tests.support.rest_clients.steps import PLAIN_STEPS, SCHEMA_STEPS, Script, TwinlakeRows
from tests.support.scale import scale
from tests.support.servers.catalog import catalog_server
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.rest_clients.clients import RestClient
    from tests.support.servers.catalog import CatalogServer

pytestmark = pytest.mark.process

_CHANGES = scale(16, 200)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    with catalog_server(tmp_path_factory.mktemp("catalog")) as running:
        running.address.pyiceberg().create_namespace("n")
        yield running


@pytest.fixture(scope="module")
def duck(server: CatalogServer) -> Iterator[Any]:
    found = duckdb_on_catalog(server.address)
    if isinstance(found, str):
        not_run(found, required_by="TWINLAKE_REQUIRE_INTEROP")
    yield found
    found.close()


def folder_of(server: CatalogServer, table: str) -> Path:
    """Where a table of the catalog is."""
    found = server.address.pyiceberg().load_table(table)
    return Path(found.location().removeprefix("file://"))


def clients(server: CatalogServer, duck: Any, table: str) -> dict[str, RestClient]:
    """Both on one table."""
    folder = Path()
    return {
        "PyIceberg": PyIceberg(server.address.pyiceberg(), folder, table),
        "DuckDB": DuckDb(duck, folder, table),
    }


def current_snapshot(server: CatalogServer, table: str) -> int | None:
    found: int | None = server.address.pyiceberg().load_table(table).metadata.current_snapshot_id
    return found


# PyIceberg 0.12 cannot write format 3, on any server.
@pytest.mark.parametrize(
    ("writer", "format_version"), [("PyIceberg", 2), ("DuckDB", 2), ("DuckDB", 3)]
)
def test_every_change_of_a_client(
    server: CatalogServer, duck: Any, writer: str, format_version: int
) -> None:
    name = f"n.{writer}_{format_version}".lower()
    both = clients(server, duck, name)
    client, readers = both[writer], list(both.values())
    client.create(COLUMNS, "p", **{"format-version": str(format_version)})
    script = Script(folder=folder_of(server, name))

    for step, change in PLAIN_STEPS.items():
        change(client, script.model)
        all_agree(script.folder, script.rows, readers, step=step)
        script.remember(current_snapshot(server, name))
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


def test_other_readers(server: CatalogServer, duck: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars through PyIceberg, and PyIceberg without the catalog, from the disk."""
    import polars as pl

    from tests.support.iceberg.both_sides import iceberg_rows

    name = "n.readers"
    client = clients(server, duck, name)["DuckDB"]
    client.create(COLUMNS)
    script = Script(folder=folder_of(server, name))
    for step in ("append", "append again", "delete"):
        PLAIN_STEPS[step](client, script.model)

    # Its own planner is a package of its own.
    monkeypatch.setenv("POLARS_ICEBERG_PLANNER", "pyiceberg")
    frame = pl.scan_iceberg(server.address.pyiceberg().load_table(name)).collect()

    assert as_text(frame.to_dicts()) == as_text(script.rows)
    assert as_text(iceberg_rows(script.folder)) == as_text(script.rows)


@pytest.mark.parametrize("format_version", [2, 3])
def test_clients_by_turns(server: CatalogServer, duck: Any, format_version: int) -> None:
    """Random changes by one after the other, twinlake on the log among them."""
    name = f"n.turns_{format_version}"
    both = clients(server, duck, name)
    both["DuckDB"].create(COLUMNS, "p", **{"format-version": str(format_version)})
    folder = folder_of(server, name)
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
    server: CatalogServer, duck: Any, tmp_path: Path
) -> None:
    """One workload twice: rows and schemas are equal after every change."""
    name = "n.same"
    both = clients(server, duck, name)
    both["PyIceberg"].create(COLUMNS, "p")
    by_rest = folder_of(server, name)
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
