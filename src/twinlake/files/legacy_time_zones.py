"""Timestamps of the legacy calendar that were written in a time zone, moved as Spark moves them.

Such files keep the clocks of their zone. Spark 2 asked Java's old zones, which take the offset of
1900 for all time before; today's zones know local mean time and the changes of the 19th century.
The differences are data of Spark (``julian-gregorian-rebase-micros.json``), here without what every
zone has in common, the ten days between the calendars.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from twinlake.files.julian_calendar import rebase_micros

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["LegacyZone", "legacy_zone"]

_TABLE: Final = Path(__file__).with_name("legacy_time_zones.txt")
_SECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class LegacyZone:
    """What is to be added to timestamps of a zone, in seconds."""

    offset: int
    """The offset from UTC by which the file was written."""
    shift: int
    """From that offset to local mean time."""
    changes: tuple[tuple[int, int], ...]
    """From an instant in the file on, another shift: when the zone left local mean time."""

    def rebased(self, micros: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Microseconds since 1970-01-01 in UTC."""
        starts = np.array([at for at, _ in self.changes], dtype=np.int64) * _SECOND
        shifts = np.array([self.shift, *(to for _, to in self.changes)], dtype=np.int64) * _SECOND
        local = self.offset * _SECOND
        days = rebase_micros(micros + local) - local
        return days + shifts[np.searchsorted(starts, micros, side="right")]


def legacy_zone(name: str) -> LegacyZone | None:
    """The zone of that name; None if Spark has no data of it.

    >>> legacy_zone("Europe/Berlin")
    LegacyZone(offset=3600, shift=392, changes=((-2422054408, 0),))
    """
    return _zones().get(name)


@cache
def _zones() -> dict[str, LegacyZone]:
    found: dict[str, LegacyZone] = {}
    for line in _TABLE.read_text(encoding="ascii").splitlines():
        numbers, _, names = line.partition(":")
        offset, shift, *changes = map(int, numbers.split())
        zone = LegacyZone(offset, shift, tuple(zip(changes[::2], changes[1::2], strict=True)))
        found |= dict.fromkeys(names.split(), zone)
    return found
