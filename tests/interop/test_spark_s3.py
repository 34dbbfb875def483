"""The data plane against S3: Spark reads by its own connector, everything else goes by ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.driver_programs import expected_rows
from tests.support.s3_server import ACCESS_KEY, BUCKET, SECRET_KEY
from tests.support.spark_cluster import needs_java, run_driver

if TYPE_CHECKING:
    from tests.support.s3_server import S3Server

pytestmark = [pytest.mark.spark, pytest.mark.s3]

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
    return run_driver("work", tmp_path_factory.mktemp("s3"), task, seconds=600)


def test_x(report: dict[str, Any], s3_server: S3Server) -> None:
    print(report["up"], report["seen"])
    for k, s in report["steps"].items():
        print(k, s["seconds"], s["tasks"], s["result"] if k!="scan" else "")
    assert dict(report["steps"]["scan"]["result"]) == expected_rows()
