"""Files of tables with Iceberg compat features, as the Arrow writer makes them."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from twinlake import Table
from twinlake.commit import CommitOptions, Operation, Transaction
from twinlake.compat import COMPATS, VERSION_TAG
from twinlake.files.data_file_writer import WriteTask
from twinlake.files.file_layout import FileLayout, file_tags, must_materialise, row_id_fields
from twinlake.files.file_target import FileTarget
from twinlake.schema import Struct, field_id, to_arrow

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.actions import AddFile

FLAT = "p STRING, at TIMESTAMP, x DECIMAL(20,2)"
NESTED = f"{FLAT}, m MAP<STRUCT<k: INT>, ARRAY<STRUCT<t: TIMESTAMP_NTZ, n: ARRAY<ARRAY<INT>>>>>"
MOMENT = dt.datetime(2024, 2, 29, 1, 2, 3, 4, dt.UTC)
COMPAT_FEATURES = list(COMPATS)


def compat_table(folder: Path, feature: str, schema: str) -> Table:
    properties = {COMPATS[feature].key: True, "delta.dataSkippingNumIndexedCols": 0}
    return Table.create(folder, schema, ["p"], properties, durable=False)


def target_of(table: Table, **more: Any) -> FileTarget:
    return FileTarget(url=table.location, metadata=table.metadata, protocol=table.protocol, **more)


def written(table: Table, rows: list[dict[str, Any]], **more: Any) -> tuple[AddFile, ...]:
    target = target_of(table, **more)
    columns = to_arrow(Struct((*table.schema.fields, *target.extra)))
    batch = pa.RecordBatch.from_pylist(rows, schema=columns)
    return WriteTask(target=target, job="job").write([batch])


@pytest.mark.parametrize("feature", COMPAT_FEATURES)
def test_files_hold_every_rule(tmp_path: Path, feature: str) -> None:
    nested = feature != "icebergCompatV1"
    table = compat_table(tmp_path, feature, NESTED if nested else FLAT)
    row: dict[str, Any] = {"p": "a", "at": MOMENT, "x": None}
    if nested:
        inner = {"t": MOMENT.replace(tzinfo=None), "n": [[1], [], None]}
        row["m"] = [({"k": 1}, [inner, None])]
    adds = written(table, [row, {"p": None}])
    options = CommitOptions(trusted_files=False)
    Transaction(table.snapshot, Operation(name="WRITE"), options=options).add(*adds).commit()
    report = table.refresh().check(feature, files=True)
    assert report.ok, str(report)
    version = COMPATS[feature].version
    for add in adds:
        assert json.loads(add.stats or "{}")["numRecords"] == 1
        assert add.tags == ({VERSION_TAG: str(version)} if version > 1 else None)


@pytest.mark.parametrize("feature", ["icebergCompatV3", "icebergWriterCompatV3"])
def test_row_ids_have_the_field_ids_of_iceberg(tmp_path: Path, feature: str) -> None:
    table = compat_table(tmp_path, feature, FLAT)
    names = [
        table.properties[f"delta.rowTracking.materialized{name}ColumnName"]
        for name in ("RowId", "RowCommitVersion")
    ]
    extra = row_id_fields(table.metadata, names)
    assert [field_id(field) for field in extra] == [2147483540, 2147483539]
    adds = written(table, [{"p": "a", names[0]: 7, names[1]: 1}], extra=extra)
    table = table.commit("WRITE", adds)
    assert table.check(feature, files=True).ok


def test_other_tables_get_no_such_ids(tmp_path: Path) -> None:
    table = compat_table(tmp_path, "icebergCompatV2", FLAT)
    assert [field_id(field) for field in row_id_fields(table.metadata, ["a", "b"])] == [None, None]


def test_partition_columns_stand_last_whatever_the_table_says(tmp_path: Path) -> None:
    table = compat_table(tmp_path, "icebergCompatV1", FLAT)
    off = table.metadata.with_configuration({"delta.writePartitionColumnsToParquet": "false"})
    assert must_materialise(off)
    assert FileLayout.of(FileTarget(url=table.location, metadata=off)).kept == (1, 2, 0)


def test_change_files_and_plain_tables_are_not_tagged(tmp_path: Path) -> None:
    table = compat_table(tmp_path / "v2", "icebergCompatV2", FLAT)
    assert file_tags(target_of(table)) == {VERSION_TAG: "2"}
    assert file_tags(target_of(table, folder="_change_data")) is None
    assert file_tags(target_of(Table.create(tmp_path / "plain", FLAT, durable=False))) is None


def test_empty_lists_inside_of_others_are_written(tmp_path: Path) -> None:
    """As Spark sends them: a list without any element has no offsets at all."""
    table = Table.create(tmp_path, "s STRUCT<l: ARRAY<STRUCT<m: ARRAY<INT>>>>", durable=False)
    kind = to_arrow(table.schema).field("s").type
    inner = pa.Array.from_buffers(
        pa.list_(pa.int32()), 0, [None, None], children=[pa.array([], pa.int32())]
    )
    member = pa.StructArray.from_arrays([inner], fields=list(kind.field("l").type.value_type))
    outer = pa.ListArray.from_arrays(pa.array([0, 0], pa.int32()), member, kind.field("l").type)
    batch = pa.record_batch([pa.StructArray.from_arrays([outer], fields=list(kind))], names=["s"])
    (add,) = WriteTask(target=target_of(table), job="job").write([batch])
    assert json.loads(add.stats or "{}")["numRecords"] == 1
