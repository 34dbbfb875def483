"""Differences of the matrix that are known: defects of readers, and what a user asked for.

An entry is strict: wherever it applies, the difference has to be there. When a reader is mended,
the test says which entry can go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.support.matrix.run import DIFFERENT, EQUAL, ERROR, REFUSED, STOPPED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.matrix.run import Outcome

__all__ = ["KNOWN", "Known", "failures", "known_for"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A difference that is expected. A field that is empty stands for anything."""

    reason: str
    result: str = DIFFERENT
    readers: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    writers: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def applies(self, outcome: Outcome) -> bool:
        """Whether the outcome is one that it speaks of."""
        cell = outcome.cell
        pairs = (
            (self.readers, outcome.reader),
            (self.groups, cell.group),
            (self.columns, outcome.column),
            (self.features, cell.feature),
            (self.writers, cell.writer),
            (self.settings, cell.setting),
        )
        return all(not allowed or value in allowed for allowed, value in pairs)


KNOWN: Final[tuple[Known, ...]] = ()


def known_for(outcome: Outcome) -> Known | None:
    """The entry that explains a difference."""
    if outcome.result not in (DIFFERENT, ERROR):
        return None
    return next((k for k in KNOWN if k.result == outcome.result and k.applies(outcome)), None)


def failures(outcomes: Iterable[Outcome]) -> list[str]:
    """What nobody can explain, one line for each reader and setting."""
    found: dict[tuple[str, ...], list[str]] = {}
    for outcome in outcomes:
        why = _failure(outcome)
        if why is not None:
            cell = outcome.cell
            key = (cell.group, cell.feature, cell.writer, cell.setting, outcome.reader, why)
            found.setdefault(key, []).append(outcome.column)
    return [f"{' | '.join(key[:5])} | {', '.join(cols)}: {key[5]}" for key, cols in found.items()]


def _failure(outcome: Outcome) -> str | None:
    if outcome.result in (REFUSED, STOPPED):
        return None
    if outcome.result == EQUAL:
        mended = [k.reason for k in KNOWN if k.applies(outcome)]
        return f"is right now, although: {mended[0]}" if mended else None
    return None if known_for(outcome) else f"{outcome.result}: {outcome.detail}"
