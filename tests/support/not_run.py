"""One way to leave a test out for lack of a tool, and to say so where nobody can miss it.

A test that needs something the machine may lack calls :func:`not_run`. Without the tool the test
is skipped and its reason is repeated at the end of the run; where the matching variable
``TWINLAKE_REQUIRE_*`` is ``1``, as in CI, the same call fails instead.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PREFIX", "not_run", "not_run_reasons"]

PREFIX = "NOT RUN: "


def not_run(reason: str, *, required_by: str) -> NoReturn:
    """Skip with a visible reason, or fail if the environment variable ``required_by`` is ``1``."""
    if os.environ.get(required_by) == "1":
        pytest.fail(f"{required_by}=1, but {reason}", pytrace=False)
    pytest.skip(f"{PREFIX}{reason}")


def not_run_reasons(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> dict[str, int]:
    """The reasons given to :func:`not_run`, each with how many tests it kept from running."""
    counts: dict[str, int] = {}
    for report in reports:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        _, found, reason = text.partition(PREFIX)
        if found:
            counts[reason] = counts.get(reason, 0) + 1
    return counts
