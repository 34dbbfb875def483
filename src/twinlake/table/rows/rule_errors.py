"""The rules that a table has for its rows, and the error of a row that breaks one.

What evaluates them is up to the engine.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from twinlake.errors import Code, CorruptTable, UserError, how_to_restore
from twinlake.protocol import keys
from twinlake.schema import INVARIANTS_KEY, quote_name, render_path, walk_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath

__all__ = [
    "broken_rule",
    "check_constraints",
    "column_invariants",
    "generated_rule",
    "null_value",
    "text_too_long",
]


def check_constraints(metadata: Metadata) -> Iterator[tuple[str, UserError]]:
    """Each CHECK constraint: its condition, and the error where it is not true."""
    for key, text in sorted(metadata.configuration.items()):
        if key.startswith(keys.CONSTRAINTS_PREFIX):
            name = key.removeprefix(keys.CONSTRAINTS_PREFIX)
            yield text, broken_rule(text, name, "CHECK", f"CHECK constraint {name}")


def column_invariants(metadata: Metadata) -> Iterator[tuple[str, UserError]]:
    """The same of the invariants that old tables have in the metadata of columns."""
    for path, field in walk_fields(metadata.schema):
        stored = field.metadata.get(INVARIANTS_KEY)
        if stored is None:
            continue
        shown = render_path(path)
        try:
            text = str(json.loads(str(stored))["expression"]["expression"])
        except (TypeError, ValueError, KeyError) as error:
            raise CorruptTable(
                Code.SCHEMA_INVALID,
                f"The invariant of column {shown} cannot be read.",
                why=f"{INVARIANTS_KEY} is {stored!r}",
                fix=f"Run {how_to_restore()} with an earlier version.",
                fields={"column": shown},
            ) from error
        name = f"invariant of {shown}"
        yield text, broken_rule(text, name, "invariant", f"the {name}")


def generated_rule(column: str, text: str) -> UserError:
    """The error where the value of a generated column is not that of its expression."""
    return broken_rule(
        f"{quote_name(column)} <=> ({text})",
        "Generated Column",
        "generated column",
        f"the rule of generated column {quote_name(column)}",
    )


def broken_rule(text: str, name: str, kind: str, label: str) -> UserError:
    """The error of a row for which an expression is not true."""
    return UserError(
        Code.CONSTRAINT,
        f"A row violates {label}: {text}.",
        why="the expression has to be true, and it is false or null",
        fix="Correct such rows or leave them out.",
        delta_class="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        fields={"kind": kind, "constraint": name, "expression": text},
    )


def null_value(path: ColumnPath) -> UserError:
    """The error of a null in a column that is NOT NULL."""
    shown = render_path(path)
    return UserError(
        Code.CONSTRAINT,
        f"Column {shown} must not be null.",
        why="the table declares it NOT NULL",
        fix="Give it a value in every row, or make the column nullable with "
        "`Table.alter_column(COLUMN, nullable=True)` or `twinlake alter PATH "
        "--nullable COLUMN`.",
        delta_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        fields={"kind": "NOT NULL", "constraint": "NOT NULL", "expression": shown},
    )


def text_too_long(path: ColumnPath, spelled: str) -> UserError:
    """The error of a text that is longer than its CHAR or VARCHAR."""
    shown = render_path(path)
    return UserError(
        Code.CONSTRAINT,
        f"A value of column {shown} is longer than {spelled} allows.",
        why="trailing spaces count",
        fix="Shorten the values, or make the column a STRING.",
        delta_class="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        fields={"kind": "length", "constraint": spelled, "expression": shown},
    )
