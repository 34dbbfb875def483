"""The pages of the documentation that need Spark, run from top to bottom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.documents import (
    PAGES,
    ROOT,
    WITHOUT_DELTA,
    name_of,
    needs_spark,
    run_page,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

README = ROOT / "README.md"


SHARED = [page for page in PAGES if needs_spark(page) and page != WITHOUT_DELTA]


@pytest.mark.parametrize("page", SHARED, ids=name_of)
def test_the_code_of_a_page_runs_in_order(
    page: Path, delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert delta_spark.getActiveSession() is not None
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TWINLAKE_CATALOG", str(tmp_path / "catalog.db"))
    names = run_page(page)
    if page == README:
        rows = names["sales"].toDF()
        assert rows.count() == 999_990 + 5
        assert rows.where("id BETWEEN 10 AND 19 AND day = 0").count() == 10


def test_the_readme_needs_spark() -> None:
    assert needs_spark(README)
