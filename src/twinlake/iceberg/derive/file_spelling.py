"""Files that a foreign log spells in more than one way, where Iceberg knows one.

An Iceberg table lists a file once. Delta readers go by the spelling, in part: one that they take
for another file is read twice, or is not removed by a remove (ADR 0023).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from twinlake.errors import Code, CompatViolation

if TYPE_CHECKING:
    from twinlake.iceberg.derive.operation import FileChanges
    from twinlake.log import CanonicalPaths, Snapshot

__all__ = ["check_listed_once", "has_odd_paths", "settled"]


def has_odd_paths(changes: FileChanges, paths: CanonicalPaths) -> bool:
    """Whether a commit spells a file in any but the usual way."""
    named = [file.path for file in changes.added]
    named += [file.path for file in changes.removed]
    named += [path for add, old in changes.remasked for path in (add.path, old.path)]
    return any(paths.file(path) != path for path in named)


def settled(changes: FileChanges, after: Snapshot) -> FileChanges:
    """The changes without removes that leave their file live, by what Delta readers compare."""
    import pyarrow as pa
    import pyarrow.compute as pc

    check_listed_once(after)
    live = after.paths.files(after.add_files()["path"])
    gone = pa.array([after.paths.file(file.path) for file in changes.removed], pa.string())
    kept = pc.is_in(gone, value_set=live).to_pylist()
    removed = [file for file, stays in zip(changes.removed, kept, strict=True) if not stays]
    return replace(changes, removed=removed)


def check_listed_once(snapshot: Snapshot) -> None:
    """Refuse a version that lists a file under two spellings.

    Raises:
        CompatViolation: it names both of them.
    """
    import pyarrow.compute as pc

    listed = snapshot.add_files()["path"]
    files = snapshot.paths.files(listed)
    if files is listed or pc.count_distinct(files).as_py() == len(files):
        return
    counted = pc.value_counts(files)
    twice = counted.filter(pc.greater(counted.field("counts"), 1)).field("values")
    spelled = listed.filter(pc.is_in(files, value_set=twice[:1])).to_pylist()
    raise CompatViolation(
        Code.COMPAT,
        f"Iceberg metadata stops before version {snapshot.version}: it lists {len(twice)} file(s) "
        "in more than one spelling.",
        why=f"{' and '.join(spelled)} are one file: Delta readers read it twice, and an Iceberg "
        "table lists a file once.",
        fix="Run `Table.restore(N)` with a version before the second spelling was committed.",
        fields={"path": spelled[0], "paths": spelled, "version": snapshot.version},
    )
