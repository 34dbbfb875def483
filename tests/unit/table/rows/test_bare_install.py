"""Rows are read and written where nothing but the package's own dependencies is installed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

_PROGRAM = """
import sys

ABSENT = {"pyspark", "py4j", "pandas", "polars", "duckdb", "pyiceberg", "deltalake"}


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())

import twinlake

t = twinlake.Table.create(sys.argv[1], "id INT, s STRING, day DATE DEFAULT DATE'2024-05-01'",
                          properties={"delta.feature.allowColumnDefaults": "enabled"})
t = t.append({"id": [1, 2], "s": ["a", "b"]})
t = t.update({"s": "concat(s, '!')"}, where="id = 1").merge([{"id": 2, "s": "m"}], on="id")
t = t.delete("id = 9").optimize()
assert t.to_arrow(columns=["id", "s"], where="id < 3").to_pydict()["s"] == ["a!", "m"], t.to_arrow()
assert t.count() == sum(batch.num_rows for batch in t.to_batches()) == t.head().num_rows == 2
for name in ("pandas", "polars", "duckdb"):
    try:
        getattr(t, f"to_{name}")()
    except twinlake.UserError as error:
        assert f"twinlake[{name}]" in error.fix
    else:
        raise AssertionError(name)
print("read and written")
"""


def test_rows_without_any_extra(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", _PROGRAM, str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "read and written"), done.stderr
