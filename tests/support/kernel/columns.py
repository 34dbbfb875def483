"""Mutations of the schema: types, ids, names, and what the metadata of columns says."""

from __future__ import annotations

import random
from typing import Any, Final

from tests.support.kernel.drafts import (
    ID,
    MAX_ID,
    NESTED,
    PHYSICAL,
    PRIMITIVES,
    Draft,
    Spot,
    fields_of,
    new_field,
    some_type,
    wrapped,
)
from tests.support.kernel.mutations import aimed_at

__all__ = ["DEFAULT_TEXTS"]


def some_field(rng: random.Random, draft: Draft) -> Spot:
    """A field at any depth, the deep ones as often as the others."""
    spots = list(fields_of(draft.schema))
    flat = [spot for spot in spots if not spot.below]
    deep = [spot for spot in spots if spot.below]
    return rng.choice(rng.choice([flat, deep or flat]))


def somewhere(rng: random.Random, kind: Any) -> Any:
    """The type itself or below up to three containers."""
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        kind = wrapped(kind, rng.choice(("struct", "array", "key", "value")))
    return kind


# -- types ----------------------------------------------------------------------------------------


@aimed_at("base-07")
@aimed_at("writer-08")
@aimed_at("base-13")
def allowed_type(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("added", some_type(rng, 3)))


@aimed_at("base-07", versions=(2,))
@aimed_at("writer-08", versions=(2,))
def variant(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("added", somewhere(rng, "variant")))


@aimed_at("base-07", versions=(3,))
@aimed_at("writer-08", versions=(3,))
def type_of_version_three(rng: random.Random, draft: Draft) -> None:
    kind = rng.choice(("variant", "geometry(OGC:CRS84)", "geography(OGC:CRS84, spherical)"))
    draft.add_column(new_field("added", somewhere(rng, kind)))


@aimed_at("base-07")
@aimed_at("writer-08")
def void(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("added", somewhere(rng, "void")))


@aimed_at("base-07")
def collated_text(rng: random.Random, draft: Draft) -> None:
    name, how = draft.free_name("added"), rng.choice(("", "array", "value", "key"))
    path = {"": name, "array": f"{name}.element"}.get(how, f"{name}.{how}")
    draft.add_column(
        new_field(name, wrapped("string", how), __COLLATIONS={path: "spark.UTF8_LCASE"})
    )


@aimed_at("base-16", versions=(2,))
def geo_type(rng: random.Random, draft: Draft) -> None:
    kind = rng.choice(("geometry(OGC:CRS84)", "geography(OGC:CRS84, spherical)"))
    draft.add_column(new_field("added", somewhere(rng, kind)))


@aimed_at("base-17")
def interval(rng: random.Random, draft: Draft) -> None:
    kind = rng.choice(("interval year to month", "interval day to second", "interval hour"))
    draft.add_column(new_field("added", somewhere(rng, kind)))


@aimed_at("base-16", versions=(2,))
@aimed_at("base-17")
def column_named_like_a_type(rng: random.Random, draft: Draft) -> None:
    name = rng.choice(("interval", "geometry", "geography"))
    draft.add_column(new_field(name, somewhere(rng, rng.choice(PRIMITIVES))))


@aimed_at("writer-07")
def small_integer(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("added", somewhere(rng, rng.choice(("byte", "short")))))


@aimed_at("writer-07")
def integer(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("added", somewhere(rng, rng.choice(("integer", "long")))))


def _partition_by(draft: Draft, name: str, kind: Any) -> None:
    column = new_field(name, kind)
    draft.add_column(column)
    draft.partitions.append(column["name"])


@aimed_at("base-08")
def partition_by_nested(rng: random.Random, draft: Draft) -> None:
    kind = wrapped("long", rng.choice(("struct", "array", "key", "value")))
    if draft.version == 3:
        kind = rng.choice((kind, "variant", "geometry(OGC:CRS84)"))
    _partition_by(draft, "added", kind)


