"""A predicate evaluated exactly, on actual values, in SQL's three-valued logic."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.errors import Code, UserError
from twinlake.schema.predicates.arrays import (
    comparable_array,
    comparable_scalar,
    compare,
    unified,
)
from twinlake.schema.predicates.constants import Domain, domain_of
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
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.schema.types import ColumnPath

__all__ = ["evaluate_on"]


def evaluate_on(expr: Expr, columns: Mapping[ColumnPath, pa.Array], n: int) -> pa.BooleanArray:
    """For each of ``n`` rows true, false or null, as a WHERE clause sees it.

    Raises ``UserError`` for an opaque part; ``is_exact`` and ``is_partition_only`` tell
    beforehand, and ``prune`` copes with it.
    """
    match expr:
        case Literal():
            return _repeat(expr.value, n)
        case Comparison():
            left = _operand(expr.left, expr.left, columns)
            right = _operand(expr.right, expr.left, columns)
            return _compare(expr.op, left, right)
        case In():
            return _is_in(expr, _operand(expr.column, expr.column, columns))
        case StartsWith():
            values = _operand(expr.column, expr.column, columns)
            return pc.starts_with(values, pattern=expr.prefix)
        case IsNull(Column() as column):
            return _values(column, columns).is_null()
        case IsNull():
            return evaluate_on(expr.operand, columns, n).is_null()
        case Not():
            return pc.invert(evaluate_on(expr.operand, columns, n))
        case And() | Or():
            join = pc.and_kleene if isinstance(expr, And) else pc.or_kleene
            return reduce(join, (evaluate_on(part, columns, n) for part in expr.operands))
        case Opaque():
            raise UserError(
                Code.PREDICATE_INVALID,
                f"Only Spark can evaluate this part of the predicate: {expr.sql}",
                why="It uses a function or a form that the control plane does not compute.",
                fix="Use comparisons, IN, LIKE 'prefix%', IS NULL, AND, OR and NOT, or run it on "
                "Spark.",
                fields={"part": expr.sql},
            )
        case Column():
            return pc.equal(_values(expr, columns), True)
        case _:
            assert_never(expr)  # type: ignore[arg-type]


def _repeat(value: Any, n: int) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value, pa.bool_()), n)


def _values(column: Column, columns: Mapping[ColumnPath, pa.Array]) -> pa.Array:
    found = columns.get(column.path)
    if found is None:
        raise UserError(
            Code.COLUMN_NOT_FOUND,
            f"The values of {column} are needed and were not given.",
            why="A predicate is evaluated on the columns it names.",
            fields={"path": ".".join(column.path), "given": [".".join(p) for p in columns]},
        )
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _operand(
    operand: Column | Literal, column: Column, columns: Mapping[ColumnPath, pa.Array]
) -> Any:
    domain = domain_of(column.type)
    if domain is None:
        raise UserError(
            Code.PREDICATE_INVALID, f"Values of {column} ({column.type}) cannot be compared."
        )
    if isinstance(operand, Literal):
        return comparable_scalar(operand, domain)
    try:
        return comparable_array(_values(operand, columns), domain)
    except pa.ArrowException as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The values given for {operand} are not of type {operand.type}.",
            why=str(error),
        ) from error


def _compare(op: Op, left: Any, right: Any) -> pa.BooleanArray:
    if op is not Op.NULL_SAFE_EQ:
        return compare(op, left, right)
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both_null, pc.fill_null(compare(Op.EQ, left, right), False))


def _is_in(expr: In, values: Any) -> pa.BooleanArray:
    domain = domain_of(expr.column.type) or Domain.STRING
    scalars = [comparable_scalar(v, domain) for v in expr.values if v.value is not None]
    if domain is Domain.FLOATING:
        # Hashing tells -0.0 from 0.0; comparing does not.
        found = reduce(pc.or_, (compare(Op.EQ, values, scalar) for scalar in scalars))
    else:
        values, *same = unified(values, *scalars)
        wanted = pa.array([scalar.as_py() for scalar in same], values.type)
        found = pc.if_else(pc.is_null(values), None, pc.is_in(values, value_set=wanted))
    if len(scalars) < len(expr.values):
        found = pc.if_else(found, True, pa.scalar(None, pa.bool_()))
    return found
