"""Schedules as text: which workload, which faults, and who moved when.

``delete-update.shared.vectors~b7:lost-reply~a9b14a6`` is a run in which the seventh call of the
second actor loses its reply: the first actor makes nine calls, the second fourteen, the first six.
Once the text ends, the last actor runs to its end, then the others in order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError
from twinlake.verify.code.storage_call import FaultName, PlacedFault
from twinlake.verify.code.workloads import find_workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.verify.code.workload import Workload

__all__ = ["Schedule", "parse_schedule"]

_MOVES: Final = re.compile(r"([a-z])(\d+)")
_FAULT: Final = re.compile(r"([a-z])(\d+):([a-z-]+)")


@dataclass(frozen=True, slots=True)
class Schedule:
    """A run as the data that repeats it."""

    workload: Workload
    choices: tuple[int, ...]
    """Which actor moves, move by move."""
    faults: tuple[PlacedFault, ...] = ()

    @property
    def id(self) -> str:
        """The schedule as text."""
        return "~".join(part for part in (self.workload.name, self._faults, self._moves) if part)

    @property
    def switches(self) -> int:
        """How often another actor takes over."""
        return max(0, len(list(groupby(self.choices))) - 1)

    @property
    def _moves(self) -> str:
        runs = ((actor, len(list(run))) for actor, run in groupby(self.choices))
        return "".join(f"{_letter(actor)}{count}" for actor, count in runs)

    @property
    def _faults(self) -> str:
        placed = sorted(self.faults)
        return ",".join(f"{_letter(one.actor)}{one.call}:{one.fault}" for one in placed)

    def next(self, position: int, enabled: Sequence[int]) -> int:
        """Who moves at a position: as written, else the last actor, else the first."""
        if position < len(self.choices) and self.choices[position] in enabled:
            return self.choices[position]
        last = self.choices[-1] if self.choices else enabled[0]
        return last if last in enabled else enabled[0]


def parse_schedule(text: str) -> Schedule:
    """The schedule of an id.

    >>> parse_schedule("append-append.shared.copy~b3:crash~a2b5").id
    'append-append.shared.copy~b3:crash~a2b5'
    """
    name, *parts = text.strip().split("~")
    workload = find_workload(name)
    moves = parts.pop() if parts and ":" not in parts[-1] else ""
    faults = parts.pop() if parts else ""
    try:
        if parts or _MOVES.sub("", moves):
            raise ValueError("it is not <workload>~<faults>~<moves>")
        choices = tuple(
            _number(letter, workload)
            for letter, count in _MOVES.findall(moves)
            for _ in range(int(count))
        )
        placed = tuple(_placed(one, workload) for one in faults.split(",") if one)
    except ValueError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{text!r} is not the id of a schedule.",
            why=str(error),
            fix="Copy the id as it was printed, such as append-append.shared.copy~a2b5.",
            fields={"schedule": text},
        ) from error
    return Schedule(workload, choices, placed)


def _placed(text: str, workload: Workload) -> PlacedFault:
    match = _FAULT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a fault such as b7:crash")
    return PlacedFault(_number(match[1], workload), int(match[2]), FaultName(match[3]))


def _letter(actor: int) -> str:
    return chr(ord("a") + actor)


def _number(letter: str, workload: Workload) -> int:
    number = ord(letter) - ord("a")
    if not 0 <= number < len(workload.actors):
        raise ValueError(f"{workload.name} has no actor {letter!r}")
    return number
