"""Disk full, read-only folder, denied permission under Spark: an error of ours, nothing half.

One driver works on a small file system of its own. An error that is not ours would be a trace of
the JVM or of a Python worker.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.scale import is_full_scale
from tests.support.small_disk import child_prefix
from tests.support.spark.child_drivers import bare_environment, run_child
from tests.support.spark.cluster import needs_java
from twinlake import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WRITES = ("write",)
NATIVE = ("write", "delete", "merge", "optimize") if is_full_scale() else ("write", "merge")
REASONS = {
    "full": "the disk is full",
    "nearly full": "the disk is full",
    "read-only": "the file system is read-only",
    "closed": "permission denied",
    "log closed": "permission denied",
}


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder with the tables taken out, and what every step came to."""
    needs_java()
    folder = tmp_path_factory.mktemp("blocked")
    found = run_child(
        "blocked writes",
        folder,
        {"writes": WRITES, "native": NATIVE},
        environment=bare_environment(folder),
        prefix=child_prefix(folder),
    )
    return folder, found


@pytest.mark.parametrize("writer", ["small", "arrow", "native"])
def test_what_stands_in_the_way_is_named_and_nothing_is_left(
    blocked: tuple[Path, dict[str, Any]], writer: str
) -> None:
    steps = blocked[1][writer]["blocked"]
    assert len(steps) >= (4 if writer == "small" else 5)
    for step in steps:
        assert step.get("error") == "StorageError", step
        assert step["code"] == "TWIN-STORAGE"
        assert step["why"].startswith(REASONS[step["obstacle"]]), step
        assert step["fix"]
        assert len(step["text"].splitlines()) == 3, step["text"]
        assert step["same"], step


@pytest.mark.parametrize("writer", ["small", "arrow", "native"])
def test_the_next_operation_works(
    blocked: tuple[Path, dict[str, Any]], writer: str, delta_spark: SparkSession
) -> None:
    folder, found = blocked
    assert [step.get("result") for step in found[writer]["after"]] == [
        f"version {number}" for number in range(3, 3 + len(found[writer]["after"]))
    ]
    path = str(folder / f"table-{writer}")
    assert Table.open(path).version == 2 + len(found[writer]["after"])
    ids = [row["id"] for row in delta_spark.read.format("delta").load(path).collect()]
    assert len(set(ids)) == len(ids) == found[writer]["rows"]


def test_a_full_folder_for_shuffles_is_an_error_of_ours(
    blocked: tuple[Path, dict[str, Any]],
) -> None:
    step = blocked[1]["no folder for shuffles"]
    assert (step.get("error"), step.get("code")) == ("StorageError", "TWIN-STORAGE"), step
    assert "spark.local.dir" in step["why"]
