"""DDL text in Spark's dialect, to schema values and back.

The grammar is small: column definitions, types, and the column options Delta stores in field
metadata. Expressions keep the text of the user, and errors carry the position (ADR 0028). What
Delta does not store as a type (char and varchar lengths, collations) goes to field metadata the way
Spark puts it there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from twinlake.schema.ddl.text import CATALOG, render_type
from twinlake.schema.ddl.tokens import Token, fail, tokenize
from twinlake.schema.json_codec import INTERVAL_UNITS, MAX_PRECISION
from twinlake.schema.metadata_keys import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
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
    MAX_DEPTH,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    Array,
    ColumnPath,
    DataType,
    Decimal,
    Geography,
    Geometry,
    Interval,
    Map,
    Struct,
    StructField,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["char_lengths", "parse_ddl", "parse_field_ddl", "parse_type", "string_lengths"]

_SIMPLE: Final[Mapping[str, DataType]] = {
    "BOOLEAN": BOOLEAN,
    "TINYINT": BYTE,
    "BYTE": BYTE,
    "SMALLINT": SHORT,
    "SHORT": SHORT,
    "INT": INTEGER,
    "INTEGER": INTEGER,
    "BIGINT": LONG,
    "LONG": LONG,
    "FLOAT": FLOAT,
    "REAL": FLOAT,
    "DOUBLE": DOUBLE,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP_NTZ,
    "BINARY": BINARY,
    "VARIANT": VARIANT,
    "VOID": VOID,
}


@dataclass(frozen=True, slots=True)
class _Sized(DataType):
    """char(n) or varchar(n), only while parsing."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class _Collated(DataType):
    """A string with a collation, only while parsing."""

    collation: str

    def __str__(self) -> str:
        return "string"


def parse_ddl(text: str) -> Struct:
    """The schema of a list of column definitions.

    >>> schema = parse_ddl("id INT NOT NULL, tags MAP<STRING, STRUCT<n: INT>> COMMENT 'labels'")
    >>> schema.names()
    ('id', 'tags')
    """
    parser = _Parser(text)
    if parser.peek.is_word("STRUCT") and parser.tokens[1].is_sign("<"):
        whole = parser.type(0)
        parser.end()
        if isinstance(whole, Struct):
            return Struct(tuple(_settle(child) for child in whole))
    fields: list[StructField] = []
    while parser.peek.kind != "end":
        fields.append(_settle(parser.column(parser.name())))
        if not parser.sign(","):
            break
        if parser.peek.kind == "end":
            parser.stop("A column is missing after the comma.")
    parser.end()
    return Struct(tuple(fields))


def parse_field_ddl(text: str) -> tuple[ColumnPath, StructField]:
    """The parent's path and the field of one definition whose name may be a dotted path.

    >>> parse_field_ddl("m.value.w INT")[0]
    ('m', 'value')
    """
    parser = _Parser(text)
    path = [parser.name()]
    while parser.sign("."):
        path.append(parser.name())
    field = _settle(parser.column(path[-1]))
    parser.end()
    return tuple(path[:-1]), field


def parse_type(text: str) -> DataType:
    """The type that ``text`` names; char and varchar come out as string.

    >>> str(parse_type("array<decimal(10, 2)>"))
    'array<decimal(10,2)>'
    """
    parser = _Parser(text)
    kind = parser.type(0)
    parser.end()
    return _plain(kind)


