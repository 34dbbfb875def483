"""Runs of ``twinlake verify iceberg`` and ``delta``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.cli.text import count_text
from twinlake.cli.verify.configs import choose, of_case, rows
from twinlake.cli.verify.exit_status import PROVED, VIOLATED, status_of
from twinlake.cli.verify.models import build, extension_of, extensions
from twinlake.cli.verify.page import Page, Shown, write_page
from twinlake.cli.verify.progress import ProgressLine
from twinlake.cli.verify.schedules import SCHEDULES, follow_schedule
from twinlake.cli.verify.view import (
    comparison,
    config_data,
    config_details,
    holds,
    result_blocks,
    result_data,
    result_details,
    trace_grid,
    verdict_line,
)
from twinlake.cli.view import Grid, Paragraph, View
from twinlake.errors import Code, UserError
from twinlake.verify import check, walk
from twinlake.verify.checker import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from twinlake.cli.verify.configs import Config
    from twinlake.cli.view import Block
    from twinlake.verify import Result
    from twinlake.verify.checker import Model

__all__ = ["CheckRequest", "listing", "run"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The options of the command line."""

    family: str
    #: Parameters of the model and arguments of the check that were given.
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    config: str | None
    extension: str | None
    mutant: str | None
    schedule: str | None
    walk: bool
    seed: int
    walks: int
    max_steps: int
    page: Path | None
    verbose: bool


def run(request: CheckRequest) -> tuple[View, int]:
    """The view of the outcome, and the exit status."""
    config = choose(request.family, request.extension, request.config, request.mutant)
    model = build(config.extension, {**config.parameters, **request.parameters})
    _refuse_mixed(request)
    if request.schedule is not None:
        return _followed(request, config, model)
    result = _searched(request, config, model)
    if request.page is not None:
        write_page(request.page, _page(config, result))
    view = View(
        data=result_data(config, result),
        blocks=[*result_blocks(config, result, verbose=request.verbose), *_written(request)],
    )
    return view, status_of(result)


def _refuse_mixed(request: CheckRequest) -> None:
    """A walk and a schedule do not search, so what steers a search would be ignored."""
    how = "--walk" if request.walk else "--schedule"
    allowed = {"without"} if request.walk else set[str]()
    ignored = [f"--{name.replace('_', '-')}" for name in request.options if name not in allowed]
    if request.walk and request.schedule is not None:
        ignored.insert(0, "--schedule")
    if ignored and (request.walk or request.schedule is not None):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{', '.join(ignored)} cannot go with {how}.",
            why=f"{how} looks at single runs and does not search all states.",
            fix=f"Leave out {how}, or the other options.",
            fields={"options": ignored},
        )


def _searched(request: CheckRequest, config: Config, model: Model) -> Result:
    options = {**config.options, **request.options}
    try:
        with ProgressLine() as line:
            if request.walk:
                return walk(
                    model,
                    seed=request.seed,
                    walks=request.walks,
                    max_steps=request.max_steps,
                    without=options.get("without", ()),
                )
            return check(model, on_progress=line.update, **options)
    except ModelError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The check cannot be run like this.",
            why=f"{error}.",
            fix="See `--help` for the options of a search.",
            fields={"options": {name: str(value) for name, value in options.items()}},
        ) from error


def _page(config: Config, result: Result) -> Page:
    details = [
        *config_details(config, result.model, result.parameters).rows,
        *result_details(result).rows,
    ]
    return Page(
        title=f"{result.model}: {config.name}",
        verdict=verdict_line(result),
        ok=holds(result),
        details=details,
        verdicts=list(result.verdicts.items()),
        traces=[
            Shown(
                title=f"{one.property} in {count_text(len(one.trace), 'step')}",
                trace=one.trace,
                message=one.message,
                fields=one.to_dict()["fields"],
            )
            for one in result.violations
        ],
    )


def _written(request: CheckRequest) -> list[Block]:
    return [] if request.page is None else [Paragraph(f"The page was written to {request.page}.")]


# --- a schedule that is known beforehand --------------------------------------------------------


def _followed(request: CheckRequest, config: Config, model: Model) -> tuple[View, int]:
    path = follow_schedule(request.family, str(request.schedule), model)
    verdict = "The schedule is a path of the model, and no property fails on it."
    if path.refused is not None:
        verdict = f"The schedule is no path of the model: {path.refused}."
    elif not path.ok:
        step, name, message, _ = path.failures[0]
        verdict = f"VIOLATED: {name} after step {step}. {message}."
    details = config_details(config, model.title, model.parameters())
    blocks: list[Block] = [
        details,
        Paragraph(path.schedule.shows),
        trace_grid(path.trace, verbose=request.verbose),
        Paragraph(verdict),
    ]
    for _, _, message, fields in path.failures:
        blocks += comparison(message, fields)
    if request.page is not None:
        failed = path.failures[0] if path.failures else (0, "", "", {})
        shown = Shown(
            title=f"Schedule {path.schedule.name}",
            trace=path.trace,
            message=failed[2],
            fields=failed[3],
        )
        page = Page(
            title=f"{model.title}: schedule {path.schedule.name}",
            verdict=verdict,
            ok=path.ok,
            details=details.rows,
            traces=[shown],
        )
        write_page(request.page, page)
    data = {
        **config_data(config, model.parameters()),
        "model": model.title,
        "parameters": {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in model.parameters().items()
        },
        **path.to_dict(),
    }
    status = PROVED if path.ok else VIOLATED
    return View(data=data, blocks=[*blocks, *_written(request)]), status


# --- what there is ------------------------------------------------------------------------------


def listing(request: CheckRequest) -> View:
    """The configurations, extensions, mutants and schedules; those of one extension if named."""
    family = request.family
    shown = (
        extensions(family)
        if request.extension is None
        else (extension_of(family, request.extension),)
    )
    named = [] if request.extension is not None else list(rows(family))
    cases = [of_case(one, case) for one in shown for case in one.cases]
    schedules = [one for one in SCHEDULES if one.family == family]
    data = {
        "configs": [_record(one) for one in named],
        "extensions": [
            {
                "name": one.name,
                "title": one.model.title,
                "shows": one.shows,
                "cases": [_record(of_case(one, case)) for case in one.cases],
            }
            for one in shown
        ],
        "schedules": [{"name": one.name, "shows": one.shows} for one in schedules],
    }
    blocks: list[Block] = []
    if named:
        blocks.append(
            Grid.of(
                "config must_show",
                [(one.name, one.expectation) for one in named],
                title="--config NAME: the base model",
            )
        )
    blocks += [
        Grid.of(
            "extension model shows",
            [(one.name, one.model.title, one.shows) for one in shown],
            title="--extension NAME",
        ),
        Grid.of(
            "extension kind name must_show",
            [(one.extension.name, one.kind, one.name, one.expectation) for one in cases],
            title="--extension NAME with --config NAME, or --mutant NAME where it is one",
        ),
    ]
    if schedules:
        listed = [(one.name, one.shows) for one in schedules]
        blocks.append(Grid.of("schedule shows", listed, title="--schedule NAME"))
    return View(data=data, blocks=blocks)


def _record(config: Config) -> dict[str, Any]:
    return {
        "name": config.name,
        "kind": config.kind,
        "parameters": {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in config.parameters.items()
        },
        "violates": config.violates,
        "steps": config.steps,
        "states": config.states,
        "shows": config.shows,
    }
