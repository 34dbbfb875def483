"""Random tables, and random operations on them, as plain data.

A workload is a ``Start`` and steps after it. What a step says is text that both engines
understand and the seed of its rows, so a workload that failed prints as Python that runs again::

    replay(spark, folder, Start(columns="`id` BIGINT"), [Delete(where="`id` > 3"), Optimize()])
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from random import Random
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as t

from tests.support.engines.row_values import PRIMITIVES, ddl, leaves, literal, quoted, random_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = [
    "AddColumn",
    "AddConstraint",
    "Delete",
    "DropColumn",
    "Merge",
    "Optimize",
    "Purge",
    "RenameColumn",
    "Restore",
    "Rows",
    "SetProperties",
    "Shape",
    "Start",
    "Step",
    "Update",
    "Vacuum",
    "WidenColumn",
    "Write",
    "random_start",
    "random_step",
]

VECTORS = "delta.enableDeletionVectors"
FEED = "delta.enableChangeDataFeed"
TRACKING = "delta.enableRowTracking"
MAPPING = "delta.columnMapping.mode"
WIDENING = "delta.enableTypeWidening"

#: The first column of every table: what MERGE finds rows by, and most conditions are about.
KEY = "id"
#: None with a backtick: Delta Spark's MERGE cannot find such columns.
_NAMES = (
    "a", "B", "c", "Mixed", "naïve", "日本", "𝒳", "dot.ted", "_hidden", "select", "per%20cent",
    "it's",
)  # fmt: skip
_MAPPED_NAMES = ("x y", "a,b", "p(q)", "k=v", "{brace}", " lead")
_WIDER: Mapping[str, tuple[str, ...]] = {
    "tinyint": ("SMALLINT", "INT", "BIGINT", "DOUBLE"),
    "smallint": ("INT", "BIGINT", "DECIMAL(12,2)"),
    "int": ("BIGINT", "DOUBLE", "DECIMAL(15,4)"),
    "float": ("DOUBLE",),
    "decimal(5,2)": ("DECIMAL(10,2)", "DECIMAL(12,4)"),
    "decimal(18,6)": ("DECIMAL(30,8)",),
    "bigint": ("DECIMAL(25,3)",),
    "date": ("TIMESTAMP_NTZ",),
}


class _Said:
    """Prints as the call that makes it, without what is said by default."""

    def __repr__(self) -> str:
        said = []
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            usual = item.default_factory() if item.default_factory is not MISSING else item.default
            if value != usual:
                said.append(f"{item.name}={value!r}")
        return f"{type(self).__name__}({', '.join(said)})"


@dataclass(frozen=True, kw_only=True, repr=False)
class Rows(_Said):
    """Rows by seed and number, of the table's columns unless others are given."""

    seed: int
    count: int
    columns: str | None = None
    where: str | None = None
    """Only those of the rows for which it is true."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Start(_Said):
    """The first version of a table."""

    columns: str
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    rows: Rows | None = None
    """With rows it is written, without it is created empty."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Write(_Said):
    """Rows to be appended, or written over others."""

    rows: Rows
    mode: str = "append"
    merge_schema: bool = False
    overwrite_schema: bool = False
    replace_where: str | None = None
    dynamic: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class Delete(_Said):
    """Rows to go."""

    where: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Update(_Said):
    """Columns to get other values."""

    set: dict[str, str]
    where: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Merge(_Said):
    """Rows to be combined with; the table is ``t`` and the rows are ``s``."""

    rows: Rows
    clauses: tuple[tuple[str, dict[str, Any]], ...]
    on: str = "t.`id` = s.`id`"
    evolve: bool = False


@dataclass(frozen=True, kw_only=True, repr=False)
class Optimize(_Said):
    """Small files to be packed."""

    where: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class Purge(_Said):
    """Files with deleted rows or dropped columns to be written again."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Vacuum(_Said):
    """Files no version needs to be deleted, none kept for their age."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Restore(_Said):
    """Back to the version after a step; 0 is the start."""

    step: int


