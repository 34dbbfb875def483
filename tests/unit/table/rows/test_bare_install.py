"""Rows are read and written where nothing but the package's own dependencies is installed."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.process

_WITHOUT = """
import sys

ABSENT = {"pyspark", "py4j", "pandas", "polars", "duckdb", "pyiceberg", "deltalake"}


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Absent())
"""

_PROGRAM = """
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
try:
    from twinlake.spark import scan
except ModuleNotFoundError as error:
    assert "pip install 'twinlake[spark]'" in str(error)
else:
    raise AssertionError("spark")
print("read and written")
"""

_COMMANDS = """
from click.testing import CliRunner
from twinlake.cli import main

for arguments in (["demo", "--keep", sys.argv[1]], ["reorg", sys.argv[1] + "/t", "--yes"]):
    if arguments[0] == "reorg":
        import twinlake
        twinlake.Table.create(arguments[1], "id INT").append({"id": [1]})
    found = CliRunner().invoke(main, arguments)
    assert found.exit_code == 1, found.output
    assert "TWIN-SPARK-REQUIRED" in found.stderr, found.stderr
    assert "pip install 'twinlake[spark]'" in found.stderr, found.stderr
print("named")
"""


def test_rows_without_any_extra(tmp_path: Path) -> None:
    assert _run(_PROGRAM, tmp_path / "t") == "read and written"


def test_commands_name_the_extra_that_they_need(tmp_path: Path) -> None:
    assert _run(_COMMANDS, tmp_path) == "named"


def _run(program: str, path: Path) -> str:
    command = [sys.executable, "-W", "error", "-c", _WITHOUT + program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
