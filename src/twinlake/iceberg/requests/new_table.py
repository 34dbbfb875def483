"""The table that a request asks for, by ``createTable`` or by the commit of a staged creation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from twinlake.iceberg.format.schema import highest_field_id
from twinlake.iceberg.requests import updates as up
from twinlake.iceberg.requests.schema import with_fresh_ids
from twinlake.iceberg.requests.table_request import malformed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.iceberg.requests.table_request import CommitTableRequest, CreateTableRequest

__all__ = ["NewTable", "partition_columns"]

_FORMAT_VERSION: Final = "format-version"
_DEFAULT_FORMAT: Final = "2"
_LAST_ADDED: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTable:
    """What a client asks for: by ``createTable``, or by the commit of a staged table."""

    schema: Mapping[str, Any]
    last_column_id: int
    spec: Mapping[str, Any]
    order: Mapping[str, Any]
    properties: Mapping[str, str]
    format_version: int
    uuid: str | None = None
    location: str | None = None
    """Where the client thinks it is; None where it does not say."""
    problems: tuple[str, ...] = ()
    """What else was asked for, and cannot be had."""

    @classmethod
    def of_request(cls, request: CreateTableRequest) -> NewTable:
        """The table of a ``CreateTableRequest``; columns get fresh ids."""
        schema, last = with_fresh_ids(request.schema)
        old = _ids_by_path(request.schema)
        new = _ids_by_path(schema)
        given = {old[path]: new[path] for path in old}
        properties = dict(request.properties or {})
        return cls(
            schema=schema,
            last_column_id=last,
            spec=_renumbered(request.partition_spec, given),
            order=request.write_order or {},
            format_version=_number(properties.pop(_FORMAT_VERSION, _DEFAULT_FORMAT)),
            properties=properties,
        )

    @classmethod
    def of_updates(cls, request: CommitTableRequest) -> NewTable:
        """The table of the commit that ends a staged creation; its ids are in files already."""
        reader = _NewTableReader()
        for update in request.updates:
            reader.read(update)
        return reader.finish()


@dataclass
class _NewTableReader:
    """Sorts the updates that make a table."""

    uuid: str | None = None
    location: str | None = None
    format_version: int = int(_DEFAULT_FORMAT)
    properties: dict[str, str] = field(default_factory=dict)
    chosen: dict[str, int] = field(default_factory=dict)
    """The number of the schema, spec and order that count; -1 is the last."""
    schemas: list[Mapping[str, Any]] = field(default_factory=list)
    specs: list[Mapping[str, Any]] = field(default_factory=list)
    orders: list[Mapping[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def read(self, update: up.Update) -> None:
        match update:
            case up.AssignUuid(uuid=wanted):
                self.uuid = wanted
            case up.SetLocation(location=wanted):
                self.location = wanted
            case up.UpgradeFormatVersion(format_version=number):
                self.format_version = number
            case up.AddSchema(schema=schema):
                self.schemas.append(schema)
            case up.AddSpec(spec=spec):
                self.specs.append(spec)
            case up.AddSortOrder(sort_order=order):
                self.orders.append(order)
            case up.SetCurrentSchema(schema_id=number):
                self.chosen["schema-id"] = number
            case up.SetDefaultSpec(spec_id=number):
                self.chosen["spec-id"] = number
            case up.SetDefaultSortOrder(sort_order_id=number):
                self.chosen["order-id"] = number
            case up.SetProperties(updates=given):
                self.properties |= given
            case up.RemoveProperties(removals=names):
                self.properties = {k: v for k, v in self.properties.items() if k not in names}
            case up.AddSnapshot() | up.SetSnapshotRef(ref_name="main"):
                # Rows are a matter of their own: see ``CommitTableRequest.rows_only``.
                pass
            case _:
                action = update.__struct_config__.tag
                self.problems.append(f"update {action}: send it when the table is there")

    def finish(self) -> NewTable:
        if not self.schemas:
            raise malformed("a table is created with a schema")
        schema = self._chosen(self.schemas, "schema-id")
        properties = dict(self.properties)
        properties.pop(_FORMAT_VERSION, None)
        return NewTable(
            schema=schema,
            last_column_id=highest_field_id(schema),
            spec=self._chosen(self.specs, "spec-id"),
            order=self._chosen(self.orders, "order-id"),
            properties=properties,
            format_version=self.format_version,
            uuid=self._uuid(),
            location=self.location,
            problems=tuple(self.problems),
        )

    def _uuid(self) -> str | None:
        try:
            return None if self.uuid is None else str(UUID(self.uuid))
        except ValueError as error:
            raise malformed(f"{self.uuid!r} is no UUID") from error

    def _chosen(self, documents: list[Mapping[str, Any]], key: str) -> Mapping[str, Any]:
        number = self.chosen.get(key, _LAST_ADDED)
        if number == _LAST_ADDED:
            return documents[-1] if documents else {}
        found = [one for one in documents if (one.get(key) or 0) == number]
        if not found and (documents or number):
            self.problems.append(f"{key} {number}: there is none")
        return (found or documents or [{}])[-1]


def partition_columns(
    schema: Mapping[str, Any], spec: Mapping[str, Any]
) -> tuple[tuple[str, ...], list[str]]:
    """The columns that a spec partitions by, and why parts of it are refused."""
    names = {column["id"]: column["name"] for column in schema["fields"]}
    found: list[str] = []
    problems: list[str] = []
    for part in spec.get("fields") or ():
        name, transform, source = part.get("name"), part.get("transform"), part.get("source-id")
        if transform != "identity" or source not in names:
            problems.append(
                f"partition field {name} ({transform}): Delta partitions by columns as they are"
            )
        else:
            found.append(names[source])
    return tuple(found), problems


def _number(text: str) -> int:
    """A format version as properties spell it; one that is none is refused with the others."""
    return int(text) if len(text) == 1 and text.isdecimal() else 0


def _ids_by_path(schema: Mapping[str, Any]) -> dict[str, int]:
    """The ids of the columns at the top, by name: partitions are made from no others."""
    return {column["name"]: column["id"] for column in schema["fields"]}


def _renumbered(spec: Mapping[str, Any] | None, given: Mapping[int, int]) -> Mapping[str, Any]:
    fields = (spec or {}).get("fields") or ()
    return {
        "fields": [
            {**part, "source-id": given.get(part.get("source-id"), part.get("source-id"))}
            for part in fields
        ]
    }
