"""Column mapping across a metadata change: legal transitions, and ids for what is new.

Delta protocol, Writer Requirements for Column Mapping. Physical names are random for columns of a
table born with mapping, and the present name where mapping is switched on over existing files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError
from twinlake.protocol import PROTECTION_PROPERTY
from twinlake.schema import (
    MAX_COLUMN_ID_KEY,
    MODE_KEY,
    ColumnMappingMode,
    assign_mapping,
    highest_id,
    strip_mapping,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.protocol import Metadata
    from twinlake.runtime import Ids

__all__ = ["mapped", "refuse_kept_properties"]

_KEPT: Final = {
    MAX_COLUMN_ID_KEY: "the table keeps the highest column id, and it may never come down",
    PROTECTION_PROPERTY: "dropping a feature sets it, and cleanup would delete what it protects",
}
_LEGAL: Final = frozenset(
    {(mode, mode) for mode in ColumnMappingMode}
    | {(ColumnMappingMode.NONE, ColumnMappingMode.NAME)}
)


def refuse_kept_properties(keys: Iterable[str]) -> None:
    """What the table keeps for itself is neither set nor unset by hand."""
    found = sorted(_KEPT.keys() & set(keys))
    if found:
        raise UserError(
            Code.PROPERTY_INVALID,
            f"{', '.join(found)} cannot be set or unset.",
            why="; ".join(_KEPT[key] for key in found),
            fix="Leave it out.",
            delta_class="DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            fields={"keys": found},
        )


def mapped(before: Metadata | None, after: Metadata, ids: Ids) -> Metadata:
    """``after`` with ids and physical names on every column, as its mode asks."""
    mode = after.column_mapping_mode
    old = before.column_mapping_mode if before is not None else mode
    if (old, mode) not in _LEGAL:
        raise UserError(
            Code.PROPERTY_INVALID,
            f"The column mapping mode cannot go from {old} to {mode}.",
            why="the files that are there were written for the old mode",
            fix="From none the only way is to name; choose others when a table is created.",
            delta_class="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            fields={"from": str(old), "to": str(mode)},
        )
    if mode is ColumnMappingMode.NONE:
        # Ids left over from another table would take part as soon as mapping is switched on.
        return after.with_schema(strip_mapping(after.schema)) if before is None else after
    known = int(after.get(MAX_COLUMN_ID_KEY, "0") or "0")
    schema, highest = assign_mapping(
        after.schema,
        max_id=max(known, highest_id(after.schema)),
        name_for=lambda _: f"col-{ids.uuid()}",
        nested_ids=any(after.flag(f"delta.enableIcebergCompatV{version}") for version in (2, 3)),
        keep_names=before is not None and old is ColumnMappingMode.NONE,
    )
    changed = after if schema == after.schema else after.with_schema(schema)
    return changed.with_configuration({MODE_KEY: str(mode), MAX_COLUMN_ID_KEY: str(highest)})
