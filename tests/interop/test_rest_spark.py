"""Iceberg Spark through the catalog, beside other clients, Delta Spark and twinlake on Spark."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.engines.three_engines import (
    COLUMNS,
    DeltaSpark,
    Model,
    TwinlakeSpark,
    Workload,
)
from tests.support.iceberg.both_sides import as_text
from tests.support.rest_clients.agreement import all_agree
from tests.support.rest_clients.clients import (
    DuckDb,
    IcebergSpark,
    PyIceberg,
    spark_on_catalog,
)
from tests.support.rest_clients.steps import PLAIN_STEPS, SCHEMA_STEPS, Script
from tests.support.scale import is_full_scale, scale
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from tests.support.rest_clients.clients import RestClient
    from tests.support.servers.catalog import CatalogServer

pytestmark = pytest.mark.spark

Row = dict[str, Any]

_CHANGES = scale(10, 200)
#: Readers on Spark look at every so many versions.
_STRIDE = scale(3, 1)
_MERGE_ON_READ = {f"write.{verb}.mode": "merge-on-read" for verb in ("delete", "update", "merge")}


@pytest.fixture(scope="module")
def lake(delta_spark: SparkSession, catalog_server: CatalogServer) -> SparkSession:
    """A session of Iceberg Spark on the catalog."""
    return spark_on_catalog(delta_spark, catalog_server.address)


def clients(
    server: CatalogServer, duck: Any, lake: SparkSession, name: str
) -> tuple[IcebergSpark, PyIceberg, DuckDb]:
    """All on one table."""
    folder = Path()
    return (
        IcebergSpark(lake, folder, name),
        PyIceberg(server.address.pyiceberg(), folder, name),
        DuckDb(duck, folder, name),
    )


def look(
    folder: Path,
    rows: Iterable[Row],
    readers: Sequence[RestClient],
    spark: SparkSession,
    step: str,
    at: int,
) -> None:
    """Every reader after every step, those on Spark now and then where time is short."""
    if at % _STRIDE == _STRIDE - 1:
        all_agree(folder, rows, readers, spark=spark, step=step)
    else:
        others = [reader for reader in readers if not isinstance(reader, IcebergSpark)]
        all_agree(folder, rows, others, step=step)


@pytest.mark.parametrize(
    ("format_version", "properties"),
    [
        pytest.param(2, {}, id="format 2"),
        pytest.param(
            3,
            {},
            id="format 3, copy-on-write",
            marks=pytest.mark.skipif(
                not is_full_scale(), reason="long: run with TWINLAKE_SCALE=full"
            ),
        ),
        pytest.param(3, _MERGE_ON_READ, id="format 3, merge-on-read"),
    ],
)
def test_every_change_of_iceberg_spark(
    delta_spark: SparkSession,
    lake: SparkSession,
    catalog_server: CatalogServer,
    catalog_duck: Any,
    format_version: int,
    properties: dict[str, str],
) -> None:
    name = f"n.spark_{format_version}_{len(properties)}"
    readers = clients(catalog_server, catalog_duck, lake, name)
    client = readers[0]
    client.create(COLUMNS, "p", **{"format-version": str(format_version), **properties})
    script = Script(folder=catalog_server.folder_of(name))

    for at, (step, change) in enumerate(PLAIN_STEPS.items()):
        change(client, script.model)
        look(script.folder, script.rows, readers, delta_spark, step, at)
        metadata = readers[1].catalog.load_table(name).metadata
        script.remember(metadata.current_snapshot_id)
    for snapshot, rows in script.snapshots.items():
        assert as_text(client.rows(snapshot)) == as_text(rows), snapshot
    for at, (step, change) in enumerate(SCHEMA_STEPS.items()):
        change(client, script.model)
        look(script.folder, script.rows, readers, delta_spark, step, at)
    report = Table.open(script.folder).verify_twin(rows=True)
    assert report.agrees, report.findings[:3]


@pytest.mark.slow
def test_five_engines_write_one_shared_table(
    delta_spark: SparkSession,
    lake: SparkSession,
    catalog_server: CatalogServer,
    catalog_duck: Any,
) -> None:
    """Delta Spark compacts and vacuums in between, and nothing is lost."""
    folder, name = Path(catalog_server.warehouse, "shared"), "n.shared"
    delta_spark.sql(
        f"CREATE TABLE delta.`{folder}` ({COLUMNS}) USING delta PARTITIONED BY (p)"
    ).collect()
    table = Table.open(folder).upgrade("icebergWriterCompatV1", mode="shared", spark=delta_spark)
    assert table.done
    catalog_server.address.pyiceberg().register_table(name, f"file://{folder}")
    readers = clients(catalog_server, catalog_duck, lake, name)
    for reader in readers:
        reader.folder = folder
    delta = DeltaSpark(delta_spark, folder)
    writers = [*readers, delta, TwinlakeSpark(delta_spark, folder)]
    workload = Workload(writers, Model(Random(5)))

    for at in range(_CHANGES):
        workload.step(at)
        if at % 5 == 4:
            _compact_and_vacuum(delta_spark, folder)
        steps = "\n".join(workload.steps[-4:])
        rows = workload.model.rows.values()
        look(folder, rows, readers, delta_spark, steps, at)

    all_agree(folder, workload.model.rows.values(), readers, spark=delta_spark, step="all")
    # A change may find nothing to do.
    idle = [writer.name for writer in writers if not workload.done[writer.name]]
    assert len(idle) <= scale(2, 0), workload.done


def _compact_and_vacuum(spark: SparkSession, folder: Path) -> None:
    """Pack all files, then delete every file that no version needs, however young."""
    key = "spark.databricks.delta.retentionDurationCheck.enabled"
    spark.conf.set(key, "false")
    try:
        spark.sql(f"OPTIMIZE delta.`{folder}`").collect()
        spark.sql(f"VACUUM delta.`{folder}` RETAIN 0 HOURS").collect()
    finally:
        spark.conf.unset(key)


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_row_ids_survive_what_iceberg_spark_rewrites(
    delta_spark: SparkSession,
    lake: SparkSession,
    catalog_server: CatalogServer,
    catalog_duck: Any,
    mode: str,
) -> None:
    name = f"n.rows_{mode.replace('-', '_')}"
    client, *_ = clients(catalog_server, catalog_duck, lake, name)
    properties = dict.fromkeys(_MERGE_ON_READ, mode)
    client.create("id BIGINT, name STRING", **{"format-version": "3", **properties})
    folder = catalog_server.folder_of(name)
    for first in (0, 10):
        client.append([{"id": first + at, "name": "a"} for at in range(10)])
    before = _row_ids(client)
    assert sorted(before.values()) == list(range(20))

    client.delete([3, 13])
    client.update([4, 14], "b")
    assert _row_ids(client) == {n: before[n] for n in before if n not in (3, 13)}

    client.optimize()

    assert _row_ids(client) == {n: before[n] for n in before if n not in (3, 13)}
    theirs = delta_spark.read.format("delta").load(str(folder))
    found = theirs.selectExpr("id", "_metadata.row_id AS row_id").collect()
    assert {row.id: row.row_id for row in found} == _row_ids(client)


def _row_ids(client: IcebergSpark) -> dict[int, int]:
    return {row.id: row._row_id for row in client.sql("SELECT id, _row_id FROM {t}").collect()}
