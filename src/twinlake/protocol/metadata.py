"""The metaData action: name, schema, partitioning and configuration of a table, as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from twinlake.errors import Code, CorruptTable, TwinlakeError, how_to_restore
from twinlake.protocol import keys
from twinlake.protocol.integers import Long
from twinlake.schema import ColumnMappingMode, Struct, parse_schema, render_schema

__all__ = ["Metadata"]

T = TypeVar("T")

EMPTY_SCHEMA: Final = '{"type":"struct","fields":[]}'
_KNOWN: Final = frozenset(
    {
        "id",
        "name",
        "description",
        "format",
        "schemaString",
        "partitionColumns",
        "configuration",
        "createdTime",
    }
)


class _Format(msgspec.Struct):
    provider: str = "parquet"
    options: dict[str, str | None] | None = None


class _Wire(msgspec.Struct, rename="camel"):
    # Delta Spark's initial commits may lack a schema; such a table has no columns yet.
    id: str = ""
    name: str | None = None
    description: str | None = None
    format: _Format | None = None
    schema_string: str | None = None
    partition_columns: list[str] | None = None
    configuration: dict[str, str | None] | None = None
    created_time: Long | None = None


def _strings(values: Mapping[str, str | None] | None) -> dict[str, str]:
    return {key: value for key, value in (values or {}).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What the table is. Every change of it gives a new value.

    >>> Metadata(configuration={"delta.appendOnly": "true"}).flag("delta.appendOnly")
    True
    """

    id: str = ""
    name: str | None = None
    description: str | None = None
    provider: str = "parquet"
    format_options: Mapping[str, str] = field(default_factory=dict, hash=False)
    schema_string: str = EMPTY_SCHEMA
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict, hash=False)
    created_time: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    true_flags: frozenset[str] = field(init=False, repr=False, compare=False)
    """The keys of the configuration whose value is ``true``, in any case."""
    # What was derived from the schema text; copies with the same text share it.
    _derived: dict[str, Any] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        for name in ("format_options", "configuration", "extra"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        object.__setattr__(self, "partition_columns", tuple(self.partition_columns))
        on = frozenset([k for k, v in self.configuration.items() if v.lower() == "true"])
        object.__setattr__(self, "true_flags", on)

    @property
    def schema(self) -> Struct:
        """The schema, parsed on first use."""
        if "schema" not in self._derived:
            try:
                self._derived["schema"] = parse_schema(self.schema_string)
            except (TwinlakeError, ValueError, KeyError, TypeError, RecursionError) as error:
                raise CorruptTable(
                    Code.SCHEMA_INVALID,
                    f"The schema of table {self.label} cannot be read.",
                    why=getattr(error, "what", "") or str(error) or type(error).__name__,
                    fix=f"Run {how_to_restore()} with an earlier version.",
                    fields={"table": self.label},
                ) from error
        schema: Struct = self._derived["schema"]
        return schema

    def derived(self, name: str, compute: Callable[[Struct], T]) -> T:
        """Something computed from the schema, once for as long as the schema stays the same."""
        if name not in self._derived:
            self._derived[name] = compute(self.schema)
        found: T = self._derived[name]
        return found

    @property
    def label(self) -> str:
        """What messages call the table: its name, or its id."""
        return self.name or self.id or "(new table)"

    @property
    def max_column_id(self) -> int | None:
        """The highest column id that was ever given out; None where the table does not say."""
        text = self.get(keys.MAX_COLUMN_ID)
        # ASCII digits only: int() would read digits of other scripts as well.
        return int(text) if text.isascii() and text.isdigit() else None

    @property
    def column_mapping_mode(self) -> ColumnMappingMode:
        """How columns are found in the files."""
        text = self.get(keys.COLUMN_MAPPING_MODE, "none").lower()
        try:
            return ColumnMappingMode(text)
        except ValueError as error:
            raise CorruptTable(
                Code.PROPERTY_INVALID,
                f"Table {self.label} has an unknown column mapping mode {text!r}.",
                why="delta.columnMapping.mode must be none, name or id.",
                fix=f"Run {how_to_restore()} with an earlier version.",
                fields={"table": self.label, "mode": text},
            ) from error

    def get(self, key: str, default: str = "") -> str:
        """A configuration value as text."""
        return self.configuration.get(key, default)

    def flag(self, key: str, default: bool = False) -> bool:
        """A boolean configuration value: ``true`` in any case, and nothing else, is true."""
        return key in self.true_flags or (default and key not in self.configuration)

    def with_configuration(
        self, changes: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()
    ) -> Metadata:
        """A copy with some configuration set and some removed."""
        gone = frozenset(remove)
        kept = {k: v for k, v in self.configuration.items() if k not in gone}
        return self._with(configuration={**kept, **(changes or {})})

    def with_schema(self, schema: Struct) -> Metadata:
        """A copy with another schema."""
        return self._with(schema_string=render_schema(schema))

    def _with(self, **changes: Any) -> Metadata:
        changed = replace(self, **changes)
        if "schema_string" not in changes:
            changed._derived.update(self._derived)
        return changed

    @classmethod
    def from_dict(cls, data: Any) -> Metadata:
        """From the JSON of the log; ``msgspec.ValidationError`` on a wrong shape."""
        wire = msgspec.convert(data, _Wire)
        extra = {key: value for key, value in data.items() if key not in _KNOWN}
        layout = wire.format or _Format()
        return cls(
            id=wire.id,
            name=wire.name,
            description=wire.description,
            provider=layout.provider,
            format_options=_strings(layout.options),
            schema_string=EMPTY_SCHEMA if wire.schema_string is None else wire.schema_string,
            partition_columns=tuple(wire.partition_columns or ()),
            configuration=_strings(wire.configuration),
            created_time=wire.created_time,
            extra=extra,
        )

    def to_dict(self) -> dict[str, Any]:
        """As the log spells it; absent optional fields are left out."""
        optional = {
            "name": self.name,
            "description": self.description,
            "createdTime": self.created_time,
        }
        return {
            "id": self.id,
            "format": {"provider": self.provider, "options": dict(self.format_options)},
            "schemaString": self.schema_string,
            "partitionColumns": list(self.partition_columns),
            "configuration": dict(self.configuration),
            **{key: value for key, value in optional.items() if value is not None},
            **self.extra,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings cannot be pickled; executors ship metadata to other processes.
        return (_rebuild, (_plain(self),))


def _plain(metadata: Metadata) -> dict[str, Any]:
    values = {f.name: getattr(metadata, f.name) for f in fields(metadata) if f.init}
    return {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}


def _rebuild(values: dict[str, Any]) -> Metadata:
    return Metadata(**values)
