"""A result of ``twinlake verify`` as one HTML page that needs nothing else.

No script, no network, no font: a style sheet and an SVG inside, readable in light and in dark,
and every step of the drawing stands in a table as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.verify.diagram import diagram
from twinlake.cli.verify.markup import Markup, element
from twinlake.cli.verify.trace_text import argument_text, change_text, value_text
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from twinlake.verify.checker import Trace, TraceStep

__all__ = ["Page", "Shown", "render_page", "write_page"]

#: The frame of a page: its head with the style sheet, and what stands around the body.
_TEMPLATE: Final = Path(__file__).with_name("page.html")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A trace with what fails where it ends; nothing may fail."""

    title: str
    trace: Trace
    message: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a page tells."""

    title: str
    verdict: str
    ok: bool
    details: Sequence[tuple[str, str]] = ()
    #: Each property with its verdict.
    verdicts: Sequence[tuple[str, str]] = ()
    traces: Sequence[Shown] = ()


def write_page(path: Path, page: Page) -> None:
    """Write a page to a file."""
    try:
        path.write_text(render_page(page), encoding="utf-8")
    except OSError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The page cannot be written to {path}.",
            why=f"{error.strerror or error}.",
            fix="Name a file in a folder that exists and may be written to.",
            fields={"path": str(path)},
        ) from error


def render_page(page: Page) -> str:
    """The page as text."""
    body = [
        element("h1", page.title),
        element("p", page.verdict, class_=f"outcome {_rated(page.ok)}", role="status"),
        *_details(page.details),
        *_table("Properties", ("property", "verdict"), page.verdicts),
        *(_trace(shown, number) for number, shown in enumerate(page.traces, 1)),
    ]
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(title=escape(page.title), body="\n".join(body))


def _rated(ok: bool) -> str:
    return "good" if ok else "bad"


def _details(details: Iterable[tuple[str, str]]) -> list[Markup]:
    rows = [
        element(tag, text) for fact in details for tag, text in zip(("dt", "dd"), fact, strict=True)
    ]
    return [element("dl", *rows)] if rows else []


def _table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[Markup]:
    found = [
        element("tr", element("th", first, scope="row"), *(element("td", value) for value in rest))
        for first, *rest in rows
    ]
    if not found:
        return []
    names = (element("th", name, scope="col") for name in header)
    head = element("thead", element("tr", *names))
    return [element("table", element("caption", caption), head, element("tbody", *found))]


def _trace(shown: Shown, number: int) -> Markup:
    drawn = diagram(shown.trace, title=shown.title, verdict=shown.message, number=number)
    header = ("step", "actor", "action", "arguments", "checks", "goes to", "changed")
    steps = _table("Every step", header, map(_step, shown.trace.steps))
    failed = [element("p", shown.message, class_="outcome bad")] if shown.message else []
    if failed:
        failed += _details((name, value_text(value)) for name, value in shown.fields.items())
    return element(
        "section",
        element("h2", shown.title),
        _scroll("Diagram", drawn),
        *failed,
        _scroll("Steps", *steps),
    )


def _scroll(label: str, *content: Markup) -> Markup:
    return element("div", *content, class_="scroll", tabindex=0, role="group", aria_label=label)


def _step(step: TraceStep) -> tuple[object, ...]:
    checks = [
        element(
            "span",
            f"{'✓' if one.passed else '✗'} {one.name} {'passed' if one.passed else 'failed'}",
            f" ({one.detail})" if one.detail else "",
            class_=_rated(one.passed),
        )
        for one in step.checks
    ]
    arguments, changed = argument_text(step), change_text(step, counters=True)
    return (
        step.number,
        step.actor,
        step.action,
        _lines(arguments.split("; ")),
        _lines(checks),
        step.state[1],
        _lines(changed.split("; ")),
    )


def _lines(parts: Iterable[str]) -> Markup:
    """Parts one below the other."""
    shown = (part if isinstance(part, Markup) else escape(part) for part in parts)
    return Markup(element("br").join(shown))
