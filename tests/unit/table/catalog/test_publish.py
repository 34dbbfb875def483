"""Publishing by name: the catalog of names, SQL catalogs, races, and what is refused."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, twin
from tests.support.processes.writers import barrier, spawn
from twinlake.errors import ConflictError, TwinlakeError, UnsupportedFeature, UserError
from twinlake.iceberg.catalogs import open_pointer
from twinlake.log import CACHE
from twinlake.table import Catalog, Table
from twinlake.table.catalog.publish import point

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.servers.postgres import PostgresServer

WITH_COMMIT = {**V2, "twinlake.iceberg.sync": "commit"}


@pytest.fixture(autouse=True)
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The catalog of names, and no configuration of whoever runs the tests."""
    monkeypatch.setenv("TWINLAKE_CATALOG", str(tmp_path / "names.db"))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return tmp_path / "names.db"


def rows_by_name(catalog: SqlCatalog, name: str) -> list[int]:
    found = catalog.load_table(name).scan().to_arrow()["id"].to_pylist()
    catalog.engine.dispose()
    return sorted(found)


def made(folder: Path, properties: dict[str, str] = WITH_COMMIT) -> Table:
    return append(twin(folder, "id LONG", properties=properties), folder, [{"id": 1}])


def test_the_pointer_follows_every_commit(tmp_path: Path, names: Path) -> None:
    table = made(tmp_path / "t")
    published = table.iceberg.publish("orders")
    assert published.name == "twinlake.default.orders"
    table = table.refresh()
    assert table.iceberg.name == published.name
    catalog = SqlCatalog("twinlake", uri=f"sqlite:///{names}")
    assert rows_by_name(catalog, "default.orders") == [1]
    table = append(table, tmp_path / "t", [{"id": 2}])
    assert table.warnings == ()
    assert rows_by_name(catalog, "default.orders") == [1, 2]
    assert catalog.load_table("default.orders").metadata_location == table.iceberg.metadata_location
    catalog.engine.dispose()
    # Publishing again is a sync and nothing else.
    assert table.iceberg.publish("orders").metadata_location == table.iceberg.metadata_location
    assert table.refresh().version == table.version
    # The same name still opens the Delta table.
    assert Catalog(names).locate("orders") == table.location


def test_on_demand_the_pointer_moves_with_the_sync(tmp_path: Path, names: Path) -> None:
    table = made(tmp_path / "t", V2)
    table.iceberg.publish("sales_orders")
    table = append(table.refresh(), tmp_path / "t", [{"id": 2}])
    catalog = SqlCatalog("twinlake", uri=f"sqlite:///{names}")
    assert rows_by_name(catalog, "default.sales_orders") == [1]
    table.iceberg.sync()
    assert rows_by_name(catalog, "default.sales_orders") == [1, 2]


def test_a_catalog_that_fails_is_a_warning_and_is_caught_up_with(
    tmp_path: Path, names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path / "t")
    table.iceberg.publish("orders")
    monkeypatch.setenv("TWINLAKE_CATALOG", str(tmp_path / "t"))  # a folder
    table = append(table.refresh(), tmp_path / "t", [{"id": 2}])
    (warning,) = table.warnings
    assert warning.hook == "publish"
    assert table.iceberg.version == table.version
    monkeypatch.setenv("TWINLAKE_CATALOG", str(names))
    assert append(table, tmp_path / "t", [{"id": 3}]).warnings == ()
    catalog = SqlCatalog("twinlake", uri=f"sqlite:///{names}")
    assert rows_by_name(catalog, "default.orders") == [1, 2, 3]


def test_a_name_of_another_table_is_refused_and_the_table_does_not_claim_it(
    tmp_path: Path,
) -> None:
    made(tmp_path / "t").iceberg.publish("orders")
    other = made(tmp_path / "other")
    with pytest.raises(UserError, match="name of another table"):
        other.iceberg.publish("orders")
    assert other.refresh().iceberg.name is None


