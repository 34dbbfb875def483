"""Programs for Delta Spark do the same under the takeover, in a session without its jar."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.support.engines.agreement import differences
from tests.support.rest_catalog import rest_server
from tests.support.scale import is_full_scale
from tests.support.spark.child_drivers import bare_environment, run_child
from tests.support.spark.delta_programs import NAMES, PROGRAMS
from tests.support.spark.run_delta_programs import make_base, run_programs
from twinlake.errors import UserError
from twinlake.spark import disable, enable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

#: Every program in `make soak`, every third in `make test`.
CHOSEN = list(PROGRAMS) if is_full_scale() else list(PROGRAMS)[::3]
DIFFERENT: Mapping[str, str] = {
    "write: new with clustering": "Delta Spark 4.4.0 forgets clusterBy of a write to a path",
    "write: replace where in mode append": "Delta Spark counts copied rows of a plain append",
}
"""Where we do something else, and why."""


@pytest.fixture(scope="module")
def reports(
    delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the programs came to under the takeover, and in Delta Spark."""
    ours, theirs = (tmp_path_factory.mktemp(name) for name in ("ours", "theirs"))
    base = make_base(delta_spark, theirs)
    found: dict[str, Any] = {}

    def run() -> None:
        environment = bare_environment(ours, TWINLAKE_CATALOG=str(ours / "catalog.db"))
        task = {"base": str(base), "names": CHOSEN}
        found.update(run_child("delta programs", ours, task, environment=environment))

    # Both at once: each waits for its own JVM most of the time.
    child = threading.Thread(target=run)
    child.start()
    place = str(delta_spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")
    chosen = {name: PROGRAMS[name] for name in CHOSEN}
    try:
        judged = run_programs(delta_spark, chosen, base, theirs / "runs", Path(place))
    finally:
        child.join()
        for number in range(len(CHOSEN)):
            delta_spark.sql(f"DROP TABLE IF EXISTS program{number}")
    return found, judged


@pytest.mark.parametrize("name", CHOSEN)
def test_program_does_what_it_does_in_delta_spark(
    name: str, reports: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    mine, other = (report[name] for report in reports)
    text, their_text = mine.pop("text", ""), other.pop("text", "")
    told = differences(_flat(mine), _flat(other))
    assert bool(told) == (name in DIFFERENT), f"{told}\n{text}\n{their_text}"


def _flat(report: dict[str, Any]) -> dict[str, Any]:
    tables = report.get("tables", {})
    found = {key: value for key, value in report.items() if key != "tables"}
    for table, left in tables.items():
        found |= (
            {f"{table} {key}": value for key, value in left.items()}
            if isinstance(left, dict)
            else {table: left}
        )
    return found


def test_the_programs_are_of_all_kinds() -> None:
    assert len(PROGRAMS) > 120
    assert set(DIFFERENT) <= set(PROGRAMS)
    assert len(NAMES) > 40


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a session sees before, during and after."""
    folder = tmp_path_factory.mktemp("takeover")
    environment = bare_environment(folder, TWINLAKE_CATALOG=str(folder / "catalog.db"))
    return run_child("takeover", folder, {}, environment=environment)


def test_formats_of_others_have_the_same_plans_and_take_the_same_calls(
    seen: dict[str, Any],
) -> None:
    assert len(seen["before"]) > 8
    assert all(found["calls"] for found in seen["before"].values())
    assert seen["during"] == seen["before"]
    assert seen["after"] == seen["before"]


def test_it_is_said_once(seen: dict[str, Any]) -> None:
    assert len(seen["said"]) == 1
    assert "twinlake.spark.disable(spark)" in seen["said"][0]


def test_attributes_of_pyspark_are_put_back(seen: dict[str, Any]) -> None:
    before, during, after = seen["attributes"]
    assert before == after == ["pyspark"] * 7
    assert set(during) == {"patches.py"}


def test_delta_is_a_format_meanwhile(seen: dict[str, Any]) -> None:
    assert "DATA_SOURCE_NOT_FOUND" in seen["delta before"]["foreign"]
    assert seen["delta during"] == {"result": [1, 3, 5, 7, 9]}
    assert "DATA_SOURCE_NOT_FOUND" in seen["delta after"]["foreign"]


@pytest.mark.parametrize("what", ["read", "append"])
def test_what_is_handed_over_takes_no_call_more(seen: dict[str, Any], what: str) -> None:
    calls = seen["calls"][what]
    assert 0 < calls["jvm"] <= calls["jvm of our own"], calls
    assert 0 < calls["store"] <= calls["store of our own"], calls


def test_reading_asks_the_store_as_often_as_scan(seen: dict[str, Any]) -> None:
    calls = seen["calls"]["scan"]
    assert 0 < calls["store"] <= calls["store of our own"], calls


def test_modules_of_delta_are_ours_meanwhile(seen: dict[str, Any]) -> None:
    ours = ["twinlake.spark.api.delta_table", "twinlake.spark.errors"]
    assert seen["modules"] == {"result": ours}
    assert seen["imported before"]["result"] > 0
    assert seen["modules after"] == {"tables": True, "exceptions": False, "methods": True}


def test_unknown_option_warns_once(seen: dict[str, Any]) -> None:
    (text,) = seen["unknown option"]
    assert "'mergeschemas'" in text


def test_threads_do_not_meet(seen: dict[str, Any]) -> None:
    assert seen["threads"]["result"] == [True] * 6


def test_each_session_leaves_by_itself(seen: dict[str, Any]) -> None:
    found = seen["sessions"]
    assert all("result" in found[name] for name in ("unnamed", "other", "back")), found
    assert all("foreign" in found[name] for name in ("left", "other left")), found


def test_frames_of_micro_batches_are_served(seen: dict[str, Any]) -> None:
    assert seen["batches"] == {"result": 40}


def test_names_may_be_those_of_a_catalog_server(tmp_path: Path) -> None:
    place = tmp_path / "rest"
    place.mkdir()
    with rest_server(place) as address:
        catalog = RestCatalog("lake", uri=address, warehouse="lake")
        catalog.create_namespace("default")
        task = {"place": str(place / "lake" / "orders")}
        environment = bare_environment(tmp_path, TWINLAKE_CATALOG=address)
        found = run_child("names of a server", tmp_path, task, environment=environment)
        assert catalog.load_table("default.orders").scan().count() == 6
    assert "TABLE_OR_VIEW_NOT_FOUND" in found.pop("other")["foreign"]
    assert found == {"rows": 6, "handle": 6, "exists": [True, False]}


def test_the_page_of_the_documentation_runs(tmp_path: Path) -> None:
    environment = bare_environment(tmp_path, TWINLAKE_CATALOG=str(tmp_path / "catalog.db"))
    found = run_child("page about the takeover", tmp_path, {}, environment=environment)
    assert found["frames"] == ["frame", "more", "orders"]


def test_it_is_refused_beside_delta_spark(delta_spark: SparkSession) -> None:
    with pytest.raises(UserError, match="session that has Delta Spark") as error:
        enable(delta_spark, delta=True)
    assert "spark.jars.packages" in error.value.fix
    disable(delta_spark)
    assert "patches" not in type(delta_spark).sql.__code__.co_filename
