"""Predicates: SQL text to a small expression, evaluated over Arrow columns.

sqlglot and pyarrow are loaded when the first predicate is parsed or evaluated, not on import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from twinlake.schema.predicates.expressions import (
    And,
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    Opaque,
    Or,
    StartsWith,
    is_exact,
    is_partition_only,
    split_conjuncts,
)

if TYPE_CHECKING:
    from twinlake.schema.predicates.evaluation import evaluate_on
    from twinlake.schema.predicates.parsing import parse_predicate
    from twinlake.schema.predicates.skipping import FileStats, prune

__all__ = [
    "And",
    "Column",
    "Comparison",
    "Expr",
    "FileStats",
    "In",
    "IsNull",
    "Literal",
    "Not",
    "Op",
    "Opaque",
    "Or",
    "StartsWith",
    "evaluate_on",
    "is_exact",
    "is_partition_only",
    "parse_predicate",
    "prune",
    "split_conjuncts",
]

_LAZY: Final = {
    "FileStats": "skipping",
    "evaluate_on": "evaluation",
    "parse_predicate": "parsing",
    "prune": "skipping",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
