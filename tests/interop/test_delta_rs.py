"""twinlake and delta-rs on each other's tables, and both at once on one."""

from __future__ import annotations

import datetime as dt
import json
import multiprocessing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.support.data_files import append
from tests.support.engines.our_tables import OUR_TABLES
from tests.support.scale import scale
from twinlake.actions import DeletionVectorDescriptor
from twinlake.log import commit_key, load_snapshot, read_commit
from twinlake.log.deletion_vectors import read_dv
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.synchronize import Barrier
    from pathlib import Path

# delta-rs lists the files of such tables, but refuses to read their rows.
UNREAD = {"widened"}


def assert_same_table(table: Table, theirs: DeltaTable) -> None:
    """Version, schema, metadata, protocol, applications and files are those delta-rs sees."""
    metadata, protocol = theirs.metadata(), theirs.protocol()
    assert table.version == theirs.version()
    assert json.loads(table.metadata.schema_string) == json.loads(theirs.schema().to_json())
    assert (table.metadata.id, table.metadata.name, table.metadata.description) == (
        str(metadata.id),
        metadata.name,
        metadata.description,
    )
    assert list(table.metadata.partition_columns) == metadata.partition_columns
    assert dict(table.properties) == metadata.configuration
    assert table.metadata.created_time == metadata.created_time
    assert (table.protocol.min_reader_version, table.protocol.min_writer_version) == (
        protocol.min_reader_version,
        protocol.min_writer_version,
    )
    assert table.protocol.reader_features == _set(protocol.reader_features)
    assert table.protocol.writer_features == _set(protocol.writer_features)
    for app_id, transaction in table.snapshot.set_transactions.items():
        assert theirs.transaction_version(app_id) == transaction.version
    ours = {file["path"]: file for file in table.files().to_pylist()}
    actions = pa.table(theirs.get_add_actions(flatten=False)).to_pylist()
    assert {action["path"] for action in actions} == ours.keys()
    for action in actions:
        file = ours[action["path"]]
        assert (file["size"], file["num_records"]) == (action["size_bytes"], action["num_records"])
        assert (file["partition_values"] or {}) == (action.get("partition") or {})
        if table.metadata.column_mapping_mode == "none":
            for mine, other in (("min_values", "min"), ("max_values", "max")):
                assert _known((file["stats"] or {}).get(mine)) == _known(action.get(other))


def _set(names: list[Any] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(map(str, names))


def _known(values: Any) -> Any:
    """Statistics without those that are missing; decimals in JSON are too wide for delta-rs."""
    if not isinstance(values, dict):
        return values
    kept = {name: _known(value) for name, value in values.items() if name != "g"}
    return {name: value for name, value in kept.items() if value not in (None, {})}


def rows_of(theirs: DeltaTable) -> list[dict[str, Any]]:
    found = QueryBuilder().register("t", theirs).execute("SELECT * FROM t")
    return sorted(pa.table(found).to_pylist(), key=str)


# --- ours, read by delta-rs -----------------------------------------------------------------------


@pytest.mark.parametrize("name", OUR_TABLES)
def test_delta_rs_reads_our_table(name: str, tmp_path: Path) -> None:
    ours = OUR_TABLES[name](tmp_path)
    theirs = DeltaTable(str(tmp_path))
    assert_same_table(ours.table, theirs)
    if name in UNREAD:
        with pytest.raises(Exception, match="Unsupported table features required"):
            rows_of(theirs)
    else:
        assert rows_of(theirs) == sorted(ours.rows, key=str)


def test_delta_rs_reads_our_deletion_vectors(tmp_path: Path) -> None:
    ours = OUR_TABLES["vectors"](tmp_path)
    masks = pa.table(DeltaTable(str(tmp_path)).deletion_vectors()).to_pylist()
    theirs = {
        row["filepath"].rpartition("/")[2]: {
            n for n, kept in enumerate(row["selection_vector"]) if not kept
        }
        for row in masks
    }
    store = ours.table.snapshot.store
    assert theirs == {
        file["path"]: set(read_dv(store, DeletionVectorDescriptor(**file["deletion_vector"])))
        for file in ours.table.files().to_pylist()
    }


def test_delta_rs_writes_to_our_table(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id BIGINT, name STRING", durable=False)
    table = append(table, tmp_path, [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}])
    theirs = DeltaTable(str(tmp_path))
    write_deltalake(theirs, pa.table({"id": [3], "name": ["c"]}), mode="append")
    theirs.update({"name": "'z'"}, predicate="id = 1")
    theirs.delete("id = 2")
    theirs.create_checkpoint()
    table = table.refresh()
    assert_same_table(table, DeltaTable(str(tmp_path)))
    assert [r.operation for r in table.history(3)] == ["DELETE", "UPDATE", "WRITE"]
    table = append(table, tmp_path, [{"id": 9, "name": "i"}]).set_properties({"by": "us"})
    assert_same_table(table, DeltaTable(str(tmp_path)))
    assert [row["id"] for row in rows_of(DeltaTable(str(tmp_path)))] == [1, 3, 9]


# --- theirs, read here ----------------------------------------------------------------------------


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})


