"""``python -m tests.support.matrix``: run the matrix, and with ``--write`` write its page.

Exits with 1 if readers differ in a way that nobody can explain; the page says where.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.support.iceberg_duckdb import connect
from tests.support.matrix.cells import all_tables
from tests.support.matrix.known import failures
from tests.support.matrix.page import page
from tests.support.matrix.readers import Engines
from tests.support.matrix.run import Outcome, run_table
from tests.support.spark import start_delta_spark

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "who-reads-what.md"


def main() -> int:
    """Run all tables, or those whose name has a text in it."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.matrix", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--only", default="", help="tables with this text in their name")
    asked = parser.parse_args()
    if asked.write and asked.only:
        parser.error("the page is of all tables: leave --only out")
    tables = [table for table in all_tables() if asked.only in str(table)]
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        spark = start_delta_spark(Path(folder))
        engines = Engines(spark, connect())
        for at, table in enumerate(tables):
            began = time.monotonic()
            found = run_table(engines, Path(folder) / f"{at}" / "t", table)
            outcomes += found
            _say(f"{at + 1}/{len(tables)} {table}: {time.monotonic() - began:.1f} s")
            for line in failures(found):
                _say(f"  {line}")
        spark.stop()
    if asked.write:
        PAGE.write_text(page(outcomes))
    return 1 if failures(outcomes) else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
