"""The Iceberg side on a real session: first conversions, and rows compared by Spark's workers."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V3, hide, twin
from tests.support.local_engine import LocalEngine
from tests.support.log_tables import commit, info
from tests.support.scale import scale
from tests.unit.cli.running import document, run
from tests.unit.iceberg.sync.test_foreign_files import legacy, without_top_ids
from tests.unit.table.twin.test_format_semantics import BY_NAME, published, with_char
from twinlake.actions import AddFile
from twinlake.iceberg import sync_table
from twinlake.iceberg.format.puffin import Blob, write_puffin
from twinlake.log.deletion_vectors import encode_bitmap
from twinlake.log.names import commit_key
from twinlake.runtime import Runtime
from twinlake.spark.executor import SparkExecutor
from twinlake.spark.read.content_hash import SparkContentReader, hash_rows
from twinlake.table import Table
from twinlake.table.twin.report import DifferenceKind
from twinlake.table.twin.verify_twin import verify_twin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

#: An executor on Spark runs fewer items than this where it is.
FEW = 16
A_MANIFEST = 8192
WRITER = "delta.enableIcebergWriterCompatV1"


@contextlib.contextmanager
def jobs(spark: SparkSession) -> Iterator[list[int]]:
    """The ids of the jobs that run meanwhile, known at the end."""
    context = spark.sparkContext
    found: list[int] = []
    context.setJobGroup("twin", "what the workers did")
    known = set(context.statusTracker().getJobIdsForGroup("twin"))
    try:
        yield found
        found += set(context.statusTracker().getJobIdsForGroup("twin")) - known
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def face_of(folder: Path) -> dict[str, bytes]:
    """The files of the face. Names follow from what is in them; times are not in them.

    Without the mark that others see when a face is made anew, which is never the same.
    """
    found = (folder / "_iceberg/metadata").iterdir()
    return {path.name: path.read_bytes() for path in found if path.name != "made-anew.text"}


def forget_face(folder: Path) -> None:
    for path in (folder / "_iceberg/metadata").iterdir():
        path.unlink()


def big_table(folder: Path, files: int) -> Table:
    """A table whose log begins with a checkpoint of many files; none of them exists."""
    # The writer feature vouches for files of a history that is gone: nobody looks for them.
    table = twin(folder, "id LONG, p INT", "p", properties={WRITER: "true"})
    number, part = (field.metadata["delta.columnMapping.physicalName"] for field in table.schema)

    def added(at: int) -> AddFile:
        bounds = {number: at}
        stats = {
            "numRecords": 2,
            "minValues": bounds,
            "maxValues": bounds,
            "nullCount": {number: 0},
        }
        return AddFile(
            path=f"f-{at}.parquet",
            partition_values={str(part): str(at % 7)},
            size=1000 + at,
            modification_time=1_700_000_000_000,
            data_change=True,
            stats=json.dumps(stats),
        )

    # Not through a transaction, which would look for the files.
    own = info(engine_info="twinlake/0")
    commit(table.snapshot.store, 1, own, *(added(at) for at in range(files)))
    table.refresh().checkpoint()
    (folder / commit_key(0)).unlink()
    return Table.open(folder, durable=False)


def test_a_first_conversion_on_the_workers(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = big_table(tmp_path, 2 * A_MANIFEST + 100)
    workers = Runtime(executor=SparkExecutor(delta_spark, few=1))
    with jobs(delta_spark) as ran:
        done = Table.open(tmp_path, durable=False, runtime=workers).iceberg.sync()
    assert ran
    assert done.version == 1
    there = face_of(tmp_path)
    assert len([name for name in there if name.startswith("m-")]) == 3

    forget_face(tmp_path)
    table.iceberg.sync()
    assert face_of(tmp_path) == there


def test_the_command_starts_a_conversion_with_spark(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """Files for as many manifests as go to the workers, at full scale."""
    files = scale(100, FEW * A_MANIFEST)
    big_table(tmp_path, files)
    with jobs(delta_spark) as ran:
        told = document("sync", tmp_path, "--spark")
    assert bool(ran) is (files >= FEW * A_MANIFEST)
    (one,) = told["tables"]
    assert (one["version"], one["rebuilt"]) == (1, "there was none")

    there = face_of(tmp_path)
    forget_face(tmp_path)
    Table.open(tmp_path).iceberg.sync()
    assert face_of(tmp_path) == there


def test_rows_are_compared_on_the_workers(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = twin(tmp_path, "id LONG, name STRING", properties=V3)
    rows = [{"id": at, "name": f"n{at}"} for at in range(2 * FEW)]
    table = append(table, tmp_path, *([one, other] for one, other in batched(rows, 2)))
    hidden = [add.path for add in table.snapshot.adds()][:2]
    table = hide(table, tmp_path, {path: [0] for path in hidden})
    sync_table(table.snapshot)
    with jobs(delta_spark) as ran:
        report = verify_twin(table, rows=True, spark=delta_spark)
    # At least one for the files of each side.
    assert len(ran) >= 2
    assert report.findings == ()
    assert report.rows is not None
    assert report.rows >= len(rows)
    assert report.delta_reader == "Delta Spark 4.4.0"
    assert report.iceberg_reader == "Iceberg Spark 1.11.0"
    here = verify_twin(table, rows=True)
    assert report == replace(
        here, delta_reader=report.delta_reader, iceberg_reader=report.iceberg_reader
    )

    place = hide_another_row(tmp_path)
    words = ("verify-twin", tmp_path, "--json")
    # Files, counts and statistics agree: only what is in the rows does not.
    assert run(*words).exit_code == 0
    with jobs(delta_spark) as ran:
        result = run(*words, "--rows", "--spark")
    assert ran
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["what"] == "rows"
    assert finding["file"].endswith(place.rpartition("/")[2])


def hide_another_row(folder: Path) -> str:
    """Let Iceberg hide the second row of a file in place of the first; returns the file."""
    puffin = min((folder / "_iceberg/metadata").glob("dv-*.puffin"))
    data = puffin.read_bytes()
    size = int.from_bytes(data[-12:-8], "little")
    (blob,) = json.loads(data[-12 - size : -12])["blobs"]
    place = str(blob["properties"]["referenced-data-file"])
    other = Blob(referenced_data_file=place, cardinality=1, payload=encode_bitmap([1]))
    puffin.write_bytes(write_puffin([other])[0])
    return place


def batched(rows: list[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    return (rows[at : at + size] for at in range(0, len(rows), size))


# Readers that do not agree, each on files that the others read alike


def readers(spark: SparkSession, *, delta: bool, iceberg: bool) -> LocalEngine:
    """An engine that reads by Delta Spark or twinlake, and by Iceberg Spark or PyIceberg."""
    contents = SparkContentReader(spark, by_delta_spark=delta, by_iceberg_spark=iceberg)
    return LocalEngine(contents=contents)


CHOICES = [
    pytest.param(True, True, id="Delta Spark and Iceberg Spark"),
    pytest.param(True, False, id="Delta Spark and PyIceberg"),
    pytest.param(False, True, id="twinlake on Spark and Iceberg Spark"),
    pytest.param(False, False, id="twinlake on Spark and PyIceberg"),
]
TYPES = (
    "id INT, f FLOAT, d DOUBLE, t BOOLEAN, n DECIMAL(18,3), big DECIMAL(38,10), s STRING, "
    "b BINARY, day DATE, ts TIMESTAMP, ntz TIMESTAMP_NTZ, st STRUCT<x: INT, y: STRING>, "
    "l ARRAY<DOUBLE>, m MAP<STRING, ARRAY<INT>>, `dot.ted col` INT, p STRING"
)


def of_every_type(number: int, **others: Any) -> dict[str, Any]:
    moment = dt.datetime(2024, 5, 1, 12, 0, number, 123_456)
    found = {
        "id": number,
        "f": float("nan"),
        "d": -0.0,
        "t": True,
        "n": Decimal("1.125"),
        "big": Decimal("1234567.5"),
        "s": "ü☃ 𝄞",
        "b": b"\x00\xff",
        "day": dt.date(1890, 1, 1),
        "ts": moment.replace(tzinfo=dt.UTC),
        "ntz": moment,
        "st": {"x": None, "y": None},
        "l": [0.0, -0.0, None],
        "m": {"b": [1], "a": None},
        "dot.ted col": number,
        "p": "a b/ü",
    }
    return {**found, **others}


@pytest.mark.parametrize(("delta", "iceberg"), CHOICES)
@pytest.mark.parametrize("partitions", [(), ("p",)], ids=["flat", "partitioned"])
def test_values_of_every_type_agree(
    delta_spark: SparkSession, tmp_path: Path, delta: bool, iceberg: bool, partitions: tuple[str]
) -> None:
    table = twin(tmp_path / "a b", TYPES, *partitions, properties=V3)
    nothing = dict.fromkeys(of_every_type(0))
    files = [[of_every_type(1), of_every_type(2)], [of_every_type(3, st=None)]]
    table = append(table, tmp_path / "a b", *files, [{**nothing, "id": 4, "p": "a b/ü"}])
    first = next(iter(table.snapshot.adds()))
    table = hide(table, tmp_path / "a b", {first.path: [0]})
    table = table.rename_column("s", "text")
    sync_table(table.snapshot)
    engine = readers(delta_spark, delta=delta, iceberg=iceberg)
    report = verify_twin(table, rows=True, spark=engine)
    assert report.findings == ()
    assert report.delta_reader.startswith("Delta Spark" if delta else "twinlake on Spark")
    assert report.iceberg_reader.startswith("Iceberg Spark" if iceberg else "PyIceberg")
    assert report.rows is not None
    assert report.rows >= 4


def other_files(spark: SparkSession, table: Table, delta: bool, iceberg: bool) -> set[str]:
    """What differs by the readers, and nothing else."""
    report = verify_twin(table, rows=True, spark=readers(spark, delta=delta, iceberg=iceberg))
    return {str(finding.what) for finding in report.findings}


def test_what_only_iceberg_spark_reads_otherwise(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, l ARRAY<INT>", properties=BY_NAME)
    table = published(table, tmp_path, [{"id": 1, "l": [1]}], without_top_ids)
    by_formats = "field ids"
    assert other_files(delta_spark, table, True, True) == {"rows", by_formats}
    # PyIceberg goes by the name mapping, so the formats alone tell.
    assert other_files(delta_spark, table, True, False) == {by_formats}


def test_what_only_delta_spark_reads_otherwise(delta_spark: SparkSession, tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, d DATE, t TIMESTAMP")
    old = {"id": 1, "d": dt.date(1500, 3, 1), "t": dt.datetime(1500, 3, 1, tzinfo=dt.UTC)}
    table = published(table, tmp_path, [old], legacy)
    for delta, iceberg in ((True, True), (True, False), (False, True), (False, False)):
        assert other_files(delta_spark, table, delta, iceberg) == {"rows", "calendar"}


@pytest.mark.parametrize(("delta", "iceberg"), CHOICES)
def test_readers_of_delta_pad_char(
    delta_spark: SparkSession, tmp_path: Path, delta: bool, iceberg: bool
) -> None:
    table = published(twin(tmp_path, "id INT, c STRING"), tmp_path, [{"id": 1, "c": "ab   "}])
    table = published(table, tmp_path, [{"id": 2, "c": "ab"}])
    table = with_char(table, tmp_path, "char(5)")
    engine = readers(delta_spark, delta=delta, iceberg=iceberg)
    (found,) = verify_twin(table, rows=True, spark=engine).findings
    assert (found.what, found.version) == (DifferenceKind.ROWS, 2)


def test_versions_with_the_same_files_are_read_once(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    """The newest version comes first and has the files of all others."""
    table = twin(tmp_path, "id INT")
    for number in range(6):
        table = append(table, tmp_path, [{"id": number}])
    sync_table(table.snapshot)
    with jobs(delta_spark) as ran:
        assert verify_twin(table, rows=True, spark=delta_spark).agrees
    few = len(ran)
    table = append(table, tmp_path, [{"id": 9}])
    sync_table(table.snapshot)
    with jobs(delta_spark) as ran:
        report = verify_twin(table, rows=True, spark=delta_spark)
    assert (report.agrees, report.rows) == (True, 7)
    assert len(ran) == few


@pytest.mark.parametrize(
    ("kind", "one", "other", "equal"),
    [
        pytest.param("DOUBLE", "double('NaN')", "-double('NaN')", True, id="NaN"),
        pytest.param("DOUBLE", "0.0D", "-0.0D", False, id="both zeros"),
        pytest.param("FLOAT", "0.0F", "-0.0F", False, id="both zeros of four bytes"),
        pytest.param("INT", "NULL", "0", False, id="null is not zero"),
        pytest.param(
            "STRUCT<a: INT>", "NULL", "named_struct('a', NULL)", False, id="a null struct"
        ),
        pytest.param(
            "STRUCT<a: INT, b: INT>",
            "named_struct('a', NULL, 'b', 1)",
            "named_struct('a', 1, 'b', NULL)",
            False,
            id="a null moves",
        ),
        pytest.param("ARRAY<INT>", "array()", "NULL", False, id="an empty array"),
        pytest.param("ARRAY<INT>", "array(NULL)", "array()", False, id="an array of null"),
        pytest.param("ARRAY<INT>", "array(1, 2)", "array(2, 1)", False, id="order of elements"),
        pytest.param(
            "ARRAY<ARRAY<INT>>",
            "array(array(1, 2))",
            "array(array(1), array(2))",
            False,
            id="depth",
        ),
        pytest.param(
            "MAP<STRING, INT>", "map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)", True, id="map entries"
        ),
        pytest.param(
            "MAP<STRING, INT>", "map('a', 1, 'b', 2)", "map('a', 2, 'b', 1)", False, id="map values"
        ),
        pytest.param("MAP<STRING, INT>", "map()", "NULL", False, id="an empty map"),
        pytest.param(
            "VARIANT", "parse_json('{\"a\":1}')", "parse_json('{\"a\": 1}')", True, id="variant"
        ),
        pytest.param("VARIANT", "parse_json('1')", "parse_json('\"1\"')", False, id="variants"),
        pytest.param("VARIANT", "parse_json('null')", "NULL", False, id="a null in a variant"),
        pytest.param(
            "STRUCT<m: MAP<INT, ARRAY<STRUCT<d: DOUBLE>>>>",
            "named_struct('m', map(1, array(named_struct('d', 0.0D))))",
            "named_struct('m', map(1, array(named_struct('d', -0.0D))))",
            False,
            id="deep below",
        ),
    ],
)
def test_values_have_one_hash_if_they_are_one_value(
    delta_spark: SparkSession, kind: str, one: str, other: str, equal: bool
) -> None:
    frame = delta_spark.sql(
        f"SELECT 'one' AS file, CAST({one} AS {kind}) AS c UNION ALL "
        f"SELECT 'other', CAST({other} AS {kind})"
    )
    found = hash_rows(frame, frame["file"], [frame.schema["c"]])
    assert found["one"].rows == found["other"].rows == 1
    assert (found["one"] == found["other"]) is equal
