"""What plans the batches of a stream, in a process of Python that Spark keeps as long as it runs.

There is no session in it: the table is found by the options of the stream alone.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.errors import Code, UserError
from twinlake.spark.streaming.checkpoint import StreamCheckpoint
from twinlake.spark.streaming.offset import END_INDEX, StreamOffset
from twinlake.spark.streaming.source import StreamSource
from twinlake.spark.streaming.source_options import LATEST, SourceOptions
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.log import Snapshot
    from twinlake.spark.streaming.source import ChangeBatch, StreamBatch

__all__ = ["STORE_OPTION", "UNTIL_OPTION", "StreamPlanner", "open_by_options", "store_options"]

STORE_OPTION: Final = "twinlake.store.secret"
"""The settings of the object store as JSON; Spark shows no option whose name has that word."""
UNTIL_OPTION: Final = "twinlake.until"
"""The last version that the stream reads."""


def store_options(options: Mapping[str, str]) -> dict[str, Any] | None:
    """The settings of the object store."""
    given = options.get(STORE_OPTION)
    return msgspec.json.decode(given) if given else None


def open_by_options(options: Mapping[str, str]) -> Table:
    """The table that the options of a data source name."""
    path = options.get("path")
    if not path:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The stream names no table.",
            fix="Give the path of the table: `load(PATH)`, `start(PATH)` or the option `path`.",
        )
    return Table.open(path, options=store_options(options))


class StreamPlanner:
    """Offsets and batches of one stream; ``fixed`` where its columns are known to Spark."""

    def __init__(self, options: Mapping[str, str], *, fixed: bool) -> None:
        self._given = options
        self._fixed = fixed
        self._position: StreamOffset | None = None
        self._beginning: StreamOffset | None = None
        self.options = SourceOptions.parse(options)

    @cached_property
    def source(self) -> StreamSource:
        """The table; it is opened when the stream first asks."""
        return StreamSource(self._latest, self.options, fixed=self._fixed)

    def _latest(self) -> Snapshot:
        return open_by_options(self._given).snapshot

    @cached_property
    def _checkpoint(self) -> StreamCheckpoint | None:
        location = self.options.checkpoint
        if location is None:
            return None
        return StreamCheckpoint.at(location, store_options(self._given))

    @cached_property
    def _until(self) -> StreamOffset | None:
        last = self._given.get(UNTIL_OPTION)
        if last is None:
            return None
        return StreamOffset(table_id=self.source.table_id, version=int(last), index=END_INDEX)

    def beginning(self) -> StreamOffset:
        """Where the stream begins that has no offsets yet."""
        if self._beginning is None:
            checkpoint = self._checkpoint
            found = None if checkpoint is None else checkpoint.start(self.source.beginning)
            self._beginning = self.source.beginning() if found is None else found
        return self._beginning

    def latest(self, start: Mapping[str, Any] | None = None) -> StreamOffset:
        """Where the next batch ends."""
        known = self._known_start(start)
        if known is None:
            return self._end_of_table()
        return self.source.next_offset(known, self.options.limits.or_default, self._until)

    def _known_start(self, start: Mapping[str, Any] | None) -> StreamOffset | None:
        """Where the next batch begins; None if nobody says so."""
        if start is not None:
            return self.source.parse(start)
        if self._position is None and self._checkpoint is not None:
            last = self._checkpoint.last_offset(self.source.table_id)
            if last is None:
                return self.beginning()
            self._position = self.source.parse(last.to_dict())
        return self._position

    def _end_of_table(self) -> StreamOffset:
        """All there is: what Spark 4.0 and 4.1 can be told if they do not say where they are."""
        if self.options.limits.is_given:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "A stream with maxFilesPerTrigger or maxBytesPerTrigger has to name its "
                "checkpoint where it reads.",
                why="this version of Spark does not tell a Python data source where it is when it "
                "starts",
                fix="Give the folder of the checkpoint to `readStream` too: "
                "`.option('checkpointLocation', FOLDER)`, or use `twinlake.spark.follow`.",
            )
        # Spark may ask for the beginning later, when there are newer versions.
        first = self.beginning().version if self.options.starting_version == LATEST else 0
        latest = self.source.update()
        version = max(first, latest.version + 1)
        return StreamOffset(table_id=self.source.table_id, version=version)

    def batch(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> StreamBatch:
        """What a batch reads."""
        first, last = self.source.parse(start), self.reached(end)
        return self.source.batch(first, last)

    def change_batch(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> ChangeBatch:
        """What a batch of a change data feed reads."""
        first, last = self.source.parse(start), self.reached(end)
        return self.source.change_batch(first, last)

    def reached(self, end: Mapping[str, Any]) -> StreamOffset:
        """Take note that Spark has planned up to an offset."""
        self._position = self.source.parse(end)
        return self._position
