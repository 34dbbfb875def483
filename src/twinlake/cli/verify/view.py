"""Results of the model checker and traces, as blocks and as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.text import count_text
from twinlake.cli.verify.models import parameters_of
from twinlake.cli.verify.trace_text import (
    argument_text,
    change_text,
    check_text,
    local_text,
    value_text,
)
from twinlake.cli.view import Fields, Grid, Heading, Paragraph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.cli.verify.configs import Config
    from twinlake.cli.view import Block
    from twinlake.verify import Result
    from twinlake.verify.checker import Trace, TraceStep

__all__ = [
    "comparison",
    "config_data",
    "config_details",
    "holds",
    "outcome_blocks",
    "result_blocks",
    "result_data",
    "result_details",
    "trace_grid",
    "verdict_line",
]

_BAD: Final = frozenset({"violated", "not reached"})
#: What the fields of a failed comparison are called where their names are short for something.
_FIELDS: Final = {"actual": "read", "id": "row"}


def holds(result: Result) -> bool:
    """Whether no property is violated or not reached."""
    return not _BAD.intersection(result.verdicts.values())


def config_data(config: Config, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Which model was run, and with what."""
    return {
        "extension": config.extension.name,
        "config": config.name,
        "mutant": parameters.get("mutant"),
    }


def result_data(config: Config, result: Result) -> dict[str, Any]:
    """A result as JSON data; without a violation the trace is empty."""
    record = result.to_dict()
    return {
        **config_data(config, result.parameters),
        **record,
        "trace": record["trace"] or [],
        "unreached": list(result.unreached),
    }


def config_details(config: Config, model: str, parameters: Mapping[str, Any]) -> Fields:
    """The model and every parameter it ran with."""
    given = ", ".join(f"{name}={_value(value)}" for name, value in parameters.items())
    changed = [
        f"{one.name}={_value(parameters[one.name])}"
        for one in parameters_of(config.extension.model)
        if parameters[one.name] != config.parameters.get(one.name, one.default)
    ]
    return Fields(
        (
            ("model", f"{model} ({config.extension.name})"),
            ("configuration", ", ".join([config.name, *changed])),
            ("parameters", given),
        )
    )


def _value(value: Any) -> str:
    return "|".join(map(str, value)) if isinstance(value, tuple) else value_text(value)


def result_details(result: Result) -> Fields:
    """The size of the search."""
    chosen = [name.replace("_", " ") for name, value in result.options.items() if value is True]
    without = result.options.get("without") or ()
    given_up = result.options.get("given_up") or ()
    untaken = result.untaken_branches
    rate = result.states / result.cpu_seconds if result.cpu_seconds else 0.0
    rows = [
        ("states", f"{result.states:,} ({result.generated:,} generated, depth {result.depth})"),
        ("searched", _searched(result)),
        *([("reductions", ", ".join(chosen))] if chosen else ()),
        *([("not asked", ", ".join(without))] if without else ()),
        *([("not used", "; ".join(given_up))] if given_up else ()),
        *([("never taken", ", ".join(result.unreached))] if _tells_unreached(result) else ()),
        *([("never yielded", ", ".join(untaken))] if untaken and result.complete else ()),
        ("cpu seconds", f"{result.cpu_seconds:.2f} ({rate:,.0f} states/s)"),
    ]
    return Fields(tuple(rows))


def _tells_unreached(result: Result) -> bool:
    return result.complete and bool(result.unreached)


def _searched(result: Result) -> str:
    if "walks" in result.options:
        text = f"random walks, seed {result.options['seed']}"
    elif result.complete:
        return "to the end"
    elif result.violations:
        return "up to the first violation"
    else:
        text = "up to the limit of states"
    return f"{text}: a violation may remain" if not result.violations else text


def verdict_line(result: Result) -> str:
    """The outcome in a sentence."""
    if result.violations:
        first = result.violations[0]
        where = f" after {count_text(len(first.trace), 'step')}"
        return f"VIOLATED: {first.property}{where}. {_sentence(first.message)}"
    missing = [name for name, verdict in result.verdicts.items() if verdict == "not reached"]
    if missing:
        return f"NOT REACHED: {', '.join(missing)}, so the rest may hold only because of that."
    if result.complete:
        return f"Proved for this configuration: all {len(result.verdicts)} properties hold."
    return "No violation found, but not proved: the search did not reach every state."


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def result_blocks(config: Config, result: Result, *, verbose: bool = False) -> list[Block]:
    """The outcome for people: how it ran, every property, and a trace for each violated one."""
    return [
        config_details(config, result.model, result.parameters),
        *outcome_blocks(result, verbose=verbose),
    ]


def outcome_blocks(result: Result, *, verbose: bool = False) -> list[Block]:
    """How a search went, every property, and a trace for each violated one."""
    blocks: list[Block] = [
        result_details(result),
        Grid.of("property verdict", result.verdicts.items()),
        Paragraph(verdict_line(result)),
    ]
    for one in result.violations:
        steps = count_text(len(one.trace), "step")
        moves = f", {one.trace.moves} of the search" if one.trace.moves != len(one.trace) else ""
        blocks += [
            Heading(f"{one.property}: {steps}{moves}"),
            trace_grid(one.trace, verbose=verbose),
            *_repeats(one.trace),
            *comparison(one.message, one.to_dict()["fields"]),
        ]
    return blocks


def _repeats(trace: Trace) -> list[Block]:
    """Of a lasso: which steps are the path, and which the cycle."""
    if trace.cycle_from is None:
        return []
    last = trace.steps[-1].number
    path = f"Steps 1 to {trace.cycle_from - 1} lead there. " if trace.cycle_from > 1 else ""
    cycle = f"Steps {trace.cycle_from} to {last}" if last > trace.cycle_from else f"Step {last}"
    repeat = "repeat" if last > trace.cycle_from else "repeats"
    return [Paragraph(f"{path}{cycle} {repeat} for ever.")]


def trace_grid(trace: Trace, *, verbose: bool = False) -> Grid:
    """A row a step: actor, action, arguments, checks with their results, what changed.

    ``verbose``: also where the actor goes and what it holds, and counters of the model.
    """
    header = "step:r actor action arguments checks changed"
    return Grid.of(
        f"{header} goes_to holds" if verbose else header,
        [_row(step, verbose=verbose) for step in trace.steps],
    )


def _row(step: TraceStep, *, verbose: bool) -> tuple[object, ...]:
    cells = (
        step.number,
        step.actor,
        step.action,
        argument_text(step),
        check_text(step),
        change_text(step, counters=verbose),
    )
    return (*cells, step.state[1], local_text(step)) if verbose else cells


def comparison(message: str, fields: Mapping[str, Any]) -> list[Block]:
    """What was expected, what was found, and where."""
    rows = [
        (_FIELDS.get(name, name), "none" if value is None else value_text(value))
        for name, value in fields.items()
    ]
    blocks: list[Block] = [Paragraph(f"The failed comparison: {_sentence(message)}")]
    return [*blocks, Fields(tuple(rows))] if rows else blocks
