"""Laws of predicates, judged by a naive row-by-row evaluator that shares no code with them."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import Decimal as D
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from twinlake.errors import TwinlakeError
from twinlake.schema.predicates import FileStats, evaluate_on, parse_predicate, prune
from twinlake.schema.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
    Struct,
    StructField,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.schema.types import ColumnPath

Row = dict[str, Any]
Truth = bool | None

TYPES = {
    "p": (INTEGER, pa.int32()),
    "q": (DOUBLE, pa.float64()),
    "a": (LONG, pa.int64()),
    "b": (INTEGER, pa.int32()),
    "x": (DOUBLE, pa.float64()),
    "s": (STRING, pa.string()),
    "d": (DATE, pa.date32()),
    "t": (TIMESTAMP, pa.timestamp("us", "UTC")),
    "flag": (BOOLEAN, pa.bool_()),
    "dec": (Decimal(6, 2), pa.decimal128(6, 2)),
}
SCHEMA = Struct(tuple(StructField(name, kind) for name, (kind, _) in TYPES.items()))
PARTITION = ("p", "q")

wholes = st.integers(-4, 4)
doubles = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.5, 1.0, 3.0, math.inf, -math.inf, math.nan])
texts = st.text(alphabet="aby\x7f\ufffd😀\U0010ffff", max_size=4)
days = st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 6))
moments = st.builds(
    lambda micros: dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros),
    st.sampled_from([0, 1, 500, 999, 1000, 1001, 1999, 2000, 3500, -1, -999, -1001]),
)
cents = st.integers(-300, 300).map(lambda number: D(number) / 100)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "p": wholes,
    "q": doubles,
    "a": wholes,
    "b": wholes,
    "x": doubles,
    "s": texts,
    "d": days,
    "t": moments,
    "flag": st.booleans(),
    "dec": cents,
}


def key(value: Any) -> Any:
    """A sort key in Spark's order: strings by code point, NaN above all, zeros alike."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value


def sql(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value)
        case float():
            return f"double('{value}')"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat()}'"
        case dt.date():
            return f"'{value.isoformat()}'"
        case _:
            return str(value)


@dataclass(frozen=True)
class Predicate:
    """A predicate as text and as what it means."""

    text: str
    holds: Callable[[Row], Truth]

    def __repr__(self) -> str:
        return self.text


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: key(a) == key(b),
    "!=": lambda a, b: key(a) != key(b),
    "<": lambda a, b: key(a) < key(b),
    "<=": lambda a, b: key(a) <= key(b),
    ">": lambda a, b: key(a) > key(b),
    ">=": lambda a, b: key(a) >= key(b),
}


def truth(op: str, a: Any, b: Any) -> Truth:
    if op == "<=>":
        return (a is None and b is None) or (a is not None and b is not None and key(a) == key(b))
    return None if a is None or b is None else COMPARISONS[op](a, b)


def any_true(answers: list[Truth]) -> Truth:
    return True if True in answers else None if None in answers else False


def negated(answer: Truth) -> Truth:
    return None if answer is None else not answer


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(sorted(VALUES)))
    value = st.one_of(VALUES[name], st.none())
    op = draw(st.sampled_from([*COMPARISONS, "<=>"]))
    match draw(st.sampled_from(["literal", "literal", "null", "in", "column", "like", "fraction"])):
        case "null":
            return Predicate(f"{name} IS NULL", lambda row: row[name] is None)
        case "in":
            items = draw(st.lists(value, min_size=1, max_size=4))
            listed = ", ".join(map(sql, items))
            return Predicate(
                f"{name} IN ({listed})",
                lambda row: any_true([truth("=", row[name], item) for item in items]),
            )
        case "column":
            left, right = draw(
                st.sampled_from([("a", "b"), ("p", "a"), ("q", "x"), ("x", "q"), ("s", "s")])
            )
            return Predicate(f"{left} {op} {right}", lambda row: truth(op, row[left], row[right]))
        case "like":
            prefix = draw(texts)
            return Predicate(
                f"s LIKE {sql(prefix + '%')}",
                lambda row: None if row["s"] is None else row["s"].startswith(prefix),
            )
        case "fraction":
            number = D(draw(st.integers(-9, 9))) / 2
            return Predicate(f"a {op} {number}", lambda row: truth(op, row["a"], number))
        case _:
            item = draw(value)
            return Predicate(f"{name} {op} {sql(item)}", lambda row: truth(op, row[name], item))


def join(parts: list[Predicate], word: str) -> Predicate:
    text = f" {word} ".join(f"({part.text})" for part in parts)
    if word == "OR":
        return Predicate(text, lambda row: any_true([part.holds(row) for part in parts]))
    return Predicate(
        text, lambda row: negated(any_true([negated(part.holds(row)) for part in parts]))
    )


def nested(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        st.builds(join, several, st.sampled_from(["AND", "OR"])),
        inner.map(lambda p: Predicate(f"NOT ({p.text})", lambda row: negated(p.holds(row)))),
        inner.map(lambda p: Predicate(f"({p.text}) IS NULL", lambda row: p.holds(row) is None)),
        inner.map(lambda p: Predicate(f"({p.text}) IS TRUE", lambda row: p.holds(row) is True)),
    )


predicates = st.recursive(leaves(), nested, max_leaves=5)
rows = st.fixed_dictionaries({name: st.one_of(v, v, st.none()) for name, v in VALUES.items()})


