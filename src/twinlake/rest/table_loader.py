"""Loading tables within a time limit: the first load of a large one converts all of it.

Who waits longer than the limit gets the newest metadata there is; the conversion goes on, and the
next client finds what it made. Clients that ask for one table at once wait for one conversion.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from twinlake.errors import Code, TwinlakeError
from twinlake.iceberg.format import encode_metadata, with_referenced_snapshots
from twinlake.iceberg.sync import MetadataFiles
from twinlake.log import commit_key
from twinlake.rest.table_answers import answer_of

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from twinlake.rest.table_answers import TableAnswer, TableAnswers
    from twinlake.storage import Store
    from twinlake.table.iceberg_commits import IcebergCommits, TwinState

__all__ = ["TableLoader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLoader:
    """Loads tables one conversion at a time for each."""

    commits: IcebergCommits
    answers: TableAnswers
    seconds: float
    pool: ThreadPoolExecutor
    _running: dict[str, Future[TwinState]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self, store: Store, snapshots: str) -> TableAnswer:
        """The newest version; after the time limit the newest that has metadata."""
        until = time.monotonic() + self.seconds
        while True:
            future, is_joined = self._conversion(store)
            try:
                state = future.result(max(0.0, until - time.monotonic()))
            except TimeoutError:
                return self._older(store, snapshots)
            # A conversion that was running may have begun before a commit this client knows of.
            if not is_joined or store.head(commit_key(state.version + 1)) is None:
                return self.answers.keep(state, snapshots)

    def _conversion(self, store: Store) -> tuple[Future[TwinState], bool]:
        """The conversion of a table, and whether another client has started it."""
        with self._lock:
            future = self._running.get(store.url)
            if future is not None:
                return future, True
            future = self.pool.submit(self.commits.load, store)
            self._running[store.url] = future
        future.add_done_callback(lambda _: self._forget(store.url))
        return future, False

    def _forget(self, url: str) -> None:
        with self._lock:
            self._running.pop(url, None)

    def _older(self, store: Store, snapshots: str) -> TableAnswer:
        files = MetadataFiles(store)
        version = files.newest()
        state = None if version is None else files.load(version)
        if version is None or state is None:
            raise TwinlakeError(
                Code.SERVER_BUSY,
                f"Table {store.url} is being converted.",
                why=f"its first conversion takes longer than {self.seconds:g} seconds",
                fix="Load the table again in a while.",
                fields={"table": store.url},
            )
        metadata = state.metadata
        if snapshots == "refs":
            metadata = with_referenced_snapshots(metadata)
        return answer_of(
            store,
            uuid=metadata.table_uuid,
            version=metadata.delta_version,
            location=files.metadata_location(version),
            metadata=b"".join(encode_metadata(metadata)),
            snapshots=snapshots,
        )