@dataclass(frozen=True, kw_only=True, repr=False)
class AddColumn(_Said):
    """A new column or field."""

    path: tuple[str, ...]
    kind: str
    after: str | None = None


@dataclass(frozen=True, kw_only=True, repr=False)
class RenameColumn(_Said):
    """A column or field with another name."""

    path: tuple[str, ...]
    name: str


@dataclass(frozen=True, kw_only=True, repr=False)
class DropColumn(_Said):
    """A column or field to go."""

    path: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class SetProperties(_Said):
    """Table properties."""

    properties: dict[str, str]


@dataclass(frozen=True, kw_only=True, repr=False)
class AddConstraint(_Said):
    """A CHECK constraint."""

    name: str
    expression: str


@dataclass(frozen=True, kw_only=True, repr=False)
class WidenColumn(_Said):
    """A wider type for a column."""

    path: tuple[str, ...]
    kind: str


Step = (
    Write | Delete | Update | Merge | Optimize | Purge | Vacuum | Restore | AddColumn
    | RenameColumn | DropColumn | SetProperties | AddConstraint | WidenColumn
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a table looks like when the next step is chosen."""

    schema: t.StructType
    partition_by: tuple[str, ...]
    properties: Mapping[str, str]
    steps: int
    """How many there were, the start included."""
    is_bare: bool = False
    """Whether it was just created and has no rows yet."""

    @property
    def is_mapped(self) -> bool:
        return self.properties.get(MAPPING, "none") != "none"

    def data_leaves(self) -> list[tuple[str, t.DataType]]:
        return [leaf for leaf in leaves(self.schema) if leaf not in self.partition_leaves()]

    def partition_leaves(self) -> list[tuple[str, t.DataType]]:
        return [(quoted(name), self.schema[name].dataType) for name in self.partition_by]


# --- the start ------------------------------------------------------------------------------------


def random_start(rng: Random) -> Start:
    """A table with the key and a few columns, partitioned and with features at random."""
    mapping = rng.choice((None, None, "name", "id"))
    names = _names(rng, rng.randint(2, 5), mapped=mapping is not None)
    # Delta Spark's MERGE cannot find a partition column with a dot in its name.
    names.sort(key=lambda name: "." in name)
    kinds = [random_type(rng) for _ in names]
    partition_by: tuple[str, ...] = ()
    if rng.random() < 0.5:
        count = rng.choice((1, 1, 2))
        kinds[:count] = [rng.choice(PRIMITIVES) for _ in range(count)]
        partition_by = tuple(names[:count])
    listed = [f"{quoted(KEY)} BIGINT{rng.choice(('', '', ' NOT NULL'))}"]
    listed += [f"{quoted(name)} {ddl(kind)}" for name, kind in zip(names, kinds, strict=True)]
    if rng.random() < 0.3:
        rng.shuffle(listed)
    chances = {VECTORS: 0.5, FEED: 0.35, TRACKING: 0.3, WIDENING: 0.3}
    properties = {key: "true" for key, chance in chances.items() if rng.random() < chance}
    if mapping is not None:
        properties[MAPPING] = mapping
    # Delta Spark refuses to write rows into a new table with both: it takes the mapping for new.
    empty = FEED in properties and mapping is not None
    rows = None if empty or rng.random() < 0.3 else _rows(rng)
    return Start(
        columns=", ".join(listed), partition_by=partition_by, properties=properties, rows=rows
    )


def _names(rng: Random, count: int, *, mapped: bool) -> list[str]:
    pool = _NAMES + _MAPPED_NAMES if mapped else _NAMES
    return rng.sample(pool, count)


def _rows(rng: Random, columns: str | None = None, most: int = 14) -> Rows:
    return Rows(seed=rng.randrange(10_000), count=rng.randint(0, most), columns=columns)


# --- conditions and values ------------------------------------------------------------------------


def _test(rng: Random, leaf: tuple[str, t.DataType], prefix: str = "") -> str:
    """A condition on one column."""
    path, kind = leaf
    column = prefix + path
    one, other = literal(rng, kind), literal(rng, kind)
    choices = [
        f"{column} = {one}", f"{column} <=> {one}", f"{column} < {one}", f"{column} >= {one}",
        f"{column} <> {one}", f"{column} IS NULL", f"{column} IS NOT NULL",
        f"{column} IN ({one}, {other})", f"{column} BETWEEN {one} AND {other}",
        f"NOT ({column} > {one})", f"coalesce({column}, {one}) = {one}",
    ]  # fmt: skip
    if isinstance(kind, t.StringType):
        choices += [f"{column} LIKE 'a%'", f"length({column}) > 1"]
    return rng.choice(choices)


def _condition(rng: Random, found: list[tuple[str, t.DataType]], prefix: str = "") -> str:
    """A condition on some of these columns."""
    first = _test(rng, rng.choice(found), prefix)
    if rng.random() < 0.6:
        return first
    return f"{first} {rng.choice(('AND', 'OR'))} {_test(rng, rng.choice(found), prefix)}"


def _near_key(rng: Random, prefix: str = "") -> str:
    """A condition that some rows of nearly every table meet."""
    return _test(rng, (quoted(KEY), t.LongType()), prefix)


def _new_value(rng: Random, path: str, kind: t.DataType) -> str:
    """An expression for a column of a primitive type."""
    choices = [literal(rng, kind), literal(rng, kind), path, "null"]
    if isinstance(kind, t.StringType):
        choices += [f"concat({path}, '!')", f"upper({path})"]
    if isinstance(kind, (t.IntegerType, t.LongType, t.DoubleType)):
        choices += [f"{path} + 1", f"-{path}"]
    if isinstance(kind, (t.ShortType, t.ByteType, t.DecimalType)):
        choices += ["1", "'7'"]
    return rng.choice(choices)


def _assignments(rng: Random, shape: Shape, *, prefix: str = "") -> dict[str, str]:
    """One or two columns or fields with new values; at times a whole nested column becomes null."""
    nested = [f for f in shape.schema.fields if isinstance(f.dataType, (t.ArrayType, t.MapType))]
    if nested and rng.random() < 0.2:
        return {quoted(rng.choice(nested).name): "null"}
    found = leaves(shape.schema)
    chosen = rng.sample(found, min(len(found), rng.choice((1, 1, 2))))
    return {path: _new_value(rng, prefix + path, kind) for path, kind in chosen}


# --- the steps ------------------------------------------------------------------------------------


def _append(rng: Random, _shape: Shape) -> Step:
    return Write(rows=_rows(rng))


def _columns(shape: Shape, but: str | None = None) -> list[str]:
    """The columns of a frame for the table, one left out."""
    return [
        f"{quoted(f.name)} {ddl(f.dataType)}{'' if f.nullable else ' NOT NULL'}"
        for f in shape.schema.fields
        if f.name != but
    ]


def _append_more_columns(rng: Random, shape: Shape) -> Step:
    listed = _columns(shape)
    name = _names(rng, 1, mapped=shape.is_mapped)[0]
    if name.lower() not in {f.name.lower() for f in shape.schema.fields}:
        listed.insert(rng.randint(0, len(listed)), f"{quoted(name)} {ddl(random_type(rng))}")
    merge = rng.random() < 0.85
    return Write(rows=_rows(rng, ", ".join(listed)), merge_schema=merge)


def _append_fewer_columns(rng: Random, shape: Shape) -> Step:
    return Write(rows=_rows(rng, ", ".join(_columns(shape, rng.choice(shape.schema.names)))))


def _overwrite(rng: Random, _shape: Shape) -> Step:
    return Write(rows=_rows(rng), mode="overwrite")


def _overwrite_dynamic(rng: Random, _shape: Shape) -> Step:
    return Write(rows=_rows(rng, most=4), mode="overwrite", dynamic=True)


def _replace_where(rng: Random, shape: Shape) -> Step:
    found = shape.partition_leaves() if rng.random() < 0.5 else shape.data_leaves()
    columns = found or leaves(shape.schema)
    where = _condition(rng, columns)
    while "BETWEEN" in where:
        # Delta ends in an internal error on it at this place when columns are mapped.
        where = _condition(rng, columns)
    rows = _rows(rng)
    kept = Rows(seed=rows.seed, count=rows.count, where=where if rng.random() < 0.85 else None)
    return Write(rows=kept, mode="overwrite", replace_where=where)


def _overwrite_schema(rng: Random, shape: Shape) -> Step:
    mapped = shape.is_mapped
    names = [n for n in _names(rng, 3, mapped=mapped) if n not in shape.partition_by]
    listed = [f"{quoted(KEY)} BIGINT"]
    listed += [
        f"{quoted(f.name)} {ddl(f.dataType)}"
        for f in shape.schema.fields
        if f.name in shape.partition_by
    ]
    listed += [f"{quoted(name)} {ddl(random_type(rng))}" for name in names]
    return Write(rows=_rows(rng, ", ".join(listed)), mode="overwrite", overwrite_schema=True)


def _delete(rng: Random, shape: Shape) -> Step:
    if rng.random() < 0.08:
        return Delete()
    if rng.random() < 0.4:
        return Delete(where=_near_key(rng))
    found = shape.partition_leaves() if rng.random() < 0.3 else []
    return Delete(where=_condition(rng, found or leaves(shape.schema)))


def _update(rng: Random, shape: Shape) -> Step:
    where = rng.choice((None, _near_key(rng), _condition(rng, leaves(shape.schema))))
    return Update(set=_assignments(rng, shape), where=where)


def _merge(rng: Random, shape: Shape) -> Step:
    clauses: list[tuple[str, dict[str, Any]]] = []

    def maybe(condition: str) -> dict[str, Any]:
        return {"condition": condition} if rng.random() < 0.5 else {}

    if rng.random() < 0.3:
        clauses.append(("whenMatchedDelete", {"condition": _near_key(rng, "t.")}))
    if rng.random() < 0.7:
        if rng.random() < 0.5:
            clauses.append(("whenMatchedUpdateAll", maybe(_near_key(rng, "s."))))
        else:
            given = _assignments(rng, shape, prefix=rng.choice(("s.", "t.")))
            clauses.append(("whenMatchedUpdate", {"set": given, **maybe(_near_key(rng, "t."))}))
    if rng.random() < 0.7 or not clauses:
        clauses.append(("whenNotMatchedInsertAll", maybe(_near_key(rng, "s."))))
    if rng.random() < 0.25:
        given = _assignments(rng, shape, prefix="t.")
        condition = {"condition": _near_key(rng, "t.")}
        clauses.append(("whenNotMatchedBySourceUpdate", {"set": given, **condition}))
    if rng.random() < 0.2:
        clauses.append(("whenNotMatchedBySourceDelete", maybe(_near_key(rng, "t."))))
    evolve = rng.random() < 0.2
    columns = None
    if evolve:
        name = _names(rng, 1, mapped=shape.is_mapped)[0]
        if name.lower() not in {f.name.lower() for f in shape.schema.fields}:
            columns = ", ".join([*_columns(shape), f"{quoted(name)} {ddl(random_type(rng))}"])
    on = f"t.{quoted(KEY)} = s.{quoted(KEY)}"
    if shape.partition_by and rng.random() < 0.3:
        path = quoted(shape.partition_by[0])
        on += f" AND t.{path} <=> s.{path}"
    # Few rows: two of one key would be an error nearly always.
    return Merge(rows=_rows(rng, columns, most=5), clauses=tuple(clauses), on=on, evolve=evolve)


def _optimize(rng: Random, shape: Shape) -> Step:
    if shape.partition_by and rng.random() < 0.4:
        return Optimize(where=_condition(rng, shape.partition_leaves()))
    return Optimize()


def _restore(rng: Random, shape: Shape) -> Step:
    return Restore(step=rng.randrange(shape.steps))


def _struct_paths(shape: Shape) -> list[tuple[str, ...]]:
    return [(f.name,) for f in shape.schema.fields if isinstance(f.dataType, t.StructType)]


def _add_column(rng: Random, shape: Shape) -> Step:
    inside = _struct_paths(shape)
    if inside and rng.random() < 0.4:
        return AddColumn(path=(*rng.choice(inside), "added"), kind=ddl(random_type(rng, 1)))
    name = _names(rng, 1, mapped=shape.is_mapped)[0]
    after = rng.choice((None, None, rng.choice(shape.schema.names)))
    return AddColumn(path=(name,), kind=ddl(random_type(rng)), after=after)


def _some_path(rng: Random, shape: Shape) -> tuple[str, ...]:
    """A column other than the key, or a field of a struct."""
    field_ = rng.choice([f for f in shape.schema.fields if f.name != KEY])
    if isinstance(field_.dataType, t.StructType) and rng.random() < 0.6:
        return field_.name, rng.choice(field_.dataType.names)
    return (field_.name,)


def _rename(rng: Random, shape: Shape) -> Step:
    # One mistake at a time: which of two is named first is nobody's concern.
    path = _some_path(rng, shape)
    taken = set() if shape.is_mapped else set(shape.schema.names)
    if path[0] in shape.partition_by:
        taken.add("dot.ted")
    names = [name for name in _names(rng, 8, mapped=True) if name not in taken]
    return RenameColumn(path=path, name=names[0])


def _drop(rng: Random, shape: Shape) -> Step:
    return DropColumn(path=_some_path(rng, shape))


def _set(rng: Random, shape: Shape) -> Step:
    key = rng.choice((VECTORS, FEED, WIDENING, MAPPING))
    if key == MAPPING:
        return SetProperties(properties={MAPPING: rng.choice(("name", "name", "id"))})
    now = shape.properties.get(key) == "true"
    # A feed that pauses cannot be read over the gap.
    return SetProperties(properties={key: "true" if key == FEED or not now else "false"})


def _constrain(rng: Random, shape: Shape) -> Step:
    test = rng.choice((f"{quoted(KEY)} IS NULL OR {quoted(KEY)} > -1000", _near_key(rng)))
    return AddConstraint(name=f"c{shape.steps}", expression=test)


def _widen(rng: Random, shape: Shape) -> Step:
    able = [f for f in shape.schema.fields if f.dataType.simpleString() in _WIDER]
    if not able:
        return _set(rng, shape)
    chosen = rng.choice(able)
    return WidenColumn(path=(chosen.name,), kind=rng.choice(_WIDER[chosen.dataType.simpleString()]))


_STEPS: tuple[tuple[int, Callable[[Random, Shape], Step]], ...] = (
    (14, _append),
    (5, _append_more_columns),
    (3, _append_fewer_columns),
    (3, _overwrite),
    (4, _overwrite_dynamic),
    (6, _replace_where),
    (3, _overwrite_schema),
    (14, _delete),
    (14, _update),
    (18, _merge),
    (6, _optimize),
    (5, lambda _rng, _shape: Purge()),
    (2, lambda _rng, _shape: Vacuum()),
    (5, _restore),
    (5, _add_column),
    (5, _rename),
    (4, _drop),
    (4, _set),
    (2, _constrain),
    (5, _widen),
)


def random_step(rng: Random, shape: Shape) -> Step:
    """The next step for a table of that shape; now and then one that both have to refuse."""
    if shape.is_bare:
        # Without rows most steps have nothing to do.
        return Write(rows=Rows(seed=rng.randrange(10_000), count=rng.randint(6, 14)))
    weights, makers = zip(*_STEPS, strict=True)
    step: Step = rng.choices(makers, weights)[0](rng, shape)
    return step
