"""Imports that meet each other, tables that moved, and columns that came later."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, NestedField, StructType, TimestampType, UUIDType

from tests.unit.table.importing.test_import_iceberg import (
    append,
    catalog,
    delta_rows,
    folder_of,
    iceberg_rows,
    import_and_compare,
    local,
    refusal,
    rewritten,
)
from twinlake import import_iceberg
from twinlake.errors import Code, StorageError, UserError
from twinlake.log.names import checkpoint_key, commit_key
from twinlake.storage import Fault, LocalStore, MemoryStore
from twinlake.table import Table
from twinlake.table.importing.staged_log import (
    Mark,
    StagedLog,
    is_in_place,
    last_mark,
    put_in_place,
    remove_marks,
)
from twinlake.table.twin.verify_twin import verify_twin

__all__ = ["catalog"]

ONE_COLUMN = Schema(NestedField(1, "a", IntegerType()))


class Killed(BaseException):
    """Ends an import as a kill would: nothing is tidied up."""


def before(
    monkeypatch: pytest.MonkeyPatch, name: str, part: str, action: Callable[[], object]
) -> None:
    """Do something once, right before the first call of the store on a key with this part."""
    real = getattr(LocalStore, name)

    def call(self: LocalStore, key: str, *arguments: Any) -> Any:
        if part in key:
            monkeypatch.setattr(LocalStore, name, real)
            action()
        return real(self, key, *arguments)

    monkeypatch.setattr(LocalStore, name, call)


def die() -> None:
    raise Killed


def three_appends(catalog: SqlCatalog) -> Any:
    table = catalog.create_table("d.t", ONE_COLUMN)
    for number in range(3):
        append(table, {"a": number})
    return table


def import_and_go_on(source: str) -> None:
    """Somebody else imports the table, and uses it."""
    made = import_iceberg(source, durable=False).table
    made.set_properties({"foo": "1"}).set_properties({"foo": "2"})


def is_refused(source: str) -> UserError:
    with pytest.raises(UserError) as caught:
        import_iceberg(source, durable=False)
    assert caught.value.code is Code.TABLE_EXISTS
    assert caught.value.why
    assert caught.value.fix
    return caught.value


def log_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("_delta_log/*") if path.is_file()}


# Two imports


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("read", "metadata/snap-"),
        ("create", "_import."),
        ("create", commit_key(2)),
        ("create", commit_key(1)),
        ("create", commit_key(0)),
    ],
)
def test_a_table_that_another_import_made_meanwhile_stays(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch, name: str, part: str
) -> None:
    table = three_appends(catalog)
    source = table.metadata_location
    before(monkeypatch, name, part, lambda: import_and_go_on(source))

    is_refused(source)

    made = Table.open(folder_of(table))
    assert made.version == 4
    assert made.properties["foo"] == "2"
    assert delta_rows(made) == iceberg_rows(table)
    assert not list(folder_of(table).glob("_delta_log/_import*"))


def test_an_import_that_began_meanwhile_is_left_alone_and_can_be_taken_over_later(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = three_appends(catalog)
    source, folder = table.metadata_location, folder_of(table)
    seen: dict[str, bytes] = {}

    def other() -> None:
        before(monkeypatch, "create", commit_key(1), die)
        with pytest.raises(Killed):
            import_iceberg(source, durable=False)
        seen.update(log_of(folder))

    before(monkeypatch, "read", "metadata/snap-", other)
    is_refused(source)
    assert log_of(folder) == seen
    assert set(seen) == {f"{2:020}.json", "_import.000001.mark"}

    result = import_iceberg(source, durable=False)

    assert result.table.version == 2
    assert delta_rows(result.table) == iceberg_rows(table)
    assert not list(folder.glob("_delta_log/_import*"))


def test_what_was_left_of_another_import_goes(
    catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer history was killed; the one that is imported then is shorter and other."""
    table = catalog.create_table("d.t", ONE_COLUMN)
    append(table, {"a": 1})
    append(table, {"a": 2})
    first = StaticTable.from_metadata(table.metadata_location)
    append(table, {"a": 3})
    before(monkeypatch, "create", commit_key(0), die)
    with pytest.raises(Killed):
        import_iceberg(table.metadata_location, durable=False)

    result = import_iceberg(first.metadata_location, mode="shared", durable=False)

    assert result.table.version == 1
    assert delta_rows(result.table) == iceberg_rows(first)
    assert not list(folder_of(table).glob("_delta_log/_import*"))


