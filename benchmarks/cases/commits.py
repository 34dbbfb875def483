"""Many commits of one action each, through one handle."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import CaseResult, Plan, Row, Side, alternate, check_same, figure, measure

if TYPE_CHECKING:
    from collections.abc import Callable

TIME_BAR: Final = 1.0
# Printed beside the compared figure only, so fewer runs will do.
_VARIANT_RUNS: Final = 3
_TITLES: Final = {"properties": "property commits", "adds": "commits of one add"}


def run_commits(kind: str) -> Callable[[Plan], list[CaseResult]]:
    """The case of one kind of commit."""

    def run(plan: Plan) -> list[CaseResult]:
        return [_compare(plan, kind)]

    return run


def _compare(plan: Plan, kind: str) -> CaseResult:
    sizes = plan.sizes
    what = f"{sizes.commits:,} {_TITLES[kind]}"
    spec = {"kind": kind, "commits": sizes.commits, "interval": sizes.interval}
    ours, theirs = "benchmarks.jobs.commits:Ours", "benchmarks.jobs.commits:Peer"
    compared = (
        Side(name="twinlake", job=ours, spec=spec),
        Side(name="delta-rs", job=theirs, spec=spec),
    )
    variants = (
        Side(name="twinlake, durable", job=ours, spec={**spec, "durable": True}),
        Side(name="twinlake, default interval", job=ours, spec={**spec, "interval": None}),
        Side(
            name="twinlake, all defaults",
            job=ours,
            spec={**spec, "interval": None, "durable": True},
        ),
    )
    samples = {
        **alternate(compared, plan),
        **alternate(variants, plan, min(plan.runs, _VARIANT_RUNS)),
    }
    check_same(samples)
    version = samples["twinlake"][0].facts["version"]
    peer = figure("delta-rs", samples, attrgetter("wall"))
    rows = [
        Row(
            what=f"{what}: time, not synced",
            unit="s",
            ours=figure("twinlake", samples, attrgetter("wall")),
            peer=peer,
            bar=TIME_BAR,
        ),
        *(
            Row(
                what=f"{what}: CPU time" if quantity == "cpu" else f"{what}: peak memory",
                unit=unit,
                ours=figure("twinlake", samples, attrgetter(quantity)),
                peer=figure("delta-rs", samples, attrgetter(quantity)),
            )
            for quantity, unit in (("cpu", "s"), ("peak_mb", "MB"))
        ),
        *(
            Row(
                what=f"{what}: {side.name.removeprefix('twinlake, ')}",
                unit="s",
                ours=figure(side.name, samples, attrgetter("wall")),
                peer=peer,
            )
            for side in variants
        ),
    ]
    if kind == "adds":
        rows.append(
            Row(
                what=f"{what}: against the peer's commit without its update",
                unit="s",
                ours=figure("twinlake", samples, attrgetter("wall")),
                peer=figure("delta-rs", samples, lambda sample: sample.metrics["commit"]),
            )
        )
    profiled = measure(compared[0], plan, profile="commits")
    return CaseResult(
        case=kind,
        title=what,
        rows=tuple(rows),
        notes=(
            f"all sides end at version {version} with the same content, read back by delta-rs",
            f"compared with delta.checkpointInterval={sizes.interval} on both sides, ours with "
            "durable=False, since delta-rs does not sync; durable is our default",
            *(f"{name} leaves {_written(taken[0].notes)}" for name, taken in samples.items()),
            *_PEER_NOTES.get(kind, ()),
        ),
        breakdowns={what: profiled.breakdown or {}},
        samples=samples,
    )


_PEER_NOTES: Final = {
    "adds": (
        "create_write_transaction leaves the handle where it was, and further commits through it "
        "check every version since; its time includes update_incremental(), the faster use",
    )
}


def _written(notes: dict[str, Any]) -> str:
    kinds: dict[str, int] = notes["written"]
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
