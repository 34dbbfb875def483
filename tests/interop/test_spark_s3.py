"""The data plane against S3: Spark reads by its own connector, everything else goes by ours."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.support.not_run import not_run
from tests.support.servers.s3 import ACCESS_KEY, BUCKET, SECRET_KEY
from tests.support.spark.cluster import needs_java, run_driver
from tests.support.spark.driver_programs import expected_rows
from twinlake import Table

if TYPE_CHECKING:
    from tests.support.servers.s3 import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.s3, pytest.mark.slow]

_SDK = "software.amazon.awssdk"
_SDK_VERSION = "2.29.52"
# The connector of the very Hadoop that PySpark ships, with the parts of the SDK that it uses in
# place of the bundle of them all, which is 640 MB.
_JARS = {
    "spark.jars.packages": ",".join(
        (
            "org.apache.hadoop:hadoop-aws:3.4.2",
            *(f"{_SDK}:{part}:{_SDK_VERSION}" for part in ("s3", "sts", "s3-transfer-manager")),
        )
    ),
    "spark.jars.excludes": f"{_SDK}:bundle",
}
_TABLE = "spark/a table"
# The first run fetches fifty jars.
_SECONDS = 600.0


def s3a_settings(server: S3Server) -> dict[str, str]:
    """What a user tells Spark; twinlake is told nothing besides."""
    settings = {
        "endpoint": f"127.0.0.1:{server.port}",
        "endpoint.region": "us-east-1",
        "access.key": ACCESS_KEY,
        "secret.key": SECRET_KEY,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    return {f"spark.hadoop.fs.s3a.{key}": value for key, value in settings.items()}


@pytest.fixture(scope="module")
def report(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    needs_java()
    task = {
        "settings": {"spark.master": "local[2]", **_JARS, **s3a_settings(s3_server)},
        "table": f"s3a://{BUCKET}/{_TABLE}",
    }
    try:
        return run_driver("work", tmp_path_factory.mktemp("s3"), task, seconds=_SECONDS)
    except AssertionError as error:
        if not any(sign in str(error) for sign in ("unresolved dependency", "download failed")):
            raise
        not_run(
            "Spark's S3 connector could not be fetched; the first run needs Maven Central",
            required_by="TWINLAKE_REQUIRE_S3",
        )


def test_spark_sees_its_rows(report: dict[str, Any]) -> None:
    found = report["steps"]["scan"]["result"]
    assert len(found) == len(expected_rows())
    assert dict(found) == expected_rows()


def test_delta_rs_sees_the_same_rows(report: dict[str, Any], s3_server: S3Server) -> None:
    # In a folder with a space in its name, delta-rs looks for deletion vectors in the wrong place.
    folder = s3_server.data / BUCKET
    shutil.copytree(folder / _TABLE, folder / "spark" / "copy")
    options = {f"aws_{key}": str(value) for key, value in s3_server.options.items()}
    theirs = DeltaTable(s3_server.url("spark/copy"), storage_options=options)
    rows = QueryBuilder().register("t", theirs).execute("SELECT id, value, name, part FROM t")
    found = pa.table(rows.read_all()).to_pydict()
    assert len(found["id"]) == len(expected_rows())
    assert dict(zip(found["id"], found["value"], strict=True)) == expected_rows()
    assert found["name"] == [f"row {number}" for number in found["id"]]
    assert found["part"] == [number % 2 for number in found["id"]]


def test_our_own_view(report: dict[str, Any], s3_server: S3Server) -> None:
    """History and files; what VACUUM deleted and what jobs staged is gone from the server."""
    table = Table.open(s3_server.url(_TABLE), options=s3_server.options)
    history = [commit.operation for commit in reversed(table.history())]
    assert history[:5] == ["WRITE", "WRITE", "DELETE", "MERGE", "OPTIMIZE"]
    assert history[5:] == ["VACUUM START", "VACUUM END", "DELETE"]
    folder = s3_server.data / BUCKET / _TABLE
    kept = {str(file.relative_to(folder)) for file in folder.rglob("*.parquet")}
    assert kept == set(table.files()["path"].to_pylist())


def test_each_step_did_what_it_was_to_do(report: dict[str, Any]) -> None:
    steps = report["steps"]
    assert steps["write"]["result"] == steps["append"]["result"] == ["parquet-cpp-arrow"]
    assert steps["delete"]["result"] > 0, "deletion vectors"
    assert steps["optimize"]["result"]["added"] == 2, "a file for each partition"
    assert steps["vacuum"]["result"] >= steps["optimize"]["result"]["removed"]
    assert steps["trim"]["result"] == 2, "a deletion vector for each partition"
