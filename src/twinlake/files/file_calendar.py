"""By which calendar a file counts its days and instants: what Spark notes in the footer.

The rule is that of Spark's ``DataSourceUtils``: a file is of the legacy calendar if it says so, or
was written by a Spark that knew no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.files.julian_calendar import moved_by, rebased
from twinlake.files.legacy_time_zones import legacy_zone
from twinlake.files.unreadable import NeedsSpark

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.parquet as pq

__all__ = ["FileCalendar"]

_VERSION: Final = b"org.apache.spark.version"
_ZONE: Final = b"org.apache.spark.timeZone"
# The key that says it, and the first version of Spark that says it at all.
_DATETIME: Final = (b"org.apache.spark.legacyDateTime", b"3.0.0")
_INT96: Final = (b"org.apache.spark.legacyINT96", b"3.1.0")
_UTC: Final = frozenset((b"UTC", b"Z", b"GMT", b"Etc/UTC", b"+00:00", b"UTC+00:00", b"GMT+00:00"))

#: 1900-01-01 in UTC: from then on Java's old and new zones have the same offsets.
_ZONES_AGREE: Final = -2_208_988_800_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCalendar:
    """What of a file is of the legacy calendar."""

    dates: bool = False
    instants: bool = False
    int96: bool = False
    zone: bytes = b"UTC"
    """In which timestamps were written; their dates are those of its clocks."""

    @classmethod
    def of(cls, footer: pq.FileMetaData) -> FileCalendar:
        """The calendar of a file."""
        said = footer.metadata or {}
        if _VERSION not in said and _DATETIME[0] not in said and _INT96[0] not in said:
            return _GREGORIAN
        datetime, int96 = _is_legacy(said, *_DATETIME), _is_legacy(said, *_INT96)
        zone = said.get(_ZONE, b"UTC")
        return cls(dates=datetime, instants=datetime, int96=int96, zone=zone)

    def moved(self, micros: pa.Array) -> pa.Array:
        """Timestamps of the legacy calendar as those of today's."""
        if self.zone in _UTC:
            return rebased(micros)
        first = pc.min(micros.view(pa.int64())).as_py()
        if first is None or first >= _ZONES_AGREE:
            return micros
        name = self.zone.decode(errors="replace")
        zone = legacy_zone(name)
        if zone is None:
            raise NeedsSpark(
                f"its timestamps before 1900 are of the legacy calendar in the time zone {name}, "
                "and only Java knows by which offset from UTC they were written"
            )
        return moved_by(zone.rebased, micros)


def _is_legacy(said: Mapping[bytes, bytes], key: bytes, first: bytes) -> bool:
    """Spark compares versions as text, and takes what no Spark has written for today's."""
    return key in said or said.get(_VERSION, first) < first


_GREGORIAN: Final = FileCalendar()
