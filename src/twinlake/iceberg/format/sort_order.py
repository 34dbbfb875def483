"""Delta's clustering columns as a sort order of Iceberg.

The order is offered to writers, so that they cluster too. Files need not follow it: Delta
clusters as it sees fit, and a file of a clustered table may be in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.iceberg.format.content_id import content_id
from twinlake.schema import VARIANT, Array, Geography, Geometry, Map, Struct, field_id
from twinlake.schema import physical_name as _name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.schema import ColumnPath

__all__ = ["UNSORTED", "sort_order"]

UNSORTED: Final[dict[str, Any]] = {"order-id": 0, "fields": []}
_UNORDERED: Final = (Struct, Array, Map, Geometry, Geography)


def sort_order(clustering: Iterable[ColumnPath], schema: Struct) -> dict[str, Any]:
    """The order of a table that is clustered by some columns, as the metadata file lists it.

    Without clustering, or where a column is not there or has no order, it is the one for unsorted.
    """
    sources = [_source(schema, path) for path in clustering]
    if not sources or None in sources:
        return UNSORTED
    fields = [
        {
            "transform": "identity",
            "source-id": source,
            "direction": "asc",
            "null-order": "nulls-first",
        }
        for source in sources
    ]
    # Computed from the columns, so that it does not hang on how much history is known.
    return {"order-id": content_id(fields) or 1, "fields": fields}


def _source(schema: Struct, path: ColumnPath) -> int | None:
    """The id of the column at a path of physical names."""
    kind: Any = schema
    found = None
    for part in path:
        columns = kind if isinstance(kind, Struct) else ()
        found = next((column for column in columns if _name(column) == part), None)
        kind = None if found is None else found.type
    if found is None or isinstance(kind, _UNORDERED) or kind == VARIANT:
        return None
    return field_id(found)
