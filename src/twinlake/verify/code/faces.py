"""Whether the Iceberg metadata of a table is whole and tells the same files as the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.errors import TwinlakeError
from twinlake.iceberg.format.manifest import Content, DamagedFile, Status, read_manifest
from twinlake.iceberg.format.manifest_list import read_manifest_list
from twinlake.iceberg.sync.metadata_files import MetadataFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.iceberg.format.table_metadata import SnapshotEntry
    from twinlake.storage import MemoryStore
    from twinlake.verify.code.folding import Version

__all__ = ["judge_face", "pointed_to"]

Found = tuple[str, str, "Mapping[str, Any]"]


def pointed_to(view: MemoryStore) -> int | None:
    """The version that readers of Iceberg are sent to; None where there is none."""
    return MetadataFiles(view).hint()


def judge_face(view: MemoryStore, versions: Sequence[Version], keeps_from: int) -> Iterator[Found]:
    """What is wrong with the face that the pointer names; nothing where there is no face."""
    files = MetadataFiles(view)
    hint = files.hint()
    if hint is None:
        if any(view.list_from("_iceberg/metadata/version-hint.text")):
            yield "PointerIsWhole", "the pointer cannot be read", {}
        return
    if hint > versions[-1].number:
        yield "PointerIsWhole", f"the pointer is at version {hint}, which is not committed", {}
        return
    state = files.load(hint)
    if state is None:
        yield "PointerIsWhole", f"the pointer names version {hint}, whose metadata is lost", {}
        return
    for snapshot in state.metadata.snapshots():
        version = int(snapshot.counts["delta-version"])
        if version >= keeps_from:
            yield from _agrees(files, snapshot, versions[version])
    current = state.metadata.current
    if current is None or int(current.counts["delta-version"]) > hint:
        yield "FaceEqualsLog", f"the Iceberg side of version {hint} has no snapshot of its own", {}


def _agrees(files: MetadataFiles, snapshot: SnapshotEntry, version: Version) -> Iterator[Found]:
    try:
        entries = [
            (row.content, entry.file)
            for row in read_manifest_list(files.read(snapshot.manifest_list))
            for entry in read_manifest(files.read(row.path))
            if entry.status is not Status.DELETED
        ]
        # Reading a vector's file checks that it is there and whole.
        vectors = {
            files.key_of(one.referenced_data_file or ""): one.record_count
            for content, one in entries
            if content is Content.DELETES and files.read(one.path)
        }
    except (TwinlakeError, DamagedFile) as error:
        text = error.what if isinstance(error, TwinlakeError) else str(error)
        yield "PointerIsWhole", f"the metadata of version {version.number} is broken: {text}", {}
        return
    live = sorted(files.key_of(one.path) for content, one in entries if content is Content.DATA)
    hidden = {path: v["cardinality"] for path, v in version.live.items() if v is not None}
    for what, expected, actual in (
        ("files", sorted(version.live), live),
        ("hidden rows", hidden, vectors),
    ):
        if actual != expected:
            yield (
                "FaceEqualsLog",
                f"{what} of version {version.number}: Iceberg lists {actual}, the log {expected}",
                {"version": version.number, "expected": expected, "actual": actual},
            )
