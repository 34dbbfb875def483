"""Tables that keep every rule of a compat feature, as plain values that a test may spoil.

A draft speaks the language of the log (schema JSON, configuration, protocol), so what is judged
does not pass through the library under test before both judges see it. Ids, physical names and
nested ids are numbered here, independently of the library.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from twinlake.compat import COMPATS, State, Subject
from twinlake.protocol import Metadata, Protocol

if TYPE_CHECKING:
    import random

__all__ = [
    "ID",
    "MAX_ID",
    "MODE",
    "NESTED",
    "PHYSICAL",
    "PRIMITIVES",
    "Draft",
    "Spot",
    "compliant",
    "fields_of",
    "map_of",
    "new_field",
    "number",
    "some_struct",
    "some_type",
    "wrapped",
]

ID: Final = "delta.columnMapping.id"
PHYSICAL: Final = "delta.columnMapping.physicalName"
NESTED: Final = "delta.columnMapping.nested.ids"
MODE: Final = "delta.columnMapping.mode"
MAX_ID: Final = "delta.columnMapping.maxColumnId"

Json = Any

#: What every compat feature allows, as column and as partition column.
PRIMITIVES: Final = (
    "integer", "long", "float", "double", "decimal(10,2)", "decimal(38,0)", "string", "binary",
    "boolean", "date", "timestamp", "timestamp_ntz",
)  # fmt: skip
_SMALL: Final = ("byte", "short")
_ALWAYS_ALLOWED: Final = (
    "appendOnly", "domainMetadata", "inCommitTimestamp", "timestampNtz", "typeWidening",
    "v2Checkpoint", "vacuumProtocolCheck", "clustering",
)  # fmt: skip
_MAY_BE_INACTIVE: Final = (
    "invariants", "changeDataFeed", "checkConstraints", "identityColumns", "generatedColumns",
    "rowTracking",
)  # fmt: skip
READER_SIDE: Final = frozenset(
    {
        "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "typeWidening-preview",
        "v2Checkpoint", "vacuumProtocolCheck", "variantType", "variantType-preview",
        "variantShredding", "variantShredding-preview", "catalogManaged", "geospatial",
    }
)  # fmt: skip
_NAMES: Final = ("id", "name", "Amount", "when", "flags", "note", "City", "zip", "k", "v")


@dataclass(slots=True, kw_only=True)
class Draft:
    """A table on paper: every part of it may be overwritten."""

    feature: str
    schema: Json
    configuration: dict[str, str]
    partitions: list[str] = field(default_factory=list)
    reader: int = 2
    writer: int = 7
    reader_features: set[str] | None = None
    writer_features: set[str] | None = None
    before: Draft | None = None
    creates: bool = False
    replaces: bool = False

    @property
    def is_writer(self) -> bool:
        """Whether the feature is one about Iceberg writers."""
        return COMPATS[self.feature].is_writer

    @property
    def version(self) -> int:
        """Two or three."""
        return COMPATS[self.feature].version

    @property
    def base(self) -> str:
        """The feature of the compatibility the feature is, or stands on."""
        return COMPATS[self.feature].base or self.feature

    @property
    def is_mapped(self) -> bool:
        """Whether every field has an id and a physical name, as in any table that can change."""
        return all(
            {ID, PHYSICAL} <= spot.field["metadata"].keys() for spot in fields_of(self.schema)
        )

    def copy(self) -> Draft:
        """A copy that shares nothing."""
        return copy.deepcopy(self)

    def remember(self) -> None:
        """Take the present state as the one before the change to come."""
        self.before = None
        self.before = self.copy()

    def add_feature(self, name: str) -> None:
        """Support a feature on the sides it belongs to; a legacy protocol has no place for it."""
        if self.writer_features is None:
            return
        self.writer_features.add(name)
        if name in READER_SIDE:
            self.use_reader_lists().add(name)

    def drop_feature(self, name: str) -> None:
        """No longer list a feature for writers."""
        (self.writer_features or set()).discard(name)

    def use_reader_lists(self) -> set[str]:
        """The protocol with the reader's features listed, if it is not that already: its list."""
        if self.writer_features is None:
            return set()
        if self.reader_features is None:
            self.reader_features = set(READER_SIDE & self.writer_features)
            self.reader = 3
        return self.reader_features

    def free_name(self, name: str) -> str:
        """A name for a new column, this one if it is not taken."""
        taken = {child["name"].lower() for child in self.schema["fields"]}
        return next(n for n in (name, *(f"{name}{i}" for i in range(9))) if n.lower() not in taken)

    def add_column(self, column: Json) -> None:
        """One more column at the end, numbered."""
        column["name"] = self.free_name(column["name"])
        self.schema["fields"].append(column)
        self.renumber()

    def renumber(self) -> None:
        """Ids and names for whatever has none yet."""
        top = number(self.schema, int(self.configuration.get(MAX_ID, "0")))
        self.configuration[MAX_ID] = str(top)

    def state(self) -> State:
        """As the library takes it."""
        return State(
            metadata=Metadata(
                id="b8e1a3a2-0f0f-4a58-9c3e-000000000005",
                schema_string=json.dumps(self.schema),
                partition_columns=tuple(self.partitions),
                configuration=self.configuration,
            ),
            protocol=Protocol(self.reader, self.writer, self.reader_features, self.writer_features),
        )

    def subject(self) -> Subject:
        """The draft, and what was before it, as the library takes it."""
        before = None if self.before is None else self.before.state()
        return Subject(
            after=self.state(), before=before, creates=self.creates, replaces=self.replaces
        )


@dataclass(frozen=True, slots=True)
class Spot:
    """A field somewhere in a schema."""

    field: Json
    siblings: list[Json]
    path: tuple[str, ...]
    below: frozenset[str]
    """Which of ``array``, ``key`` and ``value`` lie between it and the top."""


