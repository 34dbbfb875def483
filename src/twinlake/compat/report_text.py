"""Reports for people: plain text for a terminal, HTML for a notebook.

Violations stand together by rule. A rule that is broken in many places shows a few of them and
says how many there are.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.compat.rule import Violation

__all__ = ["SHOWN", "Group", "render_html", "render_text"]

SHOWN: Final = 10
"""Violations of one rule that are shown."""
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
    """For a notebook; everything that comes from the table is escaped."""
    parts = [f"<p>{_safe(summary)}</p>"]
    if groups:
        parts.append('<table><thead><tr style="text-align:left">')
        parts += [f"<th>{name}</th>" for name in ("rule", *_HEADER, "fix")]
        parts.append("</tr></thead><tbody>")
        for group in groups:
            parts += _html_group(group)
        parts.append("</tbody></table>")
    return f'<div class="twinlake-report">{"".join(parts)}</div>'


def _html_group(group: Group) -> Iterator[str]:
    height = len(group.shown) + bool(group.more)
    reason = _safe(group.reason)
    name = f"<b>{_safe(group.rule)}</b><br>{_safe(group.title)}"
    for place, violation in enumerate(group.shown):
        first = f'<td rowspan="{height}" title="{reason}">{name}</td>' if not place else ""
        yield _html_row(first, (*_cells(violation), violation.fix))
    if group.more:
        yield f'<tr><td colspan="4">… and {group.more:,} more</td></tr>'


def _html_row(first: str, cells: Sequence[str]) -> str:
    style = ' style="text-align:left;vertical-align:top"'
    rest = "".join(f"<td{style}>{_safe(text)}</td>" for text in cells)
    return f"<tr>{first}{rest}</tr>"


def _safe(text: str) -> str:
    return escape(_clean(text))
