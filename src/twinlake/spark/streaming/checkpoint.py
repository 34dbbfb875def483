"""The folder in which Spark keeps how far a stream is: its query id and the offsets of its batches.

Spark tells a Python data source neither the id of the query nor where the last batch ended, so both
are read where Spark has written them. One file is ours: where the stream began.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.errors import Code, StorageError, UserError
from twinlake.spark.streaming.offset import StreamOffset
from twinlake.table import shared_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from twinlake.storage import Store

__all__ = ["StreamCheckpoint"]

_OFFSETS: Final = "offsets"
_METADATA: Final = "metadata"
_START: Final = "sources/0/twinlake-start.json"
_FORMAT: Final = "v1"
_NO_OFFSET: Final = "-"


@dataclass(frozen=True, slots=True)
class StreamCheckpoint:
    """The checkpoint of one stream."""

    store: Store

    @classmethod
    def at(cls, location: str, options: Mapping[str, Any] | None = None) -> StreamCheckpoint:
        """The checkpoint in a folder, which may still be empty."""
        return cls(shared_store(location, True, dict(options or {}) or None))

    def query_id(self) -> str:
        """The id of the query, which stays the same when the stream is restarted."""
        content = self._read(_METADATA)
        try:
            if content is not None:
                return str(msgspec.json.decode(content)["id"])
            why = "there is no file `metadata` in it"
        except (msgspec.MsgspecError, KeyError, TypeError) as error:
            why = f"its file `metadata` cannot be understood: {error}"
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{self.store.url} is not the checkpoint of a stream.",
            why=why,
            fix="Give the folder that the stream has as `checkpointLocation`.",
            fields={"checkpoint": self.store.url},
        )

    def last_batch(self) -> int | None:
        """The newest batch whose offsets are written."""
        names = (item.key.rpartition("/")[2] for item in self.store.list_from(_OFFSETS))
        return max((int(name) for name in names if name.isdigit()), default=None)

    def offset(self, batch: int, table_id: str | None = None) -> StreamOffset | None:
        """Where a batch ends; of several sources that of a table."""
        content = self._read(f"{_OFFSETS}/{batch}")
        if content is None:
            return None
        lines = content.decode().split("\n")
        if lines[0] != _FORMAT:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"The offsets in {self.store.url} have the format {lines[0][:20]!r}, not v1.",
                why="this release knows the format that Spark 4.0 and 4.1 write",
                fix="Restart the stream from a new checkpoint.",
                fields={"checkpoint": self.store.url},
            )
        found = [line for line in lines[2:] if line and line != _NO_OFFSET]
        if len(found) == 1:
            return StreamOffset.parse(found[0])
        return next((one for one in map(_offset_or_none, found) if _is_of(one, table_id)), None)

    def last_offset(self, table_id: str) -> StreamOffset | None:
        """Where the newest batch ends; None if there is none yet."""
        batch = self.last_batch()
        return None if batch is None else self.offset(batch, table_id)

    def start(self, made: Callable[[], StreamOffset] | None = None) -> StreamOffset | None:
        """Where the stream began; with ``made`` this is decided now, once for all restarts."""
        content = self._read(_START)
        if content is None and made is not None:
            offset = made()
            self.store.put(_START, msgspec.json.encode(offset.to_dict()))
            return offset
        return None if content is None else StreamOffset.parse(content)

    def _read(self, key: str) -> bytes | None:
        try:
            return self.store.read(key)
        except StorageError as error:
            if error.code == Code.STORAGE_NOT_FOUND:
                return None
            raise


def _offset_or_none(line: str) -> StreamOffset | None:
    try:
        return StreamOffset.parse(line)
    except UserError:
        return None


def _is_of(offset: StreamOffset | None, table_id: str | None) -> bool:
    return offset is not None and offset.table_id == table_id