def test_a_log_in_use_is_kept_though_a_mark_was_left_and_its_first_version_is_gone(
    catalog: SqlCatalog,
) -> None:
    table = three_appends(catalog)
    made = import_iceberg(table.metadata_location, durable=False).table
    folder = folder_of(table)
    (folder / checkpoint_key(2)).write_bytes(b"as cleaning the log leaves it")
    (folder / commit_key(0)).unlink()
    mark = Mark().next(table.metadata_location)
    (folder / mark.key).write_bytes(mark.data)
    kept = log_of(folder)

    is_refused(table.metadata_location)

    assert log_of(folder) == kept
    assert made.version == 2


def staged(store: MemoryStore, *versions: bytes) -> StagedLog:
    log = StagedLog(store)
    for version, data in enumerate(versions):
        log.put(commit_key(version), data)
    return log


@pytest.mark.parametrize("call", [1, 2, 3], ids=["mark", "version 1", "version 0"])
def test_a_reply_that_was_lost_is_settled_by_reading(call: int) -> None:
    store = MemoryStore(faults=[("create", call, Fault.after())])
    put_in_place(staged(store, b"0", b"1"), 2, "x", Mark())
    remove_marks(store)
    assert [store.read(item.key) for item in store.list_from("_delta_log")] == [b"0", b"1"]


@pytest.mark.parametrize("call", [1, 2, 3], ids=["mark", "version 1", "version 0"])
def test_what_the_store_did_not_take_can_be_tried_again(call: int) -> None:
    store = MemoryStore(faults=[("create", call, Fault.before())])
    log = staged(store, b"0", b"1")
    with pytest.raises((UserError, StorageError)):
        put_in_place(log, 2, "x", Mark())
    assert store.head(commit_key(0)) is None
    mark = last_mark(store)
    assert not is_in_place(store, "x", mark)
    put_in_place(log, 2, "x", mark)
    # Killed before it was over, the next one finds the log in place.
    assert is_in_place(store, "x", last_mark(store))
    remove_marks(store)
    assert [store.read(item.key) for item in store.list_from("_delta_log")] == [b"0", b"1"]


def test_two_that_take_over_from_one_cannot_both() -> None:
    store = MemoryStore()
    left = Mark().next("x")
    store.put(left.key, left.data)
    store.put(left.next("x").key, left.next("x").data)
    with pytest.raises(UserError) as caught:
        put_in_place(staged(store, b"0"), 1, "x", left)
    assert caught.value.code is Code.TABLE_EXISTS
    assert len(list(store.list_from("_delta_log"))) == 2


# Columns that came later


@pytest.mark.parametrize("nested", [False, True])
def test_a_timestamp_without_zone_that_came_later(catalog: SqlCatalog, nested: bool) -> None:
    table = catalog.create_table("d.t", ONE_COLUMN)
    append(table, {"a": 1})
    kind = StructType(NestedField(9, "x", TimestampType())) if nested else TimestampType()
    with table.update_schema() as update:
        update.add_column("at", kind)
    moment = dt.datetime(2024, 1, 1, 12)
    append(table, {"a": 2, "at": {"x": moment} if nested else moment})

    result = import_and_compare(table)

    first = result.table.at(0)
    assert "timestampNtz" in first.protocol.feature_names
    assert not any(key.startswith("delta.feature.") for key in first.metadata.configuration)
    assert result.table.protocol == first.protocol
    assert result.is_twin
    assert verify_twin(result.table, rows=True).findings == ()