def test_a_second_name_is_refused(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.iceberg.publish("orders")
    with pytest.raises(UserError, match="published as"):
        table.refresh().iceberg.publish("other")


def test_a_face_that_went_back_takes_the_pointer_with_it(tmp_path: Path, names: Path) -> None:
    """A table that was replaced by a younger one has fewer versions."""
    table = append(made(tmp_path / "t"), tmp_path / "t", [{"id": 2}])
    table.iceberg.publish("orders")
    shutil.rmtree(tmp_path / "t")
    CACHE.forget(table.location)
    made(tmp_path / "t").iceberg.publish("orders")
    catalog = SqlCatalog("twinlake", uri=f"sqlite:///{names}")
    assert rows_by_name(catalog, "default.orders") == [1]


KINDS: list[tuple[str, dict[str, str], str]] = [
    ("rest", {"uri": "http://127.0.0.1:9"}, "REST"),
    ("hive", {"uri": "thrift://127.0.0.1:9"}, "Hive"),
    ("glue", {"type": "glue"}, "Glue"),
    ("dynamodb", {"type": "dynamodb"}, "DynamoDB"),
    ("bigquery", {"type": "bigquery"}, "BigQuery"),
    ("in-memory", {"type": "in-memory"}, "ends with the process"),
    ("unheard of", {"type": "unheard"}, "unheard"),
]


@pytest.mark.parametrize(("kind", "settings", "why"), KINDS, ids=[kind[0] for kind in KINDS])
def test_catalogs_without_a_conditional_swap_are_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    settings: dict[str, str],
    why: str,
) -> None:
    configure(tmp_path, monkeypatch, settings)
    table = made(tmp_path / "t")
    with pytest.raises(UnsupportedFeature) as caught:
        table.iceberg.publish("prod.sales.orders")
    assert why in caught.value.why
    assert table.refresh().version == table.version


def test_an_unknown_catalog_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no catalog named nowhere"):
        made(tmp_path / "t").iceberg.publish("nowhere.sales.orders")


def configure(
    folder: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], name: str = "prod"
) -> None:
    """A catalog in PyIceberg's configuration file."""
    lines = [f'      {key}: "{value}"' for key, value in settings.items()]
    text = "\n".join(["catalog:", f"  {name}:", *(line[2:] for line in lines)])
    (folder / ".pyiceberg.yaml").write_text(text)
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def sql_catalog(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SqlCatalog]:
    """An SQL catalog named ``prod`` with a namespace, on each database that is proved."""
    uri = f"sqlite:///{tmp_path}/prod.db"
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        uri = server.url
    configure(tmp_path, monkeypatch, {"type": "sql", "uri": uri})
    catalog = SqlCatalog("prod", uri=uri)
    namespace = tmp_path.name.replace("-", "_")
    catalog.create_namespace(namespace)
    yield catalog
    catalog.engine.dispose()


@pytest.fixture
def full_name(sql_catalog: SqlCatalog, tmp_path: Path) -> str:
    return f"prod.{tmp_path.name.replace('-', '_')}.orders"


def test_an_sql_catalog_follows_every_commit(
    sql_catalog: SqlCatalog, full_name: str, tmp_path: Path
) -> None:
    table = made(tmp_path / "t")
    assert table.iceberg.publish(full_name).name == full_name
    inner = full_name.removeprefix("prod.")
    assert rows_by_name(sql_catalog, inner) == [1]
    table = append(table.refresh(), tmp_path / "t", [{"id": 2}])
    assert table.warnings == ()
    assert rows_by_name(sql_catalog, inner) == [1, 2]


