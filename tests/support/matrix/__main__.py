"""``python -m tests.support.matrix``: run the matrix, and with ``--write`` write its page.

Exits with 1 if readers differ in a way that nobody can explain; the page says where.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.support.iceberg.duckdb import connect
from tests.support.matrix.cells import all_tables
from tests.support.matrix.known import failures, unused
from tests.support.matrix.page import page
from tests.support.matrix.readers import READERS, Engines
from tests.support.matrix.run import Cell, Outcome, run_table
from tests.support.spark.session import start_delta_spark

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "who-reads-what.md"


def main() -> int:
    """Run all tables, or those whose name has a text in it."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.matrix", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument(
        "--keep",
        type=Path,
        help="a file of outcomes: tables in it are not run again",
    )
    parser.add_argument("--only", default="", help="tables with this text in their name")
    parser.add_argument(
        "--reader", action="append", choices=list(READERS), help="read by these readers only"
    )
    asked = parser.parse_args()
    if asked.write and (asked.only or asked.reader):
        parser.error("the page is of all tables and readers: leave --only and --reader out")
    tables = [table for table in all_tables() if asked.only in str(table)]
    kept = _Kept(asked.keep)
    outcomes: list[Outcome] = [one for table in tables for one in kept.found.get(str(table), ())]
    tables = [table for table in tables if str(table) not in kept.found]
    with tempfile.TemporaryDirectory() as folder:
        spark = start_delta_spark(Path(folder))
        engines = Engines(spark, connect())
        for at, table in enumerate(tables):
            began = time.monotonic()
            found = run_table(engines, Path(folder) / f"{at}" / "t", table, asked.reader or READERS)
            outcomes += found
            kept.add(str(table), found)
            _say(f"{at + 1}/{len(tables)} {table}: {time.monotonic() - began:.1f} s")
            for line in failures(found):
                _say(f"  {line}")
        spark.stop()
    if asked.write:
        PAGE.write_text(page(outcomes))
    for reason in [] if asked.only or asked.reader else unused(outcomes):
        _say(f"not seen any more: {reason}")
    return 1 if failures(outcomes) else 0


class _Kept:
    """Outcomes by table, in a file that grows by a table at a time."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.found: dict[str, list[Outcome]] = {}
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                name, outcomes = json.loads(line)
                self.found[name] = [_restored(one) for one in outcomes]

    def add(self, name: str, outcomes: list[Outcome]) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([name, [asdict(one) for one in outcomes]]) + "\n")


def _restored(values: dict[str, Any]) -> Outcome:
    wrong = tuple((one, other) for one, other in values["wrong"])
    return Outcome(**{**values, "cell": Cell(**values["cell"]), "wrong": wrong})


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
