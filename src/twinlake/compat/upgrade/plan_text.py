"""Plans for people: numbered steps at a terminal, a table in a notebook."""

from __future__ import annotations

import datetime as dt
import textwrap
from typing import TYPE_CHECKING, Final

from twinlake.compat.report_text import report_blocks
from twinlake.compat.upgrade.step import StepState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.compat.report_text import Group
    from twinlake.compat.upgrade.step import Cost, Step

__all__ = ["cost_text", "moment_text", "render_html", "render_text", "step_lines"]

_WIDTH: Final = 100
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_PERIODS: Final = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second"))


def render_text(summary: str, steps: Sequence[Step], refusals: Sequence[str], report: str) -> str:
    """For a terminal; ``report`` is the text of it, where it is to be shown."""
    lines = textwrap.wrap(summary, _WIDTH)
    if refusals:
        lines += ["", "No step can fix:"]
        for text in refusals:
            lines += textwrap.wrap(f"- {text}", _WIDTH, subsequent_indent="  ")
        return "\n".join([*lines, "", report])
    lines += step_lines(steps)
    if any(step.state is StepState.WAITING for step in steps):
        lines += ["", "Run the same command again after that time; it continues where it stopped."]
    return "\n".join(lines)


def step_lines(steps: Sequence[Step]) -> tuple[str, ...]:
    """The numbered steps, with what they cost, what they fix and what to know before."""
    return tuple(line for n, step in enumerate(steps, 1) for line in _step_lines(n, step))


def _step_lines(number: int, step: Step) -> Iterator[str]:
    mark = "" if step.state is StepState.PLANNED else f" [{step.state}]"
    if step.version is not None:
        mark = f" [done, version {step.version}]"
    yield from textwrap.wrap(
        f"{step.what}{mark}", _WIDTH, initial_indent=f"{number:>2}. ", subsequent_indent="    "
    )
    parts = [cost_text(step.cost), *([f"fixes {', '.join(step.why)}"] if step.why else [])]
    indent = "    "
    yield from textwrap.wrap(
        "; ".join(parts), _WIDTH, initial_indent=indent, subsequent_indent=indent
    )
    for note in step.notes:
        yield from textwrap.wrap(note, _WIDTH, initial_indent=indent, subsequent_indent=indent)


def cost_text(cost: Cost) -> str:
    """What a step takes, in words."""
    parts = (
        [f"rewrites {_count(cost.files, 'file')} ({_size(cost.size)})"]
        if cost.files
        else ["metadata only"]
    )
    if cost.listed:
        parts.append(f"commits {_count(cost.listed, 'file')} again unchanged")
    if cost.history:
        parts.append(f"loses {_count(cost.history, 'version')} of history")
    if cost.until_ms is not None:
        parts.append(f"waits until {moment_text(cost.until_ms)}")
    elif cost.wait_ms:
        parts.append(f"waits {_period(cost.wait_ms)} after the last use of the feature")
    return ", ".join(parts)


def moment_text(ms: int) -> str:
    """A moment as ISO text in UTC."""
    try:
        moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
    except OverflowError:
        return f"{ms} ms"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _period(ms: int) -> str:
    for unit, name in _PERIODS:
        if ms >= unit and not ms % unit:
            return _count(ms // unit, name)
    return f"{ms} ms"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _size(size: int) -> str:
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{size} B" if not unit else f"{amount:.1f} {_UNITS[unit]}"


def render_html(
    summary: str, steps: Sequence[Step], refusals: Sequence[str], groups: Sequence[Group]
) -> str:
    """For a notebook; ``groups`` are the broken rules of a refused upgrade."""
    from twinlake._html import grid, page, prose

    if refusals:
        lines = grid(["No step can fix"], ((prose(line),) for line in refusals))
        return page(summary, lines, *report_blocks(groups))
    rows = [
        (
            number,
            prose("\n".join((step.what, *step.notes))),
            cost_text(step.cost),
            ", ".join(step.why),
            step.state,
        )
        for number, step in enumerate(steps, 1)
    ]
    return page(summary, grid(("", "step", "cost", "fixes", "state"), rows))
