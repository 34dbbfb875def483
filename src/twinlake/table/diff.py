"""What changed between two versions, in the words of tables rather than of log lines."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from twinlake.log import COMMIT_HEADER, commit_rows
from twinlake.protocol.properties import redact_property
from twinlake.schema import (
    Array,
    Map,
    Struct,
    StructField,
    field_id,
    render_path,
    render_type,
    walk_fields,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from twinlake.log import CommitRecord, Snapshot
    from twinlake.schema import ColumnPath, DataType

__all__ = ["ColumnChange", "Diff", "FileChange", "PropertyChange", "compare"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that came or went, or whose deletion vector changed."""

    change: str
    path: str
    size: int
    num_records: int | None
    deleted_records: int


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """One column that came, went, changed or was renamed.

    ``before`` and ``after`` are DDL, or the two names of a renamed column.
    """

    change: str
    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """One property; None means unset."""

    key: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Diff:
    """Everything that differs between version ``before`` and version ``after``."""

    before: int
    after: int
    protocol_before: str
    protocol_after: str
    features_added: tuple[str, ...]
    features_dropped: tuple[str, ...]
    columns: tuple[ColumnChange, ...]
    properties: tuple[PropertyChange, ...]
    files: tuple[FileChange, ...]
    commits: tuple[CommitRecord, ...]

    @property
    def rows_added(self) -> int | None:
        """Live rows gained (negative: lost), or None where a file has no statistics."""
        total = 0
        for change in self.files:
            if change.num_records is None:
                return None
            live = change.num_records - change.deleted_records
            total += live if change.change == "added" else -live
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = asdict(self)
        plain["commits"] = [record.to_dict() for record in self.commits]
        plain["rows_added"] = self.rows_added
        return plain

    def __repr__(self) -> str:
        return f"<Diff of versions {self.before} and {self.after}; {self._summary}>"

    @property
    def _summary(self) -> str:
        came = sum(change.change == "added" for change in self.files)
        rows = self.rows_added
        counts = {
            "features": len(self.features_added) + len(self.features_dropped),
            "columns": len(self.columns),
            "properties": len(self.properties),
            "files added": came,
            "files removed": len(self.files) - came,
        }
        found = [f"{what}: {count:,}" for what, count in counts.items() if count]
        if self.files:
            found.append("rows unknown" if rows is None else f"rows: {rows:+,}")
        if not found and self.protocol_before != self.protocol_after:
            return "protocol"
        return ", ".join(found) or "no difference"

    def _repr_html_(self) -> str:
        from twinlake._html import fields, grid, page

        protocol = f"{self.protocol_before} → {self.protocol_after}"
        values = [
            (p.key, redact_property(p.key, p.before), redact_property(p.key, p.after))
            for p in self.properties
        ]
        columns = [(c.change, c.path, c.before, c.after) for c in self.columns]
        files = [(f.change, f.path, f.size, f.num_records, f.deleted_records) for f in self.files]
        return page(
            f"Version {self.before} → {self.after}; {self._summary}",
            fields(
                [
                    ("protocol", protocol if self.protocol_before != self.protocol_after else ""),
                    ("features added", ", ".join(self.features_added)),
                    ("features dropped", ", ".join(self.features_dropped)),
                ]
            ),
            grid(("change", "column", "before", "after"), columns),
            grid(("property", "before", "after"), values),
            grid(("change", "file", "size", "rows", "deleted"), files),
            grid(COMMIT_HEADER, commit_rows(self.commits)),
        )


def compare(old: Snapshot, new: Snapshot, commits: tuple[CommitRecord, ...]) -> Diff:
    """The difference of two snapshots of one table."""
    had, has = old.protocol.feature_names, new.protocol.feature_names
    return Diff(
        before=old.version,
        after=new.version,
        protocol_before=str(old.protocol),
        protocol_after=str(new.protocol),
        features_added=tuple(sorted(has - had)),
        features_dropped=tuple(sorted(had - has)),
        columns=tuple(_columns(old.schema, new.schema)),
        properties=tuple(_properties(old.metadata.configuration, new.metadata.configuration)),
        files=tuple(_files(old, new)),
        commits=commits,
    )


