"""What a check answers: a value that prints as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.verify.checker.model import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.verify.checker.trace import Trace

__all__ = ["Counterexample", "Result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counterexample:
    """A property that does not hold, with the shortest path to where it fails."""

    property: str
    message: str
    #: The failed comparison by name: what was expected, what was found, and where.
    fields: Mapping[str, Any]
    trace: Trace

    def to_dict(self) -> dict[str, Any]:
        """The violation as JSON data."""
        return {
            "property": self.property,
            "message": self.message,
            "fields": plain(self.fields),
            "trace": self.trace.to_list(),
            "cycle_from": self.trace.cycle_from,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The outcome of a check.

    ``ok`` says that the search was complete and every property holds. ``depth`` counts the states
    of the longest shortest path, the initial one included. ``verdicts`` has one word a property:
    ``holds``, ``violated``, ``reached``, ``not reached`` or ``not checked``.
    """

    model: str
    parameters: Mapping[str, Any]
    states: int
    generated: int
    depth: int
    complete: bool
    verdicts: Mapping[str, str]
    violations: tuple[Counterexample, ...]
    violating_states: int
    #: How many states no step leads out of.
    ends: int
    #: Every action, with how many different steps of it were computed.
    actions: Mapping[str, int]
    #: Of every action, the lines of its method that yield an outcome, and whether any step did.
    branches: Mapping[str, Mapping[int, bool]]
    options: Mapping[str, Any]
    cpu_seconds: float
    #: Growth of the process while searching, where the system reports it.
    memory_bytes: int | None
    #: How many states a wanted kind of move reached first, if one was asked for.
    tally: int | None = None

    @property
    def ok(self) -> bool:
        """Whether everything was explored and everything holds; see also ``unreached``."""
        good = ("holds", "reached")
        return self.complete and all(verdict in good for verdict in self.verdicts.values())

    @property
    def violated(self) -> str | None:
        """The name of the first property that does not hold."""
        return self.violations[0].property if self.violations else None

    @property
    def trace(self) -> Trace | None:
        """The shortest path to the first violation."""
        return self.violations[0].trace if self.violations else None

    @property
    def unreached(self) -> tuple[str, ...]:
        """Actions that were never taken: what was proved without them may be vacuous."""
        return tuple(name for name, count in self.actions.items() if not count)

    @property
    def untaken_branches(self) -> tuple[str, ...]:
        """Outcomes of actions that were taken otherwise: ``Action, line N``."""
        return tuple(
            f"{name}, line {line}"
            for name, lines in self.branches.items()
            if any(lines.values())
            for line, taken in lines.items()
            if not taken
        )

    @property
    def stopped(self) -> bool:
        """Whether a limit ended the check before every property was decided."""
        return not self.violations and (
            not self.complete or "not checked" in self.verdicts.values()
        )

    @property
    def bytes_per_state(self) -> float | None:
        """The memory a state took."""
        if self.memory_bytes is None or not self.states:
            return None
        return self.memory_bytes / self.states

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON data."""
        return {
            "model": self.model,
            "parameters": plain(self.parameters),
            "ok": self.ok,
            "violated": self.violated,
            "states": self.states,
            "generated": self.generated,
            "depth": self.depth,
            "complete": self.complete,
            "verdicts": dict(self.verdicts),
            "violations": [one.to_dict() for one in self.violations],
            "violating_states": self.violating_states,
            "ends": self.ends,
            "actions": dict(self.actions),
            "branches": {
                name: {str(line): taken for line, taken in lines.items()}
                for name, lines in self.branches.items()
            },
            "options": plain(self.options),
            "cpu_seconds": round(self.cpu_seconds, 3),
            "memory_bytes": self.memory_bytes,
            "trace": self.trace.to_list() if self.trace is not None else None,
        }
