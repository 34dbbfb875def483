"""The Iceberg face on S3: PyIceberg and twinlake go to the server each by a client of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

from tests.support.data_files import write_file
from tests.support.iceberg.both_sides import V2, V3, as_text, now_ms, remove_files
from tests.support.servers.s3 import ACCESS_KEY, BUCKET, SECRET_KEY
from tests.unit.cli.running import run
from twinlake import import_iceberg
from twinlake.errors import Code, StorageError, UserError
from twinlake.log.deletion_vectors import dv_key, write_dv_file
from twinlake.table import Table
from twinlake.table.twin.report import DifferenceKind
from twinlake.table.twin.verify_twin import verify_twin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.support.servers.s3 import S3Server

pytestmark = pytest.mark.s3

#: Literal text to Iceberg, and encoded in a URL.
WAREHOUSE = "iceberg/a lake, 100% ü %20"
WITH_COMMIT = {"twinlake.iceberg.sync": "commit"}


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration of whoever runs the tests."""
    monkeypatch.setenv("TWINLAKE_CATALOG", str(tmp_path / "names.db"))
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))


def told(server: S3Server) -> dict[str, str]:
    """What PyIceberg is told of the server."""
    return {
        "s3.endpoint": server.endpoint,
        "s3.access-key-id": ACCESS_KEY,
        "s3.secret-access-key": SECRET_KEY,
        "s3.region": "us-east-1",
    }


def settings(server: S3Server) -> list[str]:
    """What twinlake is told on the command line."""
    return [
        word for key, value in server.options.items() for word in ("--option", f"{key}={value}")
    ]


@pytest.fixture
def catalog(s3_server: S3Server, tmp_path: Path) -> Iterator[SqlCatalog]:
    """An SQL catalog whose tables are on the server."""
    found = SqlCatalog(
        "prod",
        uri=f"sqlite:///{tmp_path}/c.db",
        warehouse=s3_server.url(f"{WAREHOUSE}/{tmp_path.name}"),
        **told(s3_server),
    )
    found.create_namespace("d")
    yield found
    found.engine.dispose()


