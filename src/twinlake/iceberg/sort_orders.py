"""Delta's clustering columns as a sort order of Iceberg.

The order is offered to writers, so that they cluster too. Files promise nothing: Delta clusters as
it sees fit, and a file of a clustered table may be in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.content_ids import content_id
from twinlake.schema import VARIANT, Array, Geography, Geometry, Map, Struct, field_id
from twinlake.schema import physical_name as _name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.actions import DomainMetadata
    from twinlake.schema import ColumnPath

__all__ = ["UNSORTED", "clustering_paths", "sort_order"]

UNSORTED: Final[dict[str, Any]] = {"order-id": 0, "fields": []}
_DOMAIN: Final = "delta.clustering"
_UNORDERED: Final = (Struct, Array, Map, Geometry, Geography)


class _Clustering(msgspec.Struct):
    columns: list[list[str] | str] = msgspec.field(name="clusteringColumns", default_factory=list)


def clustering_paths(domains: Iterable[DomainMetadata]) -> tuple[ColumnPath, ...] | None:
    """The clustering columns as paths of physical names; None where no domain speaks of them.

    A record that cannot be read names none: clustering is a hint, and never a reason to fail.
    """
    for domain in domains:
        if domain.domain == _DOMAIN:
            try:
                found = msgspec.json.decode(domain.configuration or "{}", type=_Clustering).columns
            except (msgspec.DecodeError, RecursionError):
                return ()
            # Delta Spark writes each column as a list of parts; some leave the parts joined.
            paths = (tuple(one) if isinstance(one, list) else (one,) for one in found)
            return () if domain.removed else tuple(paths)
    return None


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
    for parts in dict.fromkeys((path, tuple(".".join(path).split(".")))):
        kind: Any = schema
        found = None
        for part in parts:
            columns = kind if isinstance(kind, Struct) else ()
            found = next((column for column in columns if _name(column) == part), None)
            kind = None if found is None else found.type
        if found is not None and not isinstance(kind, _UNORDERED) and kind != VARIANT:
            return field_id(found)
    return None
