"""Whether the Iceberg metadata of a table is complete and lists the same files as the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.errors import TwinlakeError
from twinlake.iceberg.format import (
    DamagedFile,
    EntryStatus,
    ManifestContent,
    read_manifest,
    read_manifest_list,
)
from twinlake.iceberg.sync import MetadataFiles
from twinlake.verify.code.execution import RunFailure
from twinlake.verify.code.log_replay import files_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.iceberg.format import SnapshotEntry
    from twinlake.storage import MemoryStore
    from twinlake.verify.code.log_replay import LogVersion

__all__ = ["check_iceberg_metadata", "hinted_version"]


def hinted_version(view: MemoryStore) -> int | None:
    """The version that the version hint names; None without a hint."""
    return MetadataFiles(view).hint()


def check_iceberg_metadata(
    view: MemoryStore, versions: Sequence[LogVersion], retained_from: int
) -> Iterator[RunFailure]:
    """What is wrong with the metadata that the version hint names; nothing without a hint."""
    files = MetadataFiles(view)
    hint = files.hint()
    if hint is None:
        if any(view.list_from("_iceberg/metadata/version-hint.text")):
            yield RunFailure("PointerIsWhole", "the pointer cannot be read")
        return
    if hint > versions[-1].number:
        yield RunFailure(
            "PointerIsWhole", f"the pointer is at version {hint}, which is not committed"
        )
        return
    state = files.load(hint)
    if state is None:
        yield RunFailure(
            "PointerIsWhole", f"the pointer names version {hint}, whose metadata is lost"
        )
        return
    for snapshot in state.metadata.snapshots():
        version = int(snapshot.counts["delta-version"])
        if version >= retained_from:
            yield from _agrees(files, snapshot, versions[version])
        lost = [key for key in files_of(versions[version]) if view.head(key) is None]
        if lost:
            yield RunFailure(
                "IcebergFilesAreKept",
                f"Iceberg lists version {version}, whose files are gone: {', '.join(lost)}",
                {"version": version, "files": lost},
            )
    current = state.metadata.current
    if current is None or int(current.counts["delta-version"]) > hint:
        yield RunFailure(
            "IcebergEqualsLog", f"the Iceberg side of version {hint} has no snapshot of its own"
        )


def _agrees(
    files: MetadataFiles, snapshot: SnapshotEntry, version: LogVersion
) -> Iterator[RunFailure]:
    try:
        entries = [
            (row.content, entry.file)
            for row in read_manifest_list(files.read(snapshot.manifest_list))
            for entry in read_manifest(files.read(row.path))
            if entry.status is not EntryStatus.DELETED
        ]
        # Reading a vector's file checks that it is there and whole.
        vectors = {
            files.key_of(one.referenced_data_file or ""): one.record_count
            for content, one in entries
            if content is ManifestContent.DELETES and files.read(one.path)
        }
    except (TwinlakeError, DamagedFile) as error:
        text = error.what if isinstance(error, TwinlakeError) else str(error)
        yield RunFailure(
            "PointerIsWhole", f"the metadata of version {version.number} is broken: {text}"
        )
        return
    live = sorted(
        files.key_of(one.path) for content, one in entries if content is ManifestContent.DATA
    )
    hidden = {path: v["cardinality"] for path, v in version.live.items() if v is not None}
    for what, expected, actual in (
        ("files", sorted(version.live), live),
        ("hidden rows", hidden, vectors),
    ):
        if actual != expected:
            yield RunFailure(
                "IcebergEqualsLog",
                f"{what} of version {version.number}: Iceberg lists {actual}, the log {expected}",
                {"version": version.number, "expected": expected, "actual": actual},
            )