class _Parser:
    """A cursor over the tokens; each method eats what its name says or fails with the place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.position = 0

    @property
    def peek(self) -> Token:
        return self.tokens[self.position]

    def next(self) -> Token:
        token = self.peek
        if token.kind != "end":
            self.position += 1
        return token

    def stop(self, why: str, at: Token | None = None) -> NoReturn:
        fail(self.text, (at or self.peek).start, why)

    def sign(self, sign: str) -> bool:
        if self.peek.is_sign(sign):
            self.position += 1
            return True
        return False

    def word(self, *words: str) -> bool:
        if self.peek.is_word(*words):
            self.position += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.sign(sign):
            self.stop(f"Expected {sign!r}.")

    def expect_word(self, word: str) -> None:
        if not self.word(word):
            self.stop(f"Expected {word}.")

    def end(self) -> None:
        if self.peek.kind != "end":
            self.stop("The text should end or go on with a comma here.")

    def name(self) -> str:
        token = self.next()
        if token.kind not in ("word", "name") or not token.text:
            self.stop("Expected a column name; put unusual names in backticks.", token)
        return token.text

    def literal(self) -> str:
        token = self.next()
        if token.kind != "string":
            self.stop("Expected a text in quotes.", token)
        return token.text

    def integer(self, *, signed: bool = False) -> int:
        sign = -1 if signed and self.sign("-") else 1
        token = self.next()
        if token.kind != "word" or not token.text.isascii() or not token.text.isdigit():
            self.stop("Expected a whole number.", token)
        if len(token.text) > 19:
            self.stop("The number is too large.", token)
        return sign * int(token.text)

    # -- types

    def type(self, depth: int) -> DataType:
        if depth > MAX_DEPTH:
            self.stop(f"The type nests deeper than {MAX_DEPTH} levels.")
        token = self.next()
        if token.kind != "word":
            self.stop("Expected a type.", token)
        name = token.text.upper()
        if (simple := _SIMPLE.get(name)) is not None:
            return simple
        if (read := _WITH_PARAMETERS.get(name)) is not None:
            return read(self, depth)
        known = ", ".join(sorted((*_SIMPLE, *_WITH_PARAMETERS)))
        return self.stop(f"Unknown type {token.text!r}; known are {known}.", token)

    def string_type(self, _depth: int) -> DataType:
        if not self.word("COLLATE"):
            return STRING
        collation = self.name()
        return STRING if collation.upper() == "UTF8_BINARY" else _Collated(collation)

    def decimal_type(self, _depth: int) -> DataType:
        at = self.peek
        if not self.sign("("):
            return Decimal()
        precision = self.integer()
        scale = self.integer() if self.sign(",") else 0
        self.expect(")")
        if not (1 <= precision <= MAX_PRECISION and scale <= precision):
            self.stop(
                f"Precision goes from 1 to {MAX_PRECISION}, scale from 0 to the precision.", at
            )
        return Decimal(precision, scale)

    def char_type(self, _depth: int) -> DataType:
        return self.sized("char")

    def varchar_type(self, _depth: int) -> DataType:
        return self.sized("varchar")

    def sized(self, name: str) -> DataType:
        self.expect("(")
        length = self.integer()
        self.expect(")")
        return _Sized(f"{name}({length})")

    def array_type(self, depth: int) -> DataType:
        self.expect("<")
        element = self.type(depth + 1)
        self.expect(">")
        return Array(element)

    def map_type(self, depth: int) -> DataType:
        self.expect("<")
        key = self.type(depth + 1)
        self.expect(",")
        value = self.type(depth + 1)
        self.expect(">")
        return Map(key, value)

    def struct_type(self, depth: int) -> DataType:
        self.expect("<")
        fields: list[StructField] = []
        while not self.sign(">"):
            if fields:
                self.expect(",")
            fields.append(self.nested_field(depth))
        return Struct(tuple(fields))

    def nested_field(self, depth: int) -> StructField:
        name = self.name()
        self.sign(":")
        kind = self.type(depth + 1)
        nullable = True
        metadata: dict[str, Any] = {}
        while True:
            if self.word("NOT"):
                self.expect_word("NULL")
                nullable = False
            elif self.word("COMMENT"):
                metadata[COMMENT_KEY] = self.literal()
            else:
                return _with_collations(StructField(name, kind, nullable, metadata))

    def interval_type(self, _depth: int) -> DataType:
        start = self.next()
        family = next((f for f in INTERVAL_UNITS if start.text.lower() in f), None)
        if start.kind != "word" or family is None:
            self.stop("Expected YEAR, MONTH, DAY, HOUR, MINUTE or SECOND.", start)
        end = self.next() if self.word("TO") else start
        first, last = start.text.lower(), end.text.lower()
        if last not in family or family.index(last) < family.index(first):
            self.stop(f"An interval cannot go from {first} to {last or 'nothing'}.", end)
        return Interval(first, last)

    def geometry_type(self, _depth: int) -> DataType:
        return Geometry(*self.reference_system()[:1])

    def geography_type(self, _depth: int) -> DataType:
        return Geography(*self.reference_system())

    def reference_system(self) -> list[str]:
        opening = self.peek
        if not self.sign("("):
            return []
        start = self.position
        while not self.peek.is_sign(")"):
            if self.next().kind == "end":
                self.stop("A bracket is not closed.", opening)
        inner = self.tokens[start : self.position]
        self.expect(")")
        parts = self.slice(inner).split(",") if inner else []
        parts = [part.strip().strip("'\"") for part in parts]
        if not 1 <= len(parts) <= 2 or not all(parts):
            self.stop("Expected a coordinate reference system such as OGC:CRS84.", opening)
        return parts

    # -- columns

    def column(self, name: str) -> StructField:
        self.sign(":")
        field = StructField(name, self.type(1))
        while self.peek.kind == "word" and (option := _COLUMN_OPTIONS.get(self.peek.text.upper())):
            self.next()
            field = option(self, field)
        return _with_collations(field)

    def not_null(self, field: StructField) -> StructField:
        self.expect_word("NULL")
        return replace(field, nullable=False)

    def null(self, field: StructField) -> StructField:
        return field

    def comment(self, field: StructField) -> StructField:
        return field.with_metadata(**{COMMENT_KEY: self.literal()})

    def default(self, field: StructField) -> StructField:
        start = self.position
        depth = 0
        while self.peek.kind != "end":
            token = self.peek
            # "IS NOT NULL" belongs to the expression, a bare "NOT NULL" to the column.
            ends = token.is_word("COMMENT", "GENERATED") or (
                token.is_word("NOT")
                and self.tokens[self.position + 1].is_word("NULL")
                and not (self.position > start and self.tokens[self.position - 1].is_word("IS"))
            )
            if depth == 0 and (token.is_sign(",") or ends):
                break
            depth += token.is_sign("(") - token.is_sign(")")
            if depth < 0:
                self.stop("A bracket is closed that was not opened.")
            self.next()
        inner = self.tokens[start : self.position]
        if not inner or depth:
            self.stop("Expected an expression with balanced brackets after DEFAULT.")
        return field.with_metadata(**{CURRENT_DEFAULT_KEY: self.slice(inner)})

    def generated(self, field: StructField) -> StructField:
        by_default = self.word("BY")
        self.expect_word("DEFAULT" if by_default else "ALWAYS")
        self.expect_word("AS")
        if self.word("IDENTITY"):
            return self.identity(field, explicit=by_default)
        if by_default:
            self.stop("Expected IDENTITY after GENERATED BY DEFAULT AS.")
        expression = self.bracketed()
        return field.with_metadata(**{GENERATION_EXPRESSION_KEY: expression})

    def identity(self, field: StructField, *, explicit: bool) -> StructField:
        start, step = 1, 1
        if self.sign("("):
            while not self.sign(")"):
                if self.word("START"):
                    self.word("WITH")
                    start = self.integer(signed=True)
                elif self.word("INCREMENT"):
                    self.word("BY")
                    step = self.integer(signed=True)
                else:
                    self.stop("Expected START WITH or INCREMENT BY.")
                self.sign(",")
        if step == 0:
            self.stop("The step of an identity column cannot be 0.")
        return field.with_metadata(
            **{
                IDENTITY_START_KEY: start,
                IDENTITY_STEP_KEY: step,
                IDENTITY_EXPLICIT_KEY: explicit,
            }
        )

    def bracketed(self) -> str:
        opening = self.peek
        self.expect("(")
        start, depth = self.position, 1
        while depth:
            token = self.next()
            if token.kind == "end":
                self.stop("A bracket is not closed.", opening)
            depth += token.is_sign("(") - token.is_sign(")")
        inner = self.tokens[start : self.position - 1]
        if not inner:
            self.stop("Expected an expression.", opening)
        return self.slice(inner)

    def slice(self, tokens: list[Token]) -> str:
        return self.text[tokens[0].start : tokens[-1].end]


_WITH_PARAMETERS: Final[Mapping[str, Callable[[_Parser, int], DataType]]] = {
    "STRING": _Parser.string_type,
    "DECIMAL": _Parser.decimal_type,
    "DEC": _Parser.decimal_type,
    "NUMERIC": _Parser.decimal_type,
    "CHAR": _Parser.char_type,
    "CHARACTER": _Parser.char_type,
    "VARCHAR": _Parser.varchar_type,
    "ARRAY": _Parser.array_type,
    "MAP": _Parser.map_type,
    "STRUCT": _Parser.struct_type,
    "INTERVAL": _Parser.interval_type,
    "GEOMETRY": _Parser.geometry_type,
    "GEOGRAPHY": _Parser.geography_type,
}

_COLUMN_OPTIONS: Final[Mapping[str, Callable[[_Parser, StructField], StructField]]] = {
    "NOT": _Parser.not_null,
    "NULL": _Parser.null,
    "COMMENT": _Parser.comment,
    "DEFAULT": _Parser.default,
    "GENERATED": _Parser.generated,
}


def _settle(field: StructField) -> StructField:
    """Sized strings become string; Spark keeps the spelling of the whole column beside it."""
    if not _has_sized(field.type):
        return field
    spelled = render_type(field.type, style=CATALOG)
    return replace(
        field.with_metadata(**{CHAR_VARCHAR_KEY: spelled}),
        type=_plain(field.type),
    )


def _with_collations(field: StructField) -> StructField:
    collations: dict[str, str] = {}

    def strip(kind: DataType, path: str) -> DataType:
        match kind:
            case _Collated(collation):
                provider = "spark" if collation.upper().startswith("UTF8_") else "icu"
                collations[path] = f"{provider}.{collation}"
                return STRING
            case Array(element):
                return replace(kind, element=strip(element, f"{path}.element"))
            case Map(key, value):
                return replace(
                    kind, key=strip(key, f"{path}.key"), value=strip(value, f"{path}.value")
                )
            case _:
                return kind

    kind = strip(field.type, field.name)
    if not collations:
        return field
    return replace(field.with_metadata(**{COLLATIONS_KEY: collations}), type=kind)


def char_lengths(field: StructField) -> dict[ColumnPath, int]:
    """The length of every CHAR(n) in a column, by the path below the column.

    >>> from twinlake.schema import parse_ddl
    >>> char_lengths(parse_ddl("s STRUCT<a: CHAR(5), b: ARRAY<VARCHAR(9)>>").fields[0])
    {('a',): 5}
    """
    return _sizes(field, ("char",))


def string_lengths(field: StructField) -> dict[ColumnPath, int]:
    """The same of every CHAR(n) and VARCHAR(n): what their values may have at the most."""
    return _sizes(field, ("char", "varchar"))


def _sizes(field: StructField, names: tuple[str, ...]) -> dict[ColumnPath, int]:
    spelled = field.metadata.get(CHAR_VARCHAR_KEY)
    if not isinstance(spelled, str):
        return {}
    return dict(_sized_strings(_Parser(spelled).type(0), (), names))


def _sized_strings(
    kind: DataType, path: ColumnPath, names: tuple[str, ...]
) -> Iterator[tuple[ColumnPath, int]]:
    match kind:
        case _Sized(text):
            name, _, length = text.rstrip(")").partition("(")
            if name in names:
                yield path, int(length)
        case Array(element):
            yield from _sized_strings(element, (*path, "element"), names)
        case Map(key, value):
            yield from _sized_strings(key, (*path, "key"), names)
            yield from _sized_strings(value, (*path, "value"), names)
        case Struct(fields):
            for child in fields:
                yield from _sized_strings(child.type, (*path, child.name), names)


def _has_sized(kind: DataType) -> bool:
    match kind:
        case _Sized():
            return True
        case Array(element):
            return _has_sized(element)
        case Map(key, value):
            return _has_sized(key) or _has_sized(value)
        case Struct(fields):
            return any(_has_sized(child.type) for child in fields)
        case _:
            return False


def _plain(kind: DataType) -> DataType:
    match kind:
        case _Sized() | _Collated():
            return STRING
        case Array(element):
            return replace(kind, element=_plain(element))
        case Map(key, value):
            return replace(kind, key=_plain(key), value=_plain(value))
        case Struct(fields):
            return Struct(tuple(replace(f, type=_plain(f.type)) for f in fields))
        case _:
            return kind
