"""The Iceberg side on a real session: first conversions, and rows compared by Spark's workers."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append
from tests.support.iceberg_faces import V3, hide, twin
from tests.support.log_tables import commit, info
from tests.support.scale import scale
from tests.unit.cli.running import document, run
from twinlake.actions import AddFile
from twinlake.iceberg import sync
from twinlake.iceberg.puffin import Blob, write_puffin
from twinlake.log.deletion_vectors import encode_bitmap
from twinlake.log.names import commit_key
from twinlake.runtime import Runtime
from twinlake.spark.executor import SparkExecutor
from twinlake.table import Table
from twinlake.table.verify_twin import verify_twin

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
    sync(table.snapshot)
    with jobs(delta_spark) as ran:
        report = verify_twin(table, rows=True, spark=delta_spark)
    # At least one for the files of each face.
    assert len(ran) >= 2
    assert report.findings == ()
    assert report.rows is not None
    assert report.rows >= len(rows)
    assert report == verify_twin(table, rows=True)

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
