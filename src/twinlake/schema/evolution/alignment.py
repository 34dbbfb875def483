"""Which column of a schema is which column of the schema before.

Without column mapping a column is its name. With it a column is its id and its physical name, which
belong together: files are read by one or the other. Both are looked at here, so that a rule can say
what of a column changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.schema.mapping import ColumnMappingMode, field_id, physical_name
from twinlake.schema.types import Array, ColumnPath, DataType, Map, Struct, StructField, walk_fields

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Alignment", "ColumnPair", "align", "file_name"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPair:
    """A column, element, key or value that is in both schemas."""

    path: ColumnPath
    """Where it is now."""
    old_path: ColumnPath
    old_type: DataType
    new_type: DataType
    old_nullable: bool
    new_nullable: bool
    old_field: StructField
    """The field that it is, or is an element, key or value of."""
    new_field: StructField
    below: ColumnPath = ()
    """The way from that field to the element, key or value."""

    @property
    def is_field(self) -> bool:
        """Whether it is a field itself."""
        return not self.below


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """All columns of two schemas: those in both, those in the new one only, and those lost."""

    pairs: tuple[ColumnPair, ...]
    added: tuple[tuple[ColumnPath, StructField], ...]
    """With all fields inside them."""
    dropped: tuple[tuple[ColumnPath, StructField], ...]
    """With all fields inside them."""
    added_roots: frozenset[ColumnPath]
    """Of the added ones, those in a struct that was there before."""


def file_name(field: StructField, mode: ColumnMappingMode) -> str:
    """The name of a column in data files, statistics and partition values."""
    return field.name if mode is ColumnMappingMode.NONE else physical_name(field)


def align(
    before: Struct, after: Struct, old_mode: ColumnMappingMode, new_mode: ColumnMappingMode
) -> Alignment:
    """Find the columns of ``before`` in ``after``."""
    walk = _Walk(old_mode, new_mode)
    walk.struct(before, after, (), ())
    return Alignment(
        pairs=tuple(walk.pairs),
        added=tuple(walk.added),
        dropped=tuple(walk.dropped),
        added_roots=frozenset(walk.roots),
    )


class _Walk:
    def __init__(self, old_mode: ColumnMappingMode, new_mode: ColumnMappingMode) -> None:
        self.old_mode = old_mode
        self.new_mode = new_mode
        self.pairs: list[ColumnPair] = []
        self.added: list[tuple[ColumnPath, StructField]] = []
        self.dropped: list[tuple[ColumnPath, StructField]] = []
        self.roots: list[ColumnPath] = []

    def struct(self, old: Struct, new: Struct, old_path: ColumnPath, path: ColumnPath) -> None:
        known = _Fields(old, self.old_mode)
        found: set[int] = set()
        for field in new:
            here = (*path, field.name)
            own = known.find(field, self.new_mode)
            if own is None:
                self.roots.append(here)
                self.added.extend(_with_inner(here, field))
                continue
            found.add(id(own))
            self.pair(
                ColumnPair(
                    path=here,
                    old_path=(*old_path, own.name),
                    old_type=own.type,
                    new_type=field.type,
                    old_nullable=own.nullable,
                    new_nullable=field.nullable,
                    old_field=own,
                    new_field=field,
                )
            )
        for field in old:
            if id(field) not in found:
                self.dropped.extend(_with_inner((*old_path, field.name), field))

    def pair(self, pair: ColumnPair) -> None:
        self.pairs.append(pair)
        match pair.old_type, pair.new_type:
            case Struct() as old, Struct() as new:
                self.struct(old, new, pair.old_path, pair.path)
            case Array() as old, Array() as new:
                nulls = old.contains_null, new.contains_null
                self.part(pair, "element", old.element, new.element, nulls)
            case Map() as old, Map() as new:
                self.part(pair, "key", old.key, new.key, (False, False))
                nulls = old.value_contains_null, new.value_contains_null
                self.part(pair, "value", old.value, new.value, nulls)
            case _, new:
                # The column itself is another now; what was inside went with its type.
                self.added.extend(walk_fields(new, pair.path))

    def part(
        self, owner: ColumnPair, name: str, old: DataType, new: DataType, nulls: tuple[bool, bool]
    ) -> None:
        self.pair(
            ColumnPair(
                path=(*owner.path, name),
                old_path=(*owner.old_path, name),
                old_type=old,
                new_type=new,
                old_nullable=nulls[0],
                new_nullable=nulls[1],
                old_field=owner.old_field,
                new_field=owner.new_field,
                below=(*owner.below, name),
            )
        )


class _Fields:
    """The fields of a struct before the change, by all that may identify them."""

    def __init__(self, struct: Struct, mode: ColumnMappingMode) -> None:
        self.mode = mode
        self.by_name = {field.name: field for field in struct}
        self.by_file_name = {file_name(field, mode): field for field in struct}
        mapped = mode is not ColumnMappingMode.NONE
        self.by_id = {field_id(field): field for field in struct} if mapped else {}

    def find(self, field: StructField, mode: ColumnMappingMode) -> StructField | None:
        """The same column before, or the one that it comes closest to being."""
        same_name = self.by_name.get(field.name)
        in_files = self.by_file_name.get(file_name(field, mode))
        if mode is ColumnMappingMode.NONE:
            return in_files
        own = field_id(field)
        by_id = self.by_id.get(own) if own is not None else None
        if in_files is None and by_id is None:
            # Where mapping is switched on over files, the name was the column until now.
            return same_name if self.mode is ColumnMappingMode.NONE else None
        if in_files is not None and by_id is not None and same_name in (in_files, by_id):
            return same_name
        return in_files or by_id


def _with_inner(path: ColumnPath, field: StructField) -> Iterator[tuple[ColumnPath, StructField]]:
    yield path, field
    yield from walk_fields(field.type, path)
