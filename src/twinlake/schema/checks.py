"""What a schema must fulfil before it may be committed; every violation is found at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError, how_to_set
from twinlake.schema.json_codec import MAX_PRECISION
from twinlake.schema.mapping import ColumnMappingMode, mapping_problems
from twinlake.schema.metadata_keys import (
    COLUMN_MAPPING_MODE,
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_START_KEY,
)
from twinlake.schema.paths import render_path
from twinlake.schema.types import (
    MAX_DEPTH,
    VARIANT,
    VOID,
    DataType,
    Decimal,
    Map,
    Primitive,
    Struct,
    walk_types,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["FORBIDDEN_CHARACTERS", "SchemaViolation", "check_schema", "schema_violations"]

FORBIDDEN_CHARACTERS: Final = " ,;{}()\n\t="
"""What column names cannot hold unless column mapping gives them a physical name."""

_OWN_PREFIX: Final = "__twinlake_"
"""How the columns begin that a scan or a MERGE adds to those of the table."""

_MADE: Final = {
    GENERATION_EXPRESSION_KEY: "a generated",
    IDENTITY_START_KEY: "an identity",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaViolation:
    """One broken rule, the dotted path of the column, and Delta's name for it."""

    path: str
    message: str
    delta_class: str | None = None

    def __str__(self) -> str:
        return f"{self.path or '(schema)'} {self.message}"


def check_schema(
    schema: Struct,
    *,
    mode: ColumnMappingMode = ColumnMappingMode.NONE,
    partition_columns: Sequence[str] = (),
    max_id: int | None = None,
) -> None:
    """Raise one error that names every violation, or return.

    >>> from twinlake.schema import parse_ddl
    >>> check_schema(parse_ddl("id INT, day DATE"), partition_columns=("day",))
    """
    found = tuple(
        schema_violations(schema, mode=mode, partition_columns=partition_columns, max_id=max_id)
    )
    if not found:
        return
    classes = dict.fromkeys(v.delta_class for v in found if v.delta_class)
    raise UserError(
        Code.SCHEMA_INVALID,
        f"The schema breaks {len(found)} rule{'s' if len(found) > 1 else ''}.",
        why="; ".join(str(violation) for violation in found[:20])
        + (f"; and {len(found) - 20} more" if len(found) > 20 else ""),
        fix=_fix(found),
        delta_class=next(iter(classes), None),
        fields={
            "violations": [
                {"path": v.path, "message": v.message, "delta_class": v.delta_class} for v in found
            ]
        },
    )


def schema_violations(
    schema: Struct,
    *,
    mode: ColumnMappingMode = ColumnMappingMode.NONE,
    partition_columns: Sequence[str] = (),
    max_id: int | None = None,
) -> Iterator[SchemaViolation]:
    """Every rule the schema breaks; mapping is looked at only when ``max_id`` is given."""
    if _depth(schema) > MAX_DEPTH:
        # The walkers below recurse, so nothing else can be said about such a schema.
        yield SchemaViolation(path="", message=f"nests deeper than {MAX_DEPTH} levels")
        return
    for path, kind in walk_types(schema):
        shown = render_path(path)
        match kind:
            case Struct():
                yield from _names(kind, path, mode)
                if path and not kind.fields:
                    yield SchemaViolation(path=shown, message="is a struct without fields")
            case Decimal(precision, scale) if not (
                1 <= precision <= MAX_PRECISION and 0 <= scale <= precision
            ):
                yield SchemaViolation(path=shown, message=f"has the impossible type {kind}")
            case Map(key) if key in (VOID, VARIANT) or isinstance(key, Map):
                yield SchemaViolation(path=shown, message=f"has map keys of type {key}")
            case _:
                pass
    yield from _partitions(schema, partition_columns)
    yield from _defaults(schema)
    if mode is not ColumnMappingMode.NONE and max_id is not None:
        for where, problem in mapping_problems(schema, max_id=max_id):
            yield SchemaViolation(path=where, message=problem)


