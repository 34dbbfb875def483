"""Files that other engines committed: read wrong by Iceberg they are never published."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import V2, V3, hide, iceberg_rows, now_ms, remove_files, twin
from tests.support.log_tables import commit, info
from twinlake import Table
from twinlake.errors import CompatViolation
from twinlake.iceberg import sync_table
from twinlake.log.names import commit_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from twinlake.actions import AddFile

SPARK = "Apache-Spark/4.1.4 Delta-Lake/4.4.0"
WRITER = {"delta.enableIcebergWriterCompatV1": "true"}
SCHEMA = "id INT, d DATE, s STRUCT<x: INT>, l ARRAY<INT>"
LEGACY = {b"org.apache.spark.version": b"4.1.4", b"org.apache.spark.legacyDateTime": b""}
ID = b"PARQUET:field_id"


def row(number: int, year: int = 2024) -> dict[str, Any]:
    return {"id": number, "d": dt.date(year, 3, 1), "s": {"x": number}, "l": [number]}


def rewritten(add: AddFile, folder: Path, change: Callable[[pa.Table], pa.Table]) -> AddFile:
    """The same file as another writer would have left it."""
    place = folder / add.path
    pq.write_table(change(pq.read_table(place)), place)
    return msgspec.structs.replace(add, size=place.stat().st_size)


def legacy(data: pa.Table) -> pa.Table:
    return data.replace_schema_metadata(LEGACY)


def without_top_ids(data: pa.Table) -> pa.Table:
    """Ids on elements and nowhere else, as Delta Spark leaves them with ``fieldId.write`` off."""
    fields = [_without_id(field) for field in data.schema]
    return pa.Table.from_arrays(
        [column.cast(field.type) for column, field in zip(data.columns, fields, strict=True)],
        schema=pa.schema(fields),
    )


def _without_id(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_without_id(member) for member in kind])
    return pa.field(field.name, kind, field.nullable)


def without_ids(data: pa.Table) -> pa.Table:
    plain = without_top_ids(data).schema
    fields = [
        pa.field(f.name, pa.list_(pa.field("element", pa.int32())))
        if pa.types.is_list(f.type)
        else f
        for f in plain
    ]
    return pa.Table.from_arrays(
        [c.cast(f.type) for c, f in zip(data.columns, fields, strict=True)],
        schema=pa.schema(fields),
    )


def with_a_column_of_its_own(data: pa.Table) -> pa.Table:
    """What Delta Spark leaves in files where the change data feed is on; PyIceberg fails on it."""
    return data.append_column("_change_type", pa.array(["insert"] * data.num_rows))


def foreign(
    table: Table,
    folder: Path,
    rows: Sequence[dict[str, Any]],
    change: Callable[[pa.Table], pa.Table] = lambda data: data,
) -> tuple[Table, AddFile]:
    """A commit of Delta Spark with one file."""
    add = rewritten(write_file(table, folder, rows), folder, change)
    commit(table.snapshot.store, table.version + 1, info(engine_info=SPARK), add)
    return table.refresh(), add


def ids(folder: Path) -> list[int]:
    return sorted(row["id"] for row in iceberg_rows(folder))


def stopped(table: Table, at: int) -> CompatViolation:
    with pytest.raises(CompatViolation) as caught:
        table.iceberg.sync()
    assert table.iceberg.version == at
    return caught.value


@pytest.mark.parametrize("first", [False, True], ids=["continued", "first conversion"])
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        pytest.param(legacy, "ICV2-26", id="legacy calendar"),
        pytest.param(without_top_ids, "ICV2-14", id="ids below the top alone"),
        pytest.param(with_a_column_of_its_own, "ICV2-14", id="a column of nobody without an id"),
    ],
)
def test_a_misread_file_stops_the_sync_at_the_version_before(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table], rule: str, first: bool
) -> None:
    table = append(twin(tmp_path, SCHEMA), tmp_path, [row(1)])
    if not first:
        sync_table(table.snapshot)
    table, _ = foreign(table, tmp_path, [row(2)])
    table, bad = foreign(table, tmp_path, [row(3, 1500)], change)
    table = append(table, tmp_path, [row(4)])

    error = stopped(table, at=2)
    assert (error.rule, error.fields["path"], error.fields["version"]) == (rule, bad.path, 3)
    assert bad.path in error.what
    assert ids(tmp_path) == [1, 2]
    lag = table.iceberg.lag
    assert (lag.iceberg_version, lag.versions) == (2, 2)
    assert bad.path in lag.why
    assert f"twinlake upgrade {table.location} --to icebergCompatV2 --yes" in lag.why
    # Asked again it says the same, and what came since does not change that.
    table = append(table, tmp_path, [row(5)])
    assert stopped(table, at=2).fields == error.fields

    table = remove_files(table, [bad])
    table.iceberg.sync()
    assert ids(tmp_path) == [1, 2, 4, 5]
    assert (table.iceberg.version, table.iceberg.lag.why) == (table.version, "")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data, id="as the rules want it"),
        pytest.param(without_ids, id="no ids at all"),
    ],
)
def test_what_iceberg_reads_right_is_published(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table]
) -> None:
    table = append(twin(tmp_path, SCHEMA), tmp_path, [row(1)])
    sync_table(table.snapshot)
    table, _ = foreign(table, tmp_path, [row(2, 1500)], change)
    sync_table(table.snapshot)
    assert sorted(iceberg_rows(tmp_path), key=lambda one: int(one["id"])) == [row(1), row(2, 1500)]


def test_legacy_dates_from_1900_on_are_published(tmp_path: Path) -> None:
    table, _ = foreign(twin(tmp_path, SCHEMA), tmp_path, [row(1, 1900)], legacy)
    sync_table(table.snapshot)
    assert iceberg_rows(tmp_path) == [row(1, 1900)]


def test_files_without_partition_columns_are_published(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p INT", "p")
    name = table.schema.fields[1].metadata["delta.columnMapping.physicalName"]
    rows = [{"id": 1, "p": 7}]
    table, _ = foreign(table, tmp_path, rows, lambda data: data.drop_columns([name]))
    sync_table(table.snapshot)
    assert iceberg_rows(tmp_path) == rows


def test_a_file_that_is_gone_or_damaged_is_named(tmp_path: Path) -> None:
    table = append(twin(tmp_path, SCHEMA), tmp_path, [row(1)])
    table, gone = foreign(table, tmp_path, [row(2)])
    (tmp_path / gone.path).unlink()
    error = stopped(table, at=1)
    assert (error.rule, error.fields["paths"]) == ("ICV2-25", [gone.path])
    # There is nothing to write again.
    assert "upgrade" not in error.fix


def test_every_misread_file_of_a_commit_is_known_at_once(tmp_path: Path) -> None:
    table = twin(tmp_path, SCHEMA)
    adds = [
        rewritten(write_file(table, tmp_path, [row(n, 1500)]), tmp_path, legacy) for n in range(5)
    ]
    good = write_file(table, tmp_path, [row(9)])
    commit(table.snapshot.store, 1, info(engine_info=SPARK), *adds, good)
    table = table.refresh()
    error = stopped(table, at=0)
    assert error.fields["paths"] == [add.path for add in adds]
    assert "2 more files" in error.why
    # They go one after the other: only the last one mends it.
    for add in adds[:-1]:
        table = remove_files(table, [add])
        stopped(table, at=0)
    table = remove_files(table, [adds[-1]])
    table.iceberg.sync()
    assert ids(tmp_path) == [9]


def test_a_misread_file_that_is_committed_again_is_not_mended(tmp_path: Path) -> None:
    table, bad = foreign(twin(tmp_path, SCHEMA), tmp_path, [row(1, 1500)], legacy)
    stopped(table, at=0)
    again = msgspec.structs.replace(bad, data_change=False, tags={"note": "x"})
    commit(table.snapshot.store, 2, info(engine_info=SPARK), again)
    table = append(table.refresh(), tmp_path, [row(2)])
    stopped(table, at=0)


def lose_data(table: Table, folder: Path) -> None:
    """Without files whoever reads one notices."""
    for add in table.snapshot.adds():
        (folder / add.path).unlink()


@pytest.mark.parametrize("first", [False, True], ids=["continued", "first conversion"])
def test_files_of_own_commits_are_not_read(tmp_path: Path, first: bool) -> None:
    table = twin(tmp_path, SCHEMA)
    if not first:
        sync_table(table.snapshot)
    table = append(append(table, tmp_path, [row(1)]), tmp_path, [row(2)])
    lose_data(table, tmp_path)
    assert sync_table(table.snapshot).version == 2


def test_files_from_before_twinlake_enabled_the_feature_are_not_read_again(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path, SCHEMA, properties={"delta.columnMapping.mode": "name"}, durable=False
    )
    model = twin(tmp_path / "model", SCHEMA)
    commit(
        table.snapshot.store,
        1,
        info(engine_info=SPARK),
        replace(
            model.metadata,
            configuration={
                key: value
                for key, value in model.metadata.configuration.items()
                if "Iceberg" not in key
            },
        ),
    )
    table, _ = foreign(table.refresh(), tmp_path, [row(1)])
    table = table.set_properties({"delta.enableIcebergCompatV2": "true"})
    lose_data(table, tmp_path)
    assert sync_table(table.snapshot).version == table.version
    # What comes past it later is looked at.
    table, late = foreign(table, tmp_path, [row(2, 1500)], legacy)
    assert stopped(table, at=table.version - 1).fields["paths"] == [late.path]


def test_all_files_are_read_where_another_engine_enabled_the_feature(tmp_path: Path) -> None:
    model = twin(tmp_path / "model", SCHEMA)
    plain = {k: v for k, v in model.metadata.configuration.items() if "Iceberg" not in k}
    table = Table.create(
        tmp_path, SCHEMA, properties={"delta.columnMapping.mode": "name"}, durable=False
    )
    store = table.snapshot.store
    commit(store, 1, info(engine_info=SPARK), replace(model.metadata, configuration=plain))
    # Twinlake asks nothing of files of a table without the feature.
    table = table.refresh()
    bad = rewritten(write_file(table, tmp_path, [row(1, 1500)]), tmp_path, legacy)
    table = table.commit("WRITE", [bad])
    commit(store, 3, info("SET TBLPROPERTIES", engine_info=SPARK), model.protocol, model.metadata)
    with pytest.raises(CompatViolation) as caught:
        sync_table(table.refresh().snapshot)
    assert caught.value.fields["paths"] == [bad.path]
    assert table.iceberg.version is None


def without_history(table: Table, folder: Path) -> Table:
    table.checkpoint()
    for version in range(table.version):
        (folder / commit_key(version)).unlink()
    return Table.open(folder, durable=False)


def test_files_of_a_history_that_is_gone_are_read(tmp_path: Path) -> None:
    table, bad = foreign(twin(tmp_path, SCHEMA), tmp_path, [row(1, 1500)], legacy)
    table = without_history(append(table, tmp_path, [row(2)]), tmp_path)
    with pytest.raises(CompatViolation) as caught:
        sync_table(table.snapshot)
    assert caught.value.fields["paths"] == [bad.path]


def test_a_writer_feature_vouches_for_a_history_that_is_gone(tmp_path: Path) -> None:
    table = twin(tmp_path, SCHEMA, properties=WRITER)
    table = without_history(append(table, tmp_path, [row(1)]), tmp_path)
    lose_data(table, tmp_path)
    assert sync_table(table.snapshot).version == 1
    table, bad = foreign(table, tmp_path, [row(2, 1500)], legacy)
    error = stopped(table, at=1)
    assert error.fields["paths"] == [bad.path]
    assert "--to icebergWriterCompatV1 --yes" in error.fix


def test_own_commits_by_the_rules_of_another_implementation_are_read(tmp_path: Path) -> None:
    table = twin(tmp_path, SCHEMA, properties={**V2, "twinlake.compat.profile": "kernel"})
    table = append(table, tmp_path, [row(1)])
    sync_table(table.snapshot)
    bad = rewritten(write_file(table, tmp_path, [row(2, 1500)]), tmp_path, legacy)
    table = table.commit("WRITE", [bad])
    assert stopped(table, at=1).fields["paths"] == [bad.path]


def test_a_file_under_another_vector_is_not_read_again(tmp_path: Path) -> None:
    table, add = foreign(twin(tmp_path, SCHEMA, properties=V3), tmp_path, [row(1), row(2)])
    sync_table(table.snapshot)
    table = hide(table, tmp_path, {add.path: [0]})
    (tmp_path / add.path).unlink()
    assert sync_table(table.snapshot).version == table.version


def test_a_commit_of_ours_warns_of_a_misread_file_before_it(tmp_path: Path) -> None:
    """With a sync after every commit the table goes on, and the warning names the file."""
    properties = {**V2, "twinlake.iceberg.sync": "commit"}
    table = append(twin(tmp_path, SCHEMA, properties=properties), tmp_path, [row(1)])
    table, bad = foreign(table, tmp_path, [row(2, 1500)], legacy)
    table = append(table, tmp_path, [row(3)])
    (warning,) = table.warnings
    assert bad.path in warning.error
    assert (table.iceberg.version, ids(tmp_path)) == (1, [1])
    table = table.commit("DELETE", [bad.remove(deletion_timestamp=now_ms())])
    assert table.warnings == ()
    assert ids(tmp_path) == [1, 3]
