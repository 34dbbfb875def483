"""What changed inside the structs that serve as keys of maps.

Iceberg compares keys by their values and cannot read old keys with a new shape, so its writers
block every change there. A struct counts wherever it is in a key: behind arrays, in a map inside
the key, at any depth. Columns are followed by their ids, so that renaming the map itself, or a
struct it is in, is not a change of its key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.schema import (
    PHYSICAL_NAME_KEY,
    Array,
    ColumnPath,
    DataType,
    Map,
    Struct,
    StructField,
    field_id,
    nested_ids,
    walk_types,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["KeyChange", "key_changes", "matched_fields"]


_NESTED: Final = (Struct, Array, Map)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """One difference inside a key."""

    path: ColumnPath
    """In the new schema, or in the old one for what is gone."""
    kind: str
    """``added``, ``dropped``, ``renamed``, ``moved``, ``type``, ``nullability``, ``id`` or
    ``physical name``."""
    before: str
    after: str


def matched_fields(old: Struct, new: Struct) -> list[tuple[StructField, StructField]]:
    """The fields that are the same column in both: by id where both have ids, else by name."""
    by_id = {own: f for f in new if (own := field_id(f)) is not None}
    by_name = {f.name.casefold(): f for f in new}
    pairs = []
    for before in old:
        own = field_id(before)
        after = by_id.get(own) if own is not None else None
        if after is None:
            after = by_name.get(before.name.casefold())
            if after is not None and own is not None and field_id(after) is not None:
                after = None
        if after is not None:
            pairs.append((before, after))
    return pairs


def key_changes(old: Struct, new: Struct) -> Iterator[KeyChange]:
    """Every change inside a struct that is reachable from the key of a map."""
    return _outside_keys(old, new, ())


def _outside_keys(old: DataType, new: DataType, path: ColumnPath) -> Iterator[KeyChange]:
    """Follow columns that are not in a key; what happens to them is none of our business."""
    if old is new:
        return
    match old, new:
        case Struct(), Struct():
            for before, after in matched_fields(old, new):
                # Most columns hold no map, and most of the others are the same.
                nested = isinstance(before.type, _NESTED) or isinstance(after.type, _NESTED)
                if nested and (before.type, before.metadata) != (after.type, after.metadata):
                    yield from _field(before, after, (*path, after.name))
        case Array(element), Array(other):
            yield from _outside_keys(element, other, (*path, "element"))
        case Map(), Map():
            yield from _inside_key(old.key, new.key, (*path, "key"))
            yield from _outside_keys(old.value, new.value, (*path, "value"))
        case _:
            for below, kind in walk_types(old, path):
                if isinstance(kind, Map) and _holds_struct(kind.key):
                    here = (*below, "key")
                    yield _change(here, "type", f"the key of a map, {kind.key}", f"{new}")


def _field(before: StructField, after: StructField, path: ColumnPath) -> Iterator[KeyChange]:
    yield from _outside_keys(before.type, after.type, path)
    yield from _nested_ids(before, after, path, in_key=False)


def _inside_key(old: DataType, new: DataType, path: ColumnPath) -> Iterator[KeyChange]:
    """A key, down to the structs in it. Outside of them, wider types are no change of a struct."""
    match old, new:
        case Struct(), Struct():
            yield from _struct(old, new, path)
        case Array(element), Array(other):
            yield from _inside_key(element, other, (*path, "element"))
        case Map(), Map():
            yield from _inside_key(old.key, new.key, (*path, "key"))
            yield from _inside_key(old.value, new.value, (*path, "value"))
        case _:
            if _holds_struct(old) or _holds_struct(new):
                yield _change(path, "type", str(old), str(new))


def _struct(old: Struct, new: Struct, path: ColumnPath) -> Iterator[KeyChange]:
    """A struct of a key: nothing in it may differ."""
    pairs = matched_fields(old, new)
    kept_old, kept_new = {id(b) for b, _ in pairs}, {id(a) for _, a in pairs}
    gone = {f.name: f for f in old if id(f) not in kept_old}
    come = {f.name: f for f in new if id(f) not in kept_new}
    for name in [name for name in gone if name in come]:
        # The same name under another id: for Iceberg another column, for people the same one.
        before, after = gone.pop(name), come.pop(name)
        yield _change((*path, name), "id", str(field_id(before)), str(field_id(after)))
        yield from _same_column(before, after, (*path, name))
    for field in gone.values():
        yield _change((*path, field.name), "dropped", str(field.type), "(dropped)")
    for field in come.values():
        yield _change((*path, field.name), "added", "(absent)", str(field.type))
    yield from _order(pairs, new, path)
    for before, after in pairs:
        here = (*path, after.name)
        if before.name != after.name:
            yield _change(here, "renamed", before.name, after.name)
        if field_id(before) != field_id(after):
            yield _change(here, "id", str(field_id(before)), str(field_id(after)))
        yield from _same_column(before, after, here)


def _order(
    pairs: Sequence[tuple[StructField, StructField]], new: Struct, path: ColumnPath
) -> Iterator[KeyChange]:
    """Fields that are in another order than before, counting only those that were there."""
    kept = {id(after) for _, after in pairs}
    now = [after.name for after in new if id(after) in kept]
    then = [after.name for _, after in pairs]
    if now != then:
        yield _change(path, "moved", ", ".join(then), ", ".join(now))


def _same_column(before: StructField, after: StructField, path: ColumnPath) -> Iterator[KeyChange]:
    if before.nullable != after.nullable:
        yield _change(path, "nullability", _null(before.nullable), _null(after.nullable))
    names = [str(field.metadata.get(PHYSICAL_NAME_KEY)) for field in (before, after)]
    if names[0] != names[1]:
        yield _change(path, "physical name", *names)
    yield from _nested_ids(before, after, path, in_key=True)
    yield from _type(before.type, after.type, path)


def _type(old: DataType, new: DataType, path: ColumnPath) -> Iterator[KeyChange]:
    """The type of a field inside a struct of a key."""
    match old, new:
        case Struct(), Struct():
            yield from _struct(old, new, path)
        case Array(), Array():
            if old.contains_null != new.contains_null:
                here = (*path, "element")
                yield _change(
                    here, "nullability", _null(old.contains_null), _null(new.contains_null)
                )
            yield from _type(old.element, new.element, (*path, "element"))
        case Map(), Map():
            if old.value_contains_null != new.value_contains_null:
                yield _change(
                    (*path, "value"),
                    "nullability",
                    _null(old.value_contains_null),
                    _null(new.value_contains_null),
                )
            yield from _type(old.key, new.key, (*path, "key"))
            yield from _type(old.value, new.value, (*path, "value"))
        case _:
            if old != new:
                yield _change(path, "type", str(old), str(new))


def _nested_ids(
    before: StructField, after: StructField, path: ColumnPath, *, in_key: bool
) -> Iterator[KeyChange]:
    """Ids of elements, keys and values; outside a key, only of what is inside one below."""
    if not isinstance(before.type, (Array, Map)) or type(before.type) is not type(after.type):
        return
    then, now = _by_parts(before), _by_parts(after)
    for parts, old in then.items():
        if not in_key and not _leads_into_struct_key(before.type, parts):
            continue
        if now.get(parts) != old:
            yield _change((*path, *parts), "id", str(old), str(now.get(parts)))


def _by_parts(field: StructField) -> dict[tuple[str, ...], int]:
    """The nested ids of a field without the physical name that their keys begin with."""
    name = field.metadata.get(PHYSICAL_NAME_KEY, field.name)
    return {
        tuple(key.removeprefix(f"{name}.").split(".")): own
        for key, own in nested_ids(field).items()
        if key.startswith(f"{name}.")
    }


def _leads_into_struct_key(kind: DataType, parts: tuple[str, ...]) -> bool:
    """Whether the path goes through the key of a map whose key holds a struct."""
    found = False
    for part in parts:
        match kind, part:
            case Array(element), "element":
                kind = element
            case Map(key), "key":
                found = found or _holds_struct(key)
                kind = key
            case Map(_, value), "value":
                kind = value
            case _:
                return False
    return found


def _holds_struct(kind: DataType) -> bool:
    return any(isinstance(inner, Struct) for _, inner in walk_types(kind))


def _null(nullable: bool) -> str:
    return "nullable" if nullable else "not null"


def _change(path: ColumnPath, kind: str, before: str, after: str) -> KeyChange:
    return KeyChange(path=path, kind=kind, before=before, after=after)
