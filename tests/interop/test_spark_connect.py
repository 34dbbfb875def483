"""A Spark Connect session has the data source, and is told in one sentence that it has no more."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.not_run import not_run
from tests.support.spark.cluster import needs_java, run_driver

pytestmark = pytest.mark.spark

_NEEDED = ("pandas", "grpc", "grpc_status", "google.rpc", "zstandard")
_TOOLS = Path(__file__).resolve().parents[2] / ".tools" / "connect"


def _packages() -> dict[str, str]:
    """How the driver finds what PySpark's Connect client is built on."""
    if all(_is_here(name) for name in _NEEDED):
        return {}
    folder = Path(os.environ.get("TWINLAKE_CONNECT_PACKAGES", _TOOLS))
    if not (folder / "grpc").is_dir():
        not_run(
            "the packages of PySpark's Connect client are missing; run `make connect`",
            required_by="TWINLAKE_REQUIRE_INTEROP",
        )
    return {"PYTHONPATH": str(folder)}


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    needs_java()
    packages = _packages()
    folder = tmp_path_factory.mktemp("connect")
    # Whatever its value, it makes PySpark use a free port instead of the one everybody uses.
    environment = {"SPARK_TESTING": "0", **packages}
    return run_driver("connect", folder, {"table": str(folder / "t")}, environment=environment)


def test_the_session_is_a_connect_session(report: dict[str, Any]) -> None:
    assert report["session"] == "pyspark.sql.connect.session"


def test_each_call_says_what_is_wrong_and_what_to_do(report: dict[str, Any]) -> None:
    assert len(report["told"]) > 8
    for call, told in report["told"].items():
        assert told.get("code") == "TWIN-SPARK-REQUIRED", (call, told)
        assert told["what"] == (
            "twinlake needs a classic Spark session, and this one is a Spark Connect session."
        )
        assert "SparkSession.builder.master(MASTER)" in told["fix"]


def test_calls_of_the_data_plane_raise_what_pyspark_users_catch(report: dict[str, Any]) -> None:
    plain = {call for call, told in report["told"].items() if not told["pyspark"]}
    assert plain == {"vacuum"}, "Table belongs to the control plane"


def test_the_data_source_reads_and_writes(report: dict[str, Any]) -> None:
    assert report["source"] == {"same": True, "rows": [1, 2]}


def test_nothing_is_made(report: dict[str, Any]) -> None:
    assert not report["made"]
