"""Delta's own statements as our grammar reads them; no Spark is needed for it."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from twinlake.errors import UserError
from twinlake.spark.statements.registry import DELTA_FORMS
from twinlake.spark.statements.syntax.cursor import TokenCursor, string_value
from twinlake.spark.statements.syntax.tokens import TokenKind, tokenize


def _read(text: str) -> Any:
    """What the first form that knows the statement makes of it."""
    for form in DELTA_FORMS:
        found = form.parse(TokenCursor.of(text))
        if found is not None:
            return found
    return None


READ: dict[str, tuple[str, dict[str, Any]]] = {
    "vacuum t": ("VacuumStatement", {"table": ("t",), "hours": None, "dry_run": False}),
    "VACUUM a.b.`c d` LITE RETAIN 1.5 HOURS DRY RUN;": (
        "VacuumStatement",
        {"table": ("a", "b", "c d"), "hours": 1.5, "dry_run": True, "mode": "lite"},
    ),
    "VACUUM '/data/t' DRY RUN RETAIN 0 HOURS FULL": (
        "VacuumStatement",
        {"table": ("delta", "/data/t"), "hours": 0.0, "dry_run": True},
    ),
    "VACUUM t USING INVENTORY (SELECT (1))": ("VacuumStatement", {"inventory": True}),
    "DESC HISTORY delta.`/a``b` LIMIT 2": (
        "DescribeHistory",
        {"table": ("delta", "/a`b"), "limit": 2},
    ),
    "DESCRIBE DETAIL t": ("DescribeDetail", {"table": ("t",)}),
    "OPTIMIZE t WHERE a = 'ZORDER' /* ZORDER */ AND (b) ZORDER BY (c, d.e)": (
        "OptimizeTable",
        {"where": "a = 'ZORDER' /* ZORDER */ AND (b)", "order": (("c",), ("d", "e"))},
    ),
    "OPTIMIZE t FULL": ("OptimizeTable", {"full": True, "where": None, "order": ()}),
    "REORG TABLE t WHERE p = 1 APPLY (PURGE)": ("ReorgTable", {"where": "p = 1", "upgrade": None}),
    "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))": (
        "ReorgTable",
        {"where": None, "upgrade": 2},
    ),
    "ALTER TABLE t ADD CONSTRAINT `c c` CHECK ( a > /* ) */ 1 AND b <> ')' )": (
        "AddConstraint",
        {"name": "c c", "expression": "a > /* ) */ 1 AND b <> ')'"},
    ),
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS c": ("DropConstraint", {"if_exists": True}),
    "ALTER TABLE t DROP FEATURE 'deletionVectors' TRUNCATE HISTORY": (
        "DropFeature",
        {"feature": "deletionVectors", "truncate": True},
    ),
    "ALTER TABLE t CLUSTER BY (a, b.c)": ("ClusterTable", {"table": ("t",)}),
    "ALTER TABLE t ALTER COLUMN a SYNC IDENTITY": ("SyncIdentity", {"table": ("t",)}),
    "GENERATE symlink_format_manifest FOR TABLE t": ("GenerateManifest", {"table": ("t",)}),
    "CONVERT TO DELTA parquet.`/x` NO STATISTICS PARTITIONED BY (a INT)": (
        "ConvertToDelta",
        {"table": ("parquet", "/x")},
    ),
    "CREATE TABLE IF NOT EXISTS a SHALLOW CLONE b": ("CloneTable", {"source": ("b",)}),
    "REPLACE TABLE a CLONE b TIMESTAMP AS OF '2026-01-01' TBLPROPERTIES ('x' = 'y')": (
        "CloneTable",
        {"target": ("a",), "source": ("b",)},
    ),
    "ANALYZE TABLE t COMPUTE DELTA STATISTICS": ("AnalyzeDelta", {"table": ("t",)}),
}


@pytest.mark.parametrize("text", READ)
def test_a_statement_is_read(text: str) -> None:
    name, parts = READ[text]
    found = _read(text)
    assert type(found).__name__ == name
    assert {key: getattr(found, key) for key in parts} == parts


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "DESCRIBE HISTORY",
        "DESCRIBE t",
        "CREATE TABLE t (a INT) USING delta",
        "CREATE TABLE clone USING delta AS SELECT 1",
        "ALTER TABLE t ADD COLUMN a INT",
        "ALTER TABLE t ADD CONSTRAINT k PRIMARY KEY (a)",
        "ALTER TABLE t ALTER COLUMN a COMMENT 'SYNC IDENTITY'",
        "ANALYZE TABLE t COMPUTE STATISTICS",
        "",
    ],
)
def test_other_statements_are_left_to_spark(text: str) -> None:
    assert _read(text) is None


@pytest.mark.parametrize(
    ("text", "near", "line", "position"),
    [
        ("VACUUM", "end of input", 1, 6),
        ("VACUUM t RETAIN 7 DAYS", "'DAYS'", 1, 18),
        ("OPTIMIZE t WHERE", "end of input", 1, 16),
        ("OPTIMIZE t\n  -- all of it\n  NOW", "'NOW'", 3, 2),
        ("RESTORE t TO YESTERDAY", "'YESTERDAY'", 1, 13),
        ("REORG TABLE t APPLY (UPGRADE UNIFORM (X = 2))", "'X'", 1, 38),
        ("DESCRIBE HISTORY t LIMIT many", "'many'", 1, 25),
        ("VACUUM t; VACUUM t", "';'", 1, 8),
        ("ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1", "end of input", 1, 43),
    ],
)
def test_a_wrong_statement_is_marked_where_it_is_wrong(
    text: str, near: str, line: int, position: int
) -> None:
    with pytest.raises(UserError) as raised:
        _read(text)
    assert raised.value.what == f"Syntax error at or near {near} (line {line}, pos {position})."
    assert raised.value.delta_class == "PARSE_SYNTAX_ERROR"
    marked = (raised.value.why or "").split("== SQL ==\n")[1].split("\n")
    assert marked[line] == "-" * position + "^^^"


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a/* b /* c */ d */e", ["WORD", "WORD"]),
        ("'it''s' \"x\" r'\\' `a``b`", ["STRING", "STRING", "STRING", "STRING", "QUOTED_NAME"]),
        ("'open", ["UNCLOSED"]),
        ("/* open", ["UNCLOSED"]),
        ("ü = 1 -- '", ["WORD", "SIGN", "WORD"]),
    ],
)
def test_tokens(text: str, kinds: list[str]) -> None:
    found = tokenize(text)
    assert [token.kind for token in found] == [TokenKind[kind] for kind in kinds]
    assert all(text[token.start : token.end] == token.text for token in found)


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'a'", "a"),
        (r"'a\nb\\c\'d'", "a\nb\\c'd"),
        (r"'\u00fc\%'", "ü\\%"),
        (r'r"a\n"', "a\\n"),
    ],
)
def test_values_of_strings(literal: str, value: str) -> None:
    assert string_value(literal) == value
