"""Schema evolution by a write: none, new columns, wider types, or a new schema.

The decisions are those of Delta Spark's DataFrame writer. It casts nothing: the types of a frame
have to be the table's, except that byte, short and int mix, and except for what type widening
allows. Columns are matched by name at every level, ignoring case, and may be missing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from twinlake.compat import enabled_compats, is_uniform, with_column_mapping
from twinlake.errors import Code, UserError, listed
from twinlake.protocol import keys
from twinlake.runtime import RandomIds
from twinlake.schema import (
    CURRENT_DEFAULT_KEY,
    EXISTS_DEFAULT_KEY,
    INVARIANTS_KEY,
    VOID,
    Array,
    Map,
    Struct,
    StructField,
    can_widen,
    check_schema,
    keep_mapping,
    map_fields,
    merge_schemas,
    parse_path,
    render_path,
    render_type,
    strip_mapping,
    type_at,
    walk_types,
)
from twinlake.table.operations import dependents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from twinlake.protocol import Metadata
    from twinlake.runtime import Ids
    from twinlake.schema import ColumnPath, DataType

__all__ = [
    "evolve",
    "first_schema",
    "read_field_metadata",
    "refuse_duplicates",
    "refuse_mismatch",
    "refuse_missing_partitions",
    "refuse_partitions_alone",
]

_OWN_METADATA: Final = ("delta.", "parquet.field.")
_TYPE_MISMATCH: Final = {
    "CHECK constraint": "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH",
    "generated column": "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
}


def evolve(
    frame_schema: Struct,
    metadata: Metadata,
    *,
    merge_schema: bool,
    overwrite_schema: bool,
    partition_by: Sequence[str] | None = None,
    implicit_casts: bool = False,
    ids: Ids | None = None,
) -> Metadata:
    """The metadata after a frame of that schema is written; raises if the table refuses it.

    ``overwrite_schema`` goes with a full overwrite: the frame's schema and ``partition_by`` then
    replace the table's. With ``implicit_casts``, as MERGE has them, a value of another type is
    cast to the column's type instead of being refused.

    >>> from twinlake.protocol import Metadata
    >>> from twinlake.schema import parse_ddl, render_ddl
    >>> table = Metadata().with_schema(parse_ddl("id INT"))
    >>> grown = evolve(parse_ddl("ID INT, s STRING"), table, merge_schema=True,
    ...                overwrite_schema=False)
    >>> render_ddl(grown.schema)
    'id INT, s STRING'
    """
    refuse_duplicates(frame_schema)
    if overwrite_schema or not metadata.schema.fields:
        changed = _replaced(frame_schema, metadata, partition_by)
    else:
        changed = _merged(
            frame_schema,
            metadata,
            merge_schema=merge_schema,
            partition_by=partition_by,
            implicit_casts=implicit_casts,
        )
    if changed is metadata:
        return metadata
    _refuse_void_inside(changed.schema)
    check_schema(
        changed.schema,
        mode=changed.column_mapping_mode,
        partition_columns=changed.partition_columns,
    )
    return with_column_mapping(metadata, changed, ids or RandomIds())


def first_schema(frame_schema: Struct) -> Struct:
    """The schema of a table that a frame's first write makes: everything may be null."""
    refuse_duplicates(frame_schema)
    return _nullable(_without_bookkeeping(frame_schema))


def read_field_metadata(field: StructField) -> dict[str, Any]:
    """The metadata that a column shows when it is read.

    Char and varchar are strings to Spark; it takes the length from here, pads what it reads from
    a file relation and pads what it compares with. Files may hold char values without padding:
    Delta's DataFrame writer does not pad.
    """
    return {k: v for k, v in field.metadata.items() if not k.startswith(_OWN_METADATA)}


def refuse_duplicates(frame_schema: Struct) -> None:
    """Raise if two columns of a struct have the same name, ignoring case."""
    doubled: list[str] = []
    for path, kind in walk_types(frame_schema):
        if isinstance(kind, Struct):
            seen: set[str] = set()
            for name in kind.names():
                if name.casefold() in seen:
                    doubled.append(render_path((*path, name)))
                seen.add(name.casefold())
    if doubled:
        raise UserError(
            Code.SCHEMA_INVALID,
            f"The data has columns of the same name: {', '.join(doubled)}.",
            why="column names are compared ignoring case",
            fix="Rename or drop one of each.",
            delta_class="DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
            fields={"columns": doubled},
        )


