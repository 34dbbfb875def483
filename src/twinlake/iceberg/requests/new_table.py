"""The table that a request asks for, by ``createTable`` or by the commit of a staged creation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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
        found: dict[str, Any] = {
            "properties": {},
            "format_version": int(_DEFAULT_FORMAT),
            "uuid": None,
        }
        schemas: list[dict[str, Any]] = []
        specs: list[dict[str, Any]] = []
        orders: list[dict[str, Any]] = []
        for update in request.updates:
            match update:
                case up.AssignUuid(uuid=wanted):
                    found["uuid"] = wanted
                case up.UpgradeFormatVersion(format_version=number):
                    found["format_version"] = number
                case up.AddSchema(schema=schema):
                    schemas.append(schema)
                case up.AddSpec(spec=spec):
                    specs.append(spec)
                case up.AddSortOrder(sort_order=order):
                    orders.append(order)
                case up.SetProperties(updates=given):
                    found["properties"] |= given
        if not schemas:
            raise malformed("a table is created with a schema")
        properties = dict(found.pop("properties"))
        properties.pop(_FORMAT_VERSION, None)
        return cls(
            schema=schemas[-1],
            last_column_id=highest_field_id(schemas[-1]),
            spec=specs[-1] if specs else {},
            order=orders[-1] if orders else {},
            properties=properties,
            **found,
        )


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
    return int(text) if text.isdecimal() else 0


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
