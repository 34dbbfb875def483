"""Replay of the log by a reader of a few lines beside the one under test.

Only the decoding of deletion vectors is shared with it: a wrong decoder would go unnoticed here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.actions import DeletionVectorDescriptor
from twinlake.log import dv_path, read_dv
from twinlake.storage import MemoryStore
from twinlake.verify.code.client_data import KEY_MARK
from twinlake.verify.code.execution import is_commit
from twinlake.verify.code.row_engine import Rows, decode_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LogVersion", "descriptor_of", "files_of", "number_of", "replay_log", "rows_at"]

_KEY_TAG: Final = "twinlake.iceberg.idempotencyKey"
_COMMIT: Final = "_delta_log/{:020}.json"


@dataclass(frozen=True, slots=True)
class LogVersion:
    """The table at a version, replayed from the log."""

    number: int
    tag: str
    live: Mapping[str, dict[str, Any] | None]
    """The live files by path, each with its deletion vector."""
    metadata: Mapping[str, Any]
    protocol: Mapping[str, Any]
    twice: tuple[str, ...] = ()
    """Paths that were added while live, or removed while not."""
    ids: Mapping[str, range] = field(default_factory=dict)
    """The row ids of live files, where rows have ids."""
    mark: int = -1
    """The highest row id that was handed out, as the log says."""
    domains: Mapping[str, str] = field(default_factory=dict)
    applications: Mapping[str, int] = field(default_factory=dict)
    again: tuple[str, ...] = ()
    """Applications of which it writes a version that was written before."""
    removed: Mapping[str, int] = field(default_factory=dict)
    """Paths that left the table and did not come back, with the time they left."""
    partitions: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    written: int = 0
    """The time in the commit's info."""
    timestamp: int | None = None
    """The time that the commit states, where it states one."""


def replay_log(bodies: Mapping[str, bytes]) -> list[LogVersion]:
    """All versions from 0, from the commits as they were first written."""
    versions: list[LogVersion] = []
    live: dict[str, dict[str, Any] | None] = {}
    metadata: dict[str, Any] = {}
    protocol: dict[str, Any] = {}
    ids: dict[str, range] = {}
    mark = -1
    domains: dict[str, str] = {}
    applications: dict[str, int] = {}
    removed: dict[str, int] = {}
    partitions: dict[str, Mapping[str, str | None]] = {}
    for number in sorted(number_of(key) for key in bodies if is_commit(key)):
        tag, twice, adds, again, timestamp, written = "", [], [], [], None, 0
        for line in bodies[_COMMIT.format(number)].splitlines():
            ((kind, action),) = msgspec.json.decode(line).items()
            if kind == "remove":
                if live.pop(action["path"], "missing") != action.get("deletionVector"):
                    twice.append(action["path"])
                removed[action["path"]] = action.get("deletionTimestamp", 0)
            elif kind == "txn":
                if applications.get(action["appId"], -1) >= action["version"]:
                    again.append(action["appId"])
                applications[action["appId"]] = action["version"]
            elif kind == "add":
                adds.append(action)
            elif kind == "commitInfo":
                tag = action.get("userMetadata") or _client(action)
                timestamp = action.get("inCommitTimestamp")
                written = action.get("timestamp", 0)
            elif kind == "domainMetadata" and action["removed"]:
                domains.pop(action["domain"], None)
            elif kind == "domainMetadata":
                domains[action["domain"]] = action["configuration"]
                if action["domain"] == "delta.rowTracking":
                    mark = msgspec.json.decode(action["configuration"])["rowIdHighWaterMark"]
            metadata = action if kind == "metaData" else metadata
            protocol = action if kind == "protocol" else protocol
        for action in adds:
            if action["path"] in live:
                twice.append(action["path"])
            live[action["path"]] = action.get("deletionVector")
            removed.pop(action["path"], None)
            partitions[action["path"]] = action["partitionValues"]
            if "baseRowId" in action:
                first, rows = action["baseRowId"], msgspec.json.decode(action["stats"])
                ids[action["path"]] = range(first, first + rows["numRecords"])
        named = {path: ids[path] for path in live if path in ids}
        versions.append(
            LogVersion(
                number,
                tag,
                dict(live),
                metadata,
                protocol,
                tuple(twice),
                named,
                mark,
                domains=dict(domains),
                applications=dict(applications),
                again=tuple(again),
                removed=dict(removed),
                partitions={path: partitions[path] for path in live},
                written=written,
                timestamp=timestamp,
            )
        )
    return versions


def _client(info: Mapping[str, Any]) -> str:
    """The Iceberg client that a commit was made for, by the idempotency key of its request."""
    key: str = (info.get("tags") or {}).get(_KEY_TAG, "")
    return key.partition(KEY_MARK)[0]


def rows_at(bodies: Mapping[str, bytes], version: LogVersion) -> Rows:
    """The rows of a version, from its files as they were written."""
    rows: Rows = Counter()
    for path, vector in version.live.items():
        hidden = _hidden(bodies, vector)
        found = decode_rows(bodies[path])
        rows.update(row for position, row in enumerate(found) if position not in hidden)
    return rows


def _hidden(bodies: Mapping[str, bytes], vector: Mapping[str, Any] | None) -> frozenset[int]:
    if vector is None:
        return frozenset()
    store = MemoryStore()
    key = _vector_key(vector)
    if key is not None:
        store.put(key, bodies[key])
    return frozenset(read_dv(store, descriptor_of(vector)))


def descriptor_of(vector: Mapping[str, Any]) -> DeletionVectorDescriptor:
    """A deletion vector as the shipped reader knows it."""
    return msgspec.convert(vector, DeletionVectorDescriptor)


def _vector_key(vector: Mapping[str, Any]) -> str | None:
    return dv_path(descriptor_of(vector))


def files_of(version: LogVersion) -> Iterator[str]:
    """The keys of all data files and vectors of a version."""
    for path, vector in version.live.items():
        yield path
        key = None if vector is None else _vector_key(vector)
        if key is not None:
            yield key


def number_of(key: str) -> int:
    """The version that a commit is of."""
    return int(key.rsplit("/", 1)[1].removesuffix(".json"))