def fields_of(
    kind: Json, path: tuple[str, ...] = (), below: tuple[str, ...] = ()
) -> Iterator[Spot]:
    """Every field at any depth, parents first."""
    if not isinstance(kind, dict):
        return
    if kind["type"] == "struct":
        for child in kind["fields"]:
            here = (*path, child["name"])
            yield Spot(child, kind["fields"], here, frozenset(below))
            yield from fields_of(child["type"], here, below)
    elif kind["type"] == "array":
        yield from fields_of(kind["elementType"], (*path, "element"), (*below, "array"))
    else:
        yield from fields_of(kind["keyType"], (*path, "key"), (*below, "key"))
        yield from fields_of(kind["valueType"], (*path, "value"), (*below, "value"))


def number(schema: Json, top: int = 0) -> int:
    """Give ids, ``col-<id>`` and nested ids to what lacks them; the highest id in use."""
    spots = list(fields_of(schema))
    used = [spot.field["metadata"].get(ID, 0) for spot in spots]
    nested = [n for s in spots for n in s.field["metadata"].get(NESTED, {}).values()]
    top = max([top, *used, *nested])
    for spot in spots:
        if ID not in spot.field["metadata"]:
            top += 1
            spot.field["metadata"].update({ID: top, PHYSICAL: f"col-{top}"})
    for spot in spots:
        ids = spot.field["metadata"].get(NESTED, {})
        for path in _nested_paths(spot.field["type"], str(spot.field["metadata"].get(PHYSICAL))):
            if path not in ids:
                top += 1
                ids[path] = top
        if ids:
            spot.field["metadata"][NESTED] = ids
    return top


def _nested_paths(kind: Json, path: str) -> Iterator[str]:
    parts = {"array": ("element",), "map": ("key", "value")}
    for part in parts.get(kind["type"], ()) if isinstance(kind, dict) else ():
        yield f"{path}.{part}"
        yield from _nested_paths(kind[f"{part}Type"], f"{path}.{part}")


def new_field(name: str, kind: Json, nullable: bool = True, **metadata: Json) -> Json:
    """A field in schema JSON."""
    return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}


def wrapped(kind: Json, how: str) -> Json:
    """A type inside one of ``struct``, ``array``, ``key``, ``value``; "" for none of them."""
    match how:
        case "struct":
            return {"type": "struct", "fields": [new_field("inner", kind)]}
        case "array":
            return {"type": "array", "elementType": kind, "containsNull": True}
        case "key":
            return map_of(kind, "string")
        case "value":
            return map_of("string", kind)
    return kind


def map_of(key: Json, value: Json) -> Json:
    """A map in schema JSON."""
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def some_type(rng: random.Random, depth: int, primitives: tuple[str, ...] = PRIMITIVES) -> Json:
    """A type of at most that depth."""
    kind = rng.choice(("struct", "array", "map", "", "")) if depth else ""
    if kind == "struct":
        return some_struct(rng, depth - 1, primitives)
    if kind == "array":
        return wrapped(some_type(rng, depth - 1, primitives), "array")
    if kind == "map":
        return map_of(some_type(rng, depth - 1, primitives), some_type(rng, depth - 1, primitives))
    return rng.choice(primitives)


def some_struct(rng: random.Random, depth: int, primitives: tuple[str, ...] = PRIMITIVES) -> Json:
    """A struct with one to three fields."""
    names = rng.sample(_NAMES, rng.randint(1, 3))
    children = [
        new_field(name, some_type(rng, depth, primitives), rng.random() < 0.7) for name in names
    ]
    return {"type": "struct", "fields": children}


def compliant(rng: random.Random, feature: str) -> Draft:
    """A table that keeps every rule of the feature, one of very many."""
    compat = COMPATS[feature]
    kinds = PRIMITIVES if compat.is_writer else PRIMITIVES + _SMALL
    schema = some_struct(rng, 3, kinds)
    # Whatever else there is, rules need fields below each kind of container to look at.
    schema["fields"].append(new_field("deep", wrapped(some_struct(rng, 1, kinds), "struct")))
    schema["fields"].append(new_field("list", wrapped(some_struct(rng, 1, kinds), "array")))
    schema["fields"].append(new_field("map", map_of(some_struct(rng, 1), some_struct(rng, 1))))
    draft = Draft(
        feature=feature,
        schema=schema,
        configuration={
            f"delta.enableIcebergCompatV{compat.version}": "true",
            MODE: "id" if compat.is_writer else rng.choice(("name", "id")),
            "delta.appendOnly": rng.choice(("true", "false")),
        },
        writer_features={"columnMapping", compat.base or feature, feature},
    )
    if compat.is_writer:
        draft.configuration[compat.key] = "true"
    if compat.version == 3:
        draft.configuration["delta.enableRowTracking"] = "true"
        draft.add_feature("rowTracking")
        draft.add_feature("domainMetadata")
    for name in rng.sample(_ALWAYS_ALLOWED, rng.randint(0, 3)):
        draft.add_feature(name)
    for name in rng.sample(_MAY_BE_INACTIVE, rng.randint(0, 2)):
        draft.add_feature(name)
    if rng.random() < 0.4:
        draft.use_reader_lists()
    draft.renumber()
    _partition(rng, draft)
    return draft


def _partition(rng: random.Random, draft: Draft) -> None:
    """Sometimes partition by some primitive columns; a capital letter is another story."""
    candidates = [
        child["name"]
        for child in draft.schema["fields"]
        if isinstance(child["type"], str) and child["name"].islower()
    ]
    if candidates and rng.random() < 0.5:
        draft.partitions = rng.sample(candidates, rng.randint(1, len(candidates)))
