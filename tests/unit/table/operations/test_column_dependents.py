"""Columns that something else names: constraints, generated columns, clustering, statistics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.table.making import create
from twinlake import Table
from twinlake.errors import Code, UserError
from twinlake.protocol import Metadata
from twinlake.schema import parse_ddl, render_schema
from twinlake.table.operations.column_dependents import dependents

STATISTICS = "delta.dataSkippingStatsColumns"
CHANGES: dict[str, Callable[[Table], Table]] = {
    "rename": lambda t: t.rename_column("a", "z"),
    "drop": lambda t: t.drop_column("a"),
    "widen": lambda t: t.widen_column("a", "BIGINT"),
}


def _mapped(folder: Path, schema: str, statistics: str | None = None, **rest: object) -> Table:
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    if statistics is not None:
        properties[STATISTICS] = statistics
    return create(folder, schema, properties=properties, **rest)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("schema", "constraint", "kind", "delta_class"),
    [
        (
            "a INT, b INT",
            "A > 0",
            "CHECK constraint",
            "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
        ),
        (
            "a INT, twice INT GENERATED ALWAYS AS (a * 2)",
            None,
            "generated column",
            "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
        ),
    ],
    ids=["constraint", "generated"],
)
def test_a_column_in_an_expression_stays_as_it_is(
    tmp_path: Path,
    change: str,
    schema: str,
    constraint: str | None,
    kind: str,
    delta_class: str,
) -> None:
    table = _mapped(tmp_path, schema)
    if constraint is not None:
        table = table.add_constraint("k", constraint)
    with pytest.raises(UserError) as refused:
        CHANGES[change](table)
    assert refused.value.code is Code.SCHEMA_EVOLUTION
    assert refused.value.delta_class == delta_class
    assert [d["kind"] for d in refused.value.fields["dependents"]] == [kind]
    assert table.refresh().version == table.version


def test_other_columns_change_freely(tmp_path: Path) -> None:
    table = _mapped(tmp_path, "a INT, b INT, s STRUCT<x: INT, y: INT>").add_constraint(
        "k", "a > 0 AND s.x > 0"
    )
    table = table.rename_column("b", "c").widen_column("c", "BIGINT").drop_column("c", "s.y")
    assert table.schema.names() == ("a", "s")


def test_a_generated_column_goes_together_with_its_source(tmp_path: Path) -> None:
    table = _mapped(tmp_path, "id INT, a INT, twice INT GENERATED ALWAYS AS (a * 2)")
    assert table.drop_column("a", "twice").schema.names() == ("id",)


def test_a_clustering_column_can_be_renamed_but_not_dropped(tmp_path: Path) -> None:
    table = _mapped(tmp_path, "a INT, s STRUCT<x: INT, y: INT>", cluster_by=["s.x"])
    table = table.rename_column("s", "t")
    for column in ("t.x", "t"):
        with pytest.raises(UserError) as refused:
            table.drop_column(column)
        assert refused.value.delta_class == "DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"
    assert table.drop_column("t.y").detail().clustering_columns == ("t.x",)


@pytest.mark.parametrize(
    ("listed", "change", "expected"),
    [
        ("a, s.x", lambda t: t.rename_column("a", "z"), "z,s.x"),
        ("A,s.x", lambda t: t.rename_column("a", "odd, name"), "`odd, name`,s.x"),
        ("a,s.x", lambda t: t.rename_column("s", "t"), "a,t.x"),
        ("a,s.x", lambda t: t.drop_column("s"), "a"),
        ("a", lambda t: t.drop_column("a"), ""),
        ("a, s.x", lambda t: t.drop_column("b"), "a, s.x"),
        ("`odd, name`,a", lambda t: t.drop_column("a"), "`odd, name`"),
    ],
    ids=["rename", "quoted", "parent", "drop-parent", "drop-last", "other", "comma-in-name"],
)
def test_the_columns_with_statistics_follow(
    tmp_path: Path, listed: str, change: Callable[[Table], Table], expected: str
) -> None:
    table = _mapped(tmp_path, "a INT, b INT, s STRUCT<x: INT>, `odd, nam` INT", listed)
    assert change(table).properties[STATISTICS] == expected


@pytest.mark.parametrize(
    ("text", "column", "depends"),
    [
        ("outer((b", ("b",), True),
        ("outer((b", ("c",), False),
        ("exists(l, e -> e.x > 1)", ("l", "element", "x"), True),
        ("m['k'] > 1", ("m", "value"), True),
        ("s IS NOT NULL", ("s", "x"), False),
        ("gone > 1", ("b",), False),
    ],
)
def test_expressions_of_other_engines(text: str, column: tuple[str, ...], depends: bool) -> None:
    schema = parse_ddl(
        "b INT, c INT, l ARRAY<STRUCT<x: INT>>, m MAP<STRING, INT>, s STRUCT<x: INT>"
    )
    metadata = Metadata(
        id="t", schema_string=render_schema(schema), configuration={"delta.constraints.k": text}
    )
    assert bool(dependents(metadata, [column])) is depends
