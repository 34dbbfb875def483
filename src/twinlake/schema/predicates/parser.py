"""SQL text to a predicate over the columns of a schema.

sqlglot reads the text in Spark's dialect; a table of handlers turns its tree into ours. A node
without a handler, or one whose handler gives up, becomes :class:`Opaque`: never an error, because
Spark may well evaluate it, and never a reason to skip a file.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from twinlake.errors import UserError
from twinlake.schema.paths import resolve_path
from twinlake.schema.predicates.constants import (
    Constant,
    ConstantKind,
    Domain,
    cast_constant,
    comparable,
    compare_constant,
    compare_constants,
    domain_of,
    number,
)
from twinlake.schema.predicates.expressions import (
    NULL,
    Column,
    Comparison,
    Expr,
    In,
    IsNull,
    Literal,
    Not,
    Op,
    Opaque,
    StartsWith,
    Value,
    all_of,
    any_of,
)
from twinlake.schema.predicates.sql_text import (
    TwinlakePredicate,
    invalid_predicate,
    parse_condition,
)
from twinlake.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Array,
    ColumnPath,
    DataType,
    Decimal,
    Map,
    Struct,
    StructField,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    _Condition = Callable[["ExpressionReader", exp.Expr], Expr | None]
    _Read = Callable[["ExpressionReader", exp.Expr], Constant | None]

__all__ = ["ExpressionReader", "cast_target", "parse_constant", "parse_predicate", "unwrapped"]

_MAX_LENGTH: Final = 1_000_000
_NUMBERS: Final = frozenset((Domain.INTEGRAL, Domain.FLOATING, Domain.DECIMAL))
_PREFIX_PATTERN: Final = re.compile(r"([^%_]*)%+", re.DOTALL)


def parse_predicate(text: str, schema: Struct, *, timezone: dt.tzinfo = dt.UTC) -> Expr:
    """The predicate that ``text`` spells over the columns of ``schema``.

    ``timezone`` is the session's: texts without a zone are timestamps there.
    """
    if len(text) > _MAX_LENGTH:
        raise invalid_predicate(text, f"It has {len(text)} characters, more than {_MAX_LENGTH}.")
    try:
        return ExpressionReader(text, schema, timezone).condition(parse_condition(text))
    except RecursionError as error:
        raise invalid_predicate(text, "It is nested too deeply.") from error


def parse_constant(text: str, kind: DataType, *, timezone: dt.tzinfo = dt.UTC) -> Value:
    """The value of a type that ``text`` spells; None for null and for what is no constant.

    What the type cannot hold without a loss is no constant of it.
    """
    try:
        found = ExpressionReader(text, Struct(()), timezone).constant(parse_condition(text))
        if found is not None and found.kind is ConstantKind.STRING and domain_of(kind) in _NUMBERS:
            found = number(str(found.value).strip())
        value = None if found is None else cast_constant(found, kind, timezone)
    except (UserError, RecursionError, ValueError, decimal.InvalidOperation):
        return None
    return None if value is None else value.value


@dataclass(frozen=True, slots=True)
class _Found:
    """A column as named in the text.

    ``whole`` unless the text reaches deeper, into an array or a map; ``plain`` if its values can
    be compared here.
    """

    column: Column
    whole: bool
    plain: bool


_COMPARISONS: Final[dict[type[exp.Expr], Op]] = {
    exp.EQ: Op.EQ,
    exp.NullSafeEQ: Op.NULL_SAFE_EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
}
_CAST_TARGETS: Final[dict[str, DataType]] = {
    "TINYINT": BYTE,
    "SMALLINT": SHORT,
    "INT": INTEGER,
    "BIGINT": LONG,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "TEXT": STRING,
    "BOOLEAN": BOOLEAN,
    "BINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP_NTZ,
}
# Statements and clauses that parse but are no conditions over the columns of a row.
_FOREIGN: Final = (
    exp.Query,
    exp.DDL,
    exp.DML,
    exp.Drop,
    exp.Command,
    exp.Alias,
    exp.Placeholder,
    exp.Parameter,
    exp.Star,
)


class ExpressionReader:
    """One pass over one tree."""

    def __init__(self, text: str, schema: Struct, zone: dt.tzinfo) -> None:
        self.text = text
        self.schema = schema
        self.zone = zone

    def condition(self, node: exp.Expr) -> Expr:
        """The node as something that is true, false or null."""
        handler = _CONDITIONS.get(type(node))
        found = handler(self, node) if handler is not None else None
        return self.opaque(node) if found is None else found

    def opaque(self, node: exp.Expr) -> Opaque:
        """The node as a part that is not evaluated here."""
        for part in node.walk():
            if isinstance(part, _FOREIGN):
                raise invalid_predicate(
                    self.text, f"{type(part).__name__} cannot stand in a predicate."
                )
        columns = frozenset(found.column.path for found in self.columns_in(node))
        return Opaque(node.sql(dialect=TwinlakePredicate, comments=False), columns)

    def columns_in(self, node: exp.Expr) -> Iterator[_Found]:
        """The columns below a node, the longest spelling of each."""
        pending: list[exp.Expr] = [node]
        while pending:
            part = pending.pop()
            found = self.column(part)
            if found is not None:
                yield found
            else:
                pending.extend(part.iter_expressions())

    def column(self, node: exp.Expr) -> _Found | None:
        """The column the node names, None if it is something else."""
        parts = _name_parts(node)
        if parts is None:
            return None
        kind: DataType = self.schema
        field: StructField | None = None
        path: list[str] = []
        for part in parts:
            if isinstance(kind, Array | Map) or str(kind) == "variant":
                # Spark reaches into these by element or by key: more than one value a row.
                return _Found(Column(tuple(path), kind), whole=False, plain=False)
            field = kind.get(part) if isinstance(kind, Struct) else None
            if field is None:
                resolve_path(self.schema, parts)  # raises, saying what there is instead
                return None
            path.append(field.name)
            kind = field.type
        plain = field is not None and comparable(field)
        return _Found(Column(tuple(path), kind), whole=True, plain=plain)

    def constant(self, node: exp.Expr) -> Constant | None:
        """The constant the node spells, None if it is something else."""
        handler = _CONSTANTS.get(type(node))
        return handler(self, node) if handler is not None else None

    def compare(self, left: exp.Expr, op: Op, right: exp.Expr) -> Expr | None:
        """A comparison of any two nodes; None if it cannot be evaluated here."""
        first, second = self.constant(left), self.constant(right)
        if first is not None and second is not None:
            return compare_constants(first, op, second)
        if first is not None:
            return self.compare(right, op.flipped, left)
        found = self.column(unwrapped(left))
        if found is None:
            return None
        if second is not None:
            if not found.plain and second.kind is not ConstantKind.NULL:
                return None
            return compare_constant(found.column, op, second, self.zone)
        other = self.column(unwrapped(right))
        if other is None or not (found.plain and other.plain):
            return None
        return _compare_columns(found.column, op, other.column)


def unwrapped(node: exp.Expr) -> exp.Expr:
    """The node without the parentheses around it."""
    while type(node) is exp.Paren:
        node = node.this
    return node


def _name_parts(node: exp.Expr) -> ColumnPath | None:
    match node:
        case exp.Column():
            if isinstance(node.this, exp.Star):
                return None
            return tuple(part.name for part in node.parts)
        case exp.Dot(this=exp.Expr() as base, expression=exp.Identifier() as last):
            parts = _name_parts(base)
            return None if parts is None else (*parts, last.name)
        case _:
            return None


def _compare_columns(left: Column, op: Op, right: Column) -> Expr | None:
    domain = domain_of(left.type)
    if domain is None or domain is not domain_of(right.type):
        return None
    match left.type, right.type:
        case Decimal(p1, s1), Decimal(p2, s2) if max(p1 - s1, p2 - s2) + max(s1, s2) > 38:
            return None
        case _:
            return Comparison(op, left, right)


def _plain(node: exp.Expr, *names: str) -> bool:
    """Whether the node has no arguments but these: an unknown one changes its meaning."""
    return all(key in names or not value for key, value in node.args.items())


def _comparison(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    if not _plain(node, "this", "expression"):
        return None
    return reader.compare(node.this, _COMPARISONS[type(node)], node.expression)


def _distinct(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    found = reader.compare(node.this, Op.NULL_SAFE_EQ, node.expression)
    return None if found is None else Not(found)


def _paren(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    return reader.condition(node.this)


def _not(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    return Not(reader.condition(node.this))


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a left-deep chain; a thousand ORs must not be a thousand calls."""
    kind, operands = type(node), []
    while type(node) is kind:
        operands.append(node.expression)
        node = node.this
    return [node, *reversed(operands)]


