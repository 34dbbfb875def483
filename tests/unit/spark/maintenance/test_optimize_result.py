"""What an OPTIMIZE shows in a notebook and at a terminal."""

from __future__ import annotations

from pathlib import Path

from tests.support.notebook_page import NotebookPage
from tests.unit.table.making import create, data_file
from twinlake._html import SHOWN
from twinlake.spark.maintenance.optimize_result import OptimizeResult


def test_files_before_and_after(tmp_path: Path) -> None:
    table = create(tmp_path)
    removed = tuple(data_file(f"<b>{n}.parquet") for n in range(SHOWN + 4))
    done = OptimizeResult(
        table=table,
        version=7,
        added=(data_file("all.parquet", 240),),
        removed=removed,
        partitions=1,
    )
    assert repr(done).endswith("24 files (2.3 KiB) rewritten to 1 file (2.3 KiB), version 7>")
    found = NotebookPage(done)
    assert ["all.parquet", "2400"] in found.rows
    assert ["<b>0.parquet", "100"] in found.rows
    assert "4 more" in found.text


def test_nothing_to_do(tmp_path: Path) -> None:
    done = OptimizeResult(table=create(tmp_path), version=None)
    assert repr(done).endswith(": nothing to do>")
    assert "nothing to do" in NotebookPage(done).text
