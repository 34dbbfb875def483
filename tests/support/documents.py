"""The code blocks of the documents, run in their order as a reader would type them.

A page runs in a folder of its own: its ``python`` blocks in one namespace, the ``$ twinlake``
lines of its ``console`` blocks through the command line. A comment before a block may say

- ``<!-- not run: why -->``: the block is left out, and the tests list it;
- ``<!-- setup`` ... ``-->``: Python that stands for what the reader has already.

A command has to end with exit status 0, or with the one that its comment names.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.unit.cli.running import run as run_command

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "PAGES",
    "ROOT",
    "WITHOUT_DELTA",
    "Block",
    "blocks",
    "name_of",
    "needs_spark",
    "run_page",
]

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    *sorted(ROOT.glob("*.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "adr"),
)
#: The page about sessions without Delta's jar, which the shared session has.
WITHOUT_DELTA: Final = ROOT / "docs/how-to/replace-delta-spark.md"
_PARTS: Final = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->$"
    r"|^(?:<!-- not run: (?P<why>[^\n]+) -->\n\s*)?"
    r"```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_SPARK: Final = re.compile(r"pyspark|twinlake\.spark|\bspark\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One piece of a page that is run, or says why not."""

    page: Path
    line: int
    language: str
    text: str
    not_run: str | None = None

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"

    @property
    def is_code(self) -> bool:
        """Whether a reader would type it."""
        return self.language in {"python", "console", "setup"}

    @property
    def needs_spark(self) -> bool:
        """Whether it starts Spark or uses a session."""
        code = self.language in {"python", "setup"}
        return bool(_SPARK.search(self.text)) if code else "--spark" in self.text

    def commands(self) -> Iterator[tuple[list[str], int]]:
        """The words after each prompt, and the exit status that the line names."""
        for line in self.text.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                status = re.search(r"#.*exit status (\d)", line)
                yield shlex.split(line[2:], comments=True), int(status[1]) if status else 0


def name_of(page: Path) -> str:
    """How a page is called in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page=page,
            line=text.count("\n", 0, found.start()) + 1,
            language="setup" if found["setup"] is not None else found["language"],
            text=found["setup"] if found["setup"] is not None else found["text"],
            not_run=found["why"],
        )
        for found in _PARTS.finditer(text)
    ]


def needs_spark(page: Path) -> bool:
    """Whether a block that is run needs Spark."""
    return any(b.needs_spark for b in blocks(page) if b.is_code and b.not_run is None)


def run_page(page: Path) -> dict[str, Any]:
    """Run the blocks of a page in the current folder; returns the names that they leave."""
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.not_run is not None or not block.is_code:
            continue
        if block.language == "console":
            _run_commands(block)
        else:
            # Empty lines first, so that a traceback shows the line of the page.
            code = "\n" * block.line + block.text
            exec(compile(code, str(page), "exec"), names)
    return names


def _run_commands(block: Block) -> None:
    for words, status in block.commands():
        assert words[:1] == ["twinlake"], f"{block}: {words} is not a command of twinlake"
        result = run_command(*words[1:])
        assert result.exit_code == status, f"{block}: {words}: {result.output}"
