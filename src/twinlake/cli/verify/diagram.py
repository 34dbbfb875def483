"""A trace as a sequence diagram: an SVG made of text, without a library.

Everybody who acts has a lifeline, and so have the places they act on. A step is an arrow from its
actor to the place it reads or changes, or a mark on the actor's own line. Colours are variables
of the page, so that the drawing follows its light and its dark scheme.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from twinlake.cli.verify.words import argument_text, change_text, check_text
from twinlake.cli.wording import counted, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.verify.checker import Trace, TraceStep

__all__ = ["diagram"]

_OBJECTS: Final = "object store"
_CATALOG: Final = "catalog"
_LOG: Final = "Delta log"
_STORE: Final = "store"
#: The first actor of its role: requests go to whoever of them takes them.
_SERVER: Final = "server-0"

#: What a step acts on, by the beginning of its name.
_BY_ACTION: Final[Mapping[str, str]] = {
    "ReadDataFiles": _OBJECTS,
    "WriteDataFiles": _OBJECTS,
    "WriteMetadataFiles": _OBJECTS,
    "Commit": _CATALOG,
    "TryCommit": _LOG,
}
#: What a step acts on, by the variables it changes.
_BY_VARIABLE: Final[Mapping[str, str]] = {
    "table": _CATALOG,
    "metadata": _CATALOG,
    "first": _CATALOG,
    "second": _CATALOG,
    "requests": _SERVER,
    "replies": _SERVER,
    "log": _LOG,
    "entries": _LOG,
    "checkpoints": _LOG,
    "files": _OBJECTS,
    "store": _OBJECTS,
    "deleted": _OBJECTS,
    "names": _OBJECTS,
}
_READS: Final = ("Read", "List", "Load", "Receive", "read", "head", "list")

_COLUMN, _ROW, _TOP, _MARGIN = 230, 58, 56, 90
#: How wide a character of the labels is in a wide font, nearly.
_CHARACTER: Final = 7.2
#: How far the mark of a step that is the actor's own affair reaches out.
_SELF: Final = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrow:
    step: TraceStep
    x: int
    y: int
    #: Where it goes; ``None``: the step is the actor's own affair.
    to: int | None
    is_read: bool


def diagram(trace: Trace, *, title: str, verdict: str = "", number: int = 1) -> str:
    """The SVG element; ``verdict`` stands in red below the last step.

    ``number`` keeps the ids of several drawings of one page apart.
    """
    names = _lifelines(trace)
    places = {name: _MARGIN + _COLUMN * index for index, name in enumerate(names)}
    width = _MARGIN * 2 + _COLUMN * max(len(names) - 1, 3)
    bottom = _TOP + _ROW * len(trace) + 24
    height = bottom + (46 if verdict else 8)
    told = f"Sequence diagram of {counted(len(trace), 'step')}. The table below says the same."
    parts = [
        f'<svg class="diagram" role="img" aria-labelledby="title-{number} text-{number}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'xmlns="http://www.w3.org/2000/svg">',
        f'<title id="title-{number}">{escape(title)}</title>',
        f'<desc id="text-{number}">{escape(told)}</desc>',
        _marker(number),
        *(line for name, x in places.items() for line in _lifeline(name, x, bottom)),
    ]
    for index, step in enumerate(trace.steps):
        place = _place(step)
        arrow = _Arrow(
            step=step,
            x=places[step.actor],
            y=_TOP + _ROW * index + 44,
            to=None if place in (None, step.actor) else places[str(place)],
            is_read=step.action.startswith(_READS),
        )
        parts += _drawn(arrow, width, f"url(#head-{number})")
    if verdict:
        parts += _verdict(verdict, width, bottom)
    return "\n".join([*parts, "</svg>"])


def _lifelines(trace: Trace) -> list[str]:
    """The actors in the order in which they first act, then the places likewise."""
    actors = dict.fromkeys(step.actor for step in trace.steps)
    places = dict.fromkeys(place for step in trace.steps if (place := _place(step)))
    return list(dict.fromkeys((*actors, *places)))


def _place(step: TraceStep) -> str | None:
    for name, place in _BY_ACTION.items():
        if step.action.startswith(name):
            # Where there is a log and no catalog, that is what a commit goes to.
            return _LOG if place == _CATALOG and "log" in step.changes else place
    if _is_call(step):
        return _STORE
    for variable in step.changes:
        if variable in _BY_VARIABLE:
            return _BY_VARIABLE[variable]
    return None


def _marker(number: int) -> str:
    return (
        f'<defs><marker id="head-{number}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>'
    )


def _lifeline(name: str, x: int, bottom: int) -> Iterator[str]:
    half = max(len(name) * 4 + 12, 44)
    yield f'<line class="life" x1="{x}" y1="34" x2="{x}" y2="{bottom}"/>'
    yield f'<rect class="who" x="{x - half}" y="6" width="{half * 2}" height="28" rx="6"/>'
    yield f'<text class="who" x="{x}" y="25" text-anchor="middle">{escape(name)}</text>'


def _drawn(arrow: _Arrow, width: int, head: str) -> Iterator[str]:
    step, x, y = arrow.step, arrow.x, arrow.y
    failed = any(not check.passed for check in step.checks)
    room = int((width - x - 14) / _CHARACTER)
    yield f'<g class="step{" failed" if failed else ""}">'
    yield f"<title>{escape(_tooltip(step))}</title>"
    if arrow.to is None:
        path = f"M{x} {y - 14} h-{_SELF} v14 H{x}"
        yield f'<path class="arrow" d="{path}" marker-end="{head}"/>'
    else:
        start, end = (arrow.to, x) if arrow.is_read else (x, arrow.to)
        kind = "arrow read" if arrow.is_read else "arrow"
        yield (
            f'<line class="{kind}" x1="{start}" y1="{y}" x2="{end}" y2="{y}" marker-end="{head}"/>'
        )
    label = f"{step.number}. {step.action}"
    yield f'<text class="label" x="{x + 8}" y="{y - 22}">{escape(shortened(label, room))}</text>'
    note = _note(step)
    if note:
        yield f'<text class="note" x="{x + 8}" y="{y - 8}">{escape(shortened(note, room))}</text>'
    yield "</g>"


def _note(step: TraceStep) -> str:
    # A committed version says what the step did; that its swap succeeded goes without saying.
    committed = change_text(step) if "table" in step.changes else ""
    return committed or check_text(step) or _called(step) or change_text(step)


def _called(step: TraceStep) -> str:
    if _is_call(step):
        return f"{step.arguments['key']}: {step.arguments['result']}"
    return argument_text(step)


def _is_call(step: TraceStep) -> bool:
    """Whether a step is a storage call, as the steps of the real code are."""
    return {"key", "result"} <= step.arguments.keys()


def _tooltip(step: TraceStep) -> str:
    parts = [argument_text(step), check_text(step), change_text(step)]
    told = " | ".join(part for part in parts if part)
    return f"{step.number}. {step.actor} {step.action}: {told or 'nothing changed'}"


def _verdict(verdict: str, width: int, bottom: int) -> Iterator[str]:
    text = shortened(verdict, int((width - 48) / _CHARACTER))
    yield f'<rect class="verdict" x="12" y="{bottom + 6}" width="{width - 24}" height="32" rx="6"/>'
    yield f'<text class="verdict" x="24" y="{bottom + 27}">{escape(text)}</text>'
