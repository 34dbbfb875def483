"""How far a stream has come: Delta Spark's own offset, so that its checkpoints are ours.

An offset stands after a file of a version. ``index`` counts the added files of the version's commit
in their order in the log, or those of the initial snapshot by modification time and path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from twinlake.errors import Code, UserError

__all__ = ["BASE_INDEX", "END_INDEX", "StreamOffset"]

BASE_INDEX: Final = -100
"""Before everything in a version."""
END_INDEX: Final = 2**63 - 1 - 100
"""After everything in a version; never written down, the next version's base is."""

_WRITTEN_BASE: Final = -1
"""What stands for the base in source version 1."""
_METADATA_INDEXES: Final = frozenset({-20, -19})
"""Where Delta Spark stops at a change of the schema, when it tracks schemas."""
_SOURCE_VERSIONS: Final = frozenset({1, 3})


class _Written(msgspec.Struct, frozen=True, rename="camel"):
    """The fields as the checkpoint has them."""

    source_version: int
    reservoir_id: str
    reservoir_version: int
    index: int
    is_starting_version: bool
    event_time_column: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """A position in the files of a table."""

    table_id: str
    version: int
    index: int = BASE_INDEX
    is_initial: bool = False
    """Whether the index counts files of the initial snapshot, not of a commit."""
    event_time: str | None = None
    """The column whose order the files of the initial snapshot are in, where it is one."""

    @property
    def place(self) -> tuple[int, int]:
        """What offsets of one table are ordered by."""
        return self.version, self.index

    @property
    def is_base(self) -> bool:
        """Whether nothing of the version is behind it."""
        return self.index == BASE_INDEX

    def to_dict(self) -> dict[str, Any]:
        """The offset as checkpoints have it.

        >>> StreamOffset(table_id="t", version=3).to_dict()["index"]
        -1
        """
        written: dict[str, Any] = {
            "sourceVersion": 3 if self.index in _METADATA_INDEXES else 1,
            "reservoirId": self.table_id,
            "reservoirVersion": self.version,
            "index": _WRITTEN_BASE if self.is_base else self.index,
            "isStartingVersion": self.is_initial,
        }
        if self.event_time is not None:
            # Delta Spark skips a field that it does not know.
            written["eventTimeColumn"] = self.event_time
        return written

    @classmethod
    def parse(cls, given: Mapping[str, Any] | str | bytes) -> StreamOffset:
        """The offset of a checkpoint; one of another source is refused.

        >>> StreamOffset.parse(StreamOffset(table_id="t", version=3).to_dict()).place
        (3, -100)
        """
        try:
            if isinstance(given, Mapping):
                found = msgspec.convert(given, _Written)
            else:
                found = msgspec.json.decode(given, type=_Written)
        except msgspec.MsgspecError as error:
            raise _no_offset(given, str(error)) from error
        if found.source_version not in _SOURCE_VERSIONS:
            raise _no_offset(given, f"its sourceVersion is {found.source_version}, not 1 or 3")
        is_base = found.source_version == 1 and found.index == _WRITTEN_BASE
        return cls(
            table_id=found.reservoir_id,
            version=found.reservoir_version,
            index=BASE_INDEX if is_base else found.index,
            is_initial=found.is_starting_version,
            event_time=found.event_time_column,
        )


def _no_offset(given: object, why: str) -> UserError:
    shown = given.decode(errors="replace") if isinstance(given, bytes) else str(given)
    return UserError(
        Code.INVALID_ARGUMENT,
        f"{shown[:200]} is not an offset of a stream that reads a Delta table.",
        why=why,
        fix="Use the checkpoint of this stream, or an empty folder to begin anew.",
        delta_class="DELTA_INVALID_SOURCE_OFFSET_FORMAT",
        fields={"offset": shown},
    )
