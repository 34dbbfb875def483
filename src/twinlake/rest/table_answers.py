"""Answers to ``loadTable``, kept as bytes as long as the log has no newer version.

The metadata of a long history is megabytes of JSON. It is encoded once for a version; whether that
is still the newest takes one look for the next commit's file.
"""

from __future__ import annotations

import gzip
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.log import commit_key
from twinlake.rest.response import ApiResponse
from twinlake.storage import LocalStore

if TYPE_CHECKING:
    from twinlake.storage import ObjectMeta, Store
    from twinlake.table.iceberg_commits import TwinState

__all__ = ["TableAnswer", "TableAnswers", "answer_of", "table_document"]

_SMALLEST_PACKED: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAnswer:
    """What a client gets that loads a table."""

    uuid: str
    etag: str
    response: ApiResponse
    not_modified: ApiResponse
    store: Store
    next_commit: str
    """The file that the log has once this is not the newest version any more."""
    commit_key: str
    commit: ObjectMeta | None
    """The commit of this version as it lies on a disk; None in a store that is asked by network.

    A second look costs a microsecond here and notices a folder that was deleted, or made anew.
    """

    @property
    def size(self) -> int:
        """How much memory it takes, nearly."""
        return len(self.response.body) + len(self.response.packed or b"") + 1_000


def table_document(metadata: bytes, location: str | None) -> bytes:
    """``LoadTableResult``, around metadata that is encoded already."""
    place = b"" if location is None else b'"metadata-location":%b,' % msgspec.json.encode(location)
    return b'{%b"metadata":%b,"config":{}}' % (place, metadata)


def answer_of(
    store: Store, *, uuid: str, version: int, location: str, metadata: bytes, snapshots: str
) -> TableAnswer:
    """The answer for one version of a table."""
    # A weak tag: the same version may come packed or not, and after a rebuild in another order.
    etag = f'W/"{uuid}.{version}.{snapshots}"'
    headers = {"content-type": "application/json", "etag": etag, "vary": "accept-encoding"}
    body = table_document(metadata, location)
    packed = gzip.compress(body, 1, mtime=0) if len(body) >= _SMALLEST_PACKED else None
    return TableAnswer(
        uuid=uuid,
        etag=etag,
        response=ApiResponse(headers=headers, body=body, packed=packed),
        not_modified=ApiResponse(status=304, headers={"etag": etag, "vary": "accept-encoding"}),
        store=store,
        next_commit=commit_key(version + 1),
        commit_key=commit_key(version),
        commit=store.head(commit_key(version)) if isinstance(store, LocalStore) else None,
    )


class TableAnswers:
    """Answers by table and ``snapshots``, least recently used out first."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._size = 0
        self._kept: OrderedDict[tuple[str, str], TableAnswer] = OrderedDict()
        self._lock = threading.Lock()

    def newest(
        self, root: str, uuid: str | None, snapshots: str, *, on_disk: bool = False
    ) -> TableAnswer | None:
        """What is kept of a table, if its log has nothing newer; at wish only of one on disk."""
        found = self._kept.get((root, snapshots))
        if found is None or found.uuid != uuid:
            return None
        is_local = isinstance(found.store, LocalStore)
        if on_disk and not is_local:
            return None
        if found.store.head(found.next_commit) is not None:
            return None
        if is_local and found.store.head(found.commit_key) != found.commit:
            return None
        return found

    def keep(self, state: TwinState, snapshots: str) -> TableAnswer:
        """The answer for a state; kept unless the metadata is behind the log."""
        store = state.snapshot.store
        answer = answer_of(
            store,
            uuid=state.uuid,
            version=state.version,
            location=state.metadata_location,
            metadata=state.metadata(snapshots),
            snapshots=snapshots,
        )
        if not state.lag and state.version == state.snapshot.version:
            self._keep((store.url, snapshots), answer)
        return answer

    def _keep(self, key: tuple[str, str], answer: TableAnswer) -> None:
        with self._lock:
            before = self._kept.pop(key, None)
            self._size -= before.size if before is not None else 0
            if answer.size > self._capacity:
                return
            self._kept[key] = answer
            self._size += answer.size
            while self._size > self._capacity:
                _, oldest = self._kept.popitem(last=False)
                self._size -= oldest.size
