"""A trace as a sequence diagram: an SVG made of text, without a library.

Everybody who acts has a lifeline, and so have the places they act on. A step is an arrow from its
actor to the place it reads or changes, or a mark on the actor's own line. Colours are variables
of the page, so that the drawing follows its light and its dark scheme.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.cli.text import count_text, truncate
from twinlake.cli.verify.markup import Markup, element
from twinlake.cli.verify.trace_text import argument_text, change_text, check_text

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def diagram(trace: Trace, *, title: str, verdict: str = "", number: int = 1) -> Markup:
    """The SVG element; ``verdict`` stands in red below the last step.

    ``number`` keeps the ids of several drawings of one page apart.
    """
    names = _lifelines(trace)
    columns = {name: _MARGIN + _COLUMN * index for index, name in enumerate(names)}
    width = _MARGIN * 2 + _COLUMN * max(len(names) - 1, 3)
    bottom = _TOP + _ROW * len(trace) + 24
    height = bottom + (46 if verdict else 8)
    summary = (
        f"Sequence diagram of {count_text(len(trace), 'step')}. The table below says the same."
    )
    return element(
        "svg",
        element("title", title, id=f"title-{number}"),
        element("desc", summary, id=f"text-{number}"),
        _arrow_head(number),
        *(part for name, x in columns.items() for part in _lifeline(name, x, bottom)),
        *(_step(step, columns, width, number) for step in trace.steps),
        *(_verdict(verdict, width, bottom) if verdict else ()),
        class_="diagram",
        role="img",
        aria_labelledby=f"title-{number} text-{number}",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
        xmlns="http://www.w3.org/2000/svg",
    )


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


def _arrow_head(number: int) -> Markup:
    return element(
        "defs",
        element(
            "marker",
            element("path", class_="head", d="M0 0 L8 4 L0 8 z"),
            id=f"head-{number}",
            viewBox="0 0 8 8",
            refX=8,
            refY=4,
            markerWidth=8,
            markerHeight=8,
            orient="auto",
        ),
    )


def _lifeline(name: str, x: int, bottom: int) -> tuple[Markup, ...]:
    half = max(len(name) * 4 + 12, 44)
    return (
        element("line", class_="life", x1=x, y1=34, x2=x, y2=bottom),
        element("rect", class_="who", x=x - half, y=6, width=half * 2, height=28, rx=6),
        element("text", name, class_="who", x=x, y=25, text_anchor="middle"),
    )


def _step(step: TraceStep, columns: Mapping[str, int], width: int, number: int) -> Markup:
    """An arrow to what the step acts on, or back to the actor itself, with its labels."""
    x, y = columns[step.actor], _TOP + _ROW * (step.number - 1) + 44
    place = _place(step)
    head = f"url(#head-{number})"
    if place is None or place == step.actor:
        path = f"M{x} {y - 14} h-{_SELF} v14 H{x}"
        arrow = element("path", class_="arrow", d=path, marker_end=head)
    else:
        is_read = step.action.startswith(_READS)
        start, end = (columns[place], x) if is_read else (x, columns[place])
        kind = "arrow read" if is_read else "arrow"
        arrow = element("line", class_=kind, x1=start, y1=y, x2=end, y2=y, marker_end=head)
    room = int((width - x - 14) / _CHARACTER)
    labels = (("label", f"{step.number}. {step.action}", y - 22), ("note", _note(step), y - 8))
    failed = any(not check.passed for check in step.checks)
    return element(
        "g",
        element("title", _tooltip(step)),
        arrow,
        *(
            element("text", truncate(text, room), class_=kind, x=x + 8, y=height)
            for kind, text, height in labels
            if text
        ),
        class_="step failed" if failed else "step",
    )


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
    text = " | ".join(part for part in parts if part)
    return f"{step.number}. {step.actor} {step.action}: {text or 'nothing changed'}"


def _verdict(verdict: str, width: int, bottom: int) -> tuple[Markup, ...]:
    text = truncate(verdict, int((width - 48) / _CHARACTER))
    return (
        element("rect", class_="verdict", x=12, y=bottom + 6, width=width - 24, height=32, rx=6),
        element("text", text, class_="verdict", x=24, y=bottom + 27),
    )
