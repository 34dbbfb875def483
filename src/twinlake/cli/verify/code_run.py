"""Runs of ``twinlake verify code``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.text import count_text
from twinlake.cli.verify.exit_status import PROVED, STOPPED, VIOLATED
from twinlake.cli.verify.page import Page, Shown, write_page
from twinlake.cli.verify.progress import ProgressLine
from twinlake.cli.verify.view import comparison, trace_grid
from twinlake.cli.view import Fields, Grid, Heading, Paragraph, View
from twinlake.errors import Code, UserError
from twinlake.verify.code import (
    FAULTS,
    GROUPS,
    WORKLOADS,
    explore,
    model_replays,
    replay,
    sample,
    shrink,
    sweep,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from twinlake.cli.view import Block
    from twinlake.verify.code import Exploration, ModelReplay, Replay, RunViolation, Workload

__all__ = ["NOT_COVERED", "CodeRequest", "exploration_grid", "listing", "replay_grid", "run"]

_DEFAULT: Final = "pairs"
#: What no run of the code goes through.
NOT_COVERED: Final = (
    "Spark and what its statements record as read, the catalog server, the clients of object"
    " stores, and calls that two processes make at one instant of a store that is not atomic"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRequest:
    """The options of the command line."""

    workloads: tuple[str, ...]
    faults: bool
    kinds: tuple[str, ...]
    sample: bool
    seed: int
    runs: int
    limit: int | None
    replay: str | None
    shrink: str | None
    models: bool
    page: Path | None
    verbose: bool


def run(request: CodeRequest) -> tuple[View, int]:
    """The view of the outcome, and the exit status."""
    _refuse_mixed(request)
    if request.models:
        return _models()
    if request.replay is not None or request.shrink is not None:
        return _replayed(request)
    found = [_explored(request, one) for one in _workloads(request.workloads)]
    wrong = [one for exploration in found for one in exploration.violations]
    data = {"ok": all(one.ok for one in found), "explorations": [one.to_dict() for one in found]}
    blocks: list[Block] = [exploration_grid(found), Paragraph(_verdict(found, wrong))]
    for violation in wrong:
        blocks += _violation_blocks(violation, verbose=request.verbose)
    if request.page is not None:
        write_page(request.page, _page("The code that commits", found, wrong))
        blocks.append(Paragraph(f"The page was written to {request.page}."))
    ended = PROVED if all(one.complete for one in found) else STOPPED
    return View(data=data, blocks=blocks), VIOLATED if wrong else ended


def _refuse_mixed(request: CodeRequest) -> None:
    """Ways of running that exclude each other."""
    ways = {
        "--replay": request.replay is not None,
        "--shrink": request.shrink is not None,
        "--models": request.models,
        "--sample": request.sample,
        # Random schedules for each fault are a way of its own.
        "--faults": (request.faults or bool(request.kinds)) and not request.sample,
    }
    chosen = [name for name, asked in ways.items() if asked]
    if request.workloads and chosen and chosen[0] in ("--replay", "--shrink", "--models"):
        chosen.append("WORKLOAD")
    if len(chosen) > 1:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{' and '.join(chosen)} cannot go together.",
            why="Each is another way of running the code.",
            fix=f"Keep one of them, such as {chosen[0]}.",
            fields={"options": chosen},
        )


def _workloads(names: Sequence[str]) -> list[Workload]:
    found: dict[str, Workload] = {}
    strange: list[str] = []
    for name in names or (_DEFAULT,):
        members = GROUPS.get(name) or ((name,) if name in WORKLOADS else ())
        if not members:
            strange.append(name)
        found |= {member: WORKLOADS[member] for member in members}
    if strange:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no workload {', '.join(map(repr, strange))}.",
            why=f"There are {len(WORKLOADS)} of them, in the groups {', '.join(GROUPS)}.",
            fix="See `twinlake verify code --list`.",
            fields={"workloads": strange},
        )
    return list(found.values())


def _explored(request: CodeRequest, workload: Workload) -> Exploration:
    strange = [kind for kind in request.kinds if kind not in FAULTS]
    if strange:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no fault {', '.join(map(repr, strange))}.",
            why=f"There are {', '.join(FAULTS)}.",
            fix="Name one of these.",
            fields={"faults": strange},
        )
    with ProgressLine() as line:

        def progress(schedules: int) -> None:
            line.update(f"{workload.name}: {count_text(schedules, 'schedule')}")

        if request.faults or request.kinds:
            return sweep(
                workload,
                kinds=request.kinds or FAULTS,
                limit=request.limit,
                runs=request.runs if request.sample else None,
                seed=request.seed,
                progress=progress,
            )
        if request.sample:
            return sample(workload, seed=request.seed, runs=request.runs)
        return explore(workload, limit=request.limit, progress=progress)


def exploration_grid(found: Sequence[Exploration]) -> Grid:
    """A row a workload: how much was run, and how it came out."""
    rows = [
        (
            one.workload,
            f"{one.schedules:,}",
            f"{one.steps:,}",
            f"{one.placements:,}",
            one.complete,
            len(one.violations),
            "; ".join(f"{count:,} x {what}" for what, count in _most(one)),
            f"{one.cpu_seconds:.1f}",
        )
        for one in found
    ]
    header = "workload schedules:r steps:r faults:r to_the_end violations:r outcomes cpu_s:r"
    return Grid.of(header, rows)


def _most(one: Exploration) -> list[tuple[str, int]]:
    return sorted(one.outcomes.items(), key=lambda pair: (-pair[1], pair[0]))


def _verdict(found: Sequence[Exploration], wrong: Sequence[RunViolation]) -> str:
    schedules = sum(one.schedules for one in found)
    ran = f"{count_text(len(found), 'workload')}, {schedules:,} schedules"
    if wrong:
        return f"VIOLATED: {len(wrong)} of {ran}. Run one again with --replay ID."
    if all(one.complete for one in found):
        return (
            f"{ran}: every order of their storage calls was run{_faults(found)}, and no property"
            f" is broken. Not covered: {NOT_COVERED}."
        )
    return f"{ran}: no property is broken, but not every interleaving was run."


def _faults(found: Sequence[Exploration]) -> str:
    most = max((1 for one in found if one.mode == "sweep"), default=0)
    return ", with one fault of each kind at every call" if most else ", without faults"


def _violation_blocks(one: RunViolation, *, verbose: bool) -> list[Block]:
    return [
        Heading(f"{one.property}: {count_text(len(one.trace), 'step')}"),
        Fields((("schedule", one.schedule_id),)),
        trace_grid(one.trace, verbose=verbose),
        *comparison(one.message, one.to_dict()["fields"]),
    ]


# --- one schedule -------------------------------------------------------------------------------


def _replayed(request: CodeRequest) -> tuple[View, int]:
    given = request.shrink if request.shrink is not None else request.replay
    schedule_id = str(given)
    if request.shrink is not None:
        schedule_id = shrink(schedule_id)
    found = replay(schedule_id)
    ok = not found.violations
    blocks: list[Block] = [
        Fields((("schedule", found.schedule_id), *found.replies.items())),
        trace_grid(found.trace, verbose=request.verbose),
    ]
    for one in found.violations:
        blocks += [Paragraph(f"VIOLATED: {one.property}."), *comparison(one.message, _fields(one))]
    if ok:
        blocks.append(Paragraph("No property is broken."))
    if request.page is not None:
        write_page(request.page, _replay_page(found))
        blocks.append(Paragraph(f"The page was written to {request.page}."))
    data = {"ok": ok, **found.to_dict()}
    return View(data=data, blocks=blocks), PROVED if ok else VIOLATED


def _fields(one: RunViolation) -> dict[str, Any]:
    fields: dict[str, Any] = one.to_dict()["fields"]
    return fields


def _replay_page(found: Replay) -> Page:
    first = found.violations[0] if found.violations else None
    return Page(
        title="The code that commits",
        verdict=first.message if first else "No property is broken.",
        ok=first is None,
        details=[("schedule", found.schedule_id), *found.replies.items()],
        traces=[
            Shown(
                title=first.property if first else "The schedule",
                trace=found.trace,
                message=first.message if first else "",
                fields=_fields(first) if first else {},
            )
        ],
    )


def _page(title: str, found: Sequence[Exploration], wrong: Sequence[RunViolation]) -> Page:
    return Page(
        title=title,
        verdict=_verdict(found, wrong),
        ok=not wrong,
        verdicts=[
            (
                one.workload,
                f"{one.schedules:,} schedules, {count_text(len(one.violations), 'violation')}",
            )
            for one in found
        ],
        traces=[
            Shown(title=one.schedule_id, trace=one.trace, message=one.message, fields=_fields(one))
            for one in wrong
        ],
    )


# --- the models' counterexamples ----------------------------------------------------------------


def _models() -> tuple[View, int]:
    with ProgressLine() as line:
        line.update("running the models' counterexamples on the code")
        found = model_replays()
    ok = all(one.masked for one in found)
    text = "The code masks every one of them." if ok else "The code shows at least one of them."
    data = {"ok": ok, "replays": [one.to_dict() for one in found]}
    status = PROVED if ok else VIOLATED
    return View(data=data, blocks=[replay_grid(found), Paragraph(text)]), status


def replay_grid(found: Sequence[ModelReplay]) -> Grid:
    """Counterexamples of models, and what became of each on the code."""
    rows = [
        (
            one.name,
            one.model,
            one.property,
            len(one.model_trace),
            "masked" if one.masked else "SHOWS",
            one.by,
        )
        for one in found
    ]
    return Grid.of("counterexample model property steps:r on_the_code by", rows)


def listing() -> View:
    """The workloads and the kinds of faults."""
    found = WORKLOADS.values()
    data = {
        "workloads": [
            {"name": one.name, "group": one.group, "actors": one.names, "title": one.title}
            for one in found
        ],
        "faults": list(FAULTS),
    }
    rows = [(one.name, one.group, one.names, one.title) for one in found]
    grid = Grid.of("workload group actors what", rows)
    return View(data=data, blocks=[grid, Fields((("faults", ", ".join(FAULTS)),))])
