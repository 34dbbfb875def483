"""``twinlake schema``: the columns of a table as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command
from twinlake.cli.view import Lines, View
from twinlake.schema import (
    COMMENT_KEY,
    Array,
    Map,
    Struct,
    field_id,
    nested_ids,
    physical_name,
    render_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.schema import DataType, StructField

__all__ = ["schema"]


@command(time_travel=True)
@click.option("--ids", is_flag=True, help="Also show the field ids and physical names.")
def schema(output: Output, reference: TableReference, ids: bool) -> None:
    """Show the columns of a table as a tree.

    Each with its type, NOT NULL, whether the table is partitioned by it, and its comment. Field
    ids and physical names exist on tables with column mapping; --json always has them.
    """
    table = reference.open_metadata()
    partitions = {name.casefold() for name in table.metadata.partition_columns}
    columns = [
        {**_node(field), "partition": field.name.casefold() in partitions} for field in table.schema
    ]
    lines = [line for column in columns for line in _lines(column, " ", ids=ids)]
    output.show(
        View(
            data={
                "location": table.location,
                "version": table.version,
                "column_mapping": str(table.metadata.column_mapping_mode),
                "columns": columns,
            },
            blocks=[Lines((table.snapshot.label, *lines))],
        )
    )


def _node(field: StructField) -> dict[str, Any]:
    """A field with all below it."""
    return {
        "name": field.name,
        "type": render_type(field.type),
        "nullable": field.nullable,
        "id": field_id(field),
        "physical_name": physical_name(field) if field_id(field) is not None else None,
        "comment": field.metadata.get(COMMENT_KEY),
        "children": _children(field.type, nested_ids(field), physical_name(field)),
    }


def _children(kind: DataType, ids: Mapping[str, int], path: str) -> list[dict[str, Any]]:
    match kind:
        case Struct():
            return [_node(field) for field in kind]
        case Array():
            return [_part("element", kind.element, kind.contains_null, ids, path)]
        case Map():
            return [
                _part("key", kind.key, False, ids, path),
                _part("value", kind.value, kind.value_contains_null, ids, path),
            ]
        case _:
            return []


def _part(
    name: str, kind: DataType, nullable: bool, ids: Mapping[str, int], path: str
) -> dict[str, Any]:
    """An element, a key or a value; its id is stored with the field above it."""
    here = f"{path}.{name}"
    return {
        "name": name,
        "type": render_type(kind),
        "nullable": nullable,
        "id": ids.get(here),
        "physical_name": None,
        "comment": None,
        "children": _children(kind, ids, here),
    }


def _lines(node: dict[str, Any], indent: str, *, ids: bool) -> Iterator[str]:
    number, physical = node["id"], node["physical_name"]
    # What is in a nested type stands below it.
    kind = node["type"].partition("<")[0] if node["children"] else node["type"]
    is_key = node["name"] == "key" and not physical
    notes = [
        *(["NOT NULL"] if not node["nullable"] and not is_key else ()),
        *([f"[{number}]"] if ids and number is not None else ()),
        *([physical] if ids and physical not in (None, node["name"]) else ()),
        *(["(partition)"] if node.get("partition") else ()),
        *([f"-- {node['comment']}"] if node["comment"] else ()),
    ]
    yield " ".join([f"{indent}|-- {node['name']}: {kind}", *notes])
    for child in node["children"]:
        yield from _lines(child, f"{indent}|    ", ids=ids)
