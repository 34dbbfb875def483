"""What a writer validates before it writes metadata: a function for every check, and who runs it.

A check looks at the snapshots committed after the operation's scan, and only at those whose kind
is in its list. It returns whether it passes and, where it does not, what it stumbled over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from twinlake.verify.checker import ActionCheck
from twinlake.verify.models.iceberg.values import (
    ADDED,
    APPEND,
    DELETE,
    DELETE_KIND,
    DELETED,
    NEVER,
    OVERWRITE,
    OVERWRITE_FILES,
    REPLACE,
    REWRITE_FILES,
    ROW_DELTA,
    SERIALIZABLE,
    UPDATE,
    FileEntry,
    PositionDeleteFile,
    Table,
    TableVersion,
    Writer,
)

__all__ = ["FIXES", "Validation", "checks_for", "run_checks"]

#: A check by name: it returns what is wrong, or ``None`` if it passes.
Validation = tuple[str, Callable[[Table, Writer], str | None]]


def new_versions(table: Table, writer: Writer, *kinds: str) -> Iterator[TableVersion]:
    """The versions committed after the scan whose snapshots are of one of these kinds."""
    for version in table[writer.scan_version + 1 :]:
        if version.operation in kinds:
            yield version


def new_delete_files(
    table: Table, writer: Writer, *more: str
) -> Iterator[tuple[FileEntry, PositionDeleteFile]]:
    """Live delete files that were added after the scan, by snapshots of ``more`` kinds, too."""
    scanned = table[writer.scan_version].sequence_number
    for version in new_versions(table, writer, OVERWRITE, DELETE_KIND, *more):
        if version.deletes is None:
            continue
        for entry in version.deletes.entries:
            if (
                entry.is_live
                and entry.sequence_number > scanned
                and isinstance(entry.file, PositionDeleteFile)
            ):
                yield entry, entry.file


def referenced_files_exist(table: Table, writer: Writer) -> str | None:
    """V1: no data file that my position deletes point to was removed."""
    referenced = {path for path, _ in writer.deletes}
    for version in new_versions(table, writer, OVERWRITE, REPLACE, DELETE_KIND):
        for entry in version.data.entries:
            if entry.status == DELETED and entry.file.path in referenced:
                return f"{entry.file.path} was removed in version {version.sequence_number}"
    return None


def no_new_deletes(table: Table, writer: Writer) -> str | None:
    """V2: no delete file was added at all."""
    for entry, file in new_delete_files(table, writer):
        return f"{file.path} was added in version {entry.sequence_number}"
    return None


def no_new_deletes_for_replaced(table: Table, writer: Writer) -> str | None:
    """V3: no delete file was added that points to a file I replace."""
    for entry, file in new_delete_files(table, writer):
        for path, _ in file.positions:
            if path in writer.replaced:
                return f"{file.path} of version {entry.sequence_number} points to {path}"
    return None


def no_new_data_files(table: Table, writer: Writer) -> str | None:
    """V4: no data file was added."""
    for version in new_versions(table, writer, APPEND, OVERWRITE):
        for entry in version.data.entries:
            if entry.status == ADDED:
                return f"{entry.file.path} was added in version {version.sequence_number}"
    return None


def replaced_files_are_live(table: Table, writer: Writer) -> str | None:
    """V5: every file I replace is live in the version I build on."""
    live = {entry.file.path for entry in table[-1].data.entries if entry.is_live}
    for path in writer.replaced:
        if path not in live:
            return f"{path} is not live in version {len(table) - 1}"
    return None


def no_new_delete_of_same_rows(table: Table, writer: Writer) -> str | None:
    """Fix B: no delete file was added that has a position of mine."""
    mine = set(writer.deletes)
    for entry, file in new_delete_files(table, writer):
        for position in file.positions:
            if position in mine:
                return f"{file.path} of version {entry.sequence_number} deletes {position} too"
    return None


def no_new_update_of_same_rows(table: Table, writer: Writer) -> str | None:
    """Fix C: as B, but only where the snapshot that added the delete file added data too."""
    mine = set(writer.deletes)
    for entry, file in new_delete_files(table, writer):
        added_data = any(one.status == ADDED for one in table[entry.sequence_number].data.entries)
        if added_data and not mine.isdisjoint(file.positions):
            return f"{file.path} of version {entry.sequence_number} updates a row of mine"
    return None


V1: Validation = ("V1 referenced files exist", referenced_files_exist)
V2: Validation = ("V2 no new delete files", no_new_deletes)
V3: Validation = ("V3 no new deletes for replaced files", no_new_deletes_for_replaced)
V4: Validation = ("V4 no new data files", no_new_data_files)
V5: Validation = ("V5 replaced files are live", replaced_files_are_live)

#: What a merge-on-read DELETE checks in addition, by name of the fix.
FIXES: dict[str | None, tuple[Validation, ...]] = {
    None: (),
    "A": (V2,),
    "B": (("B no new delete of the same rows", no_new_delete_of_same_rows),),
    "C": (("C no new update of the same rows", no_new_update_of_same_rows),),
}


def checks_for(writer: Writer, isolation: str, fix: str | None) -> tuple[Validation, ...]:
    """The checks an operation runs, in order."""
    strict = (V4,) if isolation == SERIALIZABLE else ()
    if writer.update == ROW_DELTA:
        more = {UPDATE: (V2,), DELETE: FIXES[fix]}.get(writer.sql_op or "", ())
        return (V1, *more, *strict)
    if writer.update == OVERWRITE_FILES:
        return (*strict, V3, V5)
    if writer.update == REWRITE_FILES:
        return (V3, V5)
    return ()


def run_checks(
    table: Table, writer: Writer, checks: tuple[Validation, ...]
) -> tuple[ActionCheck, ...]:
    """Run checks up to the first that fails; on an empty table every check passes."""
    done: list[ActionCheck] = []
    if len(table) > 1 and writer.scan_version != NEVER:
        for name, check in checks:
            wrong = check(table, writer)
            done.append(ActionCheck(name, wrong is None, wrong or ""))
            if wrong is not None:
                break
    return tuple(done)
