"""Who reads what: every type, compat feature, writer, setting and reader, and no silent difference.

The cells are data in ``tests/support/matrix``. A reader returns the rows that were written, or the
commit is refused, or the sync stops and names the file; anything else fails, unless it is a known
defect of that reader.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.iceberg.duckdb import connect
from tests.support.matrix.cells import all_tables, some_tables
from tests.support.matrix.known import failures
from tests.support.matrix.page import notes
from tests.support.matrix.readers import Engines
from tests.support.matrix.run import TableOfCells, run_table
from tests.support.not_run import not_run
from tests.support.scale import is_full_scale

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_TABLES = list(all_tables() if is_full_scale() else some_tables())
_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "who-reads-what.md"


@pytest.fixture(scope="module")
def duck() -> Iterator[Any]:
    found = connect()
    if isinstance(found, str):
        not_run(found, required_by="TWINLAKE_REQUIRE_INTEROP")
    yield found
    found.close()


@pytest.mark.spark
@pytest.mark.parametrize("table", _TABLES, ids=str)
def test_no_reader_differs_silently(
    delta_spark: SparkSession, duck: Any, tmp_path: Path, table: TableOfCells
) -> None:
    outcomes = run_table(Engines(delta_spark, duck), tmp_path / "t", table)
    assert outcomes
    found = failures(outcomes)
    if found:
        pytest.fail("\n".join([f"{len(found)} differences", *found]), pytrace=False)


def test_page_has_the_notes_of_the_code() -> None:
    assert notes() in _PAGE.read_text(), "run: python -m tests.support.matrix --write"
