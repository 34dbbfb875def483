"""Whether the files a state names are all there, as they were written."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from twinlake.errors import Code, StorageError
from twinlake.iceberg.format.manifest import DamagedFile, ManifestContent, read_manifest
from twinlake.iceberg.format.manifest_list import read_manifest_list

if TYPE_CHECKING:
    from twinlake.iceberg.derive.iceberg_state import IcebergState
    from twinlake.iceberg.format.manifest_list import ManifestFile
    from twinlake.iceberg.sync.metadata_files import MetadataFiles

__all__ = ["IntegrityCheck", "find_damage"]


class IntegrityCheck(StrEnum):
    """How closely a state is checked before it is continued.

    All but ``CONTENT`` trust what this process itself wrote last, for a while.
    """

    NOTHING = "nothing"
    """Only what the conversion reads anyway."""
    SIZES = "sizes"
    """By one listing: the lists of all snapshots, and size by size what the newest one names."""
    CONTENT = "content"
    """Every list, manifest and vector of every snapshot is read."""


def find_damage(state: IcebergState, files: MetadataFiles, check: IntegrityCheck) -> str:
    """What is wrong with the files of a state; empty where nothing is."""
    if check is IntegrityCheck.NOTHING or not state.metadata.snapshot_texts:
        return ""
    try:
        snapshots = tuple(state.metadata.snapshots())
    except msgspec.DecodeError:
        return f"{files.metadata_location(state.metadata.delta_version)} is damaged"
    sizes = {item.key: item.size for item in files.listed()}
    for snapshot in snapshots:
        if files.key_of(snapshot.manifest_list) not in sizes:
            return f"{snapshot.manifest_list} is lost"
    for row in state.rows:
        found = sizes.get(files.key_of(row.path))
        if found != row.length:
            return f"{row.path} is {'lost' if found is None else 'damaged'}"
    return _damage(state, files) if check is IntegrityCheck.CONTENT else ""


def _damage(state: IcebergState, files: MetadataFiles) -> str:
    seen: set[str] = set()
    try:
        for snapshot in state.metadata.snapshots():
            for row in read_manifest_list(files.read(snapshot.manifest_list)):
                if row.path not in seen:
                    seen.add(row.path)
                    _read(row, files, seen)
    except DamagedFile as damaged:
        return f"{damaged.args[0]} is damaged"
    except StorageError as error:
        if error.code is not Code.STORAGE_NOT_FOUND:
            raise
        return error.what
    return ""


def _read(row: ManifestFile, files: MetadataFiles, seen: set[str]) -> None:
    data = files.read(row.path)
    if row.content is ManifestContent.DELETES:
        for entry in read_manifest(data):
            if entry.file.path not in seen:
                seen.add(entry.file.path)
                files.read(entry.file.path)
