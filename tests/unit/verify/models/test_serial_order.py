"""Counterexamples of the models of Iceberg, judged by serial order.

``ConsistentRead`` follows what was committed version by version, and so reports more than a user
would call wrong: a DELETE by a column that a concurrent UPDATE changes may leave the updated row,
as it would if it had run after the UPDATE. What is published as a finding has a result
that no order of the acknowledged statements has, or says that one has it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from twinlake.verify import Result, check
from twinlake.verify.checker import Trace
from twinlake.verify.models.catalogue import CATALOGUE, FINDING, ICEBERG, ModelCase, ModelSuite
from twinlake.verify.models.iceberg.partitions import PartitionedTable
from twinlake.verify.models.iceberg.snapshot_scan import matches, scan

Row = tuple[str | None, ...]

PUBLISHED = [
    (suite, one)
    for suite in CATALOGUE
    if suite.format == ICEBERG
    for one in suite.of_kind(FINDING)
    # The models of servers keep a Delta log, and are judged by their own properties.
    if one.violates == "ConsistentRead" and "table" in suite.build(one).variables()
]


@pytest.mark.parametrize(
    ("suite", "one"), PUBLISHED, ids=[f"{suite.name}: {one.name}" for suite, one in PUBLISHED]
)
def test_a_published_finding_says_whether_a_serial_order_explains_it(
    suite: ModelSuite, one: ModelCase
) -> None:
    assert bool(_explaining_orders(_trace(suite.run(one)))) == one.has_serial_order


def test_an_order_explains_a_delete_by_the_column_that_an_update_changes() -> None:
    # UPDATE … SET col2 = 'blue', and then DELETE … WHERE col2 = 'red', which finds nothing.
    model = PartitionedTable(isolation="SERIALIZABLE")
    found = check(model, without=("NoDanglingDeleteFiles",), symmetry=True, reduction=True)
    assert found.violated == "ConsistentRead"
    (order,) = _explaining_orders(_trace(found))
    assert [one.name for one in order] == ["Insert", "Update", "Delete"]


def test_findings_are_there_to_be_judged() -> None:
    assert sum(not one.has_serial_order for _, one in PUBLISHED) >= 2


def _trace(found: Result) -> Trace:
    assert found.trace is not None
    return found.trace


class Statement(NamedTuple):
    """An acknowledged statement, with the steps at which it began and committed."""

    name: str
    arguments: Mapping[str, Any]
    began: int
    committed: int


def _explaining_orders(trace: Trace) -> list[tuple[Statement, ...]]:
    """The orders of the acknowledged statements whose result is what the table ends with.

    What had committed before another statement began comes before it.
    """
    table: Any = trace.shared["table"]
    final = sorted(row for _, rows in scan(table[-1]) for _, row in rows)
    return [
        order
        for order in itertools.permutations(_acknowledged(trace))
        if all(one.began < other.committed for one, other in itertools.combinations(order, 2))
        and sorted(_result(order)) == final
    ]


def _acknowledged(trace: Trace) -> list[Statement]:
    started: dict[str, Statement] = {}
    committed: list[Statement] = []
    for step in trace.steps:
        name = step.action.removeprefix("Start").removesuffix("Operation")
        if name in ("Insert", "Update", "Delete"):
            started[step.actor] = Statement(name, step.arguments, step.number, 0)
        elif step.action == "Commit" and all(one.passed for one in step.checks):
            committed.append(started.pop(step.actor)._replace(committed=step.number))
    assert committed
    return committed


def _result(order: tuple[Statement, ...]) -> list[Row]:
    rows: list[Row] = []
    for name, arguments, *_ in order:
        if name == "Insert":
            rows.append(tuple(arguments["row"]))
        elif name == "Delete":
            rows = [row for row in rows if not matches(row, arguments["predicate"])]
        else:
            rows = [
                tuple(new or old for new, old in zip(arguments["set"], row, strict=True))
                if matches(row, arguments["predicate"])
                else row
                for row in rows
            ]
    return rows
