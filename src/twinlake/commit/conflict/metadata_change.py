"""Which metadata changes of a winner a transaction may be carried over.

The list is Delta's: switching on things that files written before are fine with. Anything else,
and any removal, means that the transaction was planned on another table than it would land on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.protocol import features, is_secret, keys
from twinlake.schema import IDENTITY_HIGH_WATER_MARK_KEY, MAPPING_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from twinlake.actions import Metadata, Protocol

__all__ = ["ALLOWED_PROPERTIES", "AllowedProperty", "metadata_obstacles"]

_MAPPING_KEYS: Final = frozenset(
    {
        *MAPPING_KEYS,
        "parquet.field.nested.ids",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedProperty:
    """A property a winner may set under a running transaction, and the feature it belongs to."""

    key: str
    feature: str | None
    accepts: Callable[[str | None, str], bool]
    """Old and new value, the new one always present."""


def _turned_on(_old: str | None, new: str) -> bool:
    return new.lower() == "true"


def _anything(_old: str | None, _new: str) -> bool:
    return True


def _to_name_mode(old: str | None, new: str) -> bool:
    return (old or "none").lower() == "none" and new.lower() == "name"


def _to_v2(_old: str | None, new: str) -> bool:
    return new.lower() == "v2"


ALLOWED_PROPERTIES: Final[Mapping[str, AllowedProperty]] = {
    entry.key: entry
    for entry in (
        AllowedProperty(
            key=keys.ENABLE_ROW_TRACKING, feature=features.ROW_TRACKING, accepts=_turned_on
        ),
        AllowedProperty(
            key=keys.MATERIALIZED_ROW_ID,
            feature=features.ROW_TRACKING,
            accepts=_anything,
        ),
        AllowedProperty(
            key=keys.MATERIALIZED_ROW_COMMIT_VERSION,
            feature=features.ROW_TRACKING,
            accepts=_anything,
        ),
        AllowedProperty(
            key=keys.COLUMN_MAPPING_MODE, feature=features.COLUMN_MAPPING, accepts=_to_name_mode
        ),
        AllowedProperty(key=keys.MAX_COLUMN_ID, feature=features.COLUMN_MAPPING, accepts=_anything),
        AllowedProperty(
            key=keys.ENABLE_DELETION_VECTORS, feature=features.DELETION_VECTORS, accepts=_turned_on
        ),
        AllowedProperty(key=keys.CHECKPOINT_POLICY, feature=features.V2_CHECKPOINT, accepts=_to_v2),
        AllowedProperty(
            key=keys.ENABLE_IN_COMMIT_TIMESTAMPS,
            feature=features.IN_COMMIT_TIMESTAMP,
            accepts=_turned_on,
        ),
        AllowedProperty(
            key=keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_VERSION,
            feature=features.IN_COMMIT_TIMESTAMP,
            accepts=_anything,
        ),
        AllowedProperty(
            key=keys.IN_COMMIT_TIMESTAMP_ENABLEMENT_TIMESTAMP,
            feature=features.IN_COMMIT_TIMESTAMP,
            accepts=_anything,
        ),
        AllowedProperty(key="io.unitycatalog.tableId", feature=None, accepts=_anything),
        AllowedProperty(key="ucTableId", feature=None, accepts=_anything),
    )
}


def metadata_obstacles(
    before: Metadata, after: Metadata, protocol: Protocol
) -> tuple[list[str], bool]:
    """What in a winner's metadata prevents a rebase, and whether only watermarks moved.

    ``protocol`` is the one before the winner: a feature that the same commit brings in does not
    count as supported.
    """
    found = [f"{name} changed" for name in _changed_fields(before, after)]
    found.extend(_property_obstacles(before.configuration, after.configuration, protocol))
    schema, watermarks = _schema_obstacles(before, after)
    found.extend(schema)
    return found, watermarks and not found and before.configuration == after.configuration


def _changed_fields(before: Metadata, after: Metadata) -> Iterator[str]:
    for name, label in (
        ("id", "the table id"),
        ("name", "the table name"),
        ("description", "the description"),
        ("provider", "the file format"),
        ("format_options", "the format options"),
        ("partition_columns", "the partition columns"),
    ):
        if getattr(before, name) != getattr(after, name):
            yield label


def _property_obstacles(
    before: Mapping[str, str], after: Mapping[str, str], protocol: Protocol
) -> Iterator[str]:
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        entry = ALLOWED_PROPERTIES.get(key)
        if new is None:
            yield f"{key} removed"
        elif entry is None or not entry.accepts(old, new):
            yield f"{key} set to {_shown(key, new)}"
        elif entry.feature is not None and not protocol.is_supported(entry.feature):
            yield f"{key} set to {_shown(key, new)} before {entry.feature} was supported"


def _shown(key: str, value: str) -> str:
    if is_secret(key):
        return "another value"
    return value if len(value) <= 40 else f"{value[:37]}..."


def _schema_obstacles(before: Metadata, after: Metadata) -> tuple[list[str], bool]:
    if before.schema_string == after.schema_string:
        return [], False
    old, new = (msgspec.json.decode(m.schema_string) for m in (before, after))
    if old == new:
        return [], False
    maps = after.get(keys.COLUMN_MAPPING_MODE, "none").lower() != "none"
    differences = list(_schema_differences(old, new, maps, ""))
    obstacles = [f"column {path}" for path, allowed in differences if not allowed]
    return obstacles, not obstacles


def _schema_differences(old: Any, new: Any, maps: bool, path: str) -> Iterator[tuple[str, bool]]:
    """Every place where two schema JSONs differ, and whether that difference is harmless."""
    if old == new:
        return
    if not isinstance(old, dict) or not isinstance(new, dict) or old.keys() != new.keys():
        yield f"{path or 'schema'} changed", False
        return
    for key in old:
        if key == "fields":
            yield from _field_differences(old[key], new[key], maps, path)
        elif key == "metadata":
            yield from _field_metadata(old[key], new[key], maps, path)
        elif isinstance(old[key], dict):
            yield from _schema_differences(old[key], new[key], maps, path)
        elif old[key] != new[key]:
            yield f"{path or 'schema'} changed", False


def _field_differences(old: Any, new: Any, maps: bool, path: str) -> Iterator[tuple[str, bool]]:
    names = [[field.get("name") for field in side] for side in (old, new)]
    if names[0] != names[1]:
        gone = [name for name in names[0] if name not in names[1]]
        come = [name for name in names[1] if name not in names[0]]
        changed = [f"{n} removed" for n in gone] + [f"{n} added" for n in come]
        for text in changed or ["order changed"]:
            yield f"{path}.{text}".lstrip("."), False
        return
    for name, one, other in zip(names[0], old, new, strict=True):
        yield from _schema_differences(one, other, maps, f"{path}.{name}".lstrip("."))


def _field_metadata(old: Any, new: Any, maps: bool, path: str) -> Iterator[tuple[str, bool]]:
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) == new.get(key):
            continue
        watermark = key == IDENTITY_HIGH_WATER_MARK_KEY and key in new
        mapped = maps and key in _MAPPING_KEYS and key not in old
        yield f"{path} metadata {key} changed", watermark or mapped
