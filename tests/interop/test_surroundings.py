"""A C locale, foreign time zones and a working directory that is gone, under Spark."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.spark.child_drivers import bare_environment, run_child
from tests.support.spark.cluster import needs_java
from tests.support.spark.surroundings import MOMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

WRITERS = {"small": 4, "arrow": 20_000, "native": 20_000}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of the tables, and what each step came to."""
    needs_java()
    folder = tmp_path_factory.mktemp("surroundings")
    environment = bare_environment(folder, LC_ALL="C", TZ="Asia/Kolkata")
    settings = {"spark.sql.session.timeZone": "America/New_York"}
    return folder, run_child(
        "surroundings", folder, {"settings": settings}, environment=environment
    )


def _seconds(moment: str) -> float:
    return dt.datetime.fromisoformat(f"{moment}+00:00").timestamp()


@pytest.mark.parametrize("writer", WRITERS)
def test_instants_are_the_same_in_every_zone(
    found: tuple[Path, dict[str, Any]], writer: str, delta_spark: SparkSession
) -> None:
    folder, steps = found
    times = steps[writer]["times"]
    assert "result" in times, times
    rows, result = WRITERS[writer], times["result"]
    assert result["counts"] == [2 * rows, rows]
    assert result["where"] == 2 * rows // len(MOMENTS)
    wanted = sorted([_seconds(moment), _seconds(moment)] for moment in MOMENTS)
    assert result["values"] == wanted
    assert len(result["partitions"]) == len(MOMENTS)
    frame = delta_spark.read.format("delta").load(str(folder / f"times-{writer}"))
    theirs = frame.selectExpr("CAST(at AS DOUBLE) AS at", "CAST(part AS DOUBLE) AS part").distinct()
    assert sorted(list(row) for row in theirs.collect()) == wanted


@pytest.mark.parametrize("writer", ["small", "arrow"])
def test_names_beyond_the_locale_are_written_right_and_reading_says_what_to_set(
    found: tuple[Path, dict[str, Any]], writer: str, delta_spark: SparkSession
) -> None:
    folder, steps = found
    assert "UTF-8" not in steps["encoding"]
    assert steps[writer]["letters"] == {"result": 0}
    read = steps[writer]["read letters"]
    assert read.get("error") == "UserError", read
    assert "LC_ALL=C.UTF-8" in read["fix"]
    context: Any = delta_spark.sparkContext
    if context._jvm.java.lang.System.getProperty("sun.jnu.encoding") == "UTF-8":
        frame = delta_spark.read.format("delta").load(str(folder / f"letters-{writer}"))
        assert {row[0] for row in frame.select("t\u00e4").distinct().collect()} == {
            "\u2603",
            "\u00fc",
            "\U0001d4b3",
        }
    names = {os.fsencode(entry.name) for entry in (folder / f"letters-{writer}").iterdir()}
    assert "t\u00e4=\u2603".encode() in names


def test_a_writer_that_cannot_spell_the_names_refuses(
    found: tuple[Path, dict[str, Any]],
) -> None:
    refused = found[1]["native"]["letters"]
    assert refused.get("code") == "TWIN-INVALID-ARGUMENT", refused
    assert "Java spells file names in" in refused["why"]


def test_a_relative_path_without_a_working_directory_is_refused(
    found: tuple[Path, dict[str, Any]],
) -> None:
    refused = found[1]["relative"]
    assert refused.get("error") == "UserError", refused
    assert "working directory" in refused["why"]
