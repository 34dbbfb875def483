"""Reports for people: plain text for a terminal, HTML for a notebook.

Violations stand together by rule. A rule that is broken in many places shows a few of them and
says how many there are.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake._html import Html
    from twinlake.compat.rule import Violation

__all__ = ["SHOWN", "Group", "render_html", "render_text", "report_blocks"]

SHOWN: Final = 10
"""Violations of one rule that the text shows; a notebook folds more."""
_WIDTH: Final = 100
_CELL: Final = 60
_HEADER: Final = ("where", "found", "wanted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One broken rule."""

    rule: str
    title: str
    reason: str
    shown: tuple[Violation, ...]
    count: int
    """All there are, shown or not."""
    fixes: tuple[str, ...]
    """How to fix what is shown, each way once."""

    @property
    def more(self) -> int:
        """How many are not shown."""
        return self.count - len(self.shown)


def render_text(summary: str, groups: Sequence[Group]) -> str:
    """For a terminal."""
    lines = textwrap.wrap(_clean(summary), _WIDTH)
    for group in groups:
        lines += ["", *_text_group(group)]
    return "\n".join(lines)


def _text_group(group: Group) -> Iterator[str]:
    yield from _labelled(group.rule, group.title)
    rows = [_HEADER, *(tuple(map(_cell, _cells(violation))) for violation in group.shown)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADER))]
    for row in rows:
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(padded)}".rstrip()
    if group.more:
        yield f"  … and {group.more:,} more"
    for fix in group.fixes:
        yield from _labelled("  fix:", fix)


def _labelled(label: str, text: str) -> list[str]:
    wrapped = textwrap.wrap(
        f"{label} {_clean(text)}", _WIDTH, subsequent_indent=" " * (len(label) + 1)
    )
    return wrapped or [label]


def _cells(violation: Violation) -> tuple[str, str, str]:
    return violation.path or "the table", violation.found or "nothing", violation.wanted or "-"


def _cell(text: str) -> str:
    text = _clean(text)
    # The end of a path tells files and columns apart, and so does its beginning.
    half = (_CELL - 1) // 2
    return text if len(text) <= _CELL else f"{text[:half]}…{text[-half:]}"


def _clean(text: str) -> str:
    """What a table holds is not to be trusted with the terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def render_html(summary: str, groups: Sequence[Group]) -> str:
    """For a notebook."""
    from twinlake._html import page

    return page(summary, *report_blocks(groups))


def report_blocks(groups: Sequence[Group]) -> Iterator[Html]:
    """A heading and a table for each broken rule."""
    from twinlake._html import Html, grid, prose, text

    for group in groups:
        yield Html(f"<p><b>{text(group.rule)}</b> {text(group.title)}<br>{text(group.reason)}</p>")
        rows = ((*_cells(violation), prose(violation.fix)) for violation in group.shown)
        yield grid((*_HEADER, "fix"), rows, more=group.more)
