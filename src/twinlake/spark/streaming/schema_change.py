"""What a change of the table's columns means to a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.errors import Code, UserError
from twinlake.schema import Array, Map, Struct, physical_path, render_path, walk_fields

if TYPE_CHECKING:
    from twinlake.protocol import Metadata
    from twinlake.schema import DataType
    from twinlake.spark.streaming.source_options import SourceOptions

__all__ = ["StreamSchemaChange"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSchemaChange:
    """The columns that differ between two versions, by their dotted paths."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    renamed: tuple[str, ...] = ()
    retyped: tuple[str, ...] = ()

    @classmethod
    def between(cls, before: Metadata, after: Metadata) -> StreamSchemaChange:
        """From one version to a later one; columns are the same if files have them as the same."""
        old, new = _columns(before), _columns(after)
        both = [key for key in old if key in new]
        return cls(
            added=tuple(path for key, (path, _) in new.items() if key not in old),
            dropped=tuple(path for key, (path, _) in old.items() if key not in new),
            renamed=tuple(old[key][0] for key in both if old[key][0] != new[key][0]),
            retyped=tuple(old[key][0] for key in both if old[key][1] != new[key][1]),
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.dropped or self.renamed or self.retyped)

    def refused(self, options: SourceOptions) -> tuple[str, ...]:
        """What in it a stream does not go past by itself, in words."""
        parts = (
            ("dropped", self.dropped, options.allow_drop),
            ("renamed", self.renamed, options.allow_rename),
            ("of another type", self.retyped, options.allow_type_change),
        )
        return tuple(
            f"{', '.join(paths)} {'is' if len(paths) == 1 else 'are'} {word}"
            for word, paths, allowed in parts
            if paths and not allowed
        )

    def check(self, version: int, options: SourceOptions) -> None:
        """Refuse a change that takes columns away from those who read the stream."""
        problems = self.refused(options)
        if problems:
            raise UserError(
                Code.SCHEMA_EVOLUTION,
                f"Version {version} of the streamed table changes columns: {'; '.join(problems)}.",
                why="whoever reads the stream may count on these columns as they were",
                fix="Set `allowSourceColumnDrop`, `allowSourceColumnRename` or "
                "`allowSourceColumnTypeChange` to `always`, and restart the stream.",
                delta_class="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG",
                fields={"version": version, "problems": problems},
            )


def _columns(metadata: Metadata) -> dict[tuple[str, ...], tuple[str, str]]:
    """Each column and field: how files name it, its path, and its type."""
    mode = metadata.column_mapping_mode
    return {
        tuple(physical_path(metadata.schema, path, mode)): (
            render_path(path),
            _type_name(field.type),
        )
        for path, field in walk_fields(metadata.schema)
    }


def _type_name(kind: DataType) -> str:
    """The type, but for fields inside of it, which have rows of their own."""
    match kind:
        case Struct():
            return "struct"
        case Array():
            return f"array<{_type_name(kind.element)}>"
        case Map():
            return f"map<{_type_name(kind.key)}, {_type_name(kind.value)}>"
        case _:
            return str(kind)
