"""A child process that parses statistics: one list of texts a line in, one answer a line out.

A reader written in C++ that meets text it did not expect may kill its process instead of raising.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pyarrow as pa

from twinlake.log.stats.parsed import StatsShape
from twinlake.schema import parse_ddl

__all__ = ["StatsParser"]

SCHEMA = (
    "l BIGINT, b TINYINT, f FLOAT, d DOUBLE, n DECIMAL(9,2), t STRING, flag BOOLEAN, day DATE, "
    "at TIMESTAMP, s STRUCT<x: INT, q: STRUCT<y: STRING>>, a ARRAY<INT>"
)


class StatsParser:
    """Asks the child; one that died is reported and replaced."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def parse(self, texts: list[str]) -> Any:
        """What the child makes of the texts: ``numRecords`` and the bounds of ``l`` of each."""
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "tests.support.processes.stats_parser"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            print(json.dumps(texts), file=child.stdin, flush=True)
            answer = child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.close()
            shown = [text[:200] for text in texts]
            raise AssertionError(f"the process died ({child.returncode}) of {shown}")
        return json.loads(answer)

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.communicate()
            self._child = None


def _answer(shape: StatsShape, texts: list[str]) -> list[list[int | None]]:
    found = shape.parse(pa.array(texts, pa.string()), None, len(texts))
    found.validate(full=True)
    found.to_pylist()
    assert len(found) == len(texts)
    bounds = [pa.compute.struct_field(found, [name, "l"]) for name in ("minValues", "maxValues")]
    columns = [found.field("numRecords"), *bounds]
    return [list(row) for row in zip(*(column.to_pylist() for column in columns), strict=True)]


def main() -> None:
    """Answer until the input ends."""
    shape = StatsShape(parse_ddl(SCHEMA))
    for line in sys.stdin:
        texts = json.loads(line)
        whole = _answer(shape, texts)
        alone = [_answer(shape, [text])[0] for text in texts]
        sys.stdout.write(json.dumps({"whole": whole, "alone": alone}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