def test_a_timestamp_without_zone_that_no_snapshot_has_yet(catalog: SqlCatalog) -> None:
    table = catalog.create_table("d.t", ONE_COLUMN)
    append(table, {"a": 1})
    with table.update_schema() as update:
        update.add_column("at", TimestampType())
    assert import_and_compare(table).table.version == 1


# Tables that are elsewhere


@pytest.mark.parametrize(
    ("place", "given"),
    [
        ("copy", "{copy}"),
        ("copy", "file://{copy}/"),
        ("copy", "{copy}/metadata/{name}"),
        ("d/t2", "{copy}"),
        ("d/t2", "file:{copy}/metadata/{name}"),
        ("d/t/copy", "{copy}"),
    ],
)
def test_a_copy_is_not_taken_for_its_original(
    catalog: SqlCatalog, tmp_path: Path, place: str, given: str
) -> None:
    table = three_appends(catalog)
    folder, copy = folder_of(table), tmp_path / "lake" / place
    shutil.copytree(folder, copy)
    source = given.format(copy=copy, name=local(table.metadata_location).name)
    with pytest.raises(UserError) as caught:
        import_iceberg(source, durable=False)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert str(copy) in caught.value.what
    assert str(folder) in caught.value.what
    assert caught.value.fix
    assert not list(tmp_path.rglob("_delta_log"))


@pytest.mark.parametrize("location", ["{0}", "{0}/", "file:{0}", "file://{0}", "{link}"])
@pytest.mark.parametrize(
    "given", ["{0}", "{0}/", "file:{0}", "file://{0}/", "{link}", "d/t", "./d/../d/t", "{file}"]
)
def test_one_place_has_many_spellings(
    catalog: SqlCatalog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    location: str,
    given: str,
) -> None:
    table = catalog.create_table("d.t", ONE_COLUMN)
    folder, link = folder_of(table), tmp_path / "link"
    link.symlink_to(folder, target_is_directory=True)
    monkeypatch.chdir(tmp_path / "lake")

    def change(document: dict[str, Any]) -> None:
        document["location"] = location.format(folder, link=link)

    path = Path(rewritten(table, change))
    source = given.format(folder, link=link, file=f"{link}/metadata/{path.name}")
    import_iceberg(source, durable=False)
    assert (folder / commit_key(0)).exists()


def test_metadata_may_be_kept_apart(catalog: SqlCatalog, tmp_path: Path) -> None:
    apart = {"write.metadata.path": f"file://{tmp_path}/apart"}
    table = catalog.create_table("d.t", ONE_COLUMN, properties=apart)
    append(table, {"a": 1})
    assert local(table.metadata_location).parent == tmp_path / "apart"
    import_and_compare(table)


def test_a_name_follows_its_catalog(
    catalog: SqlCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = three_appends(catalog)
    other = tmp_path / "other"
    other.mkdir()
    moved = shutil.copy(local(table.metadata_location), other)
    catalog.register_table("d.u", f"file://{moved}")
    monkeypatch.setenv("PYICEBERG_CATALOG__C__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__C__URI", f"sqlite:///{tmp_path}/c.db")
    made = import_iceberg("c.d.u", durable=False).table
    assert made.location == f"file://{folder_of(table)}"


def test_partitions_only_is_one_of_the_refusals(catalog: SqlCatalog) -> None:
    schema = Schema(NestedField(1, "a", IntegerType()), NestedField(2, "u", UUIDType()))
    fields = [(1, "a"), (2, "u")]
    spec = PartitionSpec(*(PartitionField(n, 999 + n, IdentityTransform(), c) for n, c in fields))
    table = catalog.create_table("d.t", schema, partition_spec=spec)
    problems = refusal(table.metadata_location)
    assert any("all columns are partitions" in one for one in problems)
    assert any("u has type uuid" in one for one in problems)