def _plain(path: str) -> None:
    write_deltalake(path, _rows(1, 2), name="theirs", description="words")
    write_deltalake(path, _rows(3), mode="append")
    write_deltalake(path, _rows(4, 5, 6), mode="overwrite")


def _partitioned(path: str) -> None:
    data = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "s": ["a b", "a/b", "ü☃", None, "100%", "x=y"],
            "d": [dt.date(2024, 2, 29), dt.date(1969, 12, 31), None, None, None, None],
        }
    )
    write_deltalake(path, data, partition_by=["s", "d"])
    DeltaTable(path).delete("s = 'a/b'")


def _dml(path: str) -> None:
    write_deltalake(path, _rows(1, 2, 3, 4))
    theirs = DeltaTable(path)
    theirs.update({"name": "'changed'"}, predicate="id = 2")
    theirs.delete("id = 3")
    merge = theirs.merge(_rows(4, 5), "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_delete().when_not_matched_insert_all().execute()


def _optimized(path: str) -> None:
    for i in range(4):
        write_deltalake(path, _rows(i), mode="append")
    theirs = DeltaTable(path)
    theirs.optimize.compact()
    theirs.optimize.z_order(["id"])


def _checkpointed(path: str) -> None:
    for i in range(3):
        write_deltalake(path, _rows(i), mode="append")
    DeltaTable(path).create_checkpoint()
    write_deltalake(path, _rows(3), mode="append")


def _compacted(path: str) -> None:
    for i in range(4):
        write_deltalake(path, _rows(i), mode="append")
    DeltaTable(path).compact_logs(1, 3)


def _constrained(path: str) -> None:
    write_deltalake(path, _rows(1, 2))
    theirs = DeltaTable(path)
    theirs.alter.add_constraint({"positive": "id > 0"})
    theirs.alter.set_table_properties({"delta.logRetentionDuration": "interval 9 days"})
    theirs.alter.set_column_metadata("id", {"comment": "the key"})


def _change_feed(path: str) -> None:
    write_deltalake(path, _rows(1, 2), configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(path).delete("id = 1")


def _evolved(path: str) -> None:
    write_deltalake(path, _rows(1))
    wider = pa.table({"id": pa.array([2], pa.int64()), "more": [{"x": 1.5, "y": [b"z"]}]})
    write_deltalake(path, wider, mode="append", schema_mode="merge")
    DeltaTable(path).restore(0)


def _mapped(path: str) -> None:
    write_deltalake(path, _rows(1, 2), configuration={"delta.columnMapping.mode": "name"})
    write_deltalake(path, _rows(3), mode="append")
    DeltaTable(path).create_checkpoint()


def _with_features(path: str) -> None:
    write_deltalake(path, _rows(1, 2), configuration={"delta.enableDeletionVectors": "true"})
    theirs = DeltaTable(path)
    theirs.delete("id = 1")
    theirs.create_checkpoint()
    theirs.update({"name": "'z'"})


def _transactions(path: str) -> None:
    for version in (1, 2):
        marked = CommitProperties(app_transactions=[Transaction("loader", version)])
        write_deltalake(path, _rows(version), mode="append", commit_properties=marked)


def _many_types(path: str) -> None:
    data = {
        "i8": pa.array([1, None], pa.int8()),
        "i16": pa.array([1, None], pa.int16()),
        "i32": pa.array([1, None], pa.int32()),
        "f32": pa.array([1.5, None], pa.float32()),
        "f64": pa.array([-0.5, None], pa.float64()),
        "day": pa.array([dt.date(2024, 1, 1), None]),
        "at": pa.array([dt.datetime(2024, 1, 1, 1, 2, 3, 456789, dt.UTC), None]),
        "ntz": pa.array([dt.datetime(2024, 1, 1, 1, 2, 3, 456789), None]),
        "list": pa.array([[1, None], None], pa.list_(pa.int32())),
        "nested": pa.array([{"a": {"b": "c"}}, None]),
        "bytes": pa.array([b"\x00", None]),
        "flag": pa.array([True, None]),
    }
    write_deltalake(path, pa.table(data))


THEIRS: dict[str, Callable[[str], None]] = {
    "plain": _plain,
    "partitioned": _partitioned,
    "dml": _dml,
    "optimized": _optimized,
    "checkpointed": _checkpointed,
    "compacted": _compacted,
    "constrained": _constrained,
    "change_feed": _change_feed,
    "evolved": _evolved,
    "mapped": _mapped,
    "with_features": _with_features,
    "transactions": _transactions,
    "many_types": _many_types,
}


@pytest.mark.parametrize("name", THEIRS)
def test_we_read_the_table_of_delta_rs(name: str, tmp_path: Path) -> None:
    THEIRS[name](str(tmp_path))
    theirs = DeltaTable(str(tmp_path))
    table = Table.open(tmp_path)
    assert_same_table(table, theirs)
    assert [(r.version, r.operation) for r in table.history()] == [
        (theirs.version() - n, record["operation"]) for n, record in enumerate(theirs.history())
    ]
    for version in range(table.version):
        theirs.load_as_version(version)
        assert_same_table(table.at(version), theirs)


def test_we_read_the_checkpoint_of_delta_rs_and_nothing_before_it(tmp_path: Path) -> None:
    _checkpointed(str(tmp_path))
    for version in range(3):
        (tmp_path / commit_key(version)).unlink()
    table = Table(load_snapshot(Table.open(tmp_path).snapshot.store))
    assert table.snapshot.checkpoint is not None
    assert_same_table(table, DeltaTable(str(tmp_path)))


def test_time_travel_agrees_with_delta_rs(tmp_path: Path) -> None:
    _checkpointed(str(tmp_path))
    theirs = DeltaTable(str(tmp_path))
    for record in Table.open(tmp_path).history():
        moment = dt.datetime.fromtimestamp(record.timestamp / 1000, dt.UTC)
        theirs.load_as_version(moment)
        assert Table.open(tmp_path, timestamp=moment).version == theirs.version()


# --- both at once ---------------------------------------------------------------------------------


def _write_with_us(path: str, name: str, commits: int, start: Barrier) -> None:
    from pathlib import Path

    table = Table.open(path, durable=False)
    start.wait()
    for n in range(commits):
        table = append(table, Path(path), [{"id": n, "name": name}])


def _write_with_delta_rs(path: str, name: str, commits: int, start: Barrier) -> None:
    start.wait()
    for n in range(commits):
        while True:
            try:
                write_deltalake(path, pa.table({"id": [n], "name": [name]}), mode="append")
            except CommitFailedError:
                continue
            break


def test_both_write_to_one_table_and_nothing_is_lost(tmp_path: Path) -> None:
    Table.create(tmp_path, "id BIGINT, name STRING", properties={"delta.checkpointInterval": "10"})
    commits = scale(8, 50)
    spawn = multiprocessing.get_context("spawn")
    start = spawn.Barrier(4)
    writers = [
        spawn.Process(target=write, args=(str(tmp_path), f"{write.__name__}-{n}", commits, start))
        for write in (_write_with_us, _write_with_delta_rs)
        for n in range(2)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4

    table, theirs = Table.open(tmp_path), DeltaTable(str(tmp_path))
    assert table.version == 4 * commits
    assert_same_table(table, theirs)
    store = table.snapshot.store
    assert all(read_commit(store, version) for version in range(table.version + 1))
    found = [(row["name"], row["id"]) for row in rows_of(theirs)]
    assert sorted(found) == sorted(
        (f"{write.__name__}-{n}", i)
        for write in (_write_with_us, _write_with_delta_rs)
        for n in range(2)
        for i in range(commits)
    )
