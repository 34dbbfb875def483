"""The texts of the steps of an upgrade, with notes for the person who runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.compat.upgrade.target_metadata import char_columns, has_same_layout, narrow_columns
from twinlake.protocol import keys
from twinlake.schema import (
    CURRENT_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_START_KEY,
    INVARIANTS_KEY,
    PHYSICAL_NAME_KEY,
    ColumnMappingMode,
    render_path,
    walk_fields,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.compat.upgrade.step import Cost, Goal
    from twinlake.protocol import Metadata

__all__ = ["convert_text", "drop_text", "purge_text", "switch_text"]

Texts = tuple[str, tuple[str, ...]]
"""What a step does, and the notes to it."""

_SHOWN: Final = 5
_SWITCHES: Final[Mapping[str, tuple[str, str]]] = {
    keys.ENABLE_DELETION_VECTORS: (
        "deletion vectors",
        "From now on deletes and updates rewrite files.",
    ),
    keys.ENABLE_CHANGE_DATA_FEED: (
        "the change data feed",
        "Readers of the change data feed get no further changes.",
    ),
    keys.ENABLE_ROW_TRACKING: ("row tracking", "Rows lose the ids they had."),
}
_GIVEN_UP: Final[Mapping[str, str]] = {
    INVARIANTS_KEY: "invariants",
    GENERATION_EXPRESSION_KEY: "generation expressions",
    IDENTITY_START_KEY: "identity columns",
    CURRENT_DEFAULT_KEY: "default values",
}
_ID_READERS: Final = (
    "Readers that find columns by physical name (delta-rs does) see nulls in these files until "
    "they are rewritten."
)


_NOT_PADDED: Final = (
    "New values are stored as they are given, and comparisons no longer ignore trailing spaces."
)


# Measured with Delta Spark 4.4.
_FEED_COLUMNS: Final = (
    "While the change data feed is on, Delta Spark leaves columns without ids (_change_type, "
    "__is_cdc) in the files that DELETE, UPDATE and MERGE write. The same upgrade rewrites them."
)


def switch_text(before: Metadata, after: Metadata) -> Texts:
    """For the step that only sets properties."""
    off = [texts for key, texts in _SWITCHES.items() if before.flag(key) and not after.flag(key)]
    notes = [note for _, note in off]
    parts = [f"disable {_listed([name for name, _ in off])}"] if off else []
    constraints = [
        key.removeprefix(keys.CONSTRAINTS_PREFIX)
        for key in before.configuration
        if key.startswith(keys.CONSTRAINTS_PREFIX) and key not in after.configuration
    ]
    if constraints:
        parts.append(f"drop the constraints {_listed(constraints)}")
    old, new = _field_keys(before), _field_keys(after)
    given_up = [name for key, name in _GIVEN_UP.items() if key in old and key not in new]
    if given_up:
        parts.append(f"drop {_listed(given_up)}")
    if constraints or given_up:
        notes.append("Writers no longer enforce these rules.")
    what = " and ".join(parts) if parts else "set the properties that the feature depends on"
    return _sentence(what), tuple(notes)


def _field_keys(metadata: Metadata) -> set[str]:
    return {key for _, field in walk_fields(metadata.schema) for key in field.metadata}


def purge_text(*, hides_rows: bool, rewrites_values: bool) -> str:
    """For the step that rewrites files whose columns keep their names."""
    named = [
        *(["with deletion vectors"] if hides_rows else ()),
        *(["whose dates and timestamps Iceberg reads differently"] if rewrites_values else ()),
    ]
    rest = ", without the deleted rows" if hides_rows and not rewrites_values else ""
    return f"Rewrite the files {' and those '.join(named)}{rest}"


def convert_text(before: Metadata, after: Metadata, goal: Goal, cost: Cost) -> Texts:
    """For the step that changes metadata and files together."""
    parts: list[str] = []
    notes: list[str] = []
    if before.column_mapping_mode != after.column_mapping_mode:
        old, new = before.column_mapping_mode, after.column_mapping_mode
        parts.append(f"find columns by {new} instead of {_found_by(old)}")
    if goal.compat.is_writer and not _same_names(before, after):
        parts.append("name columns col-<id> in files")
    narrow = [render_path(path) for path in narrow_columns(before.schema)]
    if narrow and not narrow_columns(after.schema):
        parts.append(f"make {_listed(narrow)} int")
    padded = [render_path(path) for path in char_columns(before.schema)]
    if padded and not char_columns(after.schema):
        parts.append(f"make {_listed(padded)} varchar and store the padding")
        notes.append(_NOT_PADDED)
    if before.schema != after.schema and not parts:
        parts.append("give ids to array elements, map keys and map values")
    if goal.base.is_enabled(after) and not goal.base.is_enabled(before):
        parts.append(f"set {goal.base.key} to true")
    if cost.files:
        parts.append(f"rewrite {_files(cost.files)}")
    if cost.listed:
        parts.append(f"commit {_files(cost.listed)} again unchanged")
        if not has_same_layout(before, after):
            notes.append(_ID_READERS)
    if not goal.sets_writer_flag and after.flag(keys.ENABLE_CHANGE_DATA_FEED):
        notes.append(_FEED_COLUMNS)
    return _sentence(", ".join(parts)), tuple(notes)


def _found_by(mode: ColumnMappingMode) -> str:
    return "their display name" if mode is ColumnMappingMode.NONE else f"{mode}"


def _same_names(before: Metadata, after: Metadata) -> bool:
    def names(metadata: Metadata) -> list[object]:
        return [field.metadata.get(PHYSICAL_NAME_KEY) for _, field in walk_fields(metadata.schema)]

    return names(before) == names(after)


def drop_text(name: str, *, truncates: bool) -> Texts:
    """For the step that takes a feature out of the protocol."""
    if truncates:
        return (
            f"Drop the feature {name} and the history that needs it",
            ("Versions from before can no longer be read, nor restored.",),
        )
    return f"Drop the feature {name}", ()


def _listed(names: list[str]) -> str:
    if len(names) <= 1:
        return "".join(names)
    if len(names) > _SHOWN:
        return f"{', '.join(names[:_SHOWN])} and {len(names) - _SHOWN} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _files(count: int) -> str:
    return f"{count:,} file{'' if count == 1 else 's'}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