def _properties(old: Mapping[str, str], new: Mapping[str, str]) -> list[PropertyChange]:
    keys = sorted(old.keys() | new.keys())
    return [PropertyChange(k, old.get(k), new.get(k)) for k in keys if old.get(k) != new.get(k)]


def _columns(old: Struct, new: Struct) -> list[ColumnChange]:
    before, after = dict(walk_fields(old)), dict(walk_fields(new))
    renamed = _renamed(before, after)
    # Under its new name a renamed column is compared with what it was.
    before = {renamed.get(path, path): field for path, field in before.items()}
    changes = [
        ColumnChange("renamed", render_path(p), render_path(was), render_path(p))
        for was, p in renamed.items()
        if was[-1] != p[-1]
    ]
    changes += [
        ColumnChange("added", render_path(p), None, _ddl(f))
        for p, f in after.items()
        if p not in before and _parent(p) in (before.keys() | {()})
    ]
    changes += [
        ColumnChange("dropped", render_path(p), _ddl(f), None)
        for p, f in before.items()
        if p not in after and _parent(p) in (after.keys() | {()})
    ]
    changes += [
        ColumnChange("changed", render_path(p), _ddl(before[p]), _ddl(f))
        for p, f in after.items()
        if p in before and _own(f) != _own(before[p])
    ]
    return changes


def _renamed(
    before: Mapping[ColumnPath, StructField], after: Mapping[ColumnPath, StructField]
) -> dict[ColumnPath, ColumnPath]:
    """Old path to new path of the columns whose id is at another path now."""
    paths_by_id = {field_id(field): path for path, field in after.items()}
    moved = {}
    for path, field in before.items():
        number = field_id(field)
        new_path = paths_by_id.get(number) if number is not None else None
        if new_path is not None and new_path != path:
            moved[path] = new_path
    return moved


def _parent(path: ColumnPath) -> ColumnPath:
    """The nearest struct field above: what was added with its parent is not listed again."""
    above = path[:-1]
    while above and above[-1] in ("element", "key", "value"):
        above = above[:-1]
    return above


def _own(field: StructField) -> tuple[str, bool, object]:
    """What is said of the field itself; changes of fields inside it are listed on their own."""
    return _shallow(field.type), field.nullable, field.metadata.get("comment")


def _shallow(kind: DataType) -> str:
    match kind:
        case Struct():
            return "STRUCT"
        case Array(element):
            return f"ARRAY<{_shallow(element)}>"
        case Map(key, value):
            return f"MAP<{_shallow(key)}, {_shallow(value)}>"
        case _:
            return render_type(kind)


def _ddl(field: StructField) -> str:
    comment = field.metadata.get("comment")
    return (
        render_type(field.type)
        + ("" if field.nullable else " NOT NULL")
        + (f" COMMENT {comment!r}" if comment else "")
    )


def _files(old: Snapshot, new: Snapshot) -> list[FileChange]:
    import pyarrow.compute as pc

    from twinlake.log import file_keys

    before, after = old.files(), new.files()
    before_keys, after_keys = file_keys(before, old.paths), file_keys(after, new.paths)
    gone = before.filter(pc.invert(pc.is_in(before_keys, value_set=after_keys)))
    came = after.filter(pc.invert(pc.is_in(after_keys, value_set=before_keys)))
    return [*_changes("removed", gone), *_changes("added", came)]


def _changes(change: str, files: pa.Table) -> list[FileChange]:
    rows = files.select(["path", "size", "num_records", "deletion_vector"]).to_pylist()
    return [
        FileChange(
            change,
            row["path"],
            row["size"],
            row["num_records"],
            row["deletion_vector"]["cardinality"] if row["deletion_vector"] else 0,
        )
        for row in rows
    ]
