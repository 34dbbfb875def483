"""The examples that move rows, as the demo runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.running import document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def steps(delta_spark: SparkSession) -> dict[str, dict[str, Any]]:
    """In the session of the tests: one that the demo starts has no Delta for those after it."""
    assert delta_spark.getActiveSession() is not None
    return {step["step"]: step for step in document("demo")["steps"]}


def test_a_million_rows_are_written_merged_and_deleted(steps: dict[str, dict[str, Any]]) -> None:
    assert [name for _, name in steps["rows"]["history"]] == ["DELETE", "MERGE", "WRITE"]
    assert sum(steps["rows"]["rows"].values()) == 1_010_000 - 10_100


def test_a_row_that_breaks_a_rule_of_silver_is_refused(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["medallion_rules"]
    assert "positive" in str(step["error"])
    assert step["version"] == 1


def test_the_pipeline_reads_only_what_is_new(steps: dict[str, dict[str, Any]]) -> None:
    first, second = steps["medallion_first"], steps["medallion_second"]
    assert first["batches"] == [["bronze", 0, 4], ["silver", 0, 4]]
    assert first["rows"]["silver"] == [[1, "ada", 10.0], [2, "bob", 25.0]]
    assert first["rows"]["quarantine"] == [[3, "ada", -5.0]]
    assert second["batches"] == [["bronze", 1, 3], ["silver", 1, 3]]
    assert len(second["rows"]["bronze"]) == 7
    assert second["rows"]["silver"] == [[1, "ada", 12.0], [2, "bob", 25.0], [4, "eve", 40.0]]
    assert second["rows"]["quarantine"] == [[3, "ada", -5.0], [5, None, 50.0]]
    assert second["rows"]["gold"] == [["ada", 1, 12.0], ["bob", 1, 25.0], ["eve", 1, 40.0]]


def test_a_batch_that_comes_again_adds_nothing(steps: dict[str, dict[str, Any]]) -> None:
    before, after = steps["medallion_second"], steps["medallion_crash"]
    assert after["batches"] == before["batches"]
    assert after["rows"] == before["rows"]
    written = ("bronze", "silver", "quarantine")
    assert [after["versions"][name] for name in written] == [
        before["versions"][name] for name in written
    ]


def test_a_table_that_breaks_rules_is_upgraded(steps: dict[str, dict[str, Any]]) -> None:
    refused = steps["compat_refused"]
    assert refused["error"]["code"] == "TWIN-COMPAT"
    assert len({v["rule"] for v in refused["report"]["violations"]}) >= 6
    plan = steps["compat_plan"]["plan"]
    assert (plan["done"], plan["refused"]) == (False, False)
    assert [step["kind"] for step in plan["steps"]] == [
        "switch",
        "convert",
        "drop_feature",
        "enable",
    ]
    assert steps["compat_upgrade"]["plan"]["done"] is True
    assert steps["compat_clean"]["report"]["ok"] is True
    assert steps["compat_clean"]["report"]["files"] > 0
    assert steps["compat_clean"]["rows"] == 9_000


def test_pyiceberg_reads_the_same_rows_at_both_versions(steps: dict[str, dict[str, Any]]) -> None:
    assert steps["iceberg"]["iceberg"] == steps["iceberg"]["delta"] == [9_000, 4_000]


def test_a_delete_that_overlaps_an_update_fails_on_a_twin_table(
    steps: dict[str, dict[str, Any]],
) -> None:
    step = steps["verify_twin_table"]
    sarah = {"name": "sarah", "colour": "green"}
    assert step["masked"] is True
    assert step["error"]["type"] == "ConcurrentAppendException"
    assert step["error"]["fields"]["winner"] == 2
    assert step["after_update"] == [{"name": "jack", "colour": "blue"}, sarah]
    assert step["rows"] == [sarah]
    assert step["keeps_promise"] is True


def test_pyiceberg_and_spark_write_one_table(steps: dict[str, dict[str, Any]]) -> None:
    assert steps["catalog_append"]["rows"] == [[1, "new"], [2, "new"], [3, "paid"]]
    both = steps["catalog_change"]
    assert both["iceberg"] == both["delta"] == [[1, "sent"], [3, "paid"]]
