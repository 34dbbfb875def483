"""Mutations that need two versions of a table: what a change may do, and what it may not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from tests.support.kernel.drafts import (
    ID,
    MAX_ID,
    NESTED,
    PHYSICAL,
    PRIMITIVES,
    Draft,
    map_of,
    new_field,
    some_struct,
    wrapped,
)
from tests.support.kernel.mutations import OFF, ON, aimed_at, set_switch
from twinlake.compat import COMPATS

__all__: list[str] = []

Json = Any


# -- map keys -------------------------------------------------------------------------------------


def _record(rng: random.Random, required: bool = False) -> Json:
    """A struct with a bit of everything a change could hit."""
    inner = [new_field("x", "integer"), new_field("y", "string", not required)]
    children = [
        new_field("a", "integer"),
        new_field("b", rng.choice(PRIMITIVES), not required),
        new_field("c", {"type": "struct", "fields": inner}),
    ]
    return {"type": "struct", "fields": children}


def _with_map(rng: random.Random, draft: Draft, key: Json, value: Json) -> None:
    """Add a map column, the map itself at some depth, and call that the version before."""
    draft.add_feature("typeWidening")
    draft.configuration["delta.enableTypeWidening"] = "true"
    kind = map_of(key, value)
    for _ in range(rng.choice((0, 0, 1, 2))):
        kind = wrapped(kind, rng.choice(("struct", "array", "value", "key")))
    draft.add_column(new_field("pairs", kind))
    draft.remember()
    draft.replaces = rng.random() < 0.3


def _the_map(kind: Json) -> Json:
    """The map that ``_with_map`` wrapped: the innermost one with an ``a`` on either side."""
    if not isinstance(kind, dict):
        return None
    if kind["type"] == "struct":
        return next((m for f in kind["fields"] if (m := _the_map(f["type"]))), None)
    if kind["type"] == "array":
        return _the_map(kind["elementType"])
    inner = _the_map(kind["keyType"]) or _the_map(kind["valueType"])
    return inner or kind


def _now(draft: Draft) -> Json:
    return _the_map(draft.schema["fields"][-1]["type"])


def _record_in(kind: Json) -> Json:
    """The record itself, or the one inside an array."""
    return kind if kind["type"] == "struct" else _record_in(kind["elementType"])


def _level(rng: random.Random, record: Json) -> list[Json]:
    """The fields of the record, or those of the struct inside it."""
    outer: list[Json] = record["fields"]
    inner: list[Json] = next(f for f in outer if f["name"] == "c")["type"]["fields"]
    return rng.choice((outer, inner))


def _add(rng: random.Random, fields: list[Json]) -> None:
    fields.append(new_field("added", rng.choice(PRIMITIVES)))


def _drop(rng: random.Random, fields: list[Json]) -> None:
    fields.pop(rng.choice([n for n, f in enumerate(fields) if f["name"] != "c"]))


def _rename(rng: random.Random, fields: list[Json]) -> None:
    rng.choice(fields)["name"] = "renamed"


def _reorder(rng: random.Random, fields: list[Json]) -> None:
    fields.append(fields.pop(0))


def _comment(rng: random.Random, fields: list[Json]) -> None:
    rng.choice(fields)["metadata"]["comment"] = "other words"


def _retype(rng: random.Random, fields: list[Json]) -> None:
    next(f for f in fields if f["type"] == "integer")["type"] = "long"


def _relax(rng: random.Random, fields: list[Json]) -> None:
    next(f for f in fields if not f["nullable"])["nullable"] = True


def _other_id(rng: random.Random, fields: list[Json]) -> None:
    """The field is another one from now on, whatever its name says."""
    chosen = next(f for f in fields if f["name"] != "c")
    for key in (ID, PHYSICAL, NESTED):
        chosen["metadata"].pop(key, None)


_Edit = Callable[[random.Random, list[Json]], None]
#: Changes that are fine everywhere but in a map key, so that no other rule of the kernel objects.
_EDITS: Final[tuple[_Edit, ...]] = (
    _add, _drop, _rename, _reorder, _comment, _other_id, _retype, _relax,
)  # fmt: skip


@aimed_at("writer-09")
def key_struct_changes(rng: random.Random, draft: Draft) -> None:
    _with_map(rng, draft, _record(rng, required=True), rng.choice(PRIMITIVES))
    rng.choice(_EDITS)(rng, _level(rng, _record_in(_now(draft)["keyType"])))
    draft.renumber()


@aimed_at("writer-09")
def key_struct_in_an_array_changes(rng: random.Random, draft: Draft) -> None:
    key = wrapped(_record(rng, required=True), "array")
    _with_map(rng, draft, key, rng.choice(PRIMITIVES))
    rng.choice(_EDITS)(rng, _level(rng, _record_in(_now(draft)["keyType"])))
    draft.renumber()


@aimed_at("writer-09")
def key_of_a_map_in_a_key_changes(rng: random.Random, draft: Draft) -> None:
    inner = map_of(_record(rng, required=True), rng.choice(PRIMITIVES))
    key = wrapped(inner, rng.choice(("array", "struct", "")))
    draft.add_column(new_field("pairs", map_of(key, "string")))
    draft.remember()
    _rename(rng, _level(rng, inner["keyType"]))


@aimed_at("writer-09")
def value_struct_changes(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("typeWidening")
    draft.configuration["delta.enableTypeWidening"] = "true"
    value = _record(rng, required=True)
    draft.add_column(new_field("pairs", map_of(some_struct(rng, 1), value)))
    draft.remember()
    rng.choice(_EDITS)(rng, _level(rng, value))
    draft.renumber()


@aimed_at("writer-09")
def map_column_dropped(rng: random.Random, draft: Draft) -> None:
    _with_map(rng, draft, _record(rng), rng.choice(PRIMITIVES))
    draft.schema["fields"].pop()


@aimed_at("writer-09")
def map_column_renamed(rng: random.Random, draft: Draft) -> None:
    _with_map(rng, draft, _record(rng), rng.choice(PRIMITIVES))
    draft.schema["fields"][-1]["name"] = "renamed"


@aimed_at("writer-09")
def map_column_added(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    draft.add_column(new_field("pairs", map_of(_record(rng), _record(rng))))


@aimed_at("writer-09")
def primitive_key_widened(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("typeWidening")
    draft.configuration["delta.enableTypeWidening"] = "true"
    draft.add_column(new_field("pairs", map_of("integer", "string")))
    draft.remember()
    draft.schema["fields"][-1]["type"]["keyType"] = "long"


# -- partitioning ---------------------------------------------------------------------------------


def _partitioned(rng: random.Random, draft: Draft) -> None:
    for name in ("part_a", "part_b", "part_c"):
        draft.add_column(new_field(name, rng.choice(("integer", "string", "date"))))
    draft.partitions = ["part_a", "part_b"]
    draft.remember()
    draft.replaces = True


@aimed_at("base-09")
def other_partition_columns(rng: random.Random, draft: Draft) -> None:
    _partitioned(rng, draft)
    draft.partitions = rng.choice(
        (["part_b", "part_a"], ["part_a"], [], ["part_c"], ["part_a", "part_b", "part_c"])
    )


@aimed_at("base-09")
def first_partition_columns(rng: random.Random, draft: Draft) -> None:
    _partitioned(rng, draft)
    assert draft.before is not None
    draft.before.partitions = []


@aimed_at("base-09")
def same_partition_columns(rng: random.Random, draft: Draft) -> None:
    _partitioned(rng, draft)
    draft.add_column(new_field("more", "string"))


# -- switches -------------------------------------------------------------------------------------


@aimed_at("base-20", versions=(3,), leaves=True)
def version_three_switched_off(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    _off(rng, draft, "delta.enableIcebergCompatV3")
    if rng.random() < 0.3:
        draft.configuration["delta.enableIcebergCompatV2"] = "true"


@aimed_at("base-19", versions=(3,))
@aimed_at("base-20", versions=(3,))
def version_three_kept(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    draft.configuration["delta.enableIcebergCompatV3"] = rng.choice(("true", "TRUE"))
    draft.configuration["delta.appendOnly"] = "false"


@aimed_at("base-19", versions=(3,))
def version_three_switched_on(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    assert draft.before is not None
    _off(rng, draft.before, "delta.enableIcebergCompatV3")
    if rng.random() < 0.5:
        draft.before.configuration.pop("delta.enableRowTracking", None)


@aimed_at("base-05", versions=(2,), writers=(False,))
def version_two_switched_on(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    assert draft.before is not None
    _off(rng, draft.before, "delta.enableIcebergCompatV2")


def _off(rng: random.Random, draft: Draft, key: str) -> None:
    if rng.random() < 0.5:
        draft.configuration.pop(key, None)
    else:
        draft.configuration[key] = "false"


@aimed_at("base-05", versions=(2,))
def vectors_supported_before(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    assert draft.before is not None
    draft.before.add_feature("deletionVectors")
    set_switch(draft.before, "delta.enableDeletionVectors", rng.choice((*ON, *OFF)))


@aimed_at("writer-04", versions=(3,))
@aimed_at("writer-19", versions=(2,))
def writer_feature_enabled(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    assert draft.before is not None
    _off(rng, draft.before, COMPATS[draft.feature].key)
    draft.replaces = rng.random() < 0.5


@aimed_at("writer-04", versions=(3,), leaves=True)
@aimed_at("writer-19", versions=(2,), leaves=True)
def writer_feature_disabled(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    _off(rng, draft, COMPATS[draft.feature].key)
    draft.replaces = rng.random() < 0.5


@aimed_at("writer-19", versions=(2,))
def nothing_toggled(rng: random.Random, draft: Draft) -> None:
    draft.remember()
    draft.configuration["delta.appendOnly"] = "true"
    draft.configuration[MAX_ID] = str(int(draft.configuration[MAX_ID]) + 1)
