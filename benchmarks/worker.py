"""One run of one side in a process of its own; prints what it measured as a line of JSON."""

from __future__ import annotations

import contextlib
import importlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.jobs.interface import Job


def main(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Run a job: imports, setup, the clock, the check."""
    module, _, attribute = name.partition(":")
    job: Job = getattr(importlib.import_module(module), attribute)(spec)
    started = time.perf_counter()
    for needed in job.modules:
        importlib.import_module(needed)
    for found in spec.get("modules_seen", ()):
        # Not everything that has a name in sys.modules can be imported by it.
        with contextlib.suppress(ImportError):
            importlib.import_module(found)
    imported = time.perf_counter()
    job.setup()
    profile = _profiler() if spec.get("profile") else None
    known, base, cpu = set(sys.modules), peak_mb(), _cpu_seconds()
    clock = time.perf_counter()
    if profile is not None:
        profile.enable()
    result = job.run()
    if profile is not None:
        profile.disable()
    wall = time.perf_counter() - clock
    cpu = _cpu_seconds() - cpu
    peak = peak_mb()
    late = sorted(set(sys.modules) - known)
    outcome = job.check(result)
    measured: dict[str, Any] = {
        "wall": wall,
        "cpu": cpu,
        "peak_mb": peak,
        "base_mb": base,
        "imports": imported - started,
        "late_imports": late,
        "facts": outcome.facts,
        "notes": outcome.notes,
        "metrics": outcome.metrics,
    }
    if profile is not None:
        from benchmarks.breakdown import attribute_time

        measured["breakdown"] = attribute_time(profile, spec["profile"])
    return measured


def _profiler() -> Any:
    import cProfile

    return cProfile.Profile()


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mb() -> float:
    """The most memory that this process has had."""
    # ru_maxrss survives exec on Linux, so that a large parent would show up in its children.
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], json.loads(sys.argv[2]))), flush=True)