def configure(catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let others find the catalog by its name, with all that it knows."""
    for name, value in {"type": "sql", **catalog.properties}.items():
        key = name.upper().replace(".", "__").replace("-", "_")
        monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{key}", value)


def made_by_pyiceberg(catalog: SqlCatalog) -> Any:
    """A table of three snapshots, the last of which writes a file again."""
    data = pa.table({"id": [1, 2, 3], "name": ["a", None, "ü"], "l": [[1], [], None]})
    table = catalog.create_table("d.orders", schema=data.schema)
    table.append(data)
    table.append(pa.table({"id": [4], "name": ["b"], "l": [[2, 3]]}, schema=data.schema))
    table.delete("id = 2")
    return table


def stored(server: S3Server, location: str) -> dict[str, tuple[int, int]]:
    """The files below a place with their sizes and times, as the server keeps them."""
    folder = server.data / BUCKET / location.removeprefix(f"s3://{BUCKET}/")
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


def iceberg_rows(table: Any, snapshot_id: int | None = None) -> list[str]:
    return as_text(table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist())


def delta_rows(table: Table) -> list[str]:
    return as_text(table.to_arrow().to_pylist())


def opened(server: S3Server, path: str) -> StaticTable:
    """The Iceberg face as PyIceberg opens it: by its place on the server."""
    return StaticTable.from_metadata(f"{server.url(path)}/_iceberg", told(server))


# Import


def test_a_table_is_imported_in_place(catalog: SqlCatalog, s3_server: S3Server) -> None:
    source = made_by_pyiceberg(catalog)
    before = stored(s3_server, source.location())
    result = import_iceberg(source.metadata_location, options=s3_server.options)
    after = stored(s3_server, source.location())
    assert {name: after[name] for name in before} == before
    new = {name.partition("/")[0] for name in after.keys() - before.keys()}
    assert new == {"_delta_log", "_iceberg"}
    assert result.is_twin
    assert result.notes == ()
    table = result.table
    versions = [delta_rows(table.at(version)) for version in range(table.version + 1)]
    assert versions == [iceberg_rows(source, one.snapshot_id) for one in source.snapshots()]
    assert len(versions) == 3
    ids = [table.iceberg.snapshot_id(version) for version in range(3)]
    assert ids == [one.snapshot_id for one in source.snapshots()]
    report = verify_twin(table, rows=True)
    assert report.findings == ()
    assert report.versions == (0, 1, 2)


def test_by_name_the_catalog_tells_of_the_store(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = made_by_pyiceberg(catalog)
    configure(catalog, monkeypatch)
    result = import_iceberg("prod.d.orders")
    assert delta_rows(result.table) == iceberg_rows(source)
    # And whoever takes over the table from the result can go on with it.
    table = result.table.set_properties({"delta.appendOnly": "true"})
    assert table.iceberg.sync().version == table.version == 3


def test_a_folder_on_the_command_line(catalog: SqlCatalog, s3_server: S3Server) -> None:
    source = made_by_pyiceberg(catalog)
    words = ("import", source.location(), *settings(s3_server), "--json")
    result = run(*words)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert (document["snapshots"], document["is_twin"]) == (3, True)
    assert SECRET_KEY not in result.output
    verdict = run("verify-twin", document["location"], "--rows", *settings(s3_server))
    assert verdict.exit_code == 0, verdict.output
    assert "Both sides agree." in verdict.stdout
    again = run(*words)
    assert again.exit_code == 1
    assert Code.TABLE_EXISTS in again.output


def test_a_refused_table_gets_no_log(catalog: SqlCatalog, s3_server: S3Server) -> None:
    source = made_by_pyiceberg(catalog)
    with source.update_spec() as update:
        update.add_field("id", "bucket[4]", "part")
    before = stored(s3_server, source.location())
    with pytest.raises(UserError) as caught:
        import_iceberg(source.metadata_location, options=s3_server.options)
    assert caught.value.code is Code.COMPAT
    assert "bucket[4]" in caught.value.why
    assert stored(s3_server, source.location()) == before


# Twins


def append(table: Table, scratch: Path, *files: Sequence[dict[str, Any]]) -> Table:
    """Put each list of rows on the server as one file, and commit them together."""
    adds = [write_file(table, scratch, rows) for rows in files]
    for add in adds:
        table.snapshot.store.put(add.path, (scratch / add.path).read_bytes())
    return table.commit("WRITE", adds, parameters={"mode": "Append"})


def make(
    server: S3Server, path: str, scratch: Path, properties: Mapping[str, str]
) -> tuple[Table, dict[int, list[str]]]:
    """A twin that is converted with every commit, and its rows at each version."""
    table = Table.create(
        server.url(path).replace("%", "%25"),
        "id BIGINT, name STRING, part INT",
        ("part",),
        {**properties, **WITH_COMMIT},
        options=server.options,
    )
    first = [{"id": n, "name": f"n{n}", "part": 1} for n in range(5)]
    table = append(table, scratch, first, [{"id": 7, "name": None, "part": None}])
    rows = {table.version: delta_rows(table)}
    table = append(table.rename_column("name", "title"), scratch, [{"id": 8, "part": 2}])
    rows[table.version] = delta_rows(table)
    table = remove_files(table, list(table.snapshot.adds())[1:2])
    rows[table.version] = delta_rows(table)
    assert table.warnings == ()
    return table, rows


def test_pyiceberg_reads_a_twin_at_every_version(s3_server: S3Server, tmp_path: Path) -> None:
    path = f"{WAREHOUSE}/{tmp_path.name}/t"
    table, rows = make(s3_server, path, tmp_path, V2)
    face = opened(s3_server, path)
    found = {}
    for snapshot in face.metadata.snapshots:
        assert snapshot.summary is not None
        version = int(snapshot.summary.additional_properties["delta-version"])
        found[version] = iceberg_rows(face, snapshot.snapshot_id)
    # Up to the rename, columns have their names of then on our side, and of now on theirs.
    renamed = {v: [t.replace("'name'", "'title'") for t in texts] for v, texts in rows.items()}
    assert {v: [t.replace("'name'", "'title'") for t in f] for v, f in found.items()} == renamed
    assert verify_twin(table, rows=True).findings == ()
    assert table.iceberg.sync().converted == 0


def test_deletion_vectors_agree(s3_server: S3Server, tmp_path: Path) -> None:
    path = f"vectors/{tmp_path.name}"
    table, _ = make(s3_server, path, tmp_path, V3)
    add = max(table.snapshot.adds(), key=lambda one: one.size)
    name = uuid4()
    data, (vector,) = write_dv_file([[0]], name)
    table.snapshot.store.put(dv_key(name), data)
    stats = {**msgspec.json.decode(add.stats or "{}"), "tightBounds": False}
    text = msgspec.json.encode(stats).decode()
    hidden = msgspec.structs.replace(add, deletion_vector=vector, stats=text)
    gone = add.remove(deletion_timestamp=now_ms())
    table = table.commit("DELETE", [gone, hidden], parameters={"predicate": "[]"})
    assert table.warnings == ()
    assert iceberg_rows(opened(s3_server, path)) == delta_rows(table)
    assert verify_twin(table, rows=True).findings == ()


def lose_a_file(table: Table) -> None:
    """Delete a data file that both faces list."""
    store = table.snapshot.store
    store.delete([next(iter(table.snapshot.adds())).path])


def go_back(table: Table) -> None:
    """Let path readers open the face of an earlier version."""
    hint = "_iceberg/metadata/version-hint.text"
    table.snapshot.store.put(hint, str(table.version - 1).encode())


def break_the_metadata(table: Table) -> None:
    """Take a file out of the manifest list by pointing the snapshot at an older one."""
    store, key = table.snapshot.store, f"_iceberg/metadata/v{table.version}.metadata.json"
    document = json.loads(store.read(key))
    last = document["snapshots"][-1]
    last["manifest-list"] = document["snapshots"][0]["manifest-list"]
    store.put(key, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lose_a_file, DifferenceKind.ROWS),
        (go_back, DifferenceKind.BEHIND),
        (break_the_metadata, DifferenceKind.FILE_MISSING),
    ],
    ids=["a lost file", "an old pointer", "another list"],
)
def test_damage_is_found(
    s3_server: S3Server, tmp_path: Path, damage: Callable[[Table], None], found: DifferenceKind
) -> None:
    path = f"damaged/{tmp_path.name}"
    table, _ = make(s3_server, path, tmp_path, V2)
    damage(table)
    report = verify_twin(table, rows=True)
    assert found in {finding.what for finding in report.findings}
    result = run("verify-twin", s3_server.url(path), "--rows", *settings(s3_server))
    assert result.exit_code == 1
    assert found in result.output


def test_a_twin_without_iceberg_metadata(s3_server: S3Server, tmp_path: Path) -> None:
    url = s3_server.url(f"bare/{tmp_path.name}")
    table = Table.create(url, "id INT", properties=V2, options=s3_server.options)
    with pytest.raises(UserError) as caught:
        verify_twin(table)
    assert caught.value.code is Code.TABLE_NOT_FOUND


def test_no_access_is_not_called_damage(s3_server: S3Server, tmp_path: Path) -> None:
    table, _ = make(s3_server, f"closed/{tmp_path.name}", tmp_path, V2)
    with pytest.raises(StorageError) as caught:
        verify_twin(table, properties={"s3.secret-access-key": "not the one"})
    assert caught.value.code is Code.STORAGE
    assert "not the one" not in str(caught.value)


# Names


def test_a_published_name_follows_every_commit(
    catalog: SqlCatalog, s3_server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(catalog, monkeypatch)
    table, _ = make(s3_server, f"named/{tmp_path.name}", tmp_path, V2)
    published = table.iceberg.publish("prod.d.twin")
    assert published.metadata_location == table.refresh().iceberg.metadata_location
    assert iceberg_rows(catalog.load_table("d.twin")) == delta_rows(table)
    table = append(table.refresh(), tmp_path, [{"id": 99, "part": 9}])
    assert table.warnings == ()
    assert iceberg_rows(catalog.load_table("d.twin")) == delta_rows(table)
