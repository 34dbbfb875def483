"""How a commit's metadata follows from the version it is built on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.verify.models.iceberg.values import (
    ADDED,
    APPEND,
    DELETE,
    DELETE_KIND,
    DELETED,
    EXISTING,
    INSERT,
    MERGE_APPEND,
    OVERWRITE,
    REPLACE,
    REWRITE_FILES,
    ROW_DELTA,
    FileEntry,
    FileNames,
    Manifest,
    Record,
    Table,
    TableVersion,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Container

__all__ = ["build", "draw_file_names", "draw_metadata_names"]

KIND_OF_UPDATE = {MERGE_APPEND: APPEND, REWRITE_FILES: REPLACE}


def draw_file_names(writer: Writer, names: FileNames) -> tuple[Writer, FileNames]:
    """Name the files an operation writes by the next numbers of their kind."""
    data, deletes = names.files.count("data"), names.files.count("delete")
    named = writer._replace(
        data_files=tuple(
            file._replace(path=f"data-{data + index}")
            for index, file in enumerate(writer.data_files, 1)
        ),
        delete_files=tuple(
            file._replace(path=f"delete-{deletes + index}")
            for index, file in enumerate(writer.delete_files, 1)
        ),
    )
    kinds = ("data",) * len(named.data_files) + ("delete",) * len(named.delete_files)
    return named, names._replace(files=names.files + kinds)


def draw_metadata_names(table: Table, writer: Writer, names: FileNames) -> tuple[Writer, FileNames]:
    """Name the manifests, the manifest list, the snapshot and the metadata of an attempt."""
    manifests = 2 if _has_delete_manifest(table[-1], writer) else 1
    given = FileNames(
        files=names.files,
        manifests=names.manifests + manifests,
        manifest_lists=names.manifest_lists + 1,
        snapshots=names.snapshots + 1,
    )
    attempt = (
        f"manifest-{names.manifests + 1}",
        f"manifest-{names.manifests + 2}" if manifests == 2 else "",
        f"manifest-list-{given.manifest_lists}",
        # Two attempts may aim at one version; the snapshot keeps their metadata apart.
        f"metadata-{len(table)}-{given.snapshots}",
    )
    return writer._replace(metadata_files=attempt, snapshot_id=given.snapshots), given


def build(
    table: Table,
    writer: Writer,
    *,
    data_sequence_number: int | None = None,
    delete_sequence_number: int | None = None,
    replaced_deletes: Container[str] = (),
) -> TableVersion:
    """The version that a writer's files make on top of the newest one.

    All data manifests are merged into one, and all delete manifests into another. Files get the
    new sequence number by default; ``replaced_deletes`` names delete files to leave out.
    """
    parent, number = table[-1], len(table)
    if not writer.metadata_files:
        writer = _called_after(writer, number)
    manifest, delete_manifest, manifest_list, location = writer.metadata_files
    return TableVersion(
        location=location,
        sequence_number=number,
        snapshot_id=writer.snapshot_id,
        operation=_kind_of(writer),
        manifest_list=manifest_list,
        data=_data_manifest(parent, writer, manifest, number, data_sequence_number or number),
        deletes=_delete_manifest(
            parent,
            writer,
            delete_manifest,
            number,
            replaced_deletes,
            delete_sequence_number or number,
        ),
        recorded=_recorded(writer, number),
    )


def _kind_of(writer: Writer) -> str:
    """The operation of the snapshot; a row delta with delete files only is a ``delete``."""
    if writer.update == ROW_DELTA and writer.deletes and not writer.data_files:
        return DELETE_KIND
    return KIND_OF_UPDATE.get(writer.update, OVERWRITE)


def _called_after(writer: Writer, number: int) -> Writer:
    """Canonical identity: nothing was named yet, so everything is called after the version."""

    def path(kind: str, index: int) -> str:
        return f"{kind}-{number}" + (f".{index}" if index else "")

    return writer._replace(
        data_files=tuple(
            file._replace(path=path("data", index)) for index, file in enumerate(writer.data_files)
        ),
        delete_files=tuple(
            file._replace(path=path("delete", index))
            for index, file in enumerate(writer.delete_files)
        ),
        metadata_files=tuple(
            f"{kind}-{number}"
            for kind in ("data-manifest", "delete-manifest", "manifest-list", "metadata")
        ),
        snapshot_id=number,
    )


def _has_delete_manifest(parent: TableVersion, writer: Writer) -> bool:
    return bool(writer.delete_files) or parent.deletes is not None


def _data_manifest(
    parent: TableVersion, writer: Writer, path: str, number: int, data_sequence_number: int
) -> Manifest:
    entries: list[FileEntry] = []
    least = number
    # A manifest of only deleted entries is left behind; the others are merged.
    keep = any(entry.is_live for entry in parent.data.entries)
    for entry in parent.data.entries if keep else ():
        least = min(least, entry.sequence_number)
        if not entry.is_live:
            continue
        if entry.file.path in writer.replaced:
            entries.append(entry._replace(status=DELETED, snapshot_id=writer.snapshot_id))
        else:
            entries.append(entry._replace(status=EXISTING))
    for file in writer.data_files:
        entries.append(FileEntry(ADDED, file, writer.snapshot_id, data_sequence_number))
        least = min(least, data_sequence_number)
    return Manifest(path, tuple(entries), least)


def _delete_manifest(
    parent: TableVersion,
    writer: Writer,
    path: str,
    number: int,
    replaced: Container[str],
    sequence_number: int,
) -> Manifest | None:
    if not _has_delete_manifest(parent, writer):
        return None
    entries: list[FileEntry] = []
    # A delete file older than all data cannot hide anything. The bound is what the parent's
    # manifest recorded: it is not taken anew after files were removed.
    oldest = min(number, parent.data.min_sequence_number) if parent.data.entries else number
    least = number
    for entry in parent.deletes.entries if parent.deletes is not None else ():
        if entry.file.path in replaced:
            entries.append(entry._replace(status=DELETED, snapshot_id=writer.snapshot_id))
        elif entry.is_live and entry.sequence_number >= oldest:
            entries.append(entry._replace(status=EXISTING))
            least = min(least, entry.sequence_number)
    for file in writer.delete_files:
        entries.append(FileEntry(ADDED, file, writer.snapshot_id, sequence_number))
        least = min(least, sequence_number)
    return Manifest(path, tuple(entries), least)


def _recorded(writer: Writer, number: int) -> tuple[Record, ...]:
    """What the operation believes it did, placed at its commit version."""
    if writer.sql_op is None:
        return ()
    found: list[Record] = []
    for row, born in writer.row_history:
        for column in (1, 2):
            value: str | None = row[column]
            if writer.sql_op == DELETE:
                value = None
            elif writer.sql_op != INSERT and (writer.set_values or (None,) * 3)[column] is None:
                continue
            found.append(Record(row[0], column, value, born or number))
    return tuple(found)
