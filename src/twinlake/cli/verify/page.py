"""A result of ``twinlake verify`` as one HTML page that needs nothing else.

No script, no network, no font: a style sheet and an SVG inside, readable in light and in dark,
and every step of the drawing stands in a table as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.verify.diagram import diagram
from twinlake.cli.verify.words import argument_text, change_text, words
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from twinlake.verify.checker import Trace, TraceStep

__all__ = ["Page", "Shown", "render_page", "write_page"]


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
    facts: Sequence[tuple[str, str]] = ()
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
        f"<h1>{escape(page.title)}</h1>",
        f'<p class="outcome {"good" if page.ok else "bad"}" role="status">'
        f"{escape(page.verdict)}</p>",
        *_facts(page.facts),
        *_table("Properties", ("property", "verdict"), page.verdicts),
    ]
    for number, shown in enumerate(page.traces, 1):
        body += _trace(shown, number)
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8"/>',
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            '<meta name="color-scheme" content="light dark"/>',
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\"/>",
            f"<title>{escape(page.title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            *body,
            "</main>",
            "<footer><p>Written by <code>twinlake verify</code>.</p></footer>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _facts(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    rows = list(facts)
    if rows:
        yield "<dl>"
        yield from (f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)
        yield "</dl>"


def _table(
    caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], *, escaped: bool = False
) -> Iterator[str]:
    found = list(rows)
    if not found:
        return
    yield f"<table><caption>{escape(caption)}</caption><thead><tr>"
    yield "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    yield "</tr></thead><tbody>"
    for row in found:
        cells = row if escaped else [escape(value) for value in row]
        first, *rest = cells
        told = "".join(f"<td>{value}</td>" for value in rest)
        yield f'<tr><th scope="row">{first}</th>{told}</tr>'
    yield "</tbody></table>"


def _trace(shown: Shown, number: int) -> Iterator[str]:
    yield f"<section><h2>{escape(shown.title)}</h2>"
    drawn = diagram(shown.trace, title=shown.title, verdict=shown.message, number=number)
    yield f'<div class="scroll" tabindex="0" role="group" aria-label="Diagram">{drawn}</div>'
    if shown.message:
        yield f'<p class="outcome bad">{escape(shown.message)}</p>'
        yield from _facts((name, words(value)) for name, value in shown.fields.items())
    header = ("step", "actor", "action", "arguments", "checks", "goes to", "changed")
    rows = (_step(step) for step in shown.trace.steps)
    yield '<div class="scroll" tabindex="0" role="group" aria-label="Steps">'
    yield from _table("Every step", header, rows, escaped=True)
    yield "</div></section>"


def _step(step: TraceStep) -> tuple[str, ...]:
    checks = "<br/>".join(
        f'<span class="{"good" if one.passed else "bad"}">{"✓" if one.passed else "✗"} '
        f"{escape(one.name)} {'passed' if one.passed else 'failed'}"
        f"{escape(f' ({one.detail})' if one.detail else '')}</span>"
        for one in step.checks
    )
    told = (argument_text(step), change_text(step, counters=True))
    arguments, changed = (escape(text).replace("; ", "<br/>") for text in told)
    return (
        str(step.number),
        escape(step.actor),
        escape(step.action),
        arguments,
        checks,
        escape(step.state[1]),
        changed,
    )


_STYLE: Final = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--dim:#57606a;--line:#d0d7de;
--box:#f3f5f8;--arrow:#0a58a8;--good:#116329;--bad:#b3261e;--bad-paper:#fdecea}
@media (prefers-color-scheme:dark){:root{--paper:#0f1318;--ink:#e6edf3;--dim:#9aa6b2;
--line:#39424e;--box:#1a212a;--arrow:#7cb7ff;--good:#6fdd8b;--bad:#ff9a92;--bad-paper:#3a1512}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main,footer{max-width:1280px;margin:0 auto;padding:1rem 1.25rem}
footer{color:var(--dim)}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
.outcome{padding:.6rem .9rem;border-radius:8px;border:1px solid var(--line);font-weight:600}
.outcome.bad{background:var(--bad-paper);border-color:var(--bad)}
.good{color:var(--good)}.bad{color:var(--bad)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}
dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}
table{border-collapse:collapse;margin:1rem 0;width:100%}
caption{text-align:left;color:var(--dim);padding-bottom:.3rem}
th,td{text-align:left;vertical-align:top;border-bottom:1px solid var(--line);
padding:.3rem .7rem .3rem 0;font-weight:400}
thead th{color:var(--dim)}
.scroll{overflow-x:auto}.scroll:focus-visible{outline:2px solid var(--arrow)}
svg{max-width:none;height:auto;font:13px system-ui,sans-serif}
svg .life{stroke:var(--line);stroke-width:1.5;stroke-dasharray:4 4}
svg rect.who{fill:var(--box);stroke:var(--line)}
svg text{fill:var(--ink)}svg text.who{font-weight:600}
svg .arrow{stroke:var(--arrow);stroke-width:1.6;fill:none}svg .read{stroke-dasharray:6 4}
svg .head{fill:var(--arrow)}
svg .label,svg .note{paint-order:stroke;stroke:var(--paper);stroke-width:4px;
stroke-linejoin:round}
svg .label{font-weight:600}svg .note{fill:var(--dim);font-size:12px}
svg .failed .label,svg .failed .note{fill:var(--bad)}
svg rect.verdict{fill:var(--bad-paper);stroke:var(--bad)}
svg text.verdict{fill:var(--bad);font-weight:600}
""".strip()