@aimed_at("base-08")
def partition_by_primitive(rng: random.Random, draft: Draft) -> None:
    _partition_by(draft, "added", rng.choice(PRIMITIVES))


@aimed_at("base-08")
def partition_with_a_capital(rng: random.Random, draft: Draft) -> None:
    _partition_by(draft, "Region", "string")


@aimed_at("base-08")
def partition_of_another_case(rng: random.Random, draft: Draft) -> None:
    _partition_by(draft, "region", "string")
    draft.partitions[-1] = rng.choice((str.upper, str.title))(draft.partitions[-1])


@aimed_at("base-08")
def partition_by_nothing(rng: random.Random, draft: Draft) -> None:
    draft.partitions.append("nowhere")


_ICEBERG_CHANGES: Final = (
    ("byte", "short"), ("byte", "integer"), ("short", "integer"), ("integer", "long"),
    ("byte", "long"), ("short", "long"), ("float", "double"),
    ("decimal(5,2)", "decimal(10,2)"), ("decimal(9,0)", "decimal(38,0)"),
)  # fmt: skip
_OTHER_CHANGES: Final = (
    ("byte", "double"), ("short", "double"), ("integer", "double"), ("date", "timestamp_ntz"),
    ("decimal(5,2)", "decimal(10,4)"), ("decimal(5,2)", "decimal(6,3)"),
    ("integer", "decimal(10,0)"), ("long", "decimal(20,0)"), ("byte", "decimal(10,1)"),
)  # fmt: skip


def _changed(rng: random.Random, draft: Draft, changes: tuple[tuple[str, str], ...]) -> None:
    if draft.is_writer:
        changes = tuple(change for change in changes if change[1] not in ("byte", "short"))
    old, new = rng.choice(changes)
    how = rng.choice(("", "array", "key", "value"))
    change = {"fromType": old, "toType": new}
    if how:
        change["fieldPath"] = {"array": "element"}.get(how, how)
    column = new_field("added", wrapped(new, how))
    column["metadata"]["delta.typeChanges"] = [change]
    inside = rng.choice(("", "struct", "array", "key", "value"))
    if inside:
        column = new_field("outer", wrapped({"type": "struct", "fields": [column]}, inside))
    draft.add_column(column)


