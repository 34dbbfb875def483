"""The data plane on a real cluster: executors elsewhere, Python workers with only the package."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from tests.support.spark.cluster import WORKERS, needs_java, run_driver, spark_cluster
from tests.support.spark.driver_programs import expected_rows
from tests.support.spark.workers import rows_by_plain_reader
from twinlake import Table

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster") / "table"


@pytest.fixture(scope="module")
def report(table: Path) -> dict[str, Any]:
    """Everything is done to a table once; what came of it is looked at from several sides."""
    needs_java()
    with spark_cluster(table.parent) as cluster:
        task = {"settings": cluster.settings, "table": str(table)}
        return run_driver("work", table.parent, task)


def test_the_rows_are_right_by_any_reader(report: dict[str, Any], table: Path) -> None:
    found = report["steps"]["scan"]["result"]
    assert len(found) == len(expected_rows())
    assert dict(found) == expected_rows()
    assert rows_by_plain_reader(table, Table.open(table)) == expected_rows()
    history = [commit.operation for commit in reversed(Table.open(table).history())]
    assert history[:5] == ["WRITE", "WRITE", "DELETE", "MERGE", "OPTIMIZE"]
    assert history[5:] == ["VACUUM START", "VACUUM END", "DELETE"]


def test_workers_need_only_the_package(report: dict[str, Any], table: Path) -> None:
    places = {Path(place).parts[-3] for place, *_ in report["seen"]}
    assert len(places) == WORKERS, "both workers of the cluster were asked"
    for place, package, has_tests in report["seen"]:
        assert place.startswith(str(table.parent / "work"))
        assert Path(package).parent.name == "spark"
        assert not has_tests


@pytest.mark.parametrize(
    "step", ["write", "append", "delete", "merge", "optimize", "vacuum", "trim", "scan"]
)
def test_executors_do_the_work(report: dict[str, Any], step: str) -> None:
    tasks = report["steps"][step]["tasks"]
    assert tasks["driver"] == 0
    assert sum(tasks.values()) > 0


def test_both_workers_take_part(report: dict[str, Any]) -> None:
    done: dict[str, int] = {}
    for step in report["steps"].values():
        for executor, count in step["tasks"].items():
            done[executor] = done.get(executor, 0) + count
    busy = {executor for executor, count in done.items() if count}
    assert len(busy) == WORKERS, done


def test_executors_elsewhere_write_by_arrow(report: dict[str, Any]) -> None:
    """Files that Spark writes on another machine's disk would be missed by nobody."""
    assert report["steps"]["write"]["result"] == ["parquet-cpp-arrow"]
    assert report["steps"]["append"]["result"] == ["parquet-cpp-arrow"]


def test_each_step_did_what_it_was_to_do(report: dict[str, Any]) -> None:
    steps = report["steps"]
    assert steps["delete"]["result"] > 0, "deletion vectors"
    assert steps["trim"]["result"] == 2, "a deletion vector for each partition"
    assert steps["optimize"]["result"]["added"] == 2, "a file for each partition"
    assert steps["optimize"]["result"]["removed"] > 2
    assert steps["vacuum"]["result"] >= steps["optimize"]["result"]["removed"]


def test_workers_without_twinlake_are_told_what_to_install(report: dict[str, Any]) -> None:
    told, version = report["absent"], importlib.metadata.version("twinlake")
    assert told["code"] == "TWIN-SPARK-WORKERS"
    assert told["why"] == "they run /absent/bin/python, and there is no such program"
    assert "on every machine of the cluster" in told["fix"]
    assert f"pip install 'twinlake[spark]=={version}'" in told["fix"]
    assert "spark.pyspark.python" in told["fix"]
    assert "spark.archives" in told["fix"]
