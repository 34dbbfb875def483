"""The nodes of a predicate: immutable, already typed, ``str()`` is SQL again.

Few on purpose. Parsing rewrites the rest into these: BETWEEN into two comparisons, a boolean
column into ``= true``, a literal into the type of its column. What cannot be evaluated here stays
in the tree as :class:`Opaque`, which may be true, false or null for any row.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from twinlake.schema.types import BOOLEAN, ColumnPath, DataType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "FALSE",
    "NULL",
    "TRUE",
    "And",
    "Column",
    "Comparison",
    "Expr",
    "In",
    "IsNull",
    "Literal",
    "Not",
    "Op",
    "Opaque",
    "Or",
    "StartsWith",
    "Value",
    "all_of",
    "any_of",
    "is_exact",
    "is_partition_only",
    "render_string",
    "split_conjuncts",
]

Value = bool | int | float | decimal.Decimal | str | bytes | dt.date | dt.datetime | None
"""What a literal may hold; timestamps are aware (UTC), timestamps without zone are naive."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that would not be read as a column at the start of an operand.
_RESERVED_WORDS: Final = """
    alter and any as between call case cast connect_by_root create cross current_date
    current_timestamp current_user distinct drop else end except execute explain false fetch
    for from full glob grant group having if ilike in inner insert intersect interval into is
    join lateral left like minus natural not notnull null on optimize or order outer
    partitioned_by prepare qualify regexp rename returning revoke right rlike rollback select
    serdeproperties session_user show table tablesample then true uncache union using vacuum
    values when where with xor
"""
_RESERVED: Final = frozenset(_RESERVED_WORDS.split())


class Op(StrEnum):
    """Comparison operators as Spark SQL spells them."""

    EQ = "="
    NULL_SAFE_EQ = "<=>"
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def flipped(self) -> Op:
        """The operator that says the same with its sides exchanged."""
        return _FLIPPED.get(self, self)


_FLIPPED: Final = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}


class Expr:
    """Any node of a predicate."""

    __slots__ = ()

    def children(self) -> tuple[Expr, ...]:
        """The nodes directly below."""
        return ()

    def walk(self) -> Iterator[Expr]:
        """This node and all below it."""
        pending: list[Expr] = [self]
        while pending:
            node = pending.pop()
            yield node
            pending.extend(node.children())

    def columns(self) -> frozenset[ColumnPath]:
        """The columns the expression looks at."""
        found: set[ColumnPath] = set()
        for node in self.walk():
            match node:
                case Column():
                    found.add(node.path)
                case Opaque():
                    found |= node.opaque_columns
                case _:
                    pass
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A column, by its logical path, with its type."""

    path: ColumnPath
    type: DataType

    def __str__(self) -> str:
        return ".".join(_render_name(part) for part in self.path)


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant, already in the type it is compared in."""

    value: Value
    type: DataType

    def __str__(self) -> str:
        return _render_value(self.value)


TRUE: Final = Literal(True, BOOLEAN)
FALSE: Final = Literal(False, BOOLEAN)
NULL: Final = Literal(None, BOOLEAN)


@dataclass(frozen=True, slots=True)
class Comparison(Expr):
    """A column compared with a literal that is not null, or with another column."""

    op: Op
    left: Column
    right: Column | Literal

    def children(self) -> tuple[Expr, ...]:
        """Both sides."""
        return self.left, self.right

    def __str__(self) -> str:
        return f"{self.left} {self.op} {self.right}"


@dataclass(frozen=True, slots=True)
class In(Expr):
    """A column compared with a list of literals, at least one of them not null."""

    column: Column
    values: tuple[Literal, ...]

    def children(self) -> tuple[Expr, ...]:
        """The column; the values are constants."""
        return (self.column,)

    def __str__(self) -> str:
        return f"{self.column} IN ({', '.join(map(str, self.values))})"