def refuse_mismatch(
    metadata: Metadata,
    differences: Sequence[str],
    *,
    partitioning: tuple[Sequence[str], Sequence[str]] | None = None,
) -> NoReturn:
    """Raise Delta's schema mismatch with everything in which data and table differ."""
    reasons = list(differences)
    fixes = ["Pass `merge_schema=True` to change the table's columns with the write."]
    if partitioning is not None:
        given, own = (", ".join(names) or "nothing" for names in partitioning)
        reasons.append(f"the data is to be partitioned by {given} and the table is by {own}")
        fixes = fixes if differences else []
        fixes.append(
            "Leave `partition_by=` out, or overwrite the table with `overwrite_schema=True`."
        )
    raise UserError(
        Code.SCHEMA_EVOLUTION,
        f"The data does not match the columns of table {metadata.label}.",
        why="; ".join(reasons[:20])
        + (f"; and {len(reasons) - 20} more" if len(reasons) > 20 else ""),
        fix=" ".join(fixes),
        delta_class="DELTA_METADATA_MISMATCH",
        fields={
            "differences": reasons,
            "columns": list(differences),
            "partitions": list(partitioning[0]) if partitioning is not None else [],
        },
    )


def refuse_missing_partitions(metadata: Metadata, given: Sequence[str]) -> None:
    """Raise if the data lacks a column that says which partition a row belongs to."""
    present = {name.casefold() for name in given}
    missing = [name for name in metadata.partition_columns if name.casefold() not in present]
    if missing:
        raise UserError(
            Code.SCHEMA_INVALID,
            f"The data lacks partition columns of table {metadata.label}: {', '.join(missing)}.",
            why=f"the data has {', '.join(dict.fromkeys(given))}",
            fix="Add the columns; they may hold nulls.",
            delta_class="DELTA_PARTITION_COLUMN_NOT_FOUND",
            fields={"columns": missing},
        )


def refuse_partitions_alone(metadata: Metadata, written: Iterable[str]) -> None:
    """Raise if the data has nothing but columns that say which partition a row belongs to."""
    partitions = {name.casefold() for name in metadata.partition_columns}
    if partitions and partitions.issuperset(name.casefold() for name in written):
        raise UserError(
            Code.SCHEMA_INVALID,
            f"The data has only partition columns of table {metadata.label}.",
            why="they are not stored in the data files, so there would be nothing to write",
            fix="Add one of the other columns; it may hold nulls of its type.",
            delta_class="DELTA_NON_PARTITION_COLUMN_ABSENT",
            fields={"columns": list(metadata.partition_columns)},
        )


def _refuse_void_inside(schema: Struct) -> None:
    """Parquet has no element, key or value without a type; a void column is simply left out."""
    found = [
        render_path(path)
        for path, kind in walk_types(schema)
        if kind == VOID and any(_is_collection(schema, path[:depth]) for depth in range(len(path)))
    ]
    if found:
        raise UserError(
            Code.SCHEMA_INVALID,
            f"New columns have arrays or maps of untyped nulls: {', '.join(found)}.",
            why="their elements have no type that could be stored",
            fix="Cast the columns, for example to ARRAY<INT>.",
            delta_class="DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
            fields={"columns": found},
        )


def _is_collection(schema: Struct, path: ColumnPath) -> bool:
    return isinstance(type_at(schema, path), Array | Map)


def _merged(
    frame_schema: Struct,
    metadata: Metadata,
    *,
    merge_schema: bool,
    partition_by: Sequence[str] | None,
    implicit_casts: bool,
) -> Metadata:
    current = metadata.schema
    widen = metadata.flag(keys.ENABLE_TYPE_WIDENING)
    incoming = _without_bookkeeping(frame_schema)
    if implicit_casts:
        assigned = _assigned(current, incoming, widen)
        incoming = assigned if isinstance(assigned, Struct) else incoming
    try:
        merged = merge_schemas(
            current, incoming, widen=widen, iceberg=_reads_as_iceberg(metadata), exact=True
        )
    except UserError as error:
        # As in Delta the rules that stand on a column are named before its type is.
        misfits = [parse_path(column["path"]) for column in error.fields.get("columns", ())]
        _refuse_dependents(metadata, [path for path in misfits if current.get(path[0])])
        raise
    differences = [] if merge_schema else list(_differences(current, merged, ()))
    partitioning = _other_partitioning(metadata, partition_by)
    if differences or partitioning is not None:
        refuse_mismatch(metadata, differences, partitioning=partitioning)
    if merged == current:
        return metadata
    _refuse_dependents(metadata, list(_retyped(current, merged, ())))
    return metadata.with_schema(merged)


def _replaced(
    frame_schema: Struct, metadata: Metadata, partition_by: Sequence[str] | None
) -> Metadata:
    """The frame's columns, all nullable; those that stay the same keep their mapping."""
    plain = _nullable(_without_bookkeeping(frame_schema))
    kept = keep_mapping(plain, metadata.schema)
    schema = kept if isinstance(kept, Struct) else plain
    names = tuple(
        field.name if (field := schema.get(name)) is not None else name
        for name in partition_by or ()
    )
    if schema == metadata.schema and names == metadata.partition_columns:
        return metadata
    return replace(metadata.with_schema(schema), partition_columns=names)


