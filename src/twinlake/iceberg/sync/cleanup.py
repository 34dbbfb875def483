"""Deleting files of the Iceberg side that nothing reaches any more.

A metadata file stays for a while after the next one came, so that whoever opened it, or a catalog
that points to it still, finds it and all it names. Then it goes, with what only it could reach.
Whatever a file says, nothing is deleted but what is named and lies as Iceberg metadata.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.errors import StorageError
from twinlake.iceberg.format.manifest import DamagedFile, ManifestContent, read_manifest
from twinlake.iceberg.format.manifest_list import read_manifest_list
from twinlake.iceberg.format.table_metadata import MetadataLogEntry
from twinlake.iceberg.sync.metadata_files import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.iceberg.format.manifest_list import ManifestFile
    from twinlake.iceberg.format.table_metadata import SnapshotEntry, TableMetadata
    from twinlake.iceberg.sync.metadata_files import MetadataFiles

__all__ = ["LEFTOVERS", "clean_up", "only_before", "sweep", "with_log"]

#: Iceberg's property, and its default, for how many earlier metadata files stay.
_KEPT_PROPERTY: Final = "write.metadata.previous-versions-max"
_KEPT: Final = 100
_COUNT: Final = re.compile(r"[1-9][0-9]{0,9}")
#: The property that names files which no metadata file has ever named, to go with the one it is in.
LEFTOVERS: Final = "twinlake.leftovers"
#: What nothing reaches is deleted when it is so old that no sync can still use it.
_ORPHAN_AGE_MS: Final = 24 * 60 * 60 * 1000
#: Ours are all in one folder, with plain names.
_OWN: Final = re.compile(
    rf"{re.escape(FOLDER)}/[A-Za-z0-9][A-Za-z0-9._-]*\.(?:metadata\.json|avro|puffin)"
)


def with_log(
    metadata: TableMetadata, before: TableMetadata | None, location: str
) -> tuple[TableMetadata, tuple[MetadataLogEntry, ...]]:
    """The metadata with a log of earlier files, and the files that fall out of the log.

    ``location`` is where the metadata before it is.
    """
    if before is None:
        return metadata, ()
    entry = MetadataLogEntry(timestamp_ms=before.last_updated_ms, metadata_file=location)
    log = (*(e for e in before.metadata_log if e.metadata_file != location), entry)
    wanted = metadata.properties.get(_KEPT_PROPERTY, "")
    kept = log[-(int(wanted) if _COUNT.fullmatch(wanted) else _KEPT) :]
    return msgspec.structs.replace(metadata, metadata_log=kept), log[: -len(kept)]


def clean_up(
    metadata: TableMetadata, fallen: Iterable[MetadataLogEntry], files: MetadataFiles
) -> None:
    """Delete metadata files that fell out of the log, and what only they reach.

    Whatever goes wrong here costs space and nothing else, so it is passed over.
    """
    try:
        for entry in fallen:
            old = files.read_metadata(entry.metadata_file) if _has_expired(metadata) else None
            if old is not None:
                gone = only_before(_oldest(metadata, files), old.snapshots(), files)
                left = old.properties.get(LEFTOVERS, "")
                _delete([*gone, *left.splitlines()], files)
            _delete([entry.metadata_file], files)
    except (StorageError, DamagedFile, msgspec.DecodeError):
        return


def _delete(locations: Iterable[str], files: MetadataFiles) -> None:
    """Delete files of the Iceberg side; what is none of it stays, whoever names it."""
    keys = (files.key_of(location) for location in locations)
    files.delete([key for key in keys if _OWN.fullmatch(key)])


def _has_expired(metadata: TableMetadata) -> bool:
    """Whether a snapshot of this metadata has gone, so that older metadata may reach more.

    Metadata files list every snapshot: reading old ones takes the longer the more there are, and
    most tables are young.
    """
    first = metadata.oldest
    return first is None or first.parent_snapshot_id is not None


def _oldest(metadata: TableMetadata, files: MetadataFiles) -> SnapshotEntry | None:
    """The first snapshot of the oldest metadata file that stays."""
    found = files.read_metadata(metadata.metadata_log[0].metadata_file)
    return (found or metadata).oldest


def only_before(
    kept: SnapshotEntry | None, old: Iterable[SnapshotEntry], files: MetadataFiles
) -> list[str]:
    """The files that only snapshots before the first one that is kept reach.

    A manifest that a list leaves out never comes back, so the oldest list that stays names each
    manifest of an older one whether anything still needs it.
    """
    if kept is None:
        return []
    first = kept.sequence_number
    gone = list(takewhile(lambda snapshot: snapshot.sequence_number < first, old))
    if not gone:
        return []

    needed = {row.path: row for row in read_manifest_list(files.read(kept.manifest_list))}
    found: dict[str, ManifestFile] = {}
    lists = []
    for snapshot in gone:
        try:
            rows = read_manifest_list(files.read(snapshot.manifest_list))
        except (StorageError, DamagedFile):
            continue
        lists.append(snapshot.manifest_list)
        found |= {row.path: row for row in rows if row.path not in needed}
    vectors = _vector_files(found.values(), files) - _vector_files(needed.values(), files)
    return [*lists, *found, *sorted(vectors)]


def _vector_files(rows: Iterable[ManifestFile], files: MetadataFiles) -> set[str]:
    return {
        entry.file.path
        for row in rows
        if row.content is ManifestContent.DELETES
        for entry in read_manifest(files.read(row.path))
    }


def sweep(metadata: TableMetadata, written: Iterable[str], files: MetadataFiles) -> bool:
    """Delete what an earlier rebuild left behind, after a new one was made with ``written``.

    Returns whether there was anything.
    """
    own = files.metadata_location(metadata.delta_version)
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    named = [str(one.get("statistics-path")) for one in statistics]
    needed = {files.key_of(location) for location in (*written, own, *named)}
    try:
        listed = [item for item in files.listed() if _OWN.fullmatch(item.key)]
        now = next((item.modified_ms for item in listed if item.key == files.key_of(own)), 0)
        gone = [
            item.key
            for item in listed
            if item.key not in needed and item.modified_ms < now - _ORPHAN_AGE_MS
        ]
        files.delete(gone)
    except StorageError:
        # Some may be gone.
        return True
    return bool(gone)
