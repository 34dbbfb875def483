"""Days and instants of the legacy calendar, moved to the proleptic Gregorian one.

Spark 2, and later versions in mode LEGACY, count days before 1582-10-15 by the Julian calendar.
Readers keep the date as it is written, year, month and day, so the count changes by up to ten days.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

__all__ = ["moved_by", "rebase_days", "rebase_micros", "rebased"]

#: 1582-10-15, the first day of the Gregorian calendar, as days since 1970-01-01.
_GREGORIAN_START: Final = -141_427
#: The Julian day number of 1970-01-01.
_EPOCH_JULIAN_DAY: Final = 2_440_588
_DAY_MICROS: Final = 86_400_000_000


def rebase_days(days: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Days since 1970-01-01 of the hybrid calendar as those of the proleptic Gregorian one.

    >>> int(rebase_days(np.array([-719164]))[0])  # 0001-01-01 in both
    -719162
    """
    old = days < _GREGORIAN_START
    if not old.any():
        return days
    moved = days.copy()
    moved[old] = _gregorian_days(*_julian_date(days[old].astype(np.int64)))
    return moved


def rebase_micros(micros: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Microseconds since 1970-01-01 in UTC, moved as their days are."""
    old = micros < _GREGORIAN_START * _DAY_MICROS
    if not old.any():
        return micros
    moved = micros.copy()
    days, rest = np.divmod(micros[old], _DAY_MICROS)
    moved[old] = rebase_days(days) * _DAY_MICROS + rest
    return moved


def _julian_date(days: npt.NDArray[Any]) -> tuple[Any, Any, Any]:
    """Year, month and day of the Julian calendar; the year before 1 is 0."""
    # The usual arithmetic of Julian day numbers: years begin in March, so that leap days end them.
    count = days + _EPOCH_JULIAN_DAY + 32_082
    cycle = np.floor_divide(4 * count + 3, 1461)
    in_year = count - np.floor_divide(1461 * cycle, 4)
    from_march = (5 * in_year + 2) // 153
    day = in_year - (153 * from_march + 2) // 5 + 1
    month = from_march + 3 - 12 * (from_march // 10)
    return cycle - 4800 + from_march // 10, month, day


def _gregorian_days(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970-01-01; the 29th of a February without one is the 1st of March."""
    months = (year - 1970) * 12 + (month - 1)
    first = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first + day - 1


def rebased(array: pa.Array) -> pa.Array:
    """A date or timestamp array of Arrow with its values moved."""
    return moved_by(rebase_days if pa.types.is_date32(array.type) else rebase_micros, array)


def moved_by(move: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], array: pa.Array) -> pa.Array:
    """A date or timestamp array whose numbers a function changes."""
    plain = array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    # Nulls keep their place; what stands below them does not matter.
    values = plain.fill_null(0).to_numpy(zero_copy_only=False)
    moved = move(values)
    if moved is values:
        return array
    mask = plain.is_null().to_numpy(zero_copy_only=False) if plain.null_count else None
    return pa.array(moved, plain.type, mask=mask).cast(array.type)
