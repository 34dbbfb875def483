"""A deletion vector that a request leaves out without a word, as DuckDB does when it adds one."""

from __future__ import annotations

import pytest

from twinlake.iceberg.requests import diff_files

VECTOR = "file:///t/_iceberg/metadata/dv.puffin at 4"
FILE = "part-1.parquet"


@pytest.mark.parametrize("may_leave_out", [False, True])
def test_it_counts_as_removed_where_that_is_allowed(may_leave_out: bool) -> None:
    found = diff_files([], [], {VECTOR: FILE}, frozenset(), may_leave_out=may_leave_out)

    assert found.removed == {FILE}
    said = () if may_leave_out else (f"file {VECTOR} is neither listed nor deleted",)
    assert found.problems == said