@aimed_at("base-15")
def change_iceberg_has(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("typeWidening")
    _changed(rng, draft, _ICEBERG_CHANGES)


@aimed_at("base-15")
def change_iceberg_lacks(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("typeWidening")
    _changed(rng, draft, _OTHER_CHANGES)


@aimed_at("base-15")
def change_without_the_feature(rng: random.Random, draft: Draft) -> None:
    if "typeWidening" not in (draft.writer_features or ()):
        _changed(rng, draft, _OTHER_CHANGES)


@aimed_at("base-15")
def change_only_writers_are_told_of(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("typeWidening")
    draft.use_reader_lists().discard("typeWidening")
    _changed(rng, draft, _OTHER_CHANGES)


@aimed_at("base-15")
def change_under_the_preview(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("typeWidening-preview")
    _changed(rng, draft, _OTHER_CHANGES)


# -- what readers of Delta make of a column -------------------------------------------------------


@aimed_at("base-27")
def char_column(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("padded", "string", __CHAR_VARCHAR_TYPE_STRING="char(5)"))


@aimed_at("base-27")
def varchar_column(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("limited", "string", __CHAR_VARCHAR_TYPE_STRING="varchar(5)"))


@aimed_at("base-28")
def value_for_rows_before_the_column(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("later", "integer", EXISTS_DEFAULT="7"))


@aimed_at("base-28")
@aimed_at("writer-17")
def column_without_any_default(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("later", "integer"))


# -- ids and names --------------------------------------------------------------------------------


@aimed_at("base-13")
def nested_ids_missing(rng: random.Random, draft: Draft) -> None:
    owners = [s.field for s in fields_of(draft.schema) if s.field["metadata"].get(NESTED)]
    owner = rng.choice(owners)["metadata"]
    if rng.random() < 0.5:
        del owner[NESTED]
    else:
        owner[NESTED].pop(rng.choice(sorted(owner[NESTED])))


@aimed_at("base-13")
def nested_ids_twice(rng: random.Random, draft: Draft) -> None:
    spots = list(fields_of(draft.schema))
    owner = rng.choice([s.field for s in spots if s.field["metadata"].get(NESTED)])["metadata"]
    taken = rng.choice([s.field["metadata"].get(ID, 1) for s in spots])
    owner[NESTED][rng.choice(sorted(owner[NESTED]))] = taken


@aimed_at("base-13")
def highest_id_too_low(rng: random.Random, draft: Draft) -> None:
    draft.configuration[MAX_ID] = str(rng.randint(0, int(draft.configuration[MAX_ID]) // 2))


@aimed_at("writer-06")
def physical_name_of_its_own(rng: random.Random, draft: Draft) -> None:
    spot = some_field(rng, draft)
    number = spot.field["metadata"].get(ID, 1)
    name = rng.choice((f"col_{number}", f"COL-{number}", f"col-0{number}", "col-abc", "col-"))
    spot.field["metadata"][PHYSICAL] = name
    spot.field["metadata"].pop(NESTED, None)
    draft.renumber()


@aimed_at("base-13", writers=(False,))
@aimed_at("writer-06")
def physical_name_by_itself(rng: random.Random, draft: Draft) -> None:
    some_field(rng, draft).field["metadata"].pop(ID, None)


@aimed_at("base-13", writers=(False,))
@aimed_at("writer-06")
def id_by_itself(rng: random.Random, draft: Draft) -> None:
    some_field(rng, draft).field["metadata"].pop(PHYSICAL, None)


@aimed_at("base-13", writers=(False,))
@aimed_at("writer-06")
def neither_id_nor_name(rng: random.Random, draft: Draft) -> None:
    spot = some_field(rng, draft)
    for key in (ID, PHYSICAL, NESTED):
        spot.field["metadata"].pop(key, None)


@aimed_at("writer-06")
def another_numbering(rng: random.Random, draft: Draft) -> None:
    """Ids that start elsewhere, names that follow them."""
    for spot in fields_of(draft.schema):
        for key in (ID, PHYSICAL, NESTED):
            spot.field["metadata"].pop(key, None)
    draft.configuration[MAX_ID] = str(rng.randint(50, 500))
    draft.renumber()


# -- metadata of columns --------------------------------------------------------------------------


def _mark(rng: random.Random, draft: Draft, **metadata: Any) -> None:
    some_field(rng, draft).field["metadata"].update(metadata)


@aimed_at("writer-11")
def invariant(rng: random.Random, draft: Draft) -> None:
    _mark(rng, draft, **{"delta.invariants": '{"expression":{"expression":"id > 0"}}'})


@aimed_at("writer-11")
def not_null(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("invariants")
    some_field(rng, draft).field["nullable"] = False


@aimed_at("writer-14")
def identity(rng: random.Random, draft: Draft) -> None:
    marks: dict[str, Any] = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": rng.choice((True, False)),
    }
    if rng.random() < 0.5:
        marks["delta.identity.highWaterMark"] = 7
    _mark(rng, draft, **marks)


@aimed_at("writer-14")
def part_of_an_identity(rng: random.Random, draft: Draft) -> None:
    marks: dict[str, Any] = {
        "delta.identity.start": 1,
        "delta.identity.step": 1,
        "delta.identity.allowExplicitInsert": True,
        "delta.identity.highWaterMark": 7,
    }
    kept = rng.sample(sorted(marks), rng.randint(1, 2))
    _mark(rng, draft, **{key: marks[key] for key in kept})


@aimed_at("writer-14")
@aimed_at("writer-15")
@aimed_at("writer-11")
def harmless_metadata(rng: random.Random, draft: Draft) -> None:
    draft.add_feature(rng.choice(("identityColumns", "generatedColumns", "invariants")))
    key = rng.choice(("comment", "delta.identity", "delta.generation", "delta.invariant"))
    _mark(rng, draft, **{key: "start"})


@aimed_at("writer-15")
def generated(rng: random.Random, draft: Draft) -> None:
    _mark(rng, draft, **{"delta.generationExpression": rng.choice(("id + 1", "CAST(x AS DATE)"))})


_LITERALS: Final = (
    ("integer", "7"), ("long", "-9"), ("string", "'text'"), ("double", "1.5"), ("boolean", "true"),
    ("date", "'2024-01-31'"), ("decimal(10,2)", "1.25"), ("float", "2.5"),
)  # fmt: skip
_EXPRESSIONS: Final = (
    ("integer", "1 + 1"), ("integer", "abs(3)"), ("timestamp", "current_timestamp()"),
    ("string", "concat('a', 'b')"), ("long", "12x"), ("date", "current_date()"),
    ("integer", "99999999999"), ("double", "rand()"),
)  # fmt: skip
DEFAULT_TEXTS: Final = (
    "7", "+3", "-9", "'7'", "\"7\"", " 7 ", "1.5", ".5", "1e3", "1.234", "NaN", "Infinity", "1L",
    "2d", "0x10", "99999999999", "true", "'true'", "FALSE", "yes", "'2024-01-31'", "2024-01-31",
    "DATE '2024-01-31'", "'2024-02-30'", "'2024-01-31T10:00:00Z'", "'2024-01-31T10:00:00+01:00'",
    "'2024-01-31T10:00:00'", "'2024-01-31 10:00:00'", "'2024-01-31T10:00'", "NULL", "null", "",
    "''", "'", "'it''s'", "'a' || 'b'", "\"x\"", "X'0a'", "1 + 1", "now()",
    "007", "1_000", "1e400", "-1e-3", "0.10", "0x1p3", "'1.5'", "1.5f", "\u0967", "\t7", "1e",
    "e1", "+", "-", "2024-1-31", "'10000-01-01'", "'+10000-01-01'", "'0000-01-01'",
    "'2024-01-31T10:00:00.123456789Z'",
    "'2024-01-31T10:00:00.123456789'", "'2024-01-31T24:00:00'", "'2024-01-31T10:00:60Z'",
    "'2024-01-31T10Z'", "'2024-01-31T10:00+0100'", "'2024-01-31T10:00:00+01:00:30'",
    "'2024-01-31T10:00:00+19:00'", "'2024-01-31t10:00:00z'", "'20240131'", "'2024-W05-3'",
    "'2024-01-31T10:00:00,5'", "'2024-01-31T10:00:00.'",
)  # fmt: skip


def _default(rng: random.Random, draft: Draft, choices: tuple[tuple[str, str], ...]) -> None:
    kind, text = rng.choice(choices)
    draft.add_feature("allowColumnDefaults")
    column = new_field("dflt", kind, CURRENT_DEFAULT=text)
    inside = rng.choice(("", "", "struct", "array", "key", "value"))
    if inside:
        column = new_field("outer", wrapped({"type": "struct", "fields": [column]}, inside))
    draft.add_column(column)


@aimed_at("base-21", versions=(3,))
def literal_default(rng: random.Random, draft: Draft) -> None:
    _default(rng, draft, _LITERALS)


@aimed_at("base-21", versions=(3,))
def default_by_expression(rng: random.Random, draft: Draft) -> None:
    _default(rng, draft, _EXPRESSIONS)


@aimed_at("base-21", versions=(3,))
def default_of_any_text(rng: random.Random, draft: Draft) -> None:
    kinds = PRIMITIVES if draft.is_writer else (*PRIMITIVES, "byte", "short")
    _default(rng, draft, tuple((kind, text) for kind in kinds for text in DEFAULT_TEXTS))
