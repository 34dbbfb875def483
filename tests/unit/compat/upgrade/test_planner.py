"""Plans of upgrades, on values alone: which steps, in which order, why, and at what cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.notebook_page import NotebookPage
from twinlake.compat import (
    COMPATS,
    FileSummary,
    Goal,
    HistoryTruncation,
    Plan,
    Profile,
    State,
    StepKind,
    StepState,
    UpgradeMode,
    Violation,
    plan_upgrade,
)
from twinlake.compat.column_mapping import mapped_by_id, mapped_by_name
from twinlake.compat.upgrade.physical_names import id_mismatches, renaming
from twinlake.compat.upgrade.step_metadata import converted, stripped, switched, with_compat_enabled
from twinlake.compat.upgrade.target_metadata import (
    narrow_columns,
    with_integers,
    with_wider_types,
)
from twinlake.protocol import Metadata, Protocol
from twinlake.schema import (
    ParquetNode,
    Repetition,
    Struct,
    field_id,
    map_fields,
    nested_ids,
    parse_ddl,
    physical_name,
    type_changes,
    walk_fields,
)

DAY = 86_400_000
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
NESTED = "id INT, a ARRAY<STRUCT<x: STRING>>, m MAP<STRING, ARRAY<INT>>, s STRUCT<y: DATE>"


def metadata(schema: str = "id INT", **properties: str) -> Metadata:
    given = {key.replace("__", "."): value for key, value in properties.items()}
    return Metadata(id="t", name="orders", configuration=given).with_schema(parse_ddl(schema))


def state(
    schema: str = "id INT",
    properties: Mapping[str, str] | None = None,
    features: tuple[str, ...] = (),
    partitions: tuple[str, ...] = (),
) -> State:
    made = Metadata(
        id="t", name="orders", configuration=properties or {}, partition_columns=partitions
    ).with_schema(parse_ddl(schema))
    wanted = made.with_configuration({f"delta.feature.{name}": "supported" for name in features})
    protocol = Protocol(1, 2).upgraded_for(wanted, policy="minimal")
    return State(metadata=made, protocol=protocol)


def goal(target: str = "icebergWriterCompatV1", **more: Any) -> Goal:
    return Goal(compat=COMPATS[target], policy="minimal", **more)


SHARED: dict[str, Any] = {"mode": UpgradeMode.SHARED}


def kinds(plan: Plan) -> list[str]:
    return [":".join(filter(None, (step.kind, step.subject))) for step in plan.steps]


def blocked(plan: Plan) -> set[str]:
    return {violation.rule for violation in plan.blockers}


# Which steps


def test_plain_table_takes_two_steps() -> None:
    plan = plan_upgrade(state(), goal(), version=4)
    assert kinds(plan) == ["convert", "enable"]
    assert not plan.refused
    assert not plan.done
    convert, enable = plan.steps
    assert {"IWC1-05", "IWC1-06", "ICV2-13"} <= set(convert.why)
    assert {"IWC1-03"} <= set(enable.why)
    assert convert.cost.is_metadata_only
    assert plan.version == 4


def test_switches_come_first_and_the_flag_last() -> None:
    table = state("id INT, b TINYINT", {**VECTORS, **FEED, "delta.enableRowTracking": "true"})
    plan = plan_upgrade(table, goal())
    assert kinds(plan) == ["switch", "convert", "drop_feature:deletionVectors", "enable"]
    assert {"IWC1-12", "IWC1-16", "ICV2-05"} <= set(plan.steps[0].why)
    assert "IWC1-07" in plan.steps[1].why
    assert "IWC1-10" in plan.steps[2].why
    assert not plan.refused


def test_every_broken_rule_is_mended_by_a_step() -> None:
    table = state("id INT, b TINYINT, a ARRAY<SMALLINT>", {**VECTORS, **FEED})
    files = FileSummary(files=3, size=30, vectors=1, vectors_size=10, unfit=3, unfit_size=30)
    plan = plan_upgrade(table, goal(), files=files)
    mended = {rule for step in plan.steps for rule in step.why}
    assert {violation.rule for violation in plan.report.violations} == mended
    assert len(mended) >= 6


def test_shared_leaves_features_and_types_alone() -> None:
    table = state("id INT, b TINYINT", {**VECTORS, **FEED})
    plan = plan_upgrade(table, goal(**SHARED))
    assert kinds(plan) == ["switch", "convert"]
    assert "change data feed" not in plan.steps[0].what
    after = converted(switched(table.metadata, goal(**SHARED)), goal(**SHARED))
    assert after.flag("delta.enableChangeDataFeed")
    assert narrow_columns(after.schema)
    assert after.get("delta.enableDeletionVectors") == "false"
    assert after.get("delta.columnMapping.mode") == "id"
    assert {physical_name(f) for _, f in walk_fields(after.schema)} == {"col-1", "col-2"}
    assert not after.flag("delta.enableIcebergWriterCompatV1")


def test_finished_table_needs_no_step() -> None:
    for asked in (goal(), goal(**SHARED), goal("icebergCompatV2"), goal("icebergCompatV1")):
        made = with_compat_enabled(converted(switched(state().metadata, asked), asked), asked)
        protocol = Protocol(1, 2).upgraded_for(made, policy="minimal")
        plan = plan_upgrade(State(metadata=stripped(made), protocol=protocol), asked)
        assert plan.steps == (), asked
        assert plan.done


def test_one_version_goes_when_another_comes() -> None:
    first = goal("icebergCompatV1")
    made = converted(state().metadata, first)
    table = State(metadata=made, protocol=Protocol(1, 2).upgraded_for(made, policy="minimal"))
    plan = plan_upgrade(table, goal("icebergCompatV2"))
    assert kinds(plan) == ["convert"]
    after = converted(made, goal("icebergCompatV2"))
    assert not after.flag("delta.enableIcebergCompatV1")
    assert after.flag("delta.enableIcebergCompatV2")


@pytest.mark.parametrize("target", ["icebergCompatV3", "icebergWriterCompatV3"])
def test_third_version_turns_row_tracking_on_at_last(target: str) -> None:
    asked = goal(target)
    table = state("id INT, b TINYINT", VECTORS)
    plan = plan_upgrade(table, asked)
    assert kinds(plan) == ["convert", "enable"]
    assert not plan.refused
    assert "row ids" in " ".join(plan.steps[-1].notes)
    # Deletion vectors are allowed and stay.
    assert switched(table.metadata, asked).flag("delta.enableDeletionVectors")


# Features that leave, and history


def test_dropping_vectors_truncates_history_under_the_specification() -> None:
    table = state(properties=VECTORS)
    history = {"deletionVectors": HistoryTruncation(versions=7, retention_ms=DAY, until_ms=5 * DAY)}
    plan = plan_upgrade(table, goal(), history=history, now_ms=DAY)
    drop = next(step for step in plan.steps if step.kind is StepKind.DROP_FEATURE)
    assert drop.truncates
    assert drop.state is StepState.WAITING
    assert plan.waiting_until == 5 * DAY
    assert (drop.cost.history, drop.cost.wait_ms) == (7, DAY)
    assert "waiting until 1970-01-06T00:00:00Z" in str(plan)
    later = plan_upgrade(table, goal(), history=history, now_ms=5 * DAY)
    assert later.waiting_until is None


def test_kernel_takes_the_fast_way_and_first() -> None:
    plan = plan_upgrade(state(properties=VECTORS), goal(profile=Profile.KERNEL))
    assert kinds(plan)[:2] == ["switch", "drop_feature:deletionVectors"]
    assert not plan.steps[1].truncates
    assert (
        "twinlake.compat.profile"
        in switched(Metadata(), goal(profile=Profile.KERNEL)).configuration
    )


def test_protection_of_an_earlier_drop_has_to_go() -> None:
    plan = plan_upgrade(state(features=("checkpointProtection",)), goal())
    assert "drop_feature:checkpointProtection" in kinds(plan)
    assert all(step.truncates for step in plan.steps if step.subject)


def test_first_version_is_without_vectors_before_anything_else() -> None:
    plan = plan_upgrade(state(properties=VECTORS), goal("icebergCompatV1"))
    assert kinds(plan) == ["switch", "drop_feature:deletionVectors", "convert"]


def test_history_that_is_kept_stops_the_plan() -> None:
    history = {"deletionVectors": HistoryTruncation(kept="nobody may delete it")}
    plan = plan_upgrade(state(properties=VECTORS), goal(), history=history)
    assert plan.refused
    assert "nobody may delete it" in plan.obstacles[0]


# What cannot be mended


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        pytest.param(state("id INT, v VOID"), "IWC1-08", id="void"),
        pytest.param(state("id INT, i INTERVAL YEAR"), "IWC1-08", id="interval"),
        pytest.param(state("id INT, v VARIANT"), "IWC1-08", id="variant"),
        pytest.param(state(properties={"delta.constraints.c": "id > 0"}), "IWC1-13", id="check"),
        pytest.param(state(features=("allowColumnDefaults",)), "IWC1-17", id="defaults"),
        pytest.param(state(features=("collations",)), "IWC1-17", id="collations"),
    ],
)
def test_what_no_step_can_mend_refuses(table: State, rule: str) -> None:
    plan = plan_upgrade(table, goal())
    assert plan.refused
    assert not plan.done
    assert rule in blocked(plan)
    text = str(plan)
    assert rule in text
    assert "Cannot upgrade" in text
    # The whole report is told, not only what blocks.
    assert {"IWC1-05"} <= {violation.rule for violation in plan.report.violations}
    assert plan.to_dict()["refused"] is True


def test_third_version_cannot_be_taken_back() -> None:
    asked = goal("icebergCompatV3")
    made = with_compat_enabled(converted(state().metadata, asked), asked)
    protocol = Protocol(1, 2).upgraded_for(made, policy="minimal")
    plan = plan_upgrade(State(metadata=stripped(made), protocol=protocol), goal())
    assert "ICV3-20" in blocked(plan)


FIELD_RULES: list[tuple[str, dict[str, object], str]] = [
    ("invariants", {"delta.invariants": "{}"}, "IWC1-11"),
    ("generatedColumns", {"delta.generationExpression": "1"}, "IWC1-15"),
    ("identityColumns", {"delta.identity.start": 1, "delta.identity.step": 1}, "IWC1-14"),
]


@pytest.mark.parametrize(("name", "keys", "rule"), FIELD_RULES, ids=[n for n, _, _ in FIELD_RULES])
def test_rules_for_writers_go_only_if_given_up(
    name: str, keys: dict[str, object], rule: str
) -> None:
    plain = parse_ddl("id INT, s STRUCT<x: INT>")
    schema = map_fields(plain, lambda path, f: f.with_metadata(**keys) if path == ("s", "x") else f)
    assert isinstance(schema, Struct)
    made = Metadata(id="t", name="orders").with_schema(schema)
    table = State(metadata=made, protocol=Protocol(1, 6))
    stuck = plan_upgrade(table, goal())
    assert rule in blocked(stuck)
    assert f"give_up=[{name!r}]" in stuck.advice
    assert f"give_up=[{name!r}]" in str(stuck)
    plan = plan_upgrade(table, goal(give_up=frozenset({name})))
    assert not plan.refused
    assert rule in plan.steps[0].why
    assert "no longer enforce" in " ".join(plan.steps[0].notes)


def test_nothing_is_advised_to_be_given_up_for_a_rule_about_types() -> None:
    change = {"toType": "double", "fromType": "integer"}
    plain = parse_ddl("d DOUBLE")
    field = plain.fields[0].with_metadata(**{"delta.typeChanges": [change]})
    widened = metadata("d DOUBLE", delta__enableTypeWidening="true").with_schema(Struct((field,)))
    table = State(metadata=widened, protocol=Protocol(1, 2).upgraded_for(widened))
    plan = plan_upgrade(table, goal(in_place=True))
    assert "ICV2-15" in blocked(plan)
    assert plan.advice == ""


def test_constraints_go_if_given_up() -> None:
    table = state(properties={"delta.constraints.c": "id > 0"})
    plan = plan_upgrade(table, goal(give_up=frozenset({"constraints"})))
    assert not plan.refused
    assert "constraints c" in plan.steps[0].what


# Files


def test_cost_is_all_files_where_names_change() -> None:
    files = FileSummary(files=5, size=50, unfit=5, unfit_size=50)
    plan = plan_upgrade(state(), goal(), files=files)
    assert (plan.steps[0].cost.files, plan.steps[0].cost.size) == (5, 50)
    assert plan.files == 5


def test_cost_is_the_unfit_files_where_they_do_not() -> None:
    asked = goal("icebergCompatV2")
    made = with_compat_enabled(converted(state().metadata, asked), asked)
    protocol = Protocol(1, 2).upgraded_for(made, policy="minimal")
    example = Violation(
        rule="ICV2-14",
        scope=next(iter({v.scope for v in plan_upgrade(state(), asked).report.violations})),
        path="f",
        found="",
        wanted="",
        message="f has no ids",
        fix="",
    )
    files = FileSummary(
        files=5, size=50, unfit=2, unfit_size=20, broken={"ICV2-14": 2}, examples=(example,)
    )
    plan = plan_upgrade(State(metadata=stripped(made), protocol=protocol), asked, files=files)
    assert kinds(plan) == ["convert"]
    assert plan.steps[0].cost.files == 2
    assert plan.steps[0].why == ("ICV2-14",)
    assert plan.report.count == 2


def test_in_place_lists_files_again_and_warns() -> None:
    files = FileSummary(files=5, size=50, vectors=1, vectors_size=10, unfit=1, unfit_size=10)
    plan = plan_upgrade(state(properties=VECTORS), goal(in_place=True), files=files)
    assert kinds(plan)[:3] == ["switch", "purge", "convert"]
    purge, convert = plan.steps[1:3]
    assert purge.cost.files == 1
    assert (convert.cost.files, convert.cost.listed) == (0, 5)
    assert "delta-rs" in " ".join(convert.notes)


def test_in_place_is_refused_where_files_do_not_fit() -> None:
    files = FileSummary(files=5, size=50, rewrite_reasons=("a.parquet cannot stay",))
    plan = plan_upgrade(state(), goal(in_place=True), files=files)
    assert plan.refused
    assert "a.parquet" in str(plan)


# Metadata


def test_ids_of_a_mapped_table_are_kept_and_nested_ids_follow_the_name() -> None:
    named = mapped_by_name(metadata(NESTED), nested=True)
    moved = mapped_by_id(named)
    ids = [field_id(f) for _, f in walk_fields(named.schema)]
    assert [field_id(f) for _, f in walk_fields(moved.schema)] == ids
    for _, field in walk_fields(moved.schema):
        assert physical_name(field) == f"col-{field_id(field)}"
        assert all(path.startswith(f"{physical_name(field)}.") for path in nested_ids(field))
    assert moved.get("delta.columnMapping.maxColumnId") == named.get(
        "delta.columnMapping.maxColumnId"
    )
    assert mapped_by_id(moved) == moved


def test_highest_id_never_comes_down() -> None:
    table = metadata("id INT", delta__columnMapping__maxColumnId="41")
    moved = mapped_by_id(table)
    assert [field_id(f) for f in moved.schema] == [42]
    assert moved.get("delta.columnMapping.maxColumnId") == "42"


def test_narrow_types_become_integers() -> None:
    table = metadata("b TINYINT, m MAP<SMALLINT, ARRAY<TINYINT>>")
    assert len(narrow_columns(table.schema)) == 3
    rewritten = with_integers(table)
    assert not narrow_columns(rewritten.schema)
    assert not any(type_changes(f) for f in rewritten.schema)
    stays = with_wider_types(table)
    assert [len(type_changes(f)) for f in stays.schema] == [1, 2]
    assert stays.flag("delta.enableTypeWidening")


# Files that stay


def test_statistics_are_keyed_anew_digit_by_digit() -> None:
    before = mapped_by_name(metadata("id INT, s STRUCT<y: DOUBLE>, p STRING"), nested=False)
    moved = renaming(before, mapped_by_id(before))
    text = (
        '{"numRecords":2,"minValues":{"id":1,"s":{"y":1.10},"p":"{"},'
        '"maxValues":{"id":9007199254740993,"s":{"y":1E2}},"nullCount":{"id":0,"s":{"y":0},"p":1},'
        '"tightBounds":true}'
    )
    stats = moved.stats(text)
    assert stats is not None
    assert '"col-2":{"col-3":1.10}' in stats
    assert "9007199254740993" in stats
    assert "1E2" in stats
    found = json.loads(stats)
    assert found["numRecords"] == 2
    assert found["minValues"]["col-4"] == "{"
    assert found["nullCount"] == {"col-1": 0, "col-2": {"col-3": 0}, "col-4": 1}
    assert moved.stats(None) is None
    assert moved.path(("s", "y")) == ("col-2", "col-3")


def leaf(name: str, number: int | None) -> ParquetNode:
    return ParquetNode(name=name, physical_type="INT32", field_id=number)


def group(name: str, number: int | None, *children: ParquetNode, **more: Any) -> ParquetNode:
    return ParquetNode(name=name, field_id=number, children=children, **more)


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ((leaf("id", 1), leaf("old", 9)), ""),
        ((leaf("id", None),), "id has no id"),
        ((leaf("id", 2),), "id has id 2"),
        ((leaf("id", 1), leaf("other", 1)), "id 1 is on"),
        ((), ""),
    ],
    ids=["fits", "no id", "another id", "twice", "came later"],
)
def test_footers_must_tell_columns_by_id(columns: tuple[ParquetNode, ...], wrong: str) -> None:
    before = mapped_by_name(metadata("id INT"), nested=True)
    found = list(id_mismatches(group("root", None, *columns), before, mapped_by_id(before)))
    assert bool(found) is bool(wrong)
    assert wrong in "".join(found)


@pytest.mark.parametrize("element", [2, None, 7])
def test_elements_must_have_ids_too(element: int | None) -> None:
    before = mapped_by_name(metadata("a ARRAY<INT>"), nested=True)
    wrapper = group("list", None, leaf("element", element), repetition=Repetition.REPEATED)
    root = group("root", None, group("a", 1, wrapper, annotation="LIST"))
    found = list(id_mismatches(root, before, mapped_by_id(before)))
    assert bool(found) is (element != 2)


# For people and machines


def test_plans_render_in_every_form() -> None:
    table = state("id INT, b TINYINT", {**VECTORS, **FEED})
    files = FileSummary(files=1, size=2048, unfit=1, unfit_size=2048)
    plan = plan_upgrade(table, goal(), files=files)
    text = str(plan)
    assert " 1. Disable deletion vectors and the change data feed" in text
    assert "rewrites 1 file (2.0 KiB)" in text
    data = plan.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert [step["number"] for step in data["steps"]] == [1, 2, 3, 4]
    found = NotebookPage(plan)
    assert [row[0] for row in found.rows] == ["", "1", "2", "3", "4"]
    assert repr(plan) == f"<Plan: {plan.summary}>"
    hostile = State(
        metadata=table.metadata.with_schema(parse_ddl("`<b>` TINYINT, v VOID")),
        protocol=table.protocol,
    )
    refused = plan_upgrade(hostile, goal())
    shown = NotebookPage(refused)
    assert "No step can fix" in shown.text
    assert any("<b>" in cell for row in shown.rows for cell in row)
