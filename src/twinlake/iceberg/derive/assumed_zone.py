"""Timestamps of the log whose zone had to be guessed.

Delta protocol, Partition Value Serialization: a timestamp without a zone is one of the system that
wrote it. The log does not say which; a property of the table can.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from twinlake.protocol import keys
from twinlake.schema import TIMESTAMP, has_zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.actions import AddFile
    from twinlake.iceberg.derive.table_layout import TableLayout

__all__ = ["AssumedZones"]

_LOGGER: Final = logging.getLogger("twinlake.iceberg")


class AssumedZones:
    """Warns once of partition values that may mean another moment to the one who wrote them."""

    def __init__(self) -> None:
        self._is_told = False

    def watched(self, adds: Iterable[AddFile], layout: TableLayout) -> Iterator[AddFile]:
        """The same files, looked at on their way."""
        columns = {} if self._is_told else _guessed_columns(layout)
        return self._looked_at(adds, columns, layout) if columns else iter(adds)

    def look(self, adds: Iterable[AddFile], layout: TableLayout) -> None:
        """Look at some files."""
        columns = {} if self._is_told else _guessed_columns(layout)
        for _ in self._looked_at(adds, columns, layout) if columns else ():
            if self._is_told:
                return

    def _looked_at(
        self, adds: Iterable[AddFile], columns: dict[str, str], layout: TableLayout
    ) -> Iterator[AddFile]:
        for add in adds:
            for physical, name in () if self._is_told else columns.items():
                text = add.partition_values.get(physical)
                if text and not has_zone(text):
                    self._is_told = True
                    _tell(layout, name, text, add.path)
                    break
            yield add


def _guessed_columns(layout: TableLayout) -> dict[str, str]:
    """The columns a zone is guessed for, by the name the log uses; none if the table names it."""
    if keys.PARTITION_TIME_ZONE in layout.metadata.configuration:
        return {}
    return {part.physical: part.name for part in layout.spec.fields if part.type == TIMESTAMP}


def _tell(layout: TableLayout, column: str, text: str, path: str) -> None:
    fields = {
        "table": layout.location,
        "column": column,
        "value": text,
        "path": path,
        "zone": str(layout.zone),
        "property": keys.PARTITION_TIME_ZONE,
    }
    _LOGGER.warning(
        "Partition value %r of column %s of %s has no time zone and is taken for one in %s; "
        "set %s to the zone of its writer",
        text,
        column,
        layout.location,
        layout.zone,
        keys.PARTITION_TIME_ZONE,
        extra={f"twinlake_{key}": value for key, value in fields.items()},
    )
