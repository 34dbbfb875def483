"""Values as HTML for notebooks: the blocks that every ``_repr_html_`` is made of.

All text is escaped, and characters that nobody sees are spelled out. Colours are those of the page
around, so that light and dark themes both work; nothing is loaded from outside. Long lists are
folded, and a list of any length gives a page of bounded size.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "FOLDED",
    "SHOWN",
    "Html",
    "Node",
    "fields",
    "grid",
    "page",
    "prose",
    "text",
    "tree",
    "visible",
]

SHOWN: Final = 20
"""Rows of a list that are shown."""
FOLDED: Final = 1000
"""Rows after those that can be unfolded; the rest is counted."""

# Notebooks style tables themselves; `div.` makes these rules win. Grey on top of the page's own
# colours is readable on a light and on a dark one.
_STYLE: Final = (
    "div.twinlake{font:13px/1.45 system-ui,sans-serif;overflow-x:auto}"
    "div.twinlake table{border-collapse:collapse;margin:.4em 0;font:inherit}"
    "div.twinlake :is(th,td){padding:.15em .9em .15em 0;text-align:left;vertical-align:top;"
    "white-space:normal}"
    "div.twinlake th{font-weight:normal;opacity:.65}"
    "div.twinlake thead th{border-bottom:1px solid #8888}"
    "div.twinlake td.number{text-align:right;font-variant-numeric:tabular-nums}"
    "div.twinlake p{margin:.4em 0}"
    "div.twinlake ul{list-style:none;margin:0;padding-left:1.2em}"
    "div.twinlake summary{cursor:pointer}"
    "div.twinlake code{font-size:inherit;background:#8883;border-radius:3px;padding:0 .25em}"
)


class Html(str):
    """Markup. Any other text is escaped where it is put into a block."""

    __slots__ = ()


class Node(NamedTuple):
    """One line of a tree, and what is below it."""

    name: str
    text: str
    children: tuple[Node, ...] = ()


def text(value: object) -> Html:
    """A value as text of a page; None is empty.

    >>> text("a < b"), text(None)
    ('a &lt; b', '')
    """
    if isinstance(value, Html):
        return value
    lines = "" if value is None else str(value)
    return Html("<br>".join(escape(visible(line)) for line in lines.split("\n")))


def visible(line: str) -> str:
    """A line with its unprintable characters spelled out: they could hide or reorder text."""
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def prose(value: str) -> Html:
    """Sentences in which calls and commands stand in backticks.

    >>> prose("Run `Table.open(PATH)`.")
    'Run <code>Table.open(PATH)</code>.'
    """
    parts = value.split("`")
    if len(parts) % 2 == 0:
        return text(value)
    return Html(
        "".join(f"<code>{text(p)}</code>" if n % 2 else text(p) for n, p in enumerate(parts))
    )


def page(title: object, *blocks: object) -> str:
    """The whole: a title, then blocks; a text is a paragraph."""
    inner = "".join(b if isinstance(b, Html) else f"<p>{text(b)}</p>" for b in blocks)
    style = f"<style>{_STYLE}</style>"
    return f'<div class="twinlake">{style}<strong>{text(title)}</strong>{inner}</div>'


def fields(pairs: Iterable[tuple[str, object]]) -> Html:
    """Names and values; those without a value are left out."""
    rows = [
        f"<tr><th>{text(name)}</th><td>{text(value)}</td></tr>"
        for name, value in pairs
        if value not in (None, "")
    ]
    return Html(f"<table><tbody>{''.join(rows)}</tbody></table>" if rows else "")


def grid(header: Sequence[str], rows: Iterable[Sequence[object]], *, more: int = 0) -> Html:
    """A table; numbers are aligned, ``more`` counts rows that are not given. Empty without rows."""
    head = "".join(f"<th>{text(name)}</th>" for name in header)
    lines = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    top = f"<table><thead><tr>{head}</tr></thead><tbody>"
    return _folded(lines, top, "</tbody></table>", more)


def _cell(value: object) -> str:
    number = ' class="number"' if isinstance(value, int) else ""
    return f"<td{number}>{text(value)}</td>"


def tree(nodes: Sequence[Node], depth: int = 0) -> Html:
    """Nested lists; what is deeper than two levels is folded."""
    return _folded([f"<li>{_branch(node, depth)}</li>" for node in nodes], "<ul>", "</ul>")


def _branch(node: Node, depth: int) -> str:
    line = f"<b>{text(node.name)}</b> {text(node.text)}"
    if not node.children:
        return line
    state = " open" if depth < 2 else ""
    below = tree(node.children, depth + 1)
    return f"<details{state}><summary>{line}</summary>{below}</details>"


def _folded(items: Sequence[str], before: str, after: str, more: int = 0) -> Html:
    def listed(part: Sequence[str]) -> str:
        return f"{before}{''.join(part)}{after}" if part else ""

    hidden, left = items[SHOWN : SHOWN + FOLDED], more + max(0, len(items) - SHOWN - FOLDED)
    rest = f"<p>… and {left:,} more, not listed</p>" if left else ""
    if hidden:
        summary = f"<summary>{len(hidden) + left:,} more</summary>"
        rest = f"<details>{summary}{listed(hidden)}{rest}</details>"
    return Html(listed(items[:SHOWN]) + rest)
