"""Which files may hold a matching row, judged by partition values and statistics.

Every node answers three questions about every file at once: may it be true, false, null for some
row? Negation exchanges the first two, so it is as sound as what it negates; a mask of files that
may match is never itself negated. What is not known counts as "may".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.schema.predicates.arrays import (
    comparable_array,
    comparable_scalar,
    compare,
    is_nan,
    unified,
)
from twinlake.schema.predicates.constants import Domain, domain_of
from twinlake.schema.predicates.evaluation import evaluate_on
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
    from twinlake.schema.predicates.file_stats import FileStats
    from twinlake.schema.types import ColumnPath

__all__ = ["prune"]

# Statistics keep milliseconds; the value they were cut from lies up to one further.
_CUT_MICROS: Final = 1000
_MAX_MICROS: Final = 2**63 - 1 - _CUT_MICROS
# Longer lists of values are judged by their smallest and largest.
_LISTED: Final = 32
# Tie-breaker of old writers for cut strings; characters beyond the basic plane sort above it.
_OLD_TIE_BREAKER: Final = "\ufffd"


def prune(expr: Expr, stats: FileStats) -> pa.BooleanArray:
    """For each file whether it may hold a row for which the predicate is true."""
    return _outcomes(expr, stats).true


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """Which answers some row of each file may give; never null themselves."""

    true: pa.BooleanArray
    false: pa.BooleanArray
    null: pa.BooleanArray


def _constant(n: int, value: bool) -> pa.BooleanArray:
    return pa.repeat(pa.scalar(value), n)


def _exactly(mask: pa.BooleanArray) -> _Outcomes:
    """One known answer for each file."""
    return _Outcomes(
        pc.fill_null(mask, False), pc.fill_null(pc.invert(mask), False), pc.is_null(mask)
    )


def _outcomes(expr: Expr, stats: FileStats) -> _Outcomes:
    match expr:
        case Not():
            inner = _outcomes(expr.operand, stats)
            return _Outcomes(inner.false, inner.true, inner.null)
        case And():
            return reduce(_both, (_outcomes(part, stats) for part in expr.operands))
        case Or():
            return _negated(
                reduce(_both, (_negated(_outcomes(part, stats)) for part in expr.operands))
            )
        case Opaque():
            may = _constant(stats.num_rows, True)
            return _Outcomes(may, may, may)
        case IsNull(operand) if not isinstance(operand, Column):
            inner = _outcomes(operand, stats)
            never = _constant(stats.num_rows, False)
            return _Outcomes(inner.null, pc.or_(inner.true, inner.false), never)
        case Literal() | Comparison() | In() | StartsWith() | IsNull() | Column():
            if expr.columns() <= stats.partition.keys():
                return _exactly(evaluate_on(expr, stats.partition, stats.num_rows))
            return _by_statistics(expr, stats)
        case _:
            assert_never(expr)  # type: ignore[arg-type]


def _both(left: _Outcomes, right: _Outcomes) -> _Outcomes:
    """AND: null unless a side is false, and some side is null."""
    null = pc.or_(
        pc.and_(left.null, pc.or_(right.true, right.null)),
        pc.and_(right.null, pc.or_(left.true, left.null)),
    )
    return _Outcomes(pc.and_(left.true, right.true), pc.or_(left.false, right.false), null)


def _negated(outcomes: _Outcomes) -> _Outcomes:
    return _Outcomes(outcomes.false, outcomes.true, outcomes.null)


def _by_statistics(expr: Expr, stats: FileStats) -> _Outcomes:
    match expr:
        case IsNull(Column() as column):
            bounds = _bounds(column, stats)
            return _Outcomes(bounds.null, bounds.value, _constant(stats.num_rows, False))
        case Comparison():
            left = _bounds(expr.left, stats)
            if isinstance(expr.right, Literal):
                return _compare_bounds(expr.op, left, _point(expr.right, expr.left, stats))
            return _compare_bounds(expr.op, left, _bounds(expr.right, stats))
        case In():
            return _in(expr, stats)
        case StartsWith():
            return _starts_with(expr, stats)
        case _:
            may = _constant(stats.num_rows, True)
            return _Outcomes(may, may, may)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """All values of a column in each file lie in [low, high]; a null bound is no bound."""

    low: Any
    high: Any
    high_number: Any  # an upper bound of the values that are not NaN
    value: pa.BooleanArray  # some row may have a value
    null: pa.BooleanArray  # some row may be null


def _point(literal: Literal, column: Column, stats: FileStats) -> _Bounds:
    scalar = comparable_scalar(literal, _domain(column))
    if pa.types.is_floating(scalar.type) and scalar.as_py() != scalar.as_py():
        # NaN: statistics do not tell which files hold it.
        scalar = pa.scalar(None, scalar.type)
    yes, no = _constant(stats.num_rows, True), _constant(stats.num_rows, False)
    return _Bounds(scalar, scalar, scalar, yes, no)


def _domain(column: Column) -> Domain:
    return domain_of(column.type) or Domain.BINARY


def _bounds(column: Column, stats: FileStats) -> _Bounds:
    domain = _domain(column)
    known = stats.partition.get(column.path)
    if known is not None:
        value = _readable(known, domain, stats)
        low = high = value
        may_null, may_value = pc.is_null(known), pc.is_valid(known)
    else:
        may_null, may_value = _nulls(column.path, stats)
        low = _readable(stats.min.get(column.path), domain, stats)
        high = _readable(stats.max.get(column.path), domain, stats)
        if domain in (Domain.TIMESTAMP, Domain.TIMESTAMP_NTZ):
            room = pc.less_equal(high, _MAX_MICROS)
            high = pc.if_else(room, pc.add(high, _CUT_MICROS), pa.scalar(None, high.type))
        elif domain is Domain.STRING:
            doubtful = pc.ends_with(high, pattern=_OLD_TIE_BREAKER)
            high = pc.if_else(doubtful, pa.scalar(None, high.type), high)
        elif domain is Domain.BINARY:
            # No writer is bound to any form of these.
            low = high = pa.nulls(stats.num_rows, pa.binary())
    high_number = high
    if domain is Domain.FLOATING:
        nothing = pa.scalar(None, pa.float64())
        low = pc.if_else(is_nan(low), nothing, low)
        high_number = pc.if_else(is_nan(high), nothing, high)
        # NaN is above every number and many writers leave it out of the maximum.
        high = pa.nulls(stats.num_rows, pa.float64())
    return _Bounds(low, high, high_number, may_value, may_null)


def _readable(values: pa.Array | None, domain: Domain, stats: FileStats) -> pa.Array:
    if values is None:
        values = pa.nulls(stats.num_rows)
    try:
        return comparable_array(values, domain)
    except pa.ArrowException:
        # Statistics of another type than the column's say nothing.
        return comparable_array(pa.nulls(stats.num_rows), domain)


def _nulls(path: ColumnPath, stats: FileStats) -> tuple[pa.BooleanArray, pa.BooleanArray]:
    """Where some row may be null, and where some row may have a value.

    Only a count of none and a count of all are used, so wide bounds need no special case: these
    two are all that such a count may be read for.
    """
    counts = stats.null_count.get(path)
    if counts is None or not pa.types.is_integer(counts.type):
        may = _constant(stats.num_rows, True)
        return may, may
    may_null = pc.fill_null(pc.not_equal(counts, 0), True)
    if stats.num_records is None:
        return may_null, _constant(stats.num_rows, True)
    return may_null, pc.fill_null(pc.not_equal(counts, stats.num_records), True)


def _may(op: Op, left: Any, right: Any, n: int) -> pa.BooleanArray:
    """Where the comparison of two bounds holds or a bound is missing."""
    mask = compare(op, left, right)
    if isinstance(mask, pa.Scalar):
        mask = pa.repeat(mask, n)
    return pc.fill_null(mask, True)


def _compare_bounds(op: Op, left: _Bounds, right: _Bounds) -> _Outcomes:
    n = len(left.value)
    value = pc.and_(left.value, right.value)
    null = pc.or_(left.null, right.null)
    match op:
        case Op.GT | Op.GE:
            return _compare_bounds(op.flipped, right, left)
        case Op.LT:
            true = _may(Op.LT, left.low, right.high, n)
            false = _may(Op.GE, left.high, right.low, n)
        case Op.LE:
            true = _may(Op.LE, left.low, right.high, n)
            false = _may(Op.GT, left.high, right.low, n)
        case Op.NE:
            return _negated(_compare_bounds(Op.EQ, left, right))
        case Op.EQ | Op.NULL_SAFE_EQ:
            # A number is only ever equal to a number, so NaN is out where one side is a literal.
            number = isinstance(right.low, pa.Scalar) and right.low.is_valid
            high = left.high_number if number else left.high
            true = pc.and_(_may(Op.LE, left.low, right.high, n), _may(Op.LE, right.low, high, n))
            alike = [
                compare(Op.EQ, left.low, left.high),
                compare(Op.EQ, left.low, right.low),
                compare(Op.EQ, right.low, right.high),
            ]
            false = pc.invert(pc.fill_null(reduce(pc.and_kleene, alike), False))
        case _:
            assert_never(op)
    true, false = pc.and_(true, value), pc.and_(false, value)
    if op is Op.NULL_SAFE_EQ:
        one_null = pc.or_(pc.and_(left.null, right.value), pc.and_(right.null, left.value))
        true = pc.or_(true, pc.and_(left.null, right.null))
        return _Outcomes(true, pc.or_(false, one_null), _constant(n, False))
    return _Outcomes(true, false, null)


def _in(expr: In, stats: FileStats) -> _Outcomes:
    domain = _domain(expr.column)
    bounds = _bounds(expr.column, stats)
    n = stats.num_rows
    literals = [value for value in expr.values if value.value is not None]
    points = [_point(value, expr.column, stats) for value in literals]
    if len(points) > _LISTED and domain is not Domain.FLOATING:
        scalars = unified(*(point.low for point in points))
        listed = pa.array([scalar.as_py() for scalar in scalars], scalars[0].type)
        ordered = pc.min_max(listed)
        true = pc.and_(
            _may(Op.LE, bounds.low, ordered["max"], n), _may(Op.GE, bounds.high, ordered["min"], n)
        )
        true = pc.and_(true, bounds.value)
    else:
        true = reduce(pc.or_, (_compare_bounds(Op.EQ, bounds, point).true for point in points))
    with_null = len(literals) < len(expr.values)
    false = _constant(n, False) if with_null else bounds.value
    null = pc.or_(bounds.null, bounds.value) if with_null else bounds.null
    if not with_null and len(points) <= _LISTED:
        # A file whose values are all one of the list cannot answer false.
        each = (_compare_bounds(Op.EQ, bounds, point).false for point in points)
        false = reduce(pc.and_, each)
    return _Outcomes(true, false, null)


def _starts_with(expr: StartsWith, stats: FileStats) -> _Outcomes:
    bounds = _bounds(expr.column, stats)
    n = stats.num_rows
    prefix = pa.scalar(expr.prefix, pa.string())
    # A string with the prefix lies between the prefix and the last string that begins with it.
    head = pc.utf8_slice_codeunits(bounds.low, 0, len(expr.prefix))
    true = pc.and_(_may(Op.LE, head, prefix, n), _may(Op.GE, bounds.high, prefix, n))
    inside = pc.and_kleene(
        pc.starts_with(bounds.low, pattern=expr.prefix),
        pc.starts_with(bounds.high, pattern=expr.prefix),
    )
    false = pc.invert(pc.fill_null(inside, False))
    return _Outcomes(pc.and_(true, bounds.value), pc.and_(false, bounds.value), bounds.null)
