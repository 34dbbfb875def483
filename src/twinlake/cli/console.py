"""The console renderer: colours and fitted tables on a terminal, plain grids everywhere else.

Plain means one row a line, columns two blanks apart, ``-`` for nothing and no wrapping, so that
grep, awk and sort work on what a person sees.
"""

from __future__ import annotations

import re
import sys
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.table import Table as RichTable
from rich.text import Text

from twinlake.cli.error_text import error_lines
from twinlake.cli.output import is_utf8
from twinlake.cli.view import Bars, Fields, Grid, Heading, Lines, Paragraph, Ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from twinlake.cli.view import Block, View
    from twinlake.errors import TwinlakeError

__all__ = ["ConsoleOutput"]

_WIDTH: Final = 100
"""No text is wrapped wider than this: longer lines are hard to read on any screen."""

_LEVELS: Final = "·▁▂▃▄▅▆▇█"
_ASCII_LEVELS: Final = "_.:-=+*%#"

_BAR: Final = 30
"""The cells of the longest bar."""

# What a table holds is not to be trusted with the terminal: no cursor games, no line breaks.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class ConsoleOutput:
    """Text on standard output, errors on standard error."""

    def __init__(self) -> None:
        # Rich looks at NO_COLOR and TERM by itself.
        self._console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
        self._errors = Console(file=sys.stderr, highlight=False, soft_wrap=True)
        self._width = min(self._console.width, _WIDTH) if self.is_terminal else _WIDTH

    @property
    def is_terminal(self) -> bool:
        """Whether standard output is a terminal."""
        return self._console.is_terminal

    def show(self, view: View) -> None:
        """The blocks of the view, a blank line between them."""
        for position, block in enumerate(view.blocks):
            if position:
                self._line("")
            self._render(block)

    def show_all(self, views: Iterable[View]) -> None:
        """Each view as it comes."""
        for position, view in enumerate(views):
            if position:
                self._line("")
            self.show(view)
            sys.stdout.flush()

    def error(self, error: TwinlakeError) -> None:
        """Three lines, the first in red on a terminal."""
        first, *rest = error_lines(error)
        self._errors.print(Text(_clean(first), style="bold red"))
        for line in rest:
            self._errors.print(Text(_clean(line)))

    def _line(self, text: str, style: str = "") -> None:
        if self.is_terminal:
            self._console.print(Text(text, style=style), width=self._width)
        else:
            sys.stdout.write(text + "\n")

    @singledispatchmethod
    def _render(self, block: Block) -> None:
        raise NotImplementedError(block)

    @_render.register
    def _heading(self, block: Heading) -> None:
        text = _clean(block.text)
        self._line(text, "bold")
        self._line("=" * min(cell_len(text), self._width), "dim")

    @_render.register
    def _paragraph(self, block: Paragraph) -> None:
        text = Text(_clean(block.text))
        for line in text.wrap(self._console, self._width):
            self._line(line.plain.rstrip())

    @_render.register
    def _fields(self, block: Fields) -> None:
        rows = [(label, _clean(value)) for label, value in block.rows]
        if self.is_terminal:
            table = RichTable.grid(padding=(0, 2))
            table.add_column(style="cyan", no_wrap=True)
            table.add_column(overflow="fold")
            for label, value in rows:
                table.add_row(Text(label), Text(value))
            self._console.print(table, width=self._width)
            return
        width = max((cell_len(label) for label, _ in rows), default=0)
        for label, value in rows:
            self._line(f"{_pad(label, width)}  {value}")

    @_render.register
    def _grid(self, block: Grid) -> None:
        if block.title:
            self._line(block.title, "bold")
        if self.is_terminal:
            self._fitted(block)
        else:
            self._plain(block)
        if block.note:
            self._line(block.note, "dim")

    def _fitted(self, block: Grid) -> None:
        table = RichTable(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
        for column in block.columns:
            table.add_column(
                Text(column.name),
                justify="right" if column.right else "left",
                overflow="fold",
                no_wrap=column.right,
            )
        for row in block.rows:
            table.add_row(*(Text(_clean(value)) for value in row))
        self._console.print(table)

    def _plain(self, block: Grid) -> None:
        header = [column.name for column in block.columns]
        rows = [header, *([_clean(value) for value in row] for row in block.rows)]
        widths = [max(cell_len(value) for value in column) for column in zip(*rows, strict=True)]
        for row in rows:
            padded = [
                _pad(value, width, right=column.right)
                for value, width, column in zip(row, widths, block.columns, strict=True)
            ]
            self._line("  ".join(padded).rstrip())

    @_render.register
    def _lines(self, block: Lines) -> None:
        for line in block.lines:
            if block.verbatim and not self.is_terminal:
                sys.stdout.write(line + "\n")
                continue
            text = _clean(line)
            highlighted = line.lstrip().startswith("{") and not block.style
            for part in [text] if block.verbatim else _folded(text, self._width):
                shown = Text(part, style=block.style)
                if highlighted:
                    JSONHighlighter().highlight(shown)
                if self.is_terminal:
                    self._console.print(shown, soft_wrap=True)
                else:
                    self._line(part)

    @_render.register
    def _bars(self, block: Bars) -> None:
        if block.title:
            self._line(block.title, "bold")
        longest = max((number for _, number, _ in block.rows), default=0)
        width = max((cell_len(label) for label, _, _ in block.rows), default=0)
        sign = "\N{FULL BLOCK}" if is_utf8(sys.stdout) else "#"
        for label, number, text in block.rows:
            # A small number is not nothing.
            bar = sign * max(round(number / longest * _BAR), 1) if number else ""
            self._line(f"{_pad(label, width, right=True)}  {_pad(bar, _BAR)}  {_clean(text)}")

    @_render.register
    def _ranges(self, block: Ranges) -> None:
        if block.title:
            self._line(block.title, "bold")
        width = max((cell_len(_clean(label)) for label, _, _ in block.rows), default=0)
        signs = _LEVELS if is_utf8(sys.stdout) else _ASCII_LEVELS
        for label, numbers, text in block.rows:
            # Neither is a small number nothing, nor nearly all of them all.
            levels = [-(-number * (len(signs) - 1) // block.whole) for number in numbers]
            strip = "".join(signs[level] for level in levels)
            self._line(f"{_pad(_clean(label), width, right=True)}  {strip}  {_clean(text)}")


def _clean(text: str) -> str:
    return _CONTROL.sub(lambda found: repr(found.group())[1:-1], text)


def _pad(text: str, width: int, *, right: bool = False) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


def _folded(text: str, width: int) -> Sequence[str]:
    """A long line in pieces, broken after a comma or a blank where there is one, indented."""
    indent = " " * min(len(text) - len(text.lstrip()) + 4, width // 2)
    parts: list[str] = []
    rest = text
    while len(rest) > width:
        # Never within the indent, or it would go on for ever.
        cut = max(rest.rfind(",", 0, width), rest.rfind(" ", len(indent) + 1, width)) + 1
        if cut <= len(indent) + 1:
            cut = width
        parts.append(rest[:cut].rstrip())
        rest = indent + rest[cut:].lstrip()
    return [*parts, rest]