def test_a_commit_of_an_iceberg_client_is_not_thrown_away_in_silence(
    sql_catalog: SqlCatalog, full_name: str, tmp_path: Path
) -> None:
    table = made(tmp_path / "t")
    table.iceberg.publish(full_name)
    inner = full_name.removeprefix("prod.")
    loaded = sql_catalog.load_table(inner)
    loaded.append(pa.table({"id": [99]}, schema=loaded.schema().as_arrow()))

    table = append(table.refresh(), tmp_path / "t", [{"id": 2}])

    (warning,) = table.warnings
    assert f"An Iceberg client has committed to {full_name}" in str(warning)
    assert rows_by_name(sql_catalog, inner) == [1, 99]
    with pytest.raises(ConflictError, match="has committed to") as raised:
        table.iceberg.sync()
    assert "--publish" in raised.value.fix
    # Whoever says so takes the name back.
    table.iceberg.publish(full_name)
    assert rows_by_name(sql_catalog, inner) == [1, 2]
    assert append(table, tmp_path / "t", [{"id": 3}]).warnings == ()


def test_a_namespace_is_not_made_on_the_way(sql_catalog: SqlCatalog, tmp_path: Path) -> None:
    assert sql_catalog.list_namespaces()
    with pytest.raises(UserError, match="There is no namespace missing"):
        made(tmp_path / "t").iceberg.publish("prod.missing.orders")


def test_a_pointer_moves_only_from_where_it_was_seen(
    sql_catalog: SqlCatalog, full_name: str, tmp_path: Path
) -> None:
    table = made(tmp_path / "t")
    table.iceberg.publish(full_name)
    with open_pointer(full_name.split(".")) as pointer:
        now = pointer.metadata_location()
        assert now == table.refresh().iceberg.metadata_location
        for expected in (None, f"{now}.old"):
            with pytest.raises(ConflictError):
                pointer.swap(expected, f"{now}.new")
        assert pointer.metadata_location() == now
        pointer.swap(now, f"{now}.new")
        assert pointer.metadata_location() == f"{now}.new"
    assert sql_catalog.name == "prod"


def _swap_once(parts: list[str], expected: str | None, mine: str, log: str, start: Any) -> None:
    """In a process of its own: swap once, and write down who won."""
    from tests.support.servers.postgres import find_driver

    find_driver()
    start.wait(120)
    try:
        with open_pointer(parts) as pointer:
            pointer.swap(expected, mine)
        verdict = "won"
    except ConflictError:
        verdict = "lost"
    except TwinlakeError as error:
        verdict = f"{error.what} {error.why}"
    with open(log, "a", encoding="utf-8") as file:  # noqa: PTH123
        file.write(f"{verdict} {mine}\n")


@pytest.mark.process
@pytest.mark.parametrize("first", [True, False], ids=["a new name", "a name that is there"])
def test_two_publishers_race_and_one_wins(
    sql_catalog: SqlCatalog, full_name: str, tmp_path: Path, first: bool
) -> None:
    parts = full_name.split(".")
    table = append(made(tmp_path / "t"), tmp_path / "t", [{"id": 2}])
    location = table.iceberg.metadata_location
    assert location is not None
    v0, v1 = (location.replace("/v2.", f"/v{version}.") for version in (0, 1))
    expected = None
    if not first:
        with open_pointer(parts) as pointer:
            pointer.swap(None, v0)
        expected = v0
    start, log = barrier(2), tmp_path / "verdicts"
    racers = [spawn(_swap_once, parts, expected, mine, str(log), start) for mine in (v1, location)]
    for racer in racers:
        racer.join(120)
    verdicts = sorted(line.split(" ", 1) for line in log.read_text().splitlines())
    assert [verdict for verdict, _ in verdicts] == ["lost", "won"]
    with open_pointer(parts) as pointer:
        assert pointer.metadata_location() == verdicts[1][1]
    # Whoever publishes next brings it to where it belongs.
    assert point(table.snapshot.store, full_name).metadata_location == location
    assert rows_by_name(sql_catalog, full_name.removeprefix("prod.")) == [1, 2]


def test_other_databases_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path, monkeypatch, {"type": "sql", "uri": "mysql+pymysql://u:hunter2@h/db"})
    with pytest.raises(TwinlakeError) as caught:
        made(tmp_path / "t").iceberg.publish("prod.sales.orders")
    assert "hunter2" not in f"{caught.value.what} {caught.value.why} {caught.value.fields}"
