"""The schema of a Parquet file as its footer spells it, as values.

It is not the table's schema: it has the wrapper groups of lists and maps, physical types and the
field ids that the writer put on, or left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ParquetNode", "Repetition", "walk_nodes"]


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
    field_id: int | None = None
    children: tuple[ParquetNode, ...] = ()

    @property
    def is_group(self) -> bool:
        """Whether it holds other nodes and no values."""
        return self.physical_type is None


def walk_nodes(
    node: ParquetNode, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], ParquetNode]]:
    """Every node below ``node`` with its path in the file, parents before children."""
    for child in node.children:
        here = (*path, child.name)
        yield here, child
        yield from walk_nodes(child, here)
