"""Whether files that were written under one schema can be read under a later one, as Delta has it.

The change data feed shows rows of many versions under one schema. Delta Spark reads across added
columns and dropped NOT NULLs, and across nothing else: not even a widened type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.schema.mapping import ColumnMappingMode, physical_name
from twinlake.schema.types import Array, DataType, Map, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.schema.types import ColumnPath

__all__ = ["is_readable_as", "keeps_columns"]


def is_readable_as(written: DataType, read: DataType) -> bool:
    """Whether ``read`` is ``written`` but for more columns and fewer NOT NULLs.

    >>> from twinlake.schema import parse_ddl
    >>> is_readable_as(parse_ddl("a INT NOT NULL"), parse_ddl("a INT, b INT"))
    True
    >>> is_readable_as(parse_ddl("a INT"), parse_ddl("a BIGINT"))
    False
    """
    match written, read:
        case Struct(), Struct():
            return _is_struct_readable_as(written, read)
        case Array(old, had_null), Array(new, has_null):
            return (has_null or not had_null) and is_readable_as(old, new)
        case Map(old_key, old, had_null), Map(new_key, new, has_null):
            return (
                (has_null or not had_null)
                and is_readable_as(old_key, new_key)
                and is_readable_as(old, new)
            )
        case _:
            return written == read


def _is_struct_readable_as(written: Struct, read: Struct) -> bool:
    for old in written:
        new = read.get(old.name)
        if new is None or new.name != old.name:
            return False
        if not (new.nullable or not old.nullable) or not is_readable_as(old.type, new.type):
            return False
    return True


def keeps_columns(
    old: Struct, old_mode: ColumnMappingMode, new: Struct, new_mode: ColumnMappingMode
) -> bool:
    """Whether no column is renamed or dropped, by the names that files have for them.

    Without column mapping there is no other name than the visible one, and a rename cannot be
    told from a drop; `is_readable_as` finds both.
    """
    if new_mode is ColumnMappingMode.NONE:
        return old_mode is ColumnMappingMode.NONE
    # A table that gets column mapping keeps its visible names in files.
    before = _file_names(old, mapped=old_mode is not ColumnMappingMode.NONE)
    after = dict(_file_names(new, mapped=True))
    return all(after.get(path) == name for path, name in before)


def _file_names(
    kind: DataType, path: ColumnPath = (), *, mapped: bool
) -> Iterator[tuple[ColumnPath, str]]:
    """Every field by its path in files, with its visible name."""
    match kind:
        case Struct(fields):
            for field in fields:
                here = (*path, physical_name(field) if mapped else field.name)
                yield here, field.name
                yield from _file_names(field.type, here, mapped=mapped)
        case Array(element):
            yield from _file_names(element, (*path, "element"), mapped=mapped)
        case Map(key, value):
            yield from _file_names(key, (*path, "key"), mapped=mapped)
            yield from _file_names(value, (*path, "value"), mapped=mapped)
        case _:
            pass