def _and(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    return all_of([reader.condition(part) for part in _chain(node)])


def _or(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    return any_of([reader.condition(part) for part in _chain(node)])


def _between(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    if not _plain(node, "this", "low", "high"):
        return None
    low = reader.compare(node.this, Op.GE, node.args["low"])
    high = reader.compare(node.this, Op.LE, node.args["high"])
    if low is None and high is None:
        return None
    whole = reader.opaque(node)
    # The half that is understood still skips files; the other half is the whole, opaquely.
    return all_of([low or whole, high or whole])


def _in(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    if not _plain(node, "this", "expressions") or not node.expressions:
        return None
    parts = [reader.compare(node.this, Op.EQ, item) for item in node.expressions]
    if any(part is None for part in parts):
        return None
    known = list(dict.fromkeys(part for part in parts if part is not None))
    values: list[Literal] = []
    columns: set[Column] = set()
    for part in known:
        match part:
            case Comparison(_, left, Literal() as value):
                columns.add(left)
                values.append(value)
            case Literal(value=None):
                values.append(part)
            case _:
                return any_of(known)
    if len(columns) != 1 or len(values) == 1:
        return any_of(known)
    return In(columns.pop(), tuple(values))


def _is(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    if not _plain(node, "this", "expression"):
        return None
    subject = unwrapped(node.this)
    match node.expression:
        case exp.Boolean():
            found = reader.column(subject)
            if found is not None:
                return reader.compare(subject, Op.NULL_SAFE_EQ, node.expression)
            if type(subject) not in _CONDITIONS:
                return None
            inner = reader.condition(subject)
            if isinstance(inner, Literal):
                return Literal(inner.value is bool(node.expression.this), BOOLEAN)
            positive = inner if node.expression.this else Not(inner)
            # Never null: true where the condition is, false where it is false or null.
            return all_of([Not(IsNull(inner)), positive])
        case exp.Null():
            found = reader.column(subject)
            if found is not None:
                return IsNull(found.column) if found.whole else None
            constant = reader.constant(subject)
            if constant is not None:
                return Literal(constant.kind is ConstantKind.NULL, BOOLEAN)
            if type(subject) not in _CONDITIONS:
                return None
            return _is_null(reader.condition(subject))
        case _:
            return None


def _is_null(condition: Expr) -> Expr:
    if isinstance(condition, Literal):
        return Literal(condition.value is None, BOOLEAN)
    return IsNull(condition)


def _like(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    found, pattern = reader.column(unwrapped(node.this)), reader.constant(node.expression)
    if not _plain(node, "this", "expression", "negate"):
        return None
    if found is None or pattern is None or not isinstance(pattern.value, str):
        return None
    text = pattern.value
    prefix = _PREFIX_PATTERN.fullmatch(text)
    result: Expr
    if not _is_text(found) or "\\" in text:
        return None
    if prefix is not None:
        result = StartsWith(found.column, prefix[1])
    elif not set(text) & set("%_"):
        result = Comparison(Op.EQ, found.column, Literal(text, STRING))
    else:
        return None
    return Not(result) if node.args.get("negate") else result


def _starts_with(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    found, prefix = reader.column(unwrapped(node.this)), reader.constant(node.expression)
    if found is None or prefix is None or not _plain(node, "this", "expression"):
        return None
    if prefix.kind is ConstantKind.NULL:
        return NULL
    if not _is_text(found) or not isinstance(prefix.value, str):
        return None
    return StartsWith(found.column, prefix.value)


def _is_text(found: _Found) -> bool:
    return found.plain and domain_of(found.column.type) is Domain.STRING


def _boolean_column(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    found = reader.column(node)
    if found is None or not found.plain:
        return None
    if found.column.type != BOOLEAN:
        raise invalid_predicate(
            reader.text, f"{found.column} is {found.column.type}, not a condition."
        )
    return Comparison(Op.EQ, found.column, Literal(True, BOOLEAN))


def _constant_condition(reader: ExpressionReader, node: exp.Expr) -> Expr | None:
    constant = reader.constant(node)
    if constant is not None and constant.kind not in (ConstantKind.BOOLEAN, ConstantKind.NULL):
        raise invalid_predicate(
            reader.text, f"{node.sql(dialect=TwinlakePredicate)} is a value, not a condition."
        )
    return None if constant is None else Literal(constant.value, BOOLEAN)


def _text_literal(_reader: ExpressionReader, node: exp.Expr) -> Constant | None:
    if not isinstance(node, exp.Literal) or node.is_string:
        return Constant(ConstantKind.STRING, node.name)
    try:
        return number(node.name)
    except (ValueError, decimal.InvalidOperation):
        return None


def _boolean_literal(_reader: ExpressionReader, node: exp.Expr) -> Constant | None:
    return Constant(ConstantKind.BOOLEAN, bool(node.this))


def _null_literal(_reader: ExpressionReader, _node: exp.Expr) -> Constant | None:
    return Constant(ConstantKind.NULL, None)


def _hex_literal(_reader: ExpressionReader, node: exp.Expr) -> Constant | None:
    text = node.name
    try:
        return Constant(ConstantKind.BINARY, bytes.fromhex(text.zfill(len(text) + len(text) % 2)))
    except ValueError:
        return None


def _inner_constant(reader: ExpressionReader, node: exp.Expr) -> Constant | None:
    return reader.constant(node.this)


def _negative(reader: ExpressionReader, node: exp.Expr) -> Constant | None:
    inner = reader.constant(node.this)
    if inner is None or isinstance(inner.value, bool):
        return None
    match inner.value:
        case int() | float():
            return Constant(inner.kind, -inner.value)
        case decimal.Decimal():
            return Constant(inner.kind, inner.value.copy_negate())
        case _:
            return None


def _adjacent(reader: ExpressionReader, node: exp.Expr) -> Constant | None:
    parts = [reader.constant(part) for part in node.expressions]
    texts = [part.value for part in parts if part is not None and part.kind is ConstantKind.STRING]
    if len(texts) != len(parts):
        return None
    return Constant(ConstantKind.STRING, "".join(map(str, texts)))


def _cast(reader: ExpressionReader, node: exp.Expr) -> Constant | None:
    inner = reader.constant(node.this)
    target = node.args.get("to")
    if inner is None or not isinstance(target, exp.DataType) or not _plain(node, "this", "to"):
        return None
    kind = cast_target(target)
    return None if kind is None else cast_constant(inner, kind, reader.zone)


def cast_target(target: exp.DataType) -> DataType | None:
    """The type that a CAST names, None for those that values are not cast to here."""
    name = getattr(target.this, "name", "")
    if name == "DECIMAL":
        numbers = [part.name for part in target.expressions]
        if not all(text.isdecimal() and len(text) < 4 for text in numbers) or len(numbers) > 2:
            return None
        return Decimal(*map(int, numbers))
    return None if target.expressions else _CAST_TARGETS.get(name)


_CONDITIONS: Final[dict[type[exp.Expr], _Condition]] = {
    **dict.fromkeys(_COMPARISONS, _comparison),
    exp.NullSafeNEQ: _distinct,
    exp.Paren: _paren,
    exp.Not: _not,
    exp.And: _and,
    exp.Or: _or,
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.StartsWith: _starts_with,
    exp.Column: _boolean_column,
    exp.Dot: _boolean_column,
    exp.Boolean: _constant_condition,
    exp.Null: _constant_condition,
    exp.Literal: _constant_condition,
    exp.Neg: _constant_condition,
    exp.Cast: _constant_condition,
    exp.TryCast: _constant_condition,
}
_CONSTANTS: Final[dict[type[exp.Expr], _Read]] = {
    exp.Literal: _text_literal,
    exp.RawString: _text_literal,
    exp.Boolean: _boolean_literal,
    exp.Null: _null_literal,
    exp.HexString: _hex_literal,
    exp.Paren: _inner_constant,
    exp.Neg: _negative,
    exp.Concat: _adjacent,
    exp.Cast: _cast,
    exp.TryCast: _cast,
}
