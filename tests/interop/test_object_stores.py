"""Tables in each real object store, by ``Table`` and by delta-rs with a client of its own."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from tests.support.data_files import write_file
from tests.support.servers.azure import AzureServer
from twinlake.storage import encode_path
from twinlake.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.servers.object_server import ObjectServer

FOLDERS = ("a b", "100%", "a%20b", "x#y", "x?y", "1+1=2", "grün/日本", "c:d")
ROWS = [{"id": number, "name": folder} for number, folder in enumerate(FOLDERS)]


@pytest.fixture
def url(object_server: ObjectServer, tmp_path: Path) -> str:
    """The place of a table with one file in each odd folder."""
    url = object_server.url(f"t-{uuid.uuid4()}")
    table = Table.create(url, "id BIGINT, name STRING", options=object_server.options)
    for row in ROWS:
        written = write_file(table, tmp_path, [row])
        key = f"{row['name']}/{written.path}"
        table.snapshot.store.put(key, (tmp_path / written.path).read_bytes())
        add = msgspec.structs.replace(written, path=encode_path(key))
        table = table.commit("WRITE", [add], parameters={"mode": "Append"})
    return url


def rows_of(table: Table) -> list[dict[str, Any]]:
    rows = table.to_arrow().to_pylist()
    return sorted(rows, key=lambda row: row["id"])


def rows_by_delta_rs(table: DeltaTable) -> list[dict[str, Any]]:
    found = QueryBuilder().register("t", table).execute("SELECT * FROM t ORDER BY id")
    rows: list[dict[str, Any]] = pa.table(found).to_pylist()
    return rows


@pytest.fixture
def delta_rs_options(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """What delta-rs needs to open the same table."""
    options = {**object_server.options, "allow_http": "true"}
    if isinstance(object_server, AzureServer):
        # Azurite ignores where a listing starts. The client of delta-rs filters what comes before
        # only if it is told of the emulator, and then takes its address from the environment.
        monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", f"http://127.0.0.1:{object_server.port}")
        del options["endpoint"]
        options["use_emulator"] = "true"
    return options


def test_a_table_is_opened_at_every_version(object_server: ObjectServer, url: str) -> None:
    table = Table.open(url, options=object_server.options)
    assert rows_of(table) == ROWS
    versions = range(len(ROWS) + 1)
    assert [len(table.at(version).files()) for version in versions] == list(versions)
    table.checkpoint()
    again = Table.open(url, options=object_server.options)
    assert rows_of(again) == ROWS


def test_delta_rs_reads_and_appends(
    object_server: ObjectServer, url: str, delta_rs_options: dict[str, str]
) -> None:
    theirs = DeltaTable(url, storage_options=delta_rs_options)
    assert rows_by_delta_rs(theirs) == ROWS
    more = {"id": 100, "name": "theirs"}
    write_deltalake(theirs, pa.Table.from_pylist([more]), mode="append")
    table = Table.open(url, options=object_server.options)
    assert table.version == theirs.version() == len(ROWS) + 1
    assert rows_of(table) == [*ROWS, more]