@dataclass(frozen=True, slots=True)
class StartsWith(Expr):
    """A string column that begins with a prefix."""

    column: Column
    prefix: str

    def children(self) -> tuple[Expr, ...]:
        """The column."""
        return (self.column,)

    def __str__(self) -> str:
        return f"startswith({self.column}, {render_string(self.prefix)})"


@dataclass(frozen=True, slots=True)
class IsNull(Expr):
    """True where a column, or a condition, is null; never null itself."""

    operand: Expr

    def children(self) -> tuple[Expr, ...]:
        """The operand."""
        return (self.operand,)

    def __str__(self) -> str:
        inner = str(self.operand)
        return f"{inner} IS NULL" if isinstance(self.operand, Column) else f"({inner}) IS NULL"


@dataclass(frozen=True, slots=True)
class Not(Expr):
    """Negation; null stays null."""

    operand: Expr

    def children(self) -> tuple[Expr, ...]:
        """The operand."""
        return (self.operand,)

    def __str__(self) -> str:
        if isinstance(self.operand, IsNull):
            return str(self.operand)[: -len("NULL")] + "NOT NULL"
        return f"NOT ({self.operand})"


@dataclass(frozen=True, slots=True)
class And(Expr):
    """All of the operands."""

    operands: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        """The operands."""
        return self.operands

    def __str__(self) -> str:
        return " AND ".join(map(_grouped, self.operands))


@dataclass(frozen=True, slots=True)
class Or(Expr):
    """Any of the operands."""

    operands: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        """The operands."""
        return self.operands

    def __str__(self) -> str:
        return " OR ".join(map(_grouped, self.operands))


@dataclass(frozen=True, slots=True)
class Opaque(Expr):
    """SQL that is understood but not evaluated here; every row may match it."""

    sql: str
    opaque_columns: frozenset[ColumnPath] = frozenset()

    def __str__(self) -> str:
        return f"({self.sql})"


def all_of(parts: Iterable[Expr]) -> Expr:
    """The conjunction, flat; true if there are no parts."""
    flat = [q for p in parts for q in (p.operands if isinstance(p, And) else (p,))]
    return And(tuple(flat)) if len(flat) > 1 else flat[0] if flat else TRUE


def any_of(parts: Iterable[Expr]) -> Expr:
    """The disjunction, flat; false if there are no parts."""
    flat = [q for p in parts for q in (p.operands if isinstance(p, Or) else (p,))]
    return Or(tuple(flat)) if len(flat) > 1 else flat[0] if flat else FALSE


def split_conjuncts(expr: Expr) -> tuple[Expr, ...]:
    """The conditions that all must hold."""
    return expr.operands if isinstance(expr, And) else (expr,)


def is_exact(expr: Expr) -> bool:
    """Whether the expression can be evaluated on values, with nothing opaque in it."""
    return not any(isinstance(node, Opaque) for node in expr.walk())


def is_partition_only(expr: Expr, partition_columns: Iterable[str]) -> bool:
    """Whether partition values alone decide the expression.

    An opaque part may be anything, so it never does, whichever columns it looks at.
    """
    names = frozenset((name,) for name in partition_columns)
    return expr.columns() <= names and is_exact(expr)


def _grouped(expr: Expr) -> str:
    return f"({expr})" if isinstance(expr, And | Or) else str(expr)


def _render_name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in _RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def render_string(text: str) -> str:
    r"""The text as a string literal of Spark SQL.

    >>> print(render_string("it's"))
    'it\'s'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _render_value(value: Value) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            if math.isfinite(value):
                return f"{value!r}D"
            return f"CAST('{value}' AS DOUBLE)"
        case decimal.Decimal():
            return f"{value:f}BD"
        case str():
            return render_string(value)
        case bytes():
            return f"X'{value.hex()}'"
        case dt.datetime():
            naive = value.replace(tzinfo=None).isoformat(" ")
            return f"TIMESTAMP_NTZ '{naive}'" if value.tzinfo is None else f"TIMESTAMP '{naive}Z'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
