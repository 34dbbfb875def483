"""The README's examples, one after the other, as a reader would type them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

README = Path(__file__).parents[2] / "README.md"


def test_the_examples_run_in_order(
    delta_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {"__name__": "readme"}
    assert any("pyspark" in example for example in examples)
    for example in examples:
        if "pyspark" in example:
            names["path"] = str(tmp_path / "sales")
        exec(compile(example, "README.md", "exec"), names)
    rows = names["sales"].toDF()
    assert rows.count() == 999_990 + 5
    assert rows.where("id BETWEEN 10 AND 19 AND day = 0").count() == 10