def _other_partitioning(
    metadata: Metadata, partition_by: Sequence[str] | None
) -> tuple[Sequence[str], Sequence[str]] | None:
    if not partition_by:
        return None
    own = metadata.partition_columns
    same = [name.casefold() for name in partition_by] == [name.casefold() for name in own]
    return None if same else (tuple(partition_by), own)


def _reads_as_iceberg(metadata: Metadata) -> bool:
    """Whether an Iceberg schema has to follow, which can widen less."""
    return is_uniform(metadata) or bool(enabled_compats(metadata))


def _differences(current: DataType, merged: DataType, path: ColumnPath) -> Iterator[str]:
    """In words, what the table would have to become."""
    match current, merged:
        case Struct(), Struct():
            for field in merged:
                here = (*path, field.name)
                own = current.get(field.name)
                if own is None:
                    yield f"{render_path(here)} {render_type(field.type)} is not in the table"
                else:
                    yield from _differences(own.type, field.type, here)
        case Array(), Array():
            yield from _differences(current.element, merged.element, (*path, "element"))
        case Map(), Map():
            yield from _differences(current.key, merged.key, (*path, "key"))
            yield from _differences(current.value, merged.value, (*path, "value"))
        case _ if current != merged:
            yield (
                f"{render_path(path)} is {render_type(merged)} in the data "
                f"and {render_type(current)} in the table"
            )
        case _:
            pass


def _refuse_dependents(metadata: Metadata, retyped: Sequence[ColumnPath]) -> None:
    """Constraints and generated columns were written for the types their columns have."""
    found = dependents(metadata, retyped)
    if found:
        raise UserError(
            Code.SCHEMA_EVOLUTION,
            f"Cannot change the type of {', '.join(sorted({d.column for d in found}))}.",
            why=listed(map(str, found)),
            fix="Cast the data to the table's types, or drop what depends on the column first.",
            delta_class=_TYPE_MISMATCH.get(found[0].kind),
            fields={"columns": sorted({d.column for d in found})},
        )


def _retyped(current: DataType, merged: DataType, path: ColumnPath) -> Iterator[ColumnPath]:
    """Struct fields whose own type changed; elements, keys and values count for their field."""
    if not isinstance(current, Struct) or not isinstance(merged, Struct):
        return
    for field in current:
        new = merged.get(field.name)
        if new is None or new.type == field.type:
            continue
        if isinstance(field.type, Struct):
            yield from _retyped(field.type, new.type, (*path, field.name))
        else:
            yield (*path, field.name)


def _assigned(current: DataType, incoming: DataType, widen: bool) -> DataType:
    """The incoming type with the table's wherever a cast will bridge the two."""
    match current, incoming:
        case Struct(), Struct():
            return Struct(
                tuple(
                    replace(f, type=_assigned(own.type, f.type, widen))
                    if (own := current.get(f.name)) is not None
                    else f
                    for f in incoming
                )
            )
        case Array(), Array():
            return replace(incoming, element=_assigned(current.element, incoming.element, widen))
        case Map(), Map():
            key = _assigned(current.key, incoming.key, widen)
            return replace(incoming, key=key, value=_assigned(current.value, incoming.value, widen))
        case (Struct() | Array() | Map(), _) | (_, Struct() | Array() | Map()):
            return incoming
        case _:
            return incoming if widen and can_widen(current, incoming) else current


def _without_bookkeeping(schema: Struct) -> Struct:
    """A frame's schema without what another table's schema may have left in its metadata."""

    def cleaned(_: ColumnPath, field: StructField) -> StructField:
        gone = {
            key: None
            for key in field.metadata
            if key in (CURRENT_DEFAULT_KEY, EXISTS_DEFAULT_KEY)
            or (key.startswith(_OWN_METADATA) and key != INVARIANTS_KEY)
        }
        return field.with_metadata(**gone) if gone else field

    changed = map_fields(strip_mapping(schema), cleaned)
    return changed if isinstance(changed, Struct) else schema


def _nullable(schema: Struct) -> Struct:
    changed = _nullable_type(schema)
    return changed if isinstance(changed, Struct) else schema


def _nullable_type(kind: DataType) -> DataType:
    match kind:
        case Struct(fields):
            return Struct(
                tuple(replace(f, nullable=True, type=_nullable_type(f.type)) for f in fields)
            )
        case Array(element):
            return Array(_nullable_type(element))
        case Map(key, value):
            return Map(_nullable_type(key), _nullable_type(value))
        case _:
            return kind
