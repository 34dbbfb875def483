"""What every test can use: fixtures, hypothesis profiles, and the report of tests left out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings

from tests.support.not_run import not_run_reasons

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

pytest_plugins = [
    "tests.support.tiers",
    "tests.support.servers.fixtures",
    "tests.support.spark.session",
]

# Deadlines judge the machine, not the code. In CI the examples are the same on every run, so that
# a red run can be repeated; `explore` looks further than a developer would wait for.
_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
settings.register_profile("dev", deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.register_profile("explore", settings.get_profile("dev"), max_examples=2_000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") == "1" else "dev")
)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say plainly which tests did not run for lack of a tool, and why."""
    reasons = not_run_reasons(terminalreporter.stats.get("skipped", []))
    if not reasons:
        return
    terminalreporter.section("NOT RUN", sep="!", yellow=True, bold=True)
    for reason, count in sorted(reasons.items()):
        tests = "test" if count == 1 else "tests"
        terminalreporter.write_line(f"NOT RUN: {count} {tests}: {reason}", yellow=True)
