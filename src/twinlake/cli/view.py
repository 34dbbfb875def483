"""The result of a command, independent of how it is rendered.

A command makes one ``View``: plain data for JSON, and blocks for the console. There are few kinds
of blocks, so that each renderer is small and every command has every form of output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "Bars",
    "Block",
    "Fields",
    "Grid",
    "Heading",
    "Lines",
    "Paragraph",
    "Ranges",
    "View",
    "ViewColumn",
    "cell",
]

EMPTY_CELL = "-"
"""An empty cell, so that the columns of a grid can be counted by other programs."""


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Sentences, wrapped to the screen."""

    text: str


@dataclass(frozen=True, slots=True)
class Fields:
    """Labels with their values, one a line."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """One column of a grid."""

    name: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows under a header line; ``note`` stands below, for people only."""

    columns: tuple[ViewColumn, ...]
    rows: Sequence[Sequence[str]]
    title: str = ""
    note: str = ""

    @classmethod
    def of(
        cls, header: str, rows: Iterable[Sequence[object]], *, title: str = "", note: str = ""
    ) -> Grid:
        """A grid from ``"version:r operation"``: names apart by blanks, ``:r`` sets right.

        >>> Grid.of("version:r operation", [(1, None)]).rows
        [('1', '-')]
        """
        columns = tuple(
            ViewColumn(name.removesuffix(":r").replace("_", " "), name.endswith(":r"))
            for name in header.split()
        )
        return cls(columns, [tuple(map(cell, row)) for row in rows], title, note)


@dataclass(frozen=True, slots=True)
class Lines:
    """Text that keeps its line breaks; lines wider than the screen are folded, never cut.

    ``verbatim`` lines are written as they are wherever the output is not a terminal.
    """

    lines: tuple[str, ...]
    verbatim: bool = False
    style: str = ""


@dataclass(frozen=True, slots=True)
class Bars:
    """Labels with a bar each, as long as its number, and a text behind it."""

    rows: tuple[tuple[str, int, str], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Labels with a strip each: a sign for every number, as high as its share of the whole."""

    rows: tuple[tuple[str, Sequence[int], str], ...]
    whole: int
    title: str = ""


Block = Heading | Paragraph | Fields | Grid | Lines | Bars | Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The result of a command: data for JSON, blocks for the console."""

    data: Mapping[str, Any]
    blocks: Sequence[Block] = field(default=())


def cell(value: object) -> str:
    """A value as the text of a cell.

    >>> cell(None), cell(True), cell(("a", "b")), cell("")
    ('-', 'yes', 'a, b', '-')
    """
    if value is None:
        return EMPTY_CELL
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        return ", ".join(str(item) for item in value) or EMPTY_CELL
    return str(value) or EMPTY_CELL
