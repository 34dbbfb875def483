"""The columns of a data file that each side of a table reads, as the formats say.

A Delta reader finds a column by its physical name, or by its field id in mapping mode ``id``. An
Iceberg reader finds it by field id if the file has any id at all, and by the name mapping of the
table if it has none (Iceberg specification, Column Projection). PyIceberg uses the name mapping
where a single id is missing, so its rows do not show what other readers see.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.schema import (
    Array,
    ColumnMappingMode,
    Map,
    Repetition,
    Struct,
    field_id,
    nested_ids,
    physical_name,
    walk_nodes,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.actions import Metadata
    from twinlake.schema import ColumnPath, DataType, ParquetNode, StructField

__all__ = ["Mismatch", "projection_mismatches"]

Mismatch = tuple["ColumnPath", str, str]
"""A column of the table, what a Delta reader takes for it, and what an Iceberg reader takes."""

_ELEMENT: Final = "element"


def projection_mismatches(
    root: ParquetNode, metadata: Metadata, name_mapping: str | None
) -> Iterator[Mismatch]:
    """Each column that the two sides find under different nodes of a file; the topmost ones only.

    ``name_mapping`` is the table property ``schema.name-mapping.default`` of the Iceberg side.
    """
    has_ids = any(node.field_id is not None for _, node in walk_nodes(root))
    mapping = None if has_ids else _parse_mapping(name_mapping)
    if not has_ids and mapping is None:
        yield (), "columns by name", "no field ids in the file and no name mapping"
        return
    # Values of partition columns come from the log and from the manifest.
    partitions = metadata.partition_columns
    columns = tuple(field for field in metadata.schema if field.name not in partitions)
    walk = _Walk(metadata.column_mapping_mode)
    yield from walk.struct(Struct(columns), root.children, mapping, ())


def _parse_mapping(text: str | None) -> list[dict[str, Any]] | None:
    try:
        found = json.loads(text or "null")
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


@dataclass(frozen=True, slots=True)
class _Walk:
    """Goes down the table's columns and the file's nodes side by side.

    ``mapping`` is the part of the name mapping for a level; None where ids decide.
    """

    mode: ColumnMappingMode

    def struct(
        self,
        kind: Struct,
        nodes: Sequence[ParquetNode],
        mapping: list[dict[str, Any]] | None,
        path: ColumnPath,
    ) -> Iterator[Mismatch]:
        for field in kind:
            here = (*path, field.name)
            number = field_id(field)
            entry = _entry(mapping, number)
            delta = self._delta_node(field, nodes)
            iceberg = _iceberg_node(nodes, number, mapping, entry)
            if delta is not iceberg:
                yield here, _shown(delta), _shown(iceberg, wanted=number)
            elif delta is not None:
                below = None if mapping is None else _entries(entry)
                ids, name = nested_ids(field), physical_name(field)
                yield from self.inner(field.type, delta, below, here, ids, name)

    def inner(
        self,
        kind: DataType,
        node: ParquetNode,
        mapping: list[dict[str, Any]] | None,
        path: ColumnPath,
        ids: Mapping[str, int],
        place: str,
    ) -> Iterator[Mismatch]:
        """What is below a column that both find; ``place`` is its key among the nested ids."""
        match kind:
            case Struct():
                yield from self.struct(kind, node.children, mapping, path)
                return
            case Array(element):
                parts = [(_ELEMENT, element, _element_node(node))]
            case Map(key, value):
                pair = _key_value_nodes(node)
                parts = [("key", key, pair[0]), ("value", value, pair[1])]
            case _:
                return
        for name, part, delta in parts:
            here, own = (*path, name), f"{place}.{name}"
            number = ids.get(own)
            entry = _entry(mapping, number)
            # Readers take elements, keys and values by their position and then ask for the id.
            is_known = entry is not None if mapping is not None else _has_id(delta, number)
            if delta is not None and not is_known:
                yield here, _shown(delta), _shown(None, wanted=number)
            elif delta is not None:
                below = None if mapping is None else _entries(entry)
                yield from self.inner(part, delta, below, here, ids, own)

    def _delta_node(self, field: StructField, nodes: Sequence[ParquetNode]) -> ParquetNode | None:
        if self.mode is ColumnMappingMode.ID:
            return _by_id(nodes, field_id(field))
        name = field.name if self.mode is ColumnMappingMode.NONE else physical_name(field)
        return _by_name(nodes, (name,))


def _iceberg_node(
    nodes: Sequence[ParquetNode],
    number: int | None,
    mapping: list[dict[str, Any]] | None,
    entry: dict[str, Any] | None,
) -> ParquetNode | None:
    if mapping is None:
        return _by_id(nodes, number)
    return None if entry is None else _by_name(nodes, entry.get("names", ()))


def _by_id(nodes: Sequence[ParquetNode], number: int | None) -> ParquetNode | None:
    return next((node for node in nodes if _has_id(node, number)), None)


def _by_name(nodes: Sequence[ParquetNode], names: Sequence[str]) -> ParquetNode | None:
    return next((node for node in nodes if node.name in names), None)


def _has_id(node: ParquetNode | None, number: int | None) -> bool:
    return node is not None and number is not None and node.field_id == number


def _entry(mapping: list[dict[str, Any]] | None, number: int | None) -> dict[str, Any] | None:
    """The entry of a column at one level of the name mapping."""
    return next((one for one in mapping or () if one.get("field-id") == number), None)


def _entries(entry: dict[str, Any] | None) -> list[dict[str, Any]]:
    return [] if entry is None else entry.get("fields", [])


def _element_node(node: ParquetNode) -> ParquetNode | None:
    wrapper = node.children[0] if len(node.children) == 1 else None
    if wrapper is None or wrapper.repetition is not Repetition.REPEATED:
        return None
    # Parquet format, LogicalTypes, backward-compatibility rules of lists: two levels.
    is_element = len(wrapper.children) != 1 or wrapper.name in ("array", f"{node.name}_tuple")
    return wrapper if is_element else wrapper.children[0]


def _key_value_nodes(node: ParquetNode) -> tuple[ParquetNode | None, ParquetNode | None]:
    wrapper = node.children[0] if len(node.children) == 1 else None
    nodes = () if wrapper is None else wrapper.children
    return (nodes[0] if nodes else None), (nodes[1] if len(nodes) > 1 else None)


def _shown(node: ParquetNode | None, *, wanted: int | None = None) -> str:
    if node is None:
        return "no column" if wanted is None else f"no column with field id {wanted}"
    number = "no field id" if node.field_id is None else f"field id {node.field_id}"
    return f"column {node.name} with {number}"
