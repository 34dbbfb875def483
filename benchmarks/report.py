"""The results for people (a table, a plot) and for programs (JSON)."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.table import Table

from benchmarks.spark_worker import DELTA_PACKAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rich.console import Console

    from benchmarks.harness import CaseResult, Figure, Row

DELTA_SPARK: Final = DELTA_PACKAGE.rpartition(":")[2]
_PACKAGES = ("twinlake", "pyarrow", "msgspec", "obstore", "deltalake", "pyiceberg", "pyspark")
_WHOLE: Final = frozenset({"MB", "B", "us", "states"})
"""Units of which nobody wants decimals."""


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    return {
        "cores": os.cpu_count(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def print_results(results: Sequence[CaseResult], about: dict[str, Any], console: Console) -> None:
    """The table of ratios, then what is to be said about each case."""
    table = Table(title="ours over theirs (medians; range of the runs in brackets)")
    for name in ("what", "ours", "theirs", "best/best", "ratio", "bar", ""):
        table.add_column(name, justify="left" if name in ("what", "") else "right")
    for result in results:
        for row in result.rows:
            style = {"MISS": "bold red", "pass": "green"}.get(row.verdict, "")
            table.add_row(
                row.what,
                _figure(row.ours, row.unit),
                _figure(row.peer, row.unit),
                f"{row.best_ratio:.2f}",
                _ratio(row),
                _bar(row),
                row.verdict,
                style=style,
            )
        table.add_section()
    console.print(table)
    for result in results:
        _print_details(result, console)
    packages = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
    console.print(
        f"{about['cores']} cores, {about['system']}, Python {about['python']}, {packages}; "
        f"load average before the run {about['load'][0]}",
        highlight=False,
    )


def _ratio(row: Row) -> str:
    spread = f" \\[{min(row.ratios):.2f}-{max(row.ratios):.2f}]" if row.ratios else ""
    return f"{row.ratio:.2f}{spread}"


def _bar(row: Row) -> str:
    if row.limit is not None:
        return f"{row.limit:,g} {row.unit}"
    return "" if row.bar is None else f"{row.bar:.2f}"


def _figure(figure: Figure, unit: str) -> str:
    digits = 0 if unit in _WHOLE else 3
    low, median, high = (
        f"{value:,.{digits}f}" for value in (figure.low, figure.median, figure.high)
    )
    return f"{median} {unit} [{low}-{high}]".replace("[", "\\[")


def _print_details(result: CaseResult, console: Console) -> None:
    console.print(f"\n[bold]{result.title}[/bold]")
    for note in result.notes:
        console.print(f"  {note}", highlight=False)
    for breakdown in result.breakdowns.values():
        phases: dict[str, float] = breakdown["phases"]
        whole = sum(phases.values()) or 1.0
        shares = ", ".join(
            f"{name} {seconds / whole:.0%}"
            for name, seconds in phases.items()
            if seconds / whole >= 0.005
        )
        console.print(f"  where our time goes: {shares}", highlight=False)
        functions: dict[str, float] = breakdown["functions"]
        top = ", ".join(f"{name} {s:.3f} s" for name, s in list(functions.items())[:5])
        console.print(f"  most by themselves (profiled): {top}", highlight=False, markup=False)


def write_json(path: Path, results: Sequence[CaseResult], about: dict[str, Any]) -> None:
    """Everything, every sample included."""
    document = {"machine": about, "cases": [_case(result) for result in results]}
    encoded = msgspec.json.format(msgspec.json.encode(document), indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded + b"\n")


def _case(result: CaseResult) -> dict[str, Any]:
    samples = {
        side: [{k: v for k, v in asdict(s).items() if k != "breakdown"} for s in taken]
        for side, taken in result.samples.items()
    }
    return {
        "case": result.case,
        "title": result.title,
        "rows": [_row(row) for row in result.rows],
        "notes": list(result.notes),
        "breakdowns": dict(result.breakdowns),
        "samples": samples,
    }


def _row(row: Row) -> dict[str, Any]:
    return {**asdict(row), "ratio": row.ratio, "best_ratio": row.best_ratio, "verdict": row.verdict}


def write_plot(path: Path, results: Iterable[CaseResult], about: dict[str, Any]) -> None:
    """The ratios that have a bar to pass, as bars from the left; the rest stays in the table."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = [row for result in results for row in result.rows if row.bar is not None]
    if not rows:
        return
    figure, axes = plt.subplots(figsize=(10, 1.4 + 0.42 * len(rows)), layout="constrained")
    colours = ["#2a7f62" if row.verdict == "pass" else "#b3392f" for row in rows]
    axes.barh(range(len(rows)), [row.ratio for row in rows], color=colours, height=0.6)
    for place, row in enumerate(rows):
        axes.vlines(row.bar or 0.0, place - 0.4, place + 0.4, color="black", linewidth=2)
        axes.annotate(
            f"{row.ratio:.2f}",
            (row.ratio, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )
    axes.axvline(1.0, color="grey", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(rows)), [row.what for row in rows])
    axes.invert_yaxis()
    widest = max(max(row.ratio, row.bar or 0) for row in rows)
    axes.set_xlim(0, widest * 1.15)
    axes.set_xlabel("ours over theirs, less is better; a black stroke is the most that passes")
    versions = about["packages"]
    peers = [f"delta-rs {versions['deltalake']}"]
    if any(row.peer.side == "Delta Spark" for row in rows):
        peers.append(f"Delta Spark {DELTA_SPARK}")
    axes.set_title(
        f"twinlake {versions['twinlake']} and {', '.join(peers)}, {about['cores']} cores"
    )
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
