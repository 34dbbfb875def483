"""Rows of manifest lists: what is written by hand is what two Avro readers find."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import read_manifest_list as pyiceberg_rows

from twinlake.iceberg.format.manifest import EntryStatus, ManifestContent
from twinlake.iceberg.format.manifest_list import (
    ManifestFile,
    read_manifest_list,
    write_manifest_list,
)
from twinlake.iceberg.format.partition_spec import PartitionFieldSummary

LONGS = st.integers(0, 2**63 - 1) | st.integers(0, 300)
COUNTS = st.integers(0, 2**31 - 1) | st.integers(0, 300)
BOUNDS = st.none() | st.binary(max_size=200)
SUMMARIES = st.builds(
    PartitionFieldSummary,
    contains_null=st.booleans(),
    contains_nan=st.booleans(),
    lower=BOUNDS,
    upper=BOUNDS,
)


def by_status(counts: st.SearchStrategy[int]) -> st.SearchStrategy[dict[EntryStatus, int]]:
    return st.fixed_dictionaries(dict.fromkeys(EntryStatus, counts))


def rows(first_row_id: st.SearchStrategy[int | None]) -> st.SearchStrategy[list[ManifestFile]]:
    return st.lists(
        st.builds(
            ManifestFile,
            path=st.text(min_size=1, max_size=5000),
            length=LONGS,
            spec_id=COUNTS,
            content=st.sampled_from(ManifestContent),
            sequence_number=LONGS,
            min_sequence_number=LONGS,
            snapshot_id=LONGS,
            files=by_status(COUNTS),
            rows=by_status(LONGS),
            partitions=st.lists(SUMMARIES, max_size=3).map(tuple),
            first_row_id=first_row_id,
        ),
        max_size=5,
    )


@pytest.mark.parametrize("format_version", [2, 3])
@given(data=st.data())
def test_rows_come_back(data: st.DataObject, format_version: int) -> None:
    row_ids = st.none() if format_version == 2 else st.none() | LONGS
    wanted = data.draw(rows(row_ids))
    made = write_manifest_list(
        wanted, snapshot_id=1, parent_id=None, sequence_number=1, format_version=format_version
    )
    assert read_manifest_list(made) == wanted
    # A row that was read is written as one that was made.
    assert made == write_manifest_list(
        read_manifest_list(made),
        snapshot_id=1,
        parent_id=None,
        sequence_number=1,
        format_version=format_version,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "list.avro")
        path.write_bytes(made)
        found = list(pyiceberg_rows(PyArrowFileIO().new_input(str(path))))
    assert [
        (
            row.manifest_path,
            row.manifest_length,
            row.partition_spec_id,
            row.content,
            row.sequence_number,
            row.min_sequence_number,
            row.added_snapshot_id,
            row.added_files_count,
            row.existing_files_count,
            row.deleted_files_count,
            row.added_rows_count,
            row.existing_rows_count,
            row.deleted_rows_count,
            [(p.contains_null, p.contains_nan, p.lower_bound, p.upper_bound)
             for p in row.partitions or ()],
        )
        for row in found
    ] == [
        (
            row.path,
            row.length,
            row.spec_id,
            row.content,
            row.sequence_number,
            row.min_sequence_number,
            row.snapshot_id,
            *(row.files[s] for s in (EntryStatus.ADDED, EntryStatus.EXISTING, EntryStatus.DELETED)),
            *(row.rows[s] for s in (EntryStatus.ADDED, EntryStatus.EXISTING, EntryStatus.DELETED)),
            [(p.contains_null, p.contains_nan, p.lower, p.upper) for p in row.partitions],
        )
        for row in wanted
    ]  # fmt: skip
