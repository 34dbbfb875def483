"""The fields of a schema that paths name: whole columns, or a part of a struct."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from twinlake.schema.types import Struct, StructField

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.schema.types import ColumnPath

__all__ = ["select_fields"]


def select_fields(schema: Struct, paths: Iterable[ColumnPath]) -> tuple[StructField, ...]:
    """The columns in the order in which paths first name them; structs have the fields named.

    Paths are spelled as in the schema. What goes on below an array or a map names all of it.

    >>> from twinlake.schema.types import INTEGER
    >>> inner = Struct((StructField("x", INTEGER), StructField("y", INTEGER)))
    >>> select_fields(Struct((StructField("s", inner),)), [("s", "y")])[0].type
    Struct
    └── y INT
    """
    by_name: dict[str, list[ColumnPath]] = {}
    for name, *rest in paths:
        by_name.setdefault(name, []).append(tuple(rest))
    return tuple(_selected(schema, name, below) for name, below in by_name.items())


def _selected(schema: Struct, name: str, below: list[ColumnPath]) -> StructField:
    field = next(one for one in schema if one.name == name)
    kind = field.type
    if () in below or not isinstance(kind, Struct):
        return field
    chosen = {one.name: one for one in select_fields(kind, below)}
    # In the order of the schema, as files have them.
    fields = tuple(chosen[one.name] for one in kind if one.name in chosen)
    return replace(field, type=Struct(fields))
