"""Dropped tables: brought back within a week, purged after it, and only what is one table's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.rest_catalog import rest_caller, schema
from tests.unit.cli.running import document, lines, run
from twinlake import Table
from twinlake.rest import expire_dropped, open_database
from twinlake.table.iceberg_commits import IcebergCommits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.rest_catalog import RestCaller
    from twinlake.rest import CatalogDatabase

WEEK_MS = 7 * 24 * 60 * 60 * 1000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCaller]:
    with rest_caller(tmp_path) as caller:
        caller.namespace("n")
        yield caller


@pytest.fixture
def database(tmp_path: Path) -> Iterator[CatalogDatabase]:
    opened = open_database(str(tmp_path / "server.db"))
    yield opened
    opened.close()


def _place(made: dict[str, Any]) -> Path:
    return Path(made["metadata"]["location"].removeprefix("file://"))


def _dropped(server: RestCaller, *, purge: bool, name: str = "t") -> Path:
    place = _place(server.table(f"n/{name}"))
    Table.open(place).append([{"id": 1, "name": "a"}])
    server.ok("DELETE", f"n/tables/{name}?purgeRequested={'true' if purge else 'false'}")
    return place


def _files(place: Path) -> list[Path]:
    return [one for one in place.rglob("*") if one.is_file()]


def _expire(database: CatalogDatabase, after_ms: int) -> list[tuple[int, str]]:
    import time

    now = time.time_ns() // 1_000_000 + after_ms
    return [
        (e.files, e.kept_because) for e in expire_dropped(database, WEEK_MS, now, dry_run=False)
    ]


@pytest.mark.parametrize("purge", [True, False])
def test_a_drop_takes_the_name_and_undrop_gives_it_back(
    server: RestCaller, tmp_path: Path, purge: bool
) -> None:
    place = _dropped(server, purge=purge)
    assert server.error("GET", "n/tables/t")[:2] == (404, "NoSuchTableException")
    assert server.ok("GET", "n/tables")["identifiers"] == []
    # The name is free meanwhile, and then somebody else's.
    server.table("n/T")
    file = tmp_path / "server.db"
    taken = run("catalog", "undrop", "n.t", "--database", file)
    assert (taken.exit_code, "TWIN-TABLE-EXISTS" in taken.stderr) == (1, True)
    server.ok("DELETE", "n/tables/t")
    shown = document("catalog", "dropped", "--database", file)["tables"]
    assert sorted(one["purge"] for one in shown) == sorted([purge, False])
    assert {one["warehouse"] for one in shown} == {"lake"}
    # The one that was dropped last comes back first.
    assert document("catalog", "undrop", "N.T", "--database", file)["location"] != place.as_uri()
    server.ok("POST", "n/tables/t/unregister")
    assert document("catalog", "undrop", "n.t", "--database", file)["location"] == place.as_uri()
    assert Table.open(place).count() == 1
    assert server.send("HEAD", "n/tables/t").status_code == 204
    listed = document("catalog", "list", "--database", file, "--warehouse", "lake")["tables"]
    assert [(one["namespace"], one["name"]) for one in listed] == [(["n"], "t")]
    assert lines("catalog", "list", "--database", file)[1].split()[:2] == ["lake", "n.t"]


def test_files_go_only_after_the_time_and_only_where_that_was_asked_for(
    server: RestCaller, database: CatalogDatabase
) -> None:
    purged, kept = _dropped(server, purge=True), _dropped(server, purge=False, name="u")
    before = len(_files(purged))
    assert _expire(database, WEEK_MS - 60_000) == []
    assert before == len(_files(purged))
    assert sorted(_expire(database, WEEK_MS + 60_000)) == [(0, ""), (before, "")]
    assert _files(purged) == []
    assert Table.open(kept).count() == 1
    assert _expire(database, 2 * WEEK_MS) == []


def test_a_preview_changes_nothing(server: RestCaller, tmp_path: Path) -> None:
    place = _dropped(server, purge=True)
    found = document("catalog", "expire", "--database", tmp_path / "server.db", "--yes")
    assert found == {"dry_run": False, "tables": []}
    before = _files(place)
    database = open_database(str(tmp_path / "server.db"))
    with database.changing() as connection:
        connection.change("UPDATE tables SET dropped_ms = 1")
    database.close()
    found = document("catalog", "expire", "--database", tmp_path / "server.db")
    (one,) = found["tables"]
    assert (found["dry_run"], one["files"], one["deleted"]) == (True, len(before), False)
    assert _files(place) == before
    late = run("catalog", "undrop", "n.t", "--database", tmp_path / "server.db")
    assert (late.exit_code, "cannot be brought back" in late.stderr) == (1, True)
    found = document("catalog", "expire", "--database", tmp_path / "server.db", "--yes")
    assert [one["deleted"] for one in found["tables"]] == [True]
    assert _files(place) == []


def test_files_stay_where_another_table_lies_below(
    server: RestCaller, database: CatalogDatabase
) -> None:
    place = _dropped(server, purge=True)
    inner = Table.create(place / "sub" / "inner", "id LONG").append([{"id": 7}])
    ((files, why),) = _expire(database, 2 * WEEK_MS)
    assert (files, why) == (0, "another table lies in it: sub/inner")
    assert inner.refresh().count() == 1
    assert Table.open(place).count() == 1


def test_files_stay_where_another_table_took_the_place(
    server: RestCaller, database: CatalogDatabase
) -> None:
    import shutil

    place = _dropped(server, purge=True)
    shutil.rmtree(place)
    Table.create(place, "id LONG").append([{"id": 7}])
    assert _expire(database, 2 * WEEK_MS) == [(0, "another table was made in its place")]
    assert Table.open(place).count() == 1


def test_a_purge_that_was_cut_short_is_continued(
    server: RestCaller, database: CatalogDatabase
) -> None:
    place = _dropped(server, purge=True)
    for file in _files(place):
        if file.name != "00000000000000000000.json":
            file.unlink()
    (place / "_delta_log" / "00000000000000000000.json").rename(
        place / "_delta_log" / "00000000000000000000.crc"
    )
    assert _expire(database, 2 * WEEK_MS) == [(1, "")]
    assert _files(place) == []


def test_registering_the_folder_again_is_another_way_back(server: RestCaller) -> None:
    place = _dropped(server, purge=False)
    body = {"name": "back", "metadata-location": str(place)}
    assert len(server.ok("POST", "n/register", body)["metadata"]["snapshots"]) == 1
    doomed = _dropped(server, purge=True, name="doomed")
    body = {"name": "doomed", "metadata-location": str(doomed)}
    assert server.error("POST", "n/register", body)[0] == 400


def test_a_creation_that_was_cut_short_is_completed_or_gives_way(
    server: RestCaller, database: CatalogDatabase
) -> None:
    made = server.table("n/t")
    with database.changing() as connection:
        connection.change("UPDATE tables SET uuid = NULL")
    # The table is there: only the last step was missing.
    assert server.send("HEAD", "n/tables/t").status_code == 204
    assert server.ok("GET", "n/tables/t") == made
    assert len(server.ok("GET", "n/tables")["identifiers"]) == 1
    # Only the name was taken.
    import shutil

    shutil.rmtree(_place(made))
    with database.changing() as connection:
        connection.change("UPDATE tables SET uuid = NULL")
    elsewhere = str(server.folder / "elsewhere")
    body = {"name": "t", "schema": schema(), "location": elsewhere}
    assert server.send("HEAD", "n/tables/t").status_code == 404
    assert server.error("POST", "n/tables", body)[:2] == (409, "AlreadyExistsException")
    with database.changing() as connection:
        connection.change("UPDATE tables SET created_ms = created_ms - 61000")
    assert server.ok("POST", "n/tables", body)["metadata"]["location"] == f"file://{elsewhere}"


def test_names_of_the_operator_are_checked(tmp_path: Path) -> None:
    none = run("catalog", "list", "--database", tmp_path / "none.db")
    assert (none.exit_code, "There is no database" in none.stderr) == (1, True)
    assert not (tmp_path / "none.db").exists()
    open_database(str(tmp_path / "server.db")).close()
    for name in ("t", "n.t", "n.`"):
        result = run("catalog", "undrop", name, "--database", tmp_path / "server.db")
        assert (result.exit_code, result.stderr.startswith("TWIN-")) == (1, True)


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_creation_that_lost_its_row(
    server: RestCaller,
    database: CatalogDatabase,
    monkeypatch: pytest.MonkeyPatch,
    is_taken: bool,
) -> None:
    """It gets another one, unless somebody has the name by now."""
    real = IcebergCommits.create
    change = "UPDATE tables SET id = 'x', root = root || 'x'" if is_taken else "DELETE FROM tables"

    def slow(*arguments: Any) -> Any:
        made = real(*arguments)
        with database.changing() as connection:
            connection.change(change)
        return made

    monkeypatch.setattr(IcebergCommits, "create", slow)
    body = {"name": "t", "schema": schema()}
    if is_taken:
        assert server.error("POST", "n/tables", body)[:2] == (409, "AlreadyExistsException")
    else:
        assert server.ok("POST", "n/tables", body) == server.ok("GET", "n/tables/t")
