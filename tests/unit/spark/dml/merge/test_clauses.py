"""What can be said of the clauses of a MERGE without running Spark."""

from __future__ import annotations

from typing import Any

import pytest

from twinlake.commit.plans import MergeClause, Then, When
from twinlake.errors import UserError
from twinlake.schema import parse_ddl, render_ddl
from twinlake.spark.dml.merge.builder import DeltaMergeBuilder
from twinlake.spark.dml.merge.clauses import Clause, _refuse_overlap, _same_fields, assigned_schema
from twinlake.spark.dml.merge.execution import MergeRequest
from twinlake.spark.dml.merge.file_skipping import _unqualified

SOURCE = "id INT, s STRUCT<a: INT, b: STRUCT<c: INT, d: INT>>, t STRING"


@pytest.mark.parametrize(
    ("named", "everything", "expected"),
    [
        pytest.param([], False, "", id="nothing"),
        pytest.param([("ID",)], False, "id INT", id="ignores-case"),
        pytest.param([("s", "b", "d")], False, "s STRUCT<b: STRUCT<d: INT>>", id="one-field"),
        pytest.param(
            [("s",)], False, "s STRUCT<a: INT, b: STRUCT<c: INT, d: INT>>", id="whole-struct"
        ),
        pytest.param([("s", "a")], True, SOURCE, id="star-brings-everything"),
        pytest.param([("new",)], False, "", id="not-in-the-source"),
    ],
)
def test_assigned_schema_keeps_what_clauses_assign(
    named: list[tuple[str, ...]], everything: bool, expected: str
) -> None:
    found = assigned_schema(parse_ddl(SOURCE), named, everything=everything)
    assert render_ddl(found) == expected


@pytest.mark.parametrize(
    ("has", "wants", "fewer", "expected"),
    [
        pytest.param("a INT, b INT", "b INT, A INT", False, True, id="order-and-case"),
        pytest.param("a INT", "a INT, b INT", False, False, id="lacks-one"),
        pytest.param("a INT", "a INT, b INT", True, True, id="may-lack-one"),
        pytest.param("a INT, b INT", "a INT", True, False, id="has-one-more"),
        pytest.param("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<y: INT>>", True, False, id="array"),
        pytest.param(
            "a MAP<STRING, STRUCT<x: INT>>",
            "a MAP<STRING, STRUCT<x: INT, y: INT>>",
            False,
            False,
            id="map-value",
        ),
        pytest.param("a STRING", "a INT", False, True, id="types-are-for-casts"),
    ],
)
def test_same_fields(has: str, wants: str, fewer: bool, expected: bool) -> None:
    assert _same_fields(parse_ddl(has), parse_ddl(wants), fewer=fewer) is expected


@pytest.mark.parametrize(
    ("paths", "then", "delta_class"),
    [
        pytest.param([("a",), ("a",)], Then.UPDATE, "DELTA_CONFLICT_SET_COLUMN", id="twice"),
        pytest.param([("s",), ("s", "x")], Then.UPDATE, "DELTA_CONFLICT_SET_COLUMN", id="part"),
        pytest.param([("a",), ("a",)], Then.INSERT, "DELTA_DUPLICATE_COLUMNS_ON_INSERT", id="ins"),
        pytest.param(
            [("s", "x")], Then.INSERT, "DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION", id="nested"
        ),
    ],
)
def test_overlapping_assignments_are_refused(
    paths: list[tuple[str, ...]], then: Then, delta_class: str
) -> None:
    with pytest.raises(UserError) as caught:
        _refuse_overlap(paths, then)
    assert caught.value.delta_class == delta_class


def test_assignments_side_by_side_are_fine() -> None:
    _refuse_overlap([("s", "x"), ("s", "y"), ("a",)], Then.UPDATE)


@pytest.mark.parametrize(
    ("sql", "alias", "expected"),
    [
        pytest.param("(t.id < CAST(3 AS BIGINT))", "t", "(id < CAST(3 AS BIGINT))", id="column"),
        pytest.param("(t.s.a.b IS NULL)", "T", "(s.a.b IS NULL)", id="nested"),
        pytest.param("(`t t`.`a b` = 1)", "t t", "(`a b` = 1)", id="quoted"),
        pytest.param("(t.id = 1)", None, "(t.id = 1)", id="no-alias"),
        pytest.param("(s.t = 1)", "t", "(s.t = 1)", id="not-the-table"),
    ],
)
def test_conditions_lose_the_name_of_the_table(sql: str, alias: str | None, expected: str) -> None:
    assert _unqualified(sql, alias) == expected


def test_clause_tells_the_plan_what_it_is() -> None:
    clause = Clause(when=When.MATCHED, then=Then.UPDATE, condition="true")
    assert clause.planned == MergeClause(When.MATCHED, Then.UPDATE, conditional=True)
    assert clause.takes_all
    assert not Clause(when=When.MATCHED, then=Then.DELETE).takes_all


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        pytest.param({}, ValueError, id="no-set"),
        pytest.param({"set": [("a", "b")]}, TypeError, id="not-a-dict"),
        pytest.param({"set": {1: "b"}}, TypeError, id="key"),
        pytest.param({"set": {"a": 1}}, TypeError, id="value"),
        pytest.param({"condition": True, "set": {"a": "b"}}, TypeError, id="condition"),
    ],
)
def test_builder_checks_its_arguments(arguments: Any, error: type[Exception]) -> None:
    nothing: Any = None
    request = MergeRequest(source=nothing, condition="true", clauses=())
    with pytest.raises(error):
        DeltaMergeBuilder(nothing, nothing, request).whenMatchedUpdate(**arguments)


def test_builder_does_not_change_the_one_before() -> None:
    nothing: Any = None
    request = MergeRequest(source=nothing, condition="true", clauses=())
    first = DeltaMergeBuilder(nothing, nothing, request)
    second = first.whenMatchedDelete("a").whenNotMatchedInsertAll().withSchemaEvolution()
    assert first._request.clauses == ()
    assert [clause.then for clause in second._request.clauses] == [Then.DELETE, Then.INSERT]
    assert second._request.evolution
