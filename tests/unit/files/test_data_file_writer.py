"""Arrow batches become files whatever process they are written in; no Spark is needed here."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.actions import AddFile
from twinlake.errors import UserError
from twinlake.files.arrow_conversion import conform_array
from twinlake.files.data_file_writer import WriteTask
from twinlake.files.file_layout import FileLayout, must_materialise
from twinlake.files.file_target import FileTarget
from twinlake.protocol import Metadata
from twinlake.schema import (
    HIVE_NULL,
    StructField,
    assign_mapping,
    parse_ddl,
    parse_type,
)
from twinlake.spark.files.arrow_writer import WriteBatches
from twinlake.storage import decode_path, open_store

if TYPE_CHECKING:
    from pathlib import Path


JOB = "11111111-2222-3333-4444-555555555555"


def target(path: Path | str, ddl: str, **changes: Any) -> FileTarget:
    """A target for a table of that schema; keys with dots are properties."""
    properties = {key: value for key, value in changes.items() if "." in key}
    rest = {key: value for key, value in changes.items() if "." not in key}
    schema = parse_ddl(ddl)
    if "delta.columnMapping.mode" in properties:
        nested = "delta.enableIcebergCompatV2" in properties
        schema, _ = assign_mapping(schema, name_for=lambda n: f"col-{n}", nested_ids=nested)
    metadata = Metadata(
        id="t",
        configuration=properties,
        partition_columns=tuple(rest.pop("partition_by", ())),
    ).with_schema(schema)
    return FileTarget(url=str(path), metadata=metadata, durable=False, **rest)


def write(where: FileTarget, *batches: pa.RecordBatch) -> tuple[AddFile, ...]:
    """The files of these batches."""
    return WriteTask(target=where, job=JOB).write(batches)


def names_below(path: Path) -> list[str]:
    """The files in a folder, at any depth."""
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


NESTED = pa.struct(
    [
        ("x", pa.int64()),
        ("l", pa.list_(pa.struct([("y", pa.string())]))),
        ("m", pa.map_(pa.string(), pa.struct([("z", pa.timestamp("us", "America/New_York"))]))),
    ]
)
RENAMED = pa.struct(
    [
        pa.field("col-1", pa.int64(), metadata={"PARQUET:field_id": "1"}),
        pa.field("col-2", pa.list_(pa.field("element", pa.struct([("col-3", pa.string())])))),
        pa.field("col-4", pa.map_(pa.string(), pa.struct([("col-5", pa.timestamp("us", "UTC"))]))),
    ]
)
ROWS: list[Any] = [
    {"x": 1, "l": [{"y": "a"}, None], "m": [("k", {"z": dt.datetime(2024, 1, 1, tzinfo=dt.UTC)})]},
    None,
    {"x": None, "l": None, "m": None},
    {"x": 2, "l": [], "m": [("q", None)]},
]


def as_tuples(value: Any) -> Any:
    """Values without the names of members, for comparing under other names."""
    match value:
        case dict():
            return tuple(as_tuples(v) for v in value.values())
        case list() | tuple():
            return [as_tuples(v) for v in value]
        case dt.datetime():
            return value.timestamp()
        case _:
            return value


@pytest.mark.parametrize(("start", "end"), [(0, 4), (1, 4), (2, 3), (4, 4)])
def test_conform_renames_at_every_level_and_keeps_values(start: int, end: int) -> None:
    given = pa.array(ROWS, NESTED).slice(start, end - start)
    found = conform_array(given, RENAMED)
    found.validate(full=True)
    assert found.type.equals(RENAMED, check_metadata=True)
    assert as_tuples(found.to_pylist()) == as_tuples(ROWS[start:end])


def test_conform_gives_empty_elements_the_offsets_the_jvm_left_out() -> None:
    kind = pa.map_(pa.string(), pa.int32())
    entries = pa.array([], pa.struct([kind.key_field, kind.item_field]))
    bare = pa.Array.from_buffers(kind, 0, [None, None], children=[entries])
    nulls, offsets = pa.py_buffer(bytes(1)), pa.py_buffer(bytes(16))
    given = pa.Array.from_buffers(pa.list_(kind), 3, [nulls, offsets], children=[bare])
    # Asking ``given`` itself for its size ends the process.
    assert conform_array(given, given.type).nbytes == 13


def test_conform_takes_the_parts_of_a_variant_by_name() -> None:
    given = pa.array(
        [{"value": b"v", "metadata": b"m"}],
        pa.struct([("value", pa.binary()), ("metadata", pa.binary())]),
    )
    wanted = pa.struct(
        [
            pa.field("metadata", pa.binary(), nullable=False),
            pa.field("value", pa.binary(), nullable=False),
        ]
    )
    assert conform_array(given, wanted).to_pylist() == [{"metadata": b"m", "value": b"v"}]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (pa.array([0], pa.timestamp("us")), pa.timestamp("us", "UTC")),
        (pa.array([0], pa.timestamp("us", "UTC")), pa.timestamp("us")),
        (pa.array([300]), pa.int8()),
        (pa.array(["x"]), pa.int64()),
        (pa.array([[1]]), pa.struct([("a", pa.int64())])),
        (pa.array([{"a": 1}]), pa.struct([("a", pa.int64()), ("b", pa.int64())])),
        (pa.array([1.5]), pa.timestamp("us")),
    ],
    ids=["to-instant", "to-wall-clock", "overflow", "text", "list", "members", "number"],
)
def test_conform_refuses_what_could_change_a_value(given: pa.Array, wanted: pa.DataType) -> None:
    with pytest.raises(UserError):
        conform_array(given, wanted)


def test_large_strings_become_strings() -> None:
    assert conform_array(pa.array(["a"], pa.large_string()), pa.string()).type == pa.string()


def test_partitions_are_split_by_value_and_nulls_have_their_own(tmp_path: Path) -> None:
    where = target(tmp_path, "id BIGINT, p STRING, d DATE", partition_by=("d", "p"))
    day = dt.date(2024, 2, 29)
    first = pa.record_batch(
        {"id": [1, 2, 3, 4], "p": ["ü/ %", None, "", "ü/ %"], "d": [day, day, None, day]}
    )
    second = pa.record_batch({"id": [5, 6], "p": ["ü/ %", "ü/ %"], "d": [day, day]})
    adds = write(where, first, second)
    found = {
        tuple(add.partition_values.values()): pq.read_table(
            tmp_path / decode_path(add.path), partitioning=None
        ).to_pydict()
        for add in adds
    }
    assert found == {
        ("2024-02-29", "ü/ %"): {"id": [1, 4, 5, 6]},
        ("2024-02-29", None): {"id": [2]},
        (None, None): {"id": [3]},
    }
    folders = {decode_path(add.path).rsplit("/", 1)[0] for add in adds}
    assert folders == {
        "d=2024-02-29/p=ü%2F %25",
        f"d=2024-02-29/p={HIVE_NULL}",
        f"d={HIVE_NULL}/p={HIVE_NULL}",
    }


def test_many_partition_columns_do_not_run_out_of_numbers(tmp_path: Path) -> None:
    names = [f"p{i}" for i in range(12)]
    ddl = "id INT, " + ", ".join(f"{name} INT" for name in names)
    where = target(tmp_path, ddl, partition_by=names)
    rows = 300
    columns = {"id": pa.array(range(rows), pa.int32())}
    columns |= {name: pa.array([(i * 7) % 300 for i in range(rows)], pa.int32()) for name in names}
    adds = write(where, pa.record_batch(columns))
    assert len(adds) == rows
    assert sum(json.loads(add.stats or "")["numRecords"] for add in adds) == rows


def test_the_text_for_null_is_no_partition_value(tmp_path: Path) -> None:
    where = target(tmp_path, "id BIGINT, p STRING", partition_by=("p",))
    with pytest.raises(UserError, match="cannot be a value"):
        write(where, pa.record_batch({"id": [1, 2], "p": ["a", HIVE_NULL]}))
    assert names_below(tmp_path) == []


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("delta.enableIcebergCompatV1", True),
        ("delta.enableIcebergCompatV2", True),
        ("delta.enableIcebergCompatV3", True),
        ("delta.enableMaterializePartitionColumnsFeature", True),
        ("delta.appendOnly", False),
    ],
)
def test_partition_columns_are_in_the_file_where_rules_want_them(
    flag: str, expected: bool, tmp_path: Path
) -> None:
    where = target(tmp_path, "p INT, id BIGINT", partition_by=("p",), **{flag: "true"})
    assert must_materialise(where.metadata) is expected
    (add,) = write(where, pa.record_batch({"p": pa.array([7], pa.int32()), "id": [1]}))
    names = pq.read_schema(tmp_path / decode_path(add.path)).names
    assert names == (["id", "p"] if expected else ["id"])
    # Statistics leave partition columns out even where files hold them.
    assert "p" not in json.loads(add.stats or "")["minValues"]


def test_floating_columns_have_no_dictionary(tmp_path: Path) -> None:
    batch = pa.record_batch(
        {
            "id": pa.array([1, 1]),
            "d.d": pa.array([-0.0, -0.0]),
            "l": pa.array([[1.5], [1.5]], pa.list_(pa.float32())),
            "t": pa.array([["x"], ["x"]]),
        }
    )

    where = target(tmp_path, "id LONG, `d.d` DOUBLE, l ARRAY<FLOAT>, t ARRAY<STRING>")
    (add,) = write(where, batch)

    group = pq.read_metadata(tmp_path / decode_path(add.path)).row_group(0)
    found = [group.column(index) for index in range(group.num_columns)]
    assert {c.path_in_schema.partition(".list")[0]: c.has_dictionary_page for c in found} == {
        "id": True,
        "d.d": False,
        "l": False,
        "t": True,
    }


def test_every_node_has_its_field_id(tmp_path: Path) -> None:
    where = target(
        tmp_path,
        "a ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>",
        **{"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV2": "true"},
    )
    batch = pa.record_batch(
        {
            "a": pa.array([[{"x": 1}]], pa.list_(pa.struct([("x", pa.int32())]))),
            "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    (add,) = write(where, batch)
    shown = str(pq.ParquetFile(tmp_path / add.path).schema)
    lines = [line for line in shown.splitlines()[2:] if "field_id=" in line]
    without = [line for line in lines if "field_id=-1" in line]
    assert len(lines) - len(without) == 6
    assert all("repeated group" in line for line in without)


def test_files_are_closed_at_the_asked_size(tmp_path: Path) -> None:
    where = target(tmp_path, "id BIGINT, s STRING", target_file_size=50_000)
    batches = [
        pa.record_batch(
            {"id": range(n, n + 5000), "s": [f"{i * 7919 % 1000003:x}" for i in range(n, n + 5000)]}
        )
        for n in range(0, 40_000, 5000)
    ]
    adds = write(where, *batches)
    assert len(adds) > 3
    assert all(25_000 < add.size < 100_000 for add in adds[:-1])
    assert sum(json.loads(add.stats or "")["numRecords"] for add in adds) == 40_000
    assert sorted(add.path for add in adds) == names_below(tmp_path)


def test_more_partitions_than_open_files(tmp_path: Path) -> None:
    where = target(tmp_path, "id BIGINT, p INT", partition_by=("p",))
    batch = pa.record_batch(
        {"id": range(400), "p": pa.array([i % 200 for i in range(400)], pa.int32())}
    )
    adds = write(where, batch)
    assert len({add.path for add in adds}) == len(adds) == 200
    assert sum(json.loads(add.stats or "")["numRecords"] for add in adds) == 400


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    where = target(tmp_path, "id BIGINT", target_file_size=1000)

    def batches() -> Any:
        yield pa.record_batch({"id": range(5000)})
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        WriteTask(target=where, job=JOB).write(batches())
    assert names_below(tmp_path) == []


def test_no_rows_no_file(tmp_path: Path) -> None:
    where = target(tmp_path, "id BIGINT")
    assert write(where) == ()
    assert write(where, pa.record_batch({"id": pa.array([], pa.int64())})) == ()
    assert names_below(tmp_path) == []


def test_a_store_without_files_is_given_whole_objects() -> None:
    where = target("memory://arrow-files/t", "id BIGINT, s STRING")
    (add,) = write(where, pa.record_batch({"id": [1, 2], "s": ["a", None]}))
    data = open_store(where.url).read(add.path)
    assert len(data) == add.size
    assert pq.read_table(pa.BufferReader(data)).to_pydict() == {"id": [1, 2], "s": ["a", None]}


def test_change_files_go_to_their_folder_with_their_column(tmp_path: Path) -> None:
    where = target(
        tmp_path,
        "id BIGINT, p INT",
        partition_by=("p",),
        folder="_change_data",
        stats=False,
        extra=(StructField("_change_type", parse_type("STRING")),),
    )
    batch = pa.record_batch({"id": [1], "p": pa.array([3], pa.int32()), "_change_type": ["insert"]})
    (add,) = write(where, batch)
    assert add.path.startswith("_change_data/p=3/part-")
    assert add.stats is None
    found = pq.read_table(tmp_path / add.path, partitioning=None)
    assert found.to_pydict() == {"id": [1], "_change_type": ["insert"]}


def test_parquet_types_are_those_of_spark(tmp_path: Path) -> None:
    ddl = "b TINYINT, s SMALLINT, d DECIMAL(9,2), e DECIMAL(18,2), f DECIMAL(20,2), t TIMESTAMP"
    where = target(tmp_path, ddl)
    schema = pa.schema(
        [
            ("b", pa.int8()),
            ("s", pa.int16()),
            ("d", pa.decimal128(9, 2)),
            ("e", pa.decimal128(18, 2)),
            ("f", pa.decimal128(20, 2)),
            ("t", pa.timestamp("us", "Asia/Tokyo")),
        ]
    )
    one = Decimal("1.00")
    row = {
        "b": 1,
        "s": 2,
        "d": one,
        "e": one,
        "f": one,
        "t": dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
    }
    (add,) = write(where, pa.RecordBatch.from_pylist([row], schema))
    found = pq.ParquetFile(tmp_path / add.path)
    physical = [found.schema.column(i).physical_type for i in range(6)]
    assert physical == ["INT32", "INT32", "INT32", "INT64", "FIXED_LEN_BYTE_ARRAY", "INT64"]
    assert str(found.schema.column(0).logical_type).startswith("Int(bitWidth=8")
    assert b"ARROW:schema" not in (found.metadata.metadata or {})


def test_tasks_and_their_answers_travel_between_processes(tmp_path: Path) -> None:
    where = target(tmp_path, "id BIGINT, p STRING", partition_by=("p",))
    task = pickle.loads(pickle.dumps(WriteBatches(WriteTask(target=where, job=JOB))))
    (answer,) = list(task([pa.record_batch({"id": [1], "p": ["x y"]})]))
    add = msgspec.json.decode(answer.to_pylist()[0]["file"], type=AddFile)
    assert add.path == f"p=x%20y/part-00000-{JOB}-0-000.snappy.parquet"
    assert add.partition_values == {"p": "x y"}


def test_void_columns_stay_out_of_files(tmp_path: Path) -> None:
    where = target(tmp_path, "id BIGINT, v VOID")
    assert [FileLayout.of(where).columns[i].name for i in FileLayout.of(where).kept] == ["id"]
    (add,) = write(where, pa.record_batch({"id": [1], "v": pa.array([None], pa.null())}))
    assert pq.read_schema(tmp_path / add.path).names == ["id"]


@pytest.mark.parametrize(
    ("kind", "values"), [("STRING", ["", None, "a"]), ("BINARY", [b"", None, b"a"])]
)
def test_an_empty_partition_value_is_null_in_files_that_hold_the_column(
    tmp_path: Path, kind: str, values: list[Any]
) -> None:
    properties = {"delta.columnMapping.mode": "id", "delta.enableIcebergCompatV2": "true"}
    where = target(tmp_path, f"id BIGINT, p {kind}", partition_by=("p",), **properties)
    data = pa.record_batch({"id": [1, 2, 3], "p": pa.array(values, conform_type(kind))})
    found = {}
    for add in write(where, data):
        rows = pq.read_table(tmp_path / decode_path(add.path), partitioning=None)["col-2"]
        found[add.partition_values["col-2"]] = rows.to_pylist()
    assert found == {None: [None, None], "a": [values[2]]}


def conform_type(kind: str) -> pa.DataType:
    return {"STRING": pa.string(), "BINARY": pa.binary()}[kind]
