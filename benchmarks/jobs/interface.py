"""What the worker expects of a job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a job says of its work, after the clock has stopped."""

    facts: dict[str, Any]
    """Must be the same for every run of every side, or the benchmark compares nothing."""
    notes: dict[str, Any] = field(default_factory=dict)
    """May differ: for people."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Seconds the job measured itself."""


class Job(Protocol):
    """Built from the spec; then setup, run (under the clock) and check are called once each."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Remember what to do; import nothing yet."""

    @property
    def modules(self) -> tuple[str, ...]:
        """What to import before the clock starts."""

    def setup(self) -> None:
        """Everything that is not compared."""

    def run(self) -> Any:
        """The work."""

    def check(self, result: Any) -> Outcome:
        """What came out of it."""
