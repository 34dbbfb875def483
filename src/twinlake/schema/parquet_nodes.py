"""The schema of a Parquet file as its footer spells it, as values.

It is not the table's schema: it has the wrapper groups of lists and maps, physical types and the
field ids that the writer put on, or left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ColumnBounds", "LegacyColumn", "ParquetNode", "Repetition", "walk_nodes"]

_SAME_IN_BOTH: Final = -2_208_988_800_000_000
"""1900-01-01 in microseconds: the last switch of Spark's tables between the two calendars."""


class Repetition(StrEnum):
    """How often a node occurs in its parent."""

    REQUIRED = "required"
    OPTIONAL = "optional"
    REPEATED = "repeated"


INT96: Final = "INT96"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetNode:
    """One element of the footer's schema, with its children."""

    name: str
    repetition: Repetition = Repetition.REQUIRED
    physical_type: str | None = None
    """``INT64``, ``INT96``, ``BYTE_ARRAY``, …; None for a group."""
    annotation: str | None = None
    """The logical type, as ``LIST``, ``MAP``, ``TIMESTAMP``, …; None where the footer has none."""
    parameters: tuple[int, ...] = ()
    """Of the logical type: precision and scale of a DECIMAL, whether in UTC and the digits of a
    second of a TIMESTAMP, bits and whether signed of an INTEGER. Empty where it has none."""
    field_id: int | None = None
    children: tuple[ParquetNode, ...] = ()

    @property
    def is_group(self) -> bool:
        """Whether it holds other nodes and no values."""
        return self.physical_type is None


@dataclass(frozen=True, slots=True)
class LegacyColumn:
    """A date or timestamp column that holds values of Spark's legacy calendar.

    Spark moves such values to the proleptic Gregorian calendar as it reads them; nobody else does.
    """

    path: tuple[str, ...]
    """Where it is in the file."""
    minimum: int | None
    """Its least value as it is stored, in microseconds since 1970; None if the footer has none."""

    @property
    def is_read_differently(self) -> bool:
        """Whether it may hold a value that Spark moves: from 1900 on the calendars agree."""
        return self.minimum is None or self.minimum < _SAME_IN_BOTH


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnBounds:
    """What the row groups of a file say of the values of a top-level column."""

    name: str
    """The physical name that the table has for it."""
    minimum: Any = None
    """None if it is not known, or there are only nulls."""
    maximum: Any = None
    nulls: int | None = None
    values: int = 0
    """With the nulls among them."""


def walk_nodes(
    node: ParquetNode, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], ParquetNode]]:
    """Every node below ``node`` with its path in the file, parents before children."""
    for child in node.children:
        here = (*path, child.name)
        yield here, child
        yield from walk_nodes(child, here)
