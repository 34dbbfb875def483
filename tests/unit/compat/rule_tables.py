"""Tables to judge: one that fulfils a compat feature, and ways to change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twinlake.actions import AddFile, DeletionVectorDescriptor
from twinlake.compat import COMPATS, Compat, FileFooter, Profile, State, Subject
from twinlake.protocol import Metadata, Protocol
from twinlake.schema import (
    INTEGER,
    LONG,
    STRING,
    Array,
    DataType,
    Map,
    ParquetNode,
    Repetition,
    Struct,
    StructField,
    assign_mapping,
)

PREFIXES: Mapping[str, Compat] = {row.prefix: row for row in COMPATS.values()}

MODE = "delta.columnMapping.mode"
MAX_ID = "delta.columnMapping.maxColumnId"
VECTORS = "delta.enableDeletionVectors"
TRACKING = "delta.enableRowTracking"
ROW_ID_NAME = "delta.rowTracking.materializedRowIdColumnName"
ROW_VERSION_NAME = "delta.rowTracking.materializedRowCommitVersionColumnName"

READER_FEATURES = frozenset(
    ("deletionVectors", "typeWidening", "typeWidening-preview", "variantType", "geospatial",
     "timestampNtz", "v2Checkpoint", "catalogManaged", "vacuumProtocolCheck", "columnMapping",
     "variantType-preview", "variantShredding", "variantShredding-preview")
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCase:
    """A table and what one rule says of it."""

    rule: str
    name: str
    subject: Subject
    paths: tuple[str, ...] = ()
    """Where the rule finds something; empty where it is content."""
    profile: Profile = Profile.SPEC

    @property
    def compat(self) -> Compat:
        """The feature whose rule it is."""
        return PREFIXES[self.rule.partition("-")[0]]

    @property
    def label(self) -> str:
        """For test ids."""
        verdict = "fails" if self.paths else "passes"
        suffix = "" if self.profile is Profile.SPEC else f" ({self.profile})"
        return f"{self.rule} {verdict}: {self.name}{suffix}"


def struct(**types: DataType) -> Struct:
    """A struct of nullable fields."""
    return Struct(tuple(StructField(name, kind) for name, kind in types.items()))


PLAIN = struct(a=INTEGER, b=STRING)


def mapped(schema: Struct, *, max_id: int = 0) -> Struct:
    """The schema with ids, ``col-<id>`` names and nested ids."""
    return assign_mapping(
        schema, max_id=max_id, name_for=lambda own: f"col-{own}", nested_ids=True
    )[0]


def chain(compat: Compat) -> list[Compat]:
    """The compat feature and its base."""
    return [compat] if compat.base is None else [compat, COMPATS[compat.base]]


def protocol_for(
    compat: Compat, *, add: Iterable[str] = (), without: Iterable[str] = ()
) -> Protocol:
    """The protocol of a good table, with some features more and some less."""
    names = {"columnMapping", *(row.feature for row in chain(compat)), *add}
    if compat.version == 3:
        names |= {"rowTracking", "domainMetadata"}
    names -= set(without)
    readers = names & READER_FEATURES
    if readers <= {"columnMapping"}:
        return Protocol(2 if readers else 1, 7, None, names)
    return Protocol(3, 7, readers, names)


def state(
    prefix: str,
    schema: Struct = PLAIN,
    *,
    raw: bool = False,
    config: Mapping[str, str | None] | None = None,
    add: Iterable[str] = (),
    without: Iterable[str] = (),
    protocol: Protocol | None = None,
    partitions: Sequence[str] = (),
) -> State:
    """A table that fulfils the feature, but for what is asked to be otherwise."""
    compat = PREFIXES[prefix]
    columns = schema if raw else mapped(schema)
    values: dict[str, str | None] = {
        MODE: "id",
        MAX_ID: "1000",
        **{row.key: "true" for row in chain(compat)},
        **({TRACKING: "true"} if compat.version == 3 else {}),
        **(config or {}),
    }
    metadata = Metadata(
        name="orders",
        configuration={key: value for key, value in values.items() if value is not None},
        partition_columns=tuple(partitions),
    ).with_schema(columns)
    return State(
        metadata=metadata,
        protocol=protocol or protocol_for(compat, add=add, without=without),
    )


def table(prefix: str, schema: Struct = PLAIN, **rest: Any) -> Subject:
    """:func:`state` as a subject; what ``Subject`` takes goes there."""
    own = ("before", "creates", "replaces", "adds", "vectors", "footers")
    given = {key: rest.pop(key) for key in own if key in rest}
    return Subject(after=state(prefix, schema, **rest), **given)


# -- columns in every place ----------------------------------------------------------------------

TypePlace = Callable[[DataType], tuple[Struct, str]]
FieldPlace = Callable[[StructField], tuple[Struct, str]]

TYPE_PLACES: Mapping[str, TypePlace] = {
    "top": lambda kind: (struct(x=INTEGER, c=kind), "c"),
    "struct": lambda kind: (struct(s=struct(c=kind)), "s.c"),
    "element": lambda kind: (struct(l=Array(kind)), "l.element"),
    "map key": lambda kind: (struct(m=Map(kind, LONG)), "m.key"),
    "map value": lambda kind: (struct(m=Map(STRING, kind)), "m.value"),
    "struct in map key": lambda kind: (struct(m=Map(struct(c=kind), LONG)), "m.key.c"),
    "deep": lambda kind: (
        struct(s=struct(m=Map(STRING, Array(struct(c=Array(kind)))))),
        "s.m.value.element.c.element",
    ),
}
"""Where a type can be, and the dotted path it then has."""

FIELD_PLACES: Mapping[str, FieldPlace] = {
    "top": lambda field: (Struct((StructField("x", INTEGER), field)), "c"),
    "struct": lambda field: (struct(s=Struct((field,))), "s.c"),
    "element": lambda field: (struct(l=Array(Struct((field,)))), "l.element.c"),
    "map key": lambda field: (struct(m=Map(Struct((field,)), LONG)), "m.key.c"),
    "map value": lambda field: (struct(m=Map(STRING, Struct((field,)))), "m.value.c"),
    "deep": lambda field: (
        struct(s=struct(m=Map(Array(Struct((field,))), LONG))),
        "s.m.key.element.c",
    ),
}
"""Where a struct field can be. It has to be called ``c``."""


def with_key(key: str, value: object, kind: DataType = INTEGER) -> StructField:
    """A column with one more key in its metadata."""
    return StructField("c", kind, metadata={key: value})


def edited(schema: Struct, change: Callable[[StructField], StructField]) -> Struct:
    """The schema with its first field changed."""
    first, *others = schema.fields
    return Struct((change(first), *others))


def renamed(name: str) -> Callable[[StructField], StructField]:
    """Give a field another name."""
    return lambda field: replace(field, name=name)


# -- files ---------------------------------------------------------------------------------------

VECTOR = DeletionVectorDescriptor("u", "ab^-aqEH.-t@S}K{vb[*k^", 34, 6, 4)


def file(
    name: str = "f1.parquet", *, stats: str | None = '{"numRecords":3}', **rest: Any
) -> AddFile:
    """An added file."""
    rest.setdefault("partition_values", {})
    return AddFile(path=name, size=1, modification_time=0, data_change=True, stats=stats, **rest)


def leaf(name: str, own: int | None, physical: str = "INT64", **rest: Any) -> ParquetNode:
    """A column of values."""
    rest.setdefault("repetition", Repetition.OPTIONAL)
    return ParquetNode(name=name, physical_type=physical, field_id=own, **rest)


def group(name: str, own: int | None, *children: ParquetNode, **rest: Any) -> ParquetNode:
    """A struct."""
    rest.setdefault("repetition", Repetition.OPTIONAL)
    return ParquetNode(name=name, field_id=own, children=children, **rest)


def listed(name: str, own: int | None, element: ParquetNode) -> ParquetNode:
    """A list of three levels."""
    inner = group("list", None, element, repetition=Repetition.REPEATED)
    return group(name, own, inner, annotation="LIST")


def keyed(name: str, own: int | None, key: ParquetNode, value: ParquetNode) -> ParquetNode:
    """A map."""
    inner = group("key_value", None, key, value, repetition=Repetition.REPEATED)
    return group(name, own, inner, annotation="MAP")


def footer(
    *columns: ParquetNode, rows: int = 3, name: str = "f1.parquet", **rest: Any
) -> FileFooter:
    """What a footer says."""
    return FileFooter(
        add=file(name, **rest),
        root=ParquetNode(name="spark_schema", children=columns),
        num_rows=rows,
    )