def _names(
    struct: Struct, path: tuple[str, ...], mode: ColumnMappingMode
) -> Iterator[SchemaViolation]:
    seen: dict[str, str] = {}
    for field in struct:
        shown = render_path((*path, field.name))
        folded = field.name.casefold()
        if folded in seen:
            same = "appears twice" if seen[folded] == field.name else "differs only in case"
            yield SchemaViolation(
                path=shown,
                message=f"{same} (column names are compared ignoring case)",
                delta_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            )
        seen.setdefault(folded, field.name)
        if not field.name:
            yield SchemaViolation(path=shown, message="has an empty name")
        if not path and folded.startswith(_OWN_PREFIX):
            yield SchemaViolation(
                path=shown,
                message=f"begins with {_OWN_PREFIX}, as twinlake names columns of its own",
            )
        bad = [c for c in FORBIDDEN_CHARACTERS if c in field.name]
        if mode is ColumnMappingMode.NONE and bad:
            listed = " ".join(repr(c) for c in bad)
            yield SchemaViolation(
                path=shown,
                message=f"has characters in its name that need column mapping: {listed}",
                delta_class="DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
            )


def _partitions(schema: Struct, names: Sequence[str]) -> Iterator[SchemaViolation]:
    seen: set[str] = set()
    for name in names:
        shown = render_path((name,))
        if name.casefold() in seen:
            yield SchemaViolation(
                path=shown,
                message="is listed twice as a partition column",
                delta_class="DELTA_DUPLICATE_COLUMNS_FOUND",
            )
        seen.add(name.casefold())
        field = schema.get(name)
        if field is None:
            yield SchemaViolation(
                path=shown,
                message="is a partition column but not in the schema",
                delta_class="DELTA_PARTITION_COLUMN_NOT_FOUND",
            )
        elif not _can_partition(field.type):
            yield SchemaViolation(
                path=shown,
                message=f"cannot partition the table by type {field.type}",
                delta_class="DELTA_INVALID_PARTITION_COLUMN_TYPE",
            )
    if names and len(seen) >= len(schema) and all(schema.get(name) for name in names):
        yield SchemaViolation(
            path="",
            message="has no column left besides the partition columns",
            delta_class="DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        )


def _defaults(schema: Struct) -> Iterator[SchemaViolation]:
    """A default beside another way to make the value: one of them would never be used."""
    for field in schema:
        if CURRENT_DEFAULT_KEY not in field.metadata:
            continue
        for key, kind in _MADE.items():
            if key in field.metadata:
                yield SchemaViolation(
                    path=render_path((field.name,)),
                    message=f"has a default value and is {kind} column as well",
                    delta_class=f"{kind.split()[1].upper()}_COLUMN_WITH_DEFAULT_VALUE",
                )


def _can_partition(kind: DataType) -> bool:
    return isinstance(kind, Decimal) or (
        isinstance(kind, Primitive) and kind not in (VARIANT, VOID)
    )


def _depth(schema: Struct) -> int:
    """How deep types nest, counted without recursion and only as far as it matters."""
    level: list[DataType] = [schema]
    depth = 0
    while level and depth <= MAX_DEPTH:
        inner: list[DataType] = []
        for kind in level:
            match kind:
                case Struct(fields):
                    inner.extend(f.type for f in fields)
                case Map(key, value):
                    inner += (key, value)
                case _:
                    element = getattr(kind, "element", None)
                    inner += [element] if isinstance(element, DataType) else []
        level = inner
        depth += 1 if level else 0
    return depth


def _fix(found: Sequence[SchemaViolation]) -> str:
    if any(v.delta_class == "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES" for v in found):
        return f"Rename the columns, or run {how_to_set(COLUMN_MAPPING_MODE, 'name')}."
    return "Change the columns named above."
