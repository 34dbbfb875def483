"""The questions that features ask of metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake import schema as types
from twinlake.protocol import keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.protocol.feature import Predicate
    from twinlake.protocol.metadata import Metadata
    from twinlake.schema import Struct

__all__ = [
    "columns_of",
    "constraint_names",
    "flag",
    "mapped",
    "non_empty",
    "property_is",
    "trait",
    "unless",
]


NOT_NULL: Final = "not null"
INVARIANT: Final = "invariant"
GENERATED: Final = "generated"
IDENTITY: Final = "identity"
DEFAULT: Final = "default"
COLLATED: Final = "collated"
TIMESTAMP_NTZ: Final = "timestamp_ntz"
VARIANT: Final = "variant"
GEOSPATIAL: Final = "geometry or geography"

_FIELD_KEYS: Final = {
    types.INVARIANTS_KEY: INVARIANT,
    types.GENERATION_EXPRESSION_KEY: GENERATED,
    types.IDENTITY_START_KEY: IDENTITY,
    types.IDENTITY_STEP_KEY: IDENTITY,
    types.IDENTITY_EXPLICIT_KEY: IDENTITY,
    types.CURRENT_DEFAULT_KEY: DEFAULT,
    types.COLLATIONS_KEY: COLLATED,
}


def _traits(schema: Struct) -> dict[str, tuple[str, ...]]:
    """Each trait with the columns that have it, found in one walk."""
    found: dict[str, list[str]] = {}
    for path, column in types.walk_fields(schema):
        name = ".".join(path)
        for key, label in _FIELD_KEYS.items():
            if key in column.metadata and name not in found.get(label, ()):
                found.setdefault(label, []).append(name)
    for path, kind in types.walk_types(schema):
        match kind:
            case types.Primitive("timestamp_ntz"):
                found.setdefault(TIMESTAMP_NTZ, []).append(".".join(path))
            case types.Primitive("variant"):
                found.setdefault(VARIANT, []).append(".".join(path))
            case types.Geometry() | types.Geography():
                found.setdefault(GEOSPATIAL, []).append(".".join(path))
            case _:
                pass
    # Spark looks for NOT NULL through structs only, never inside arrays and maps.
    pending: list[tuple[tuple[str, ...], Struct]] = [((), schema)]
    while pending:
        parent, struct = pending.pop()
        for column in struct:
            path = (*parent, column.name)
            if not column.nullable:
                found.setdefault(NOT_NULL, []).append(".".join(path))
            if isinstance(column.type, types.Struct):
                pending.append((path, column.type))
    return {label: tuple(columns) for label, columns in found.items()}


def columns_of(metadata: Metadata, label: str) -> tuple[str, ...]:
    """The dotted names of the columns that have a trait."""
    return metadata.derived("traits", _traits).get(label, ())


def trait(*labels: str) -> Predicate:
    """Some column has one of the traits."""
    return lambda metadata, _: not metadata.derived("traits", _traits).keys().isdisjoint(labels)


def flag(key: str) -> Predicate:
    """A boolean property is true."""
    return lambda metadata, _: key in metadata.true_flags


def non_empty(key: str) -> Predicate:
    """A property has a value."""
    return lambda metadata, _: bool(metadata.get(key).strip())


def property_is(key: str, *values: str) -> Predicate:
    """A property has one of the values."""
    return lambda metadata, _: metadata.get(key).lower() in values


def unless(name: str, test: Predicate) -> Predicate:
    """The test, but never where the other name is there: adding would lock out old clients."""
    return lambda metadata, supported: name not in supported and test(metadata, supported)


def constraint_names(metadata: Metadata) -> tuple[str, ...]:
    """The names of the CHECK constraints."""
    start = len(keys.CONSTRAINTS_PREFIX)
    return tuple(
        sorted(
            key[start:] for key in metadata.configuration if key.startswith(keys.CONSTRAINTS_PREFIX)
        )
    )


def constrained(metadata: Metadata, _: frozenset[str]) -> bool:
    """There is a CHECK constraint."""
    return bool(constraint_names(metadata))


mapped: Final[Predicate] = property_is(keys.COLUMN_MAPPING_MODE, "name", "id")


def offenders(label: str) -> Callable[[Metadata], tuple[str, ...]]:
    """The columns with a trait, as the reason of a refusal."""
    return lambda metadata: columns_of(metadata, label)
