"""Column paths: how text names a column, and how one reaches it in a schema.

A path is a tuple of logical names from the root; ``element``, ``key`` and ``value`` step into
arrays and maps. Names are matched exactly first, then ignoring case, as Delta does.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NoReturn

from twinlake.errors import Code, UserError
from twinlake.schema.types import Array, ColumnPath, DataType, Map, Struct, StructField

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "change_field",
    "change_type",
    "field_at",
    "parse_path",
    "quote_name",
    "render_path",
    "resolve_path",
    "type_at",
]

_PLAIN: Final = re.compile(r"\w+")
_PART: Final = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def parse_path(text: str) -> ColumnPath:
    """The path that ``text`` spells; backticks quote names that hold dots.

    >>> parse_path("m.value.`a.b`")
    ('m', 'value', 'a.b')
    """
    parts: list[str] = []
    position = 0
    while True:
        match = _PART.match(text, position)
        if match is None:
            _bad_path(text, position)
        quoted, plain = match[1], match[2]
        name = quoted.replace("``", "`") if quoted is not None else plain.strip()
        if not name:
            _bad_path(text, position)
        parts.append(name)
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            _bad_path(text, position)
        position += 1


def render_path(path: ColumnPath) -> str:
    """The path as text that :func:`parse_path` understands.

    >>> render_path(("m", "value", "a.b"))
    'm.value.`a.b`'
    """
    return ".".join(quote_name(part) for part in path)


def quote_name(name: str) -> str:
    """The name, in backticks unless it is a plain word."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def resolve_path(schema: DataType, path: ColumnPath) -> ColumnPath:
    """The path in the spelling of the schema; raises if there is no such column."""
    kind = schema
    found: list[str] = []
    for part in path:
        name, kind = _step(kind, part, path, tuple(found))
        found.append(name)
    return tuple(found)


def type_at(schema: DataType, path: ColumnPath) -> DataType:
    """The type of the column, element, key or value at ``path``."""
    kind = schema
    for depth, part in enumerate(path):
        _, kind = _step(kind, part, path, path[:depth])
    return kind


def field_at(schema: Struct, path: ColumnPath) -> StructField:
    """The field at ``path``; an element, key or value comes as a field of that name.

    >>> from twinlake.schema.types import INTEGER
    >>> field_at(Struct((StructField("a", Array(INTEGER, False)),)), ("a", "element")).nullable
    False
    """
    if not path:
        _missing(schema, path, ())
    parent = type_at(schema, path[:-1])
    name, kind = _step(parent, path[-1], path, path[:-1])
    match parent:
        case Struct():
            found = parent.get(name)
            return found if found is not None else _missing(parent, path, path[:-1])
        case Array():
            return StructField(name, kind, parent.contains_null)
        case Map():
            return StructField(name, kind, parent.value_contains_null and name == "value")
        case _:
            return _missing(parent, path, path[:-1])


def change_type(
    kind: DataType, path: ColumnPath, change: Callable[[DataType], DataType], *, depth: int = 0
) -> DataType:
    """``kind`` with the type at ``path`` replaced by what ``change`` makes of it."""
    if depth == len(path):
        return change(kind)
    name, _ = _step(kind, path[depth], path, path[:depth])

    def deeper(inner: DataType) -> DataType:
        return change_type(inner, path, change, depth=depth + 1)

    match kind:
        case Struct(fields):
            chosen = kind.get(name)
            return Struct(
                tuple(replace(f, type=deeper(f.type)) if f is chosen else f for f in fields)
            )
        case Array(element):
            return replace(kind, element=deeper(element))
        case Map(key, value):
            if name == "key":
                return replace(kind, key=deeper(key))
            return replace(kind, value=deeper(value))
        case _:
            return _missing(kind, path, path[:depth])


def change_field(
    schema: Struct, path: ColumnPath, change: Callable[[StructField], StructField]
) -> Struct:
    """The schema with the struct field at ``path`` replaced; every other field is the same."""

    def in_parent(parent: DataType) -> DataType:
        chosen = parent.get(path[-1]) if isinstance(parent, Struct) else None
        if not isinstance(parent, Struct) or chosen is None:
            _missing(parent, path, path[:-1])
        return Struct(tuple(change(f) if f is chosen else f for f in parent.fields))

    if not path:
        _missing(schema, path, ())
    changed = change_type(schema, path[:-1], in_parent)
    return changed if isinstance(changed, Struct) else schema


def _step(kind: DataType, part: str, path: ColumnPath, parent: ColumnPath) -> tuple[str, DataType]:
    match kind:
        case Struct():
            found = kind.get(part)
            if found is not None:
                return found.name, found.type
        case Array(element) if part.casefold() == "element":
            return "element", element
        case Map(key, value) if part.casefold() in ("key", "value"):
            return ("key", key) if part.casefold() == "key" else ("value", value)
        case _:
            pass
    return _missing(kind, path, parent)


def _missing(kind: DataType, path: ColumnPath, parent: ColumnPath) -> NoReturn:
    part = path[len(parent)] if len(parent) < len(path) else ""
    match kind:
        case Struct():
            choices = list(kind.names())
        case Array():
            choices = ["element"]
        case Map():
            choices = ["key", "value"]
        case _:
            choices = []
    where = f"in {render_path(parent)}" if parent else "at the top level"
    if choices:
        close = difflib.get_close_matches(part, choices[:500], n=3) or choices[:10]
        why = f"There is no {part!r} {where}."
        fix = "Did you mean one of: " + ", ".join(quote_name(name) for name in close) + "?"
    else:
        why = f"{render_path(parent) or 'The schema'} has type {kind} and holds no columns."
        fix = "Name an existing column; element, key and value step into arrays and maps."
    raise UserError(
        Code.COLUMN_NOT_FOUND,
        f"No such column: {render_path(path) or '(empty path)'}.",
        why=why,
        fix=fix,
        delta_class="DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
        fields={"path": render_path(path), "choices": choices[:100]},
    )


def _bad_path(text: str, position: int) -> NoReturn:
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"Not a column path: {text[:200]!r}.",
        why=f"A name is missing or a backtick is not closed at position {position}.",
        fix="Separate names by dots and put names with dots or backticks in backticks, as in "
        "`a.``b.c```.",
        fields={"position": position},
    )
