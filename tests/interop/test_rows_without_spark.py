"""Rows read without Spark are those that Delta Spark reads, at every version of every table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.support.engines.agreement import arrow_keys, row_differences, row_keys
from tests.support.engines.delta_tables import KINDS
from tests.support.engines.our_tables import OUR_TABLES
from tests.support.iceberg.both_sides import V2, V3, as_text, twin
from tests.support.iceberg.duckdb import connect
from tests.support.iceberg.readers import by_delta, same, texts
from tests.support.matrix.writers import session_settings
from tests.support.not_run import not_run
from tests.support.scale import is_full_scale
from twinlake import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.engines.delta_tables import PeerTables

pytestmark = pytest.mark.spark

SYNC = "twinlake.iceberg.sync"


def _same_at_every_version(spark: SparkSession, path: Path) -> None:
    versions = sorted(record.version for record in Table.open(path).history())
    for version in versions if is_full_scale() else {versions[len(versions) // 2], versions[-1]}:
        frame = spark.read.format("delta").option("versionAsOf", version).load(str(path))
        table = Table.open(path, version=version)
        theirs = row_keys({"": frame})[""]
        ours = table.to_arrow()
        assert ours.column_names == frame.columns
        assert not row_differences(arrow_keys(ours), theirs), f"version {version}"
        assert table.count() == len(theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_delta_spark(
    kind: str, peer_tables: PeerTables, delta_spark: SparkSession
) -> None:
    _same_at_every_version(delta_spark, peer_tables.path(kind))


@pytest.mark.parametrize("name", OUR_TABLES)
def test_tables_of_ours(name: str, tmp_path: Path, delta_spark: SparkSession) -> None:
    OUR_TABLES[name](tmp_path / "t")
    _same_at_every_version(delta_spark, tmp_path / "t")


@pytest.mark.parametrize("kind", ["TIMESTAMP_MICROS", "INT96"])
def test_legacy_timestamps_of_every_zone(
    kind: str, tmp_path: Path, delta_spark: SparkSession
) -> None:
    moments = [
        "0001-01-03 00:00:00",
        "1500-03-01 12:00:00.123456",
        "1582-10-04 23:59:59",
        "1582-10-15 00:00:00",
        "1883-11-18 11:59:59.999999",
        "1893-04-01 00:00:00",
        "1899-12-31 23:59:59",
        "1901-01-01 00:00:00",
    ]
    for zone in ("America/Los_Angeles", "Europe/Berlin", "Asia/Kolkata", "Africa/Monrovia", "UTC"):
        settings = {
            "spark.sql.session.timeZone": zone,
            "spark.sql.parquet.outputTimestampType": kind,
            "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
            "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        }
        with session_settings(delta_spark, settings):
            values = ", ".join(f"('{zone}', TIMESTAMP'{moment}')" for moment in moments)
            frame = delta_spark.sql(f"SELECT * FROM VALUES {values} AS t(zone, at)")
            frame.write.format("delta").mode("append").save(str(tmp_path / "t"))
    theirs = row_keys({"": delta_spark.read.format("delta").load(str(tmp_path / "t"))})[""]
    ours = arrow_keys(Table.open(tmp_path / "t").to_arrow())
    assert len(ours) == 5 * len(moments)
    assert not row_differences(ours, theirs)


@pytest.mark.parametrize(
    "properties",
    [{**V2, "delta.enableIcebergWriterCompatV1": "true"}, V3],
    ids=["format 2", "format 3"],
)
@pytest.mark.parametrize("partitions", [(), ("p",)], ids=["plain", "partitioned"])
def test_what_is_written_without_spark_is_read_by_everybody(
    tmp_path: Path,
    delta_spark: SparkSession,
    duck: Any,
    properties: dict[str, str],
    partitions: tuple[str, ...],
) -> None:
    columns = "id BIGINT, s STRING, d DECIMAL(38,10), at TIMESTAMP, l ARRAY<INT>, p DATE"
    t = twin(tmp_path / "t", columns, *partitions, properties={**properties, SYNC: "commit"})
    t = t.append([_row(n) for n in range(12)])
    t = t.append([{"id": 20, "p": dt.date(1500, 1, 1)}, {"id": 21, "p": None}])
    t = t.delete("id IN (3, 20)")
    t = t.update({"s": "concat(s, '!')", "l": None}, where="id < 2 OR id = 21")
    t = t.merge([{**_row(5), "s": "merged"}, _row(40)], on="id")
    t = t.overwrite([_row(8)], where="id = 8")
    t = t.append([{"id": 50, "p": None, "late": 1.5}], merge_schema=True).optimize()
    assert same(delta_spark, tmp_path / "t", duck).version == t.version
    wanted = as_text(t.to_arrow().to_pylist())
    assert texts(by_delta(delta_spark, tmp_path / "t", t.version)) == wanted
    assert t.verify_twin(rows=True).agrees


def test_what_is_written_without_spark_is_read_by_delta_rs(tmp_path: Path) -> None:
    t = Table.create(tmp_path / "t", "id BIGINT, s STRING, p INT", partition_by=["p"])
    t = t.append({"id": [1, 2, 3], "s": ["a", None, "c"], "p": [1, 1, None]})
    t = t.update({"s": "concat(s, '!')"}, where="id = 1").delete("id = 2").optimize()
    found = QueryBuilder().register("t", DeltaTable(str(tmp_path / "t"))).execute("SELECT * FROM t")
    assert as_text(pa.table(found).to_pylist()) == as_text(t.to_arrow().to_pylist())


def _row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "s": None if number % 5 == 4 else f"n{number}",
        "d": Decimal(number) / 4,
        "at": dt.datetime(2024, 2, 29, tzinfo=dt.UTC) + dt.timedelta(microseconds=number),
        "l": [number, None],
        "p": dt.date(2024, 5, 1 + number % 3),
    }


@pytest.fixture(scope="module")
def duck() -> Iterator[Any]:
    found = connect()
    if isinstance(found, str):
        not_run(found, required_by="TWINLAKE_REQUIRE_INTEROP")
    yield found
    found.close()
