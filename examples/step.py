"""A step of an example: what it shows as text, and the same as data."""

from __future__ import annotations

import tempfile
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

__all__ = ["Step", "calls", "facts", "grid", "prose", "run"]

_WIDTH: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of a table and what became of it."""

    name: str
    title: str
    #: Paragraphs, calls, lists and grids, in order.
    parts: Sequence[str]
    data: Mapping[str, Any] = field(default_factory=dict)
    #: Whether it introduces the steps after it instead of doing something itself.
    is_opening: bool = False

    @property
    def text(self) -> str:
        """All parts, a blank line between them."""
        return "\n\n".join(part for part in self.parts if part)


def prose(text: str) -> str:
    """Sentences, wrapped."""
    return textwrap.fill(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def calls(*code: str) -> str:
    """Python that was run, as in a session."""
    return "\n".join(f">>> {line}" for line in code)


def facts(rows: Mapping[str, object]) -> str:
    """Labels with their values, one a line."""
    width = max(map(len, rows), default=0)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in rows.items())


def grid(header: str, rows: Iterable[Sequence[object]], title: str = "") -> str:
    """Rows under the names of ``header``, which are apart by blanks; ``_`` stands for one."""
    names = [name.replace("_", " ") for name in header.split()]
    cells = [names, *(["-" if cell in (None, "") else str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    return "\n".join([title, *lines] if title else lines)


def run(steps: Callable[..., Iterator[Step]], *, on_spark: bool = False) -> None:
    """Run one example in a temporary folder and print its steps as they are made."""
    with tempfile.TemporaryDirectory(prefix="twinlake-example-") as folder:
        spark = (_local_spark(),) if on_spark else ()
        try:
            for step in steps(Path(folder), *spark):
                print(f"{step.title}\n{'=' * len(step.title)}\n{step.text}\n", flush=True)
        finally:
            for session in spark:
                session.stop()


def _local_spark() -> SparkSession:
    """A session on this machine, with nothing of twinlake or Delta configured in it."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.master("local[*]").appName("twinlake examples")
    session: SparkSession = builder.config("spark.ui.enabled", "false").getOrCreate()
    return session
