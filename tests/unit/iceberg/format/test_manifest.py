"""The hashes of paths that stand in the header of a manifest."""

from __future__ import annotations

import pytest

from tests.unit.iceberg.format.test_schema import mapped
from twinlake.iceberg.derive.table_layout import TableLayout
from twinlake.iceberg.format.manifest import (
    DataFile,
    EntryStatus,
    ManifestEntry,
    ManifestHeader,
    path_hash,
    read_path_hashes,
    write_manifest,
)
from twinlake.iceberg.format.manifest_list import ManifestFile, manifest_file

LAYOUT = TableLayout(mapped("id LONG"), "file:///t")
HEADER = ManifestHeader(schema=LAYOUT.schema, spec=LAYOUT.spec)


def written(count: int, status: EntryStatus = EntryStatus.ADDED) -> tuple[ManifestFile, bytes]:
    """A manifest of ``count`` live files and one that is gone, and its row of a list."""
    entries = [entry(f"file:///t/{number}.parquet", status) for number in range(count)]
    entries.append(entry("file:///t/gone.parquet", EntryStatus.DELETED))
    data = write_manifest(entries, HEADER)
    row = manifest_file(
        entries, HEADER, path="m.avro", length=len(data), sequence_number=1, snapshot_id=1
    )
    return row, data


def entry(path: str, status: EntryStatus) -> ManifestEntry:
    file = DataFile(path=path, record_count=1, size=1)
    return ManifestEntry(status=status, snapshot_id=1, sequence_number=1, file=file)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 64, 1000])
def test_every_live_path_is_found_and_no_other(count: int) -> None:
    row, data = written(count)

    found = read_path_hashes(row.live_files, lambda at, size: data[at : at + size])

    assert all(path_hash(f"file:///t/{number}.parquet") in found for number in range(count))
    assert path_hash("file:///t/gone.parquet") not in found
    assert not any(path_hash(f"file:///t/{number}.orc") in found for number in range(200))


@pytest.mark.parametrize("damage", [lambda data: data[:60], lambda data: b"\xff" * len(data)])
def test_a_damaged_header_is_told(damage: object) -> None:
    row, data = written(100)
    assert callable(damage)
    broken = damage(data)
    with pytest.raises((ValueError, IndexError)):
        read_path_hashes(row.live_files, lambda at, size: broken[at : at + size])