def cut_high(text: str, length: int) -> str | None:
    """The protocol's upper bound of a string: a prefix and a tie-breaker above what follows."""
    if len(text) <= length:
        return text
    for end in range(length, 2 * length + 1):
        following = text[end : end + 1]
        if following < "\x7f":
            return text[:end] + "\x7f"
        if following < "\U0010ffff":
            return text[:end] + "\U0010ffff"
    return None


@dataclass(frozen=True)
class File:
    """The rows of a file, and what its statistics say; deleted rows stay in wide statistics."""

    live: list[Row]
    dead: list[Row]
    without: frozenset[str]
    cut: int

    def low(self, name: str) -> Any:
        values = self._values(name)
        if not values or name in self.without:
            return None
        low = min(values, key=key)
        if name == "t":
            return low.replace(microsecond=low.microsecond // 1000 * 1000)
        return low[: self.cut] if name == "s" else low

    def high(self, name: str) -> Any:
        values = self._values(name)
        if not values or name in self.without:
            return None
        high = max(values, key=key)
        if name == "t":
            return high.replace(microsecond=high.microsecond // 1000 * 1000)
        return cut_high(high, self.cut) if name == "s" else high

    def nulls(self, name: str) -> int | None:
        everything = self.live + self.dead
        return None if name in self.without else sum(row[name] is None for row in everything)

    def _values(self, name: str) -> list[Any]:
        found = [row[name] for row in self.live + self.dead if row[name] is not None]
        # Writers that compare as IEEE says leave NaN out.
        return [v for v in found if not (isinstance(v, float) and math.isnan(v))]


@st.composite
def files(draw: st.DrawFn) -> File:
    shared = {name: draw(st.one_of(VALUES[name], st.none())) for name in PARTITION}
    live = [row | shared for row in draw(st.lists(rows, min_size=1, max_size=3))]
    dead = [row | shared for row in draw(st.lists(rows, max_size=1))]
    names = st.sampled_from(sorted(VALUES))
    return File(live, dead, draw(st.frozensets(names, max_size=2)), draw(st.integers(1, 4)))


def statistics(found: list[File]) -> FileStats:
    data = [name for name in TYPES if name not in PARTITION]

    def columns(names: Any, value: Callable[[File, str], Any]) -> dict[tuple[str, ...], pa.Array]:
        return {(n,): pa.array([value(f, n) for f in found], TYPES[n][1]) for n in names}

    return FileStats(
        num_rows=len(found),
        partition=columns(PARTITION, lambda file, name: file.live[0][name]),
        min=columns(data, File.low),
        max=columns(data, File.high),
        null_count={(n,): pa.array([f.nulls(n) for f in found], pa.int64()) for n in data},
        num_records=pa.array([len(f.live) + len(f.dead) for f in found]),
        tight_bounds=pa.array([not f.dead for f in found]),
    )


@settings(max_examples=150, deadline=None)
@given(predicate=predicates, found=st.lists(files(), min_size=1, max_size=3))
def test_a_skipped_file_never_holds_a_matching_row(predicate: Predicate, found: list[File]) -> None:
    expr = parse_predicate(predicate.text, SCHEMA)
    kept = prune(expr, statistics(found)).to_pylist()
    assert kept.count(None) == 0
    for file, keep in zip(found, kept, strict=True):
        assert keep or not any(predicate.holds(row) is True for row in file.live)


@settings(max_examples=100, deadline=None)
@given(predicate=predicates, found=st.lists(files(), min_size=1, max_size=3))
def test_what_only_looks_at_partitions_is_decided_exactly(
    predicate: Predicate, found: list[File]
) -> None:
    expr = parse_predicate(predicate.text, SCHEMA)
    partitions = {name: TYPES[name][1] for name in TYPES}
    stats = FileStats(
        num_rows=len(found),
        partition={
            (n,): pa.array([f.live[0][n] for f in found], kind) for n, kind in partitions.items()
        },
    )
    expected = [predicate.holds(file.live[0]) is True for file in found]
    assert prune(expr, stats).to_pylist() == expected


@settings(max_examples=150, deadline=None)
@given(predicate=predicates, data=st.lists(rows, min_size=1, max_size=5))
def test_evaluation_agrees_with_the_naive_one(predicate: Predicate, data: list[Row]) -> None:
    columns: dict[ColumnPath, pa.Array] = {
        (n,): pa.array([row[n] for row in data], kind) for n, (_, kind) in TYPES.items()
    }
    expected = [predicate.holds(row) for row in data]
    expr = parse_predicate(predicate.text, SCHEMA)
    assert evaluate_on(expr, columns, len(data)).to_pylist() == expected
    again = parse_predicate(str(expr), SCHEMA)
    assert evaluate_on(again, columns, len(data)).to_pylist() == expected
    assert str(again) == str(expr)


FRAGMENTS = r"""
    a b s d t x dec flag nosuch = <=> < > ( ) AND OR NOT IN LIKE IS NULL BETWEEN CASE WHEN END 1 -2
    1.5e3 'x' '2024-01-01' DATE TIMESTAMP X'ff' 1L , . [ ] -> :: : ; ` ' " * % / -- ? @ CAST AS INT
    INTERVAL select from where exists any array map \ {{ }} 0x1F 1e999 $x
"""
fragments = st.sampled_from(FRAGMENTS.split())


@settings(max_examples=200, deadline=None)
@given(text=st.one_of(st.text(max_size=40), st.lists(fragments, max_size=10).map(" ".join)))
def test_any_text_is_a_predicate_or_one_kind_of_error(text: str) -> None:
    try:
        expr = parse_predicate(text, SCHEMA)
    except TwinlakeError:
        return
    assert prune(expr, FileStats(num_rows=2)).null_count == 0
