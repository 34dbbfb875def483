"""Where the time of a profiled run goes, by phase of our own code.

Time spent in other people's code (Arrow, msgspec, the system) belongs to the module of ours that
called it, so that the phases add up to the whole run.
"""

from __future__ import annotations

import pstats
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import cProfile

Function = tuple[str, int, str]

# The first prefix that fits decides.
PHASES: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "listing": (
        ("storage", "read"),
        ("log.listing", "find the segment"),
        ("log.names", "find the segment"),
        ("log.last_checkpoint", "find the segment"),
        ("log.reconcile", "reconcile"),
        ("log.stats", "statistics"),
        ("log.typed_files", "statistics"),
        ("log.file_view", "view"),
        ("schema", "view"),
        ("log.checkpoint", "decode"),
        ("log.columns", "decode"),
        ("log.commit_decoder", "decode"),
        ("actions", "decode"),
    ),
    "commits": (
        ("storage", "read and write"),
        ("log.checkpoint", "checkpoint"),
        ("log.columns", "checkpoint"),
        ("log.checksum", "checksum"),
        ("log.json_checksum", "checksum"),
        ("log", "snapshot"),
        ("actions", "encode"),
        ("commit", "transaction"),
        ("protocol", "protocol and schema"),
        ("schema", "protocol and schema"),
        ("table", "table"),
    ),
    "spark": (
        ("spark.files.native_writer", "write files by Spark"),
        ("spark.files.arrow", "write files by Arrow"),
        ("spark.files.small_writer", "small rows"),
        ("spark.read.file_list", "hand over the file list"),
        ("spark.read.conditions", "resolve conditions"),
        ("spark.read", "build the scan"),
        ("spark.session", "session settings"),
        ("spark.delta_settings", "session settings"),
        ("spark.dml.merge", "merge"),
        ("spark.dml.row_change", "find and write rows"),
        ("spark.dml.delete", "find and write rows"),
        ("spark.maintenance", "rewrite"),
        ("spark", "prepare rows"),
        ("storage", "read and write the log"),
        ("log.footer_stats", "statistics"),
        ("log.stats", "statistics"),
        ("log.checkpoint", "checkpoint"),
        ("log.columns", "checkpoint"),
        ("log", "snapshot"),
        ("commit", "commit"),
        ("actions", "commit"),
        ("protocol", "schema and protocol"),
        ("schema", "schema and protocol"),
        ("table", "open the table"),
    ),
}
REST: Final = "other"


def attribute_time(profile: cProfile.Profile, phases: str) -> dict[str, Any]:
    """Seconds by phase and by module of ours, and the functions that take most themselves."""
    stats: dict[Function, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    modules: dict[str, float] = defaultdict(float)
    for function, seconds in _own_seconds(stats).items():
        modules[_module(function) or REST] += seconds
    by_phase: dict[str, float] = defaultdict(float)
    for module, seconds in modules.items():
        by_phase[_phase(module, PHASES[phases])] += seconds
    functions: dict[str, float] = defaultdict(float)
    for function, row in stats.items():
        functions[_name(function)] += float(row[2])
    return {
        "phases": _largest(by_phase),
        "modules": _largest(modules, 12),
        "functions": _largest(functions, 8),
    }


def _own_seconds(stats: dict[Function, Any]) -> dict[Function, float]:
    """Own time of our functions, with that of foreign ones handed up to whoever called them."""
    pending = {f: float(row[2]) for f, row in stats.items()}
    settled: dict[Function, float] = defaultdict(float)
    # Deep enough for any call chain outside our code; what is left then is nobody's.
    for _ in range(60):
        handed: dict[Function, float] = defaultdict(float)
        for function, seconds in pending.items():
            callers = stats[function][4]
            weight = sum(float(edge[3]) for edge in callers.values())
            if _module(function) is not None or not callers or weight <= 0:
                settled[function] += seconds
                continue
            for caller, edge in callers.items():
                handed[caller] += seconds * float(edge[3]) / weight
        pending = handed
        if not pending:
            break
    for function, seconds in pending.items():
        settled[function] += seconds
    return settled


def _largest(seconds: dict[str, float], count: int | None = None) -> dict[str, float]:
    return dict(sorted(seconds.items(), key=lambda item: -item[1])[:count])


def _module(function: Function) -> str | None:
    _, found, inside = function[0].replace("\\", "/").rpartition("/twinlake/")
    return inside.removesuffix(".py").replace("/", ".") if found else None


def _phase(module: str, phases: tuple[tuple[str, str], ...]) -> str:
    return next((phase for prefix, phase in phases if module.startswith(prefix)), REST)


def _name(function: Function) -> str:
    module = _module(function)
    file = function[0].replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    # Built-in functions have no file.
    return function[2] if file == "~" else f"{module or file}.{function[2]}"
