"""Programs written for Delta Spark, unchanged on both: with its jar, and with twinlake alone.

Each runs on Delta Spark in the session of the test run, and under ``enable(spark, delta=True)`` in
a process without the jar. Compared are what the program returns and every table that it leaves:
schema, operations, properties, protocol and rows.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.programs.running import program_names, run_programs
from tests.support.programs.states import table_states
from tests.support.scale import scale
from tests.support.spark.child_drivers import bare_environment, run_child

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SECONDS = 900.0

#: Every other one, or all of them at full scale: Delta Spark takes seconds for each.
NAMES = program_names()[:: scale(2, 1)]

#: Tables that programs make by name alone, and which program makes them.
MANAGED = {
    "sql_people": "sql_create_and_insert",
    "written_to": "writer_v2",
    "built_rows": "table_builders",
    "feed_target": "change_feed_in_sql",
}

#: Programs that cannot run yet: the code in the text of the refusal, and what is missing.
REFUSED: dict[str, tuple[str, str]] = {}


@dataclass(frozen=True)
class Side:
    """What all programs came to, and the folders that their tables are in."""

    outcomes: dict[str, dict[str, Any]]
    folder: Path
    warehouse: Path

    def states(self, name: str) -> dict[str, dict[str, Any]]:
        return table_states(self.folder / name)


def _warehouse(spark: SparkSession) -> Path:
    location = spark.conf.get("spark.sql.warehouse.dir")
    assert location is not None
    return Path(location.removeprefix("file:"))


@pytest.fixture(scope="module")
def sides(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Side, Side]:
    theirs, ours = tmp_path_factory.mktemp("theirs"), tmp_path_factory.mktemp("ours")
    child = tmp_path_factory.mktemp("child")
    task = {
        "programs": str(ours),
        "names": NAMES,
        "settings": {
            "spark.twinlake.upgradePolicy": "minimal",
            "spark.sql.session.timeZone": "UTC",
            "spark.driver.memory": "1g",
        },
    }
    found: dict[str, Any] = {}

    def run() -> None:
        environment = bare_environment(child, TZ="UTC")
        found.update(run_child("programs", child, task, environment=environment, seconds=_SECONDS))

    other = threading.Thread(target=run)
    other.start()
    outcomes = run_programs(delta_spark, theirs, NAMES)
    other.join()
    assert found, "the process without the jar did not report"
    return (
        Side(outcomes, theirs, _warehouse(delta_spark)),
        Side(found, ours, child / "warehouse"),
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_program_runs_unchanged(sides: tuple[Side, Side], name: str) -> None:
    theirs, ours = (side.outcomes[name] for side in sides)
    assert "result" in theirs, theirs["trace"]
    if name in REFUSED:
        code, why = REFUSED[name]
        assert code in ours.get("text", ""), f"{why}: {ours}"
        return
    assert "result" in ours, ours["trace"]
    assert ours["result"] == theirs["result"]
    assert sides[1].states(name) == sides[0].states(name)


@pytest.mark.parametrize("name", [table for table, program in MANAGED.items() if program in NAMES])
def test_tables_with_names_are_the_same(sides: tuple[Side, Side], name: str) -> None:
    theirs, ours = (table_states(side.warehouse / name) for side in sides)
    assert ours
    assert ours == theirs


def test_there_are_enough_programs() -> None:
    assert len(program_names()) >= 30
    assert set(REFUSED) <= set(program_names())
