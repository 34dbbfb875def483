"""Rules about columns: their types, ids, names, and what their metadata asks of writers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from twinlake.compat.rule import Finding
from twinlake.compat.rules.default_literal import is_literal_of
from twinlake.compat.rules.schema_index import IDENTITY_KEYS, index_schema
from twinlake.protocol import features, keys
from twinlake.schema import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    CURRENT_DEFAULT_KEY,
    EXISTS_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    INVARIANTS_KEY,
    PHYSICAL_NAME_KEY,
    Array,
    ColumnPath,
    DataType,
    Decimal,
    Geography,
    Geometry,
    Interval,
    Map,
    Primitive,
    can_widen,
    char_type,
    field_id,
    id_name,
    render_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from twinlake.compat.rule import Case, Check
    from twinlake.compat.rules.schema_index import IndexedField
    from twinlake.schema import TypeChange

__all__ = [
    "PARTITION_TYPES",
    "allowed_types",
    "bad_defaults",
    "collated_columns",
    "collations_of",
    "defaults_are_literals",
    "ids_are_whole",
    "is_outside",
    "is_partition_type",
    "is_small_integer",
    "name_finding",
    "no_char",
    "no_collections",
    "no_existence_defaults",
    "no_generated_columns",
    "no_geospatial",
    "no_identity_columns",
    "no_intervals",
    "no_invariants",
    "no_small_integers",
    "partition_types",
    "physical_names",
    "type_changes_suit_iceberg",
    "type_finding",
    "types_outside",
    "unsuitable_changes",
]

_MAX_ID: Final = 2**31 - 1
_SMALL: Final = frozenset(("byte", "short"))
PARTITION_TYPES: Final = frozenset(
    (
        "byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean",
        "date", "timestamp", "timestamp_ntz",
    )
)  # fmt: skip
"""The types without parameters that a partition column may have; decimals may, too."""


def is_small_integer(kind: DataType) -> bool:
    """The integers that Iceberg does not have."""
    return isinstance(kind, Primitive) and kind.name in _SMALL


def _is_geospatial(kind: DataType) -> bool:
    return isinstance(kind, (Geometry, Geography))


def _is_interval(kind: DataType) -> bool:
    return isinstance(kind, Interval)


def _is_collection(kind: DataType) -> bool:
    return isinstance(kind, (Array, Map)) or kind == Primitive("void")


def is_outside(version: int, *, everything: bool = False) -> Callable[[DataType], bool]:
    """Whether a type is off the list of the version.

    Byte and short, intervals and shapes have rules of their own and are left to them, the latter
    two unless ``everything`` is asked for.
    """

    def test(kind: DataType) -> bool:
        if isinstance(kind, (Array, Map)) or is_small_integer(kind):
            return False
        if _is_interval(kind):
            return everything
        if _is_geospatial(kind):
            return everything and version < 3
        return not (version >= 3 and kind == Primitive("variant"))

    return test


def type_finding(
    case: Case, path: ColumnPath, kind: str, wanted: str, message: str = ""
) -> Finding:
    """A column whose type the compat feature does not allow."""
    where = render_path(path)
    return Finding(
        path=where,
        found=kind,
        wanted=wanted,
        message=message or f"column {where} has type {kind}, which {case.compat} does not allow",
    )


def types_outside(
    case: Case, excluded: Callable[[DataType], bool], wanted: str
) -> Iterator[Finding]:
    """Every type of the schema that is excluded."""
    for path, kind in index_schema(case.subject.metadata).types:
        if excluded(kind):
            yield type_finding(case, path, str(kind), wanted)


def _type_check(excluded: Callable[[DataType], bool], wanted: str) -> Check:
    return lambda case: types_outside(case, excluded, wanted)


no_collections: Final = _type_check(_is_collection, "no array, map or void")
no_geospatial: Final = _type_check(_is_geospatial, "no geometry or geography")
no_intervals: Final = _type_check(_is_interval, "no interval")
no_small_integers: Final = _type_check(is_small_integer, "integer or long")


def collations_of(metadata: Mapping[str, Any]) -> dict[str, str]:
    """The collations of a field that are not the comparison of bytes, by the path they are for."""
    found = metadata.get(COLLATIONS_KEY)
    if not isinstance(found, Mapping):
        return {} if found is None else {"": str(found)}
    return {
        str(where): str(name)
        for where, name in found.items()
        if str(name).rpartition(".")[2].upper() != "UTF8_BINARY"
    }


def collated_columns(case: Case) -> Iterator[tuple[ColumnPath, str]]:
    """Every text that is not compared by its bytes, with its collation."""
    for entry in index_schema(case.subject.metadata).fields_with(COLLATIONS_KEY):
        for where, name in collations_of(entry.field.metadata).items():
            # The key of a collation is the name of the field and then element, key, value.
            below = where.removeprefix(entry.field.name).strip(".")
            yield (*entry.path, *(below.split(".") if below else ())), name


def allowed_types(version: int, *, everything: bool = False) -> Check:
    """Types are on the list of the version; see :func:`is_outside`."""
    excluded = is_outside(version, everything=everything)
    wanted = "a type of Iceberg v3" if version >= 3 else "a type of Iceberg v2"

    def check(case: Case) -> Iterator[Finding]:
        yield from types_outside(case, excluded, wanted)
        for path, name in collated_columns(case):
            yield type_finding(case, path, f"string collate {name}", "string compared by its bytes")

    return check


def no_char(case: Case) -> Iterator[Finding]:
    """No CHAR, at any depth: Spark pads its values when it reads them."""
    for entry in index_schema(case.subject.metadata).fields_with(CHAR_VARCHAR_KEY):
        if (found := char_type(entry.field)) is not None:
            where = render_path(entry.path)
            yield Finding(
                path=where,
                found=found,
                wanted="VARCHAR or STRING",
                message=f"column {where} is {found}, whose values Spark pads when it reads them",
            )


def is_partition_type(kind: DataType) -> bool:
    """Whether a partition column may have the type."""
    return isinstance(kind, Decimal) or (
        isinstance(kind, Primitive) and kind.name in PARTITION_TYPES
    )


def partition_types(case: Case) -> Iterator[Finding]:
    """Partition columns have types whose values Iceberg can hold in a partition."""
    metadata = case.subject.metadata
    for name in metadata.partition_columns:
        column = metadata.schema.get(name)
        if column is None:
            message = f"partition column {render_path((name,))} is not in the schema"
            yield type_finding(case, (name,), "(no such column)", "a column", message)
        elif not is_partition_type(column.type):
            yield type_finding(
                case,
                (column.name,),
                str(column.type),
                "a type without parts",
                f"partition column {render_path((column.name,))} has type {column.type}",
            )


def name_finding(entry: IndexedField) -> Finding:
    """A field whose physical name is not made from its id."""
    own = field_id(entry.field)
    found = entry.field.metadata.get(PHYSICAL_NAME_KEY)
    where = render_path(entry.path)
    return Finding(
        path=where,
        found="(not set)" if found is None else str(found),
        wanted="col-<id>" if own is None else id_name(own),
        message=f"column {where} has physical name {found!s} and id {own!s}",
    )


def physical_names(case: Case) -> Iterator[Finding]:
    """The physical name of every struct field is made from its id."""
    for entry in index_schema(case.subject.metadata).misnamed:
        yield name_finding(entry)


def _id_finding(path: ColumnPath, found: str, wanted: str, message: str) -> Finding:
    where = render_path(path)
    return Finding(path=where, found=found, wanted=wanted, message=f"{where} {message}")


def ids_are_whole(case: Case) -> Iterator[Finding]:
    """Every column, element, key and value has an id of its own, none above the highest."""
    metadata = case.subject.metadata
    index = index_schema(metadata)
    for path in index.without_id:
        yield _id_finding(path, "no id", "an id of its own", "has no id")
    owners: dict[int, ColumnPath] = {}
    text = metadata.configuration.get(keys.MAX_COLUMN_ID)
    highest = metadata.max_column_id
    if text is not None and highest is None:
        yield Finding(
            path=keys.MAX_COLUMN_ID,
            found=text,
            wanted="a number",
            message=f"{keys.MAX_COLUMN_ID} is {text!r}, which is not a number",
        )
    bound = _MAX_ID if highest is None else min(highest, _MAX_ID)
    for claim in index.claims:
        first = owners.setdefault(claim.id, claim.path)
        if first is not claim.path:
            text = f"has id {claim.id}, which is also the id of {render_path(first)}"
            yield _id_finding(claim.path, str(claim.id), "an id of its own", text)
        if not 0 < claim.id <= bound:
            wanted = f"1 to {bound}"
            yield _id_finding(claim.path, str(claim.id), wanted, f"has id {claim.id}, not {wanted}")


def _history_finding(path: ColumnPath, change: TypeChange | None, problem: str) -> Finding:
    where = render_path(path)
    if change is None:
        return Finding(
            path=where,
            found="a history that cannot be read",
            wanted="changes that Iceberg has",
            message=f"the history of the type of {where} is damaged: {problem.rstrip('.')}",
        )
    return Finding(
        path=where,
        found=f"{change.from_type} to {change.to_type}",
        wanted="a change that Iceberg has",
        message=f"the type of {where} was changed from {change.from_type} to {change.to_type}",
    )


def unsuitable_changes(case: Case) -> Iterable[Finding]:
    """Recorded changes of types that Iceberg does not have, and records that cannot be read."""
    for entry in index_schema(case.subject.metadata).history:
        change = entry.change
        if change is None or not can_widen(change.from_type, change.to_type, iceberg=True):
            yield _history_finding(entry.path, change, entry.problem)


def type_changes_suit_iceberg(case: Case) -> Iterable[Finding]:
    """The history of types holds only what Iceberg can do; without the feature it means nothing."""
    if case.subject.protocol.supports_either(features.TYPE_WIDENING):
        return unsuitable_changes(case)
    return ()


def _no_key(keys: tuple[str, ...], what: str) -> Check:
    def check(case: Case) -> Iterator[Finding]:
        for entry in index_schema(case.subject.metadata).fields_with(*keys):
            where = render_path(entry.path)
            held = {key: entry.field.metadata[key] for key in keys if key in entry.field.metadata}
            yield Finding(
                path=where,
                found=", ".join(f"{key} = {value}" for key, value in held.items()),
                wanted=f"no {what}",
                message=f"column {where} has {', '.join(held)} in its metadata",
            )

    return check


no_invariants: Final = _no_key((INVARIANTS_KEY,), "invariant")
no_identity_columns: Final = _no_key(IDENTITY_KEYS, "identity column")
no_generated_columns: Final = _no_key((GENERATION_EXPRESSION_KEY,), "generation expression")
no_existence_defaults: Final = _no_key((EXISTS_DEFAULT_KEY,), "value for rows of earlier files")


def defaults_are_literals(case: Case) -> Iterator[Finding]:
    """Defaults are values, not expressions: Iceberg stores the value."""
    yield from bad_defaults(case, is_literal_of)


def bad_defaults(case: Case, is_literal: Callable[[DataType, str], bool]) -> Iterator[Finding]:
    """The defaults that a reading does not take for literals."""
    for entry in index_schema(case.subject.metadata).fields_with(CURRENT_DEFAULT_KEY):
        found = entry.field.metadata[CURRENT_DEFAULT_KEY]
        if isinstance(found, str) and is_literal(entry.field.type, found):
            continue
        where = render_path(entry.path)
        yield Finding(
            path=where,
            found=str(found),
            wanted=f"a literal of type {entry.field.type}",
            message=f"the default of {where} is {found}, not a literal of {entry.field.type}",
        )
