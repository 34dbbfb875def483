"""Small logs for tests: commits from actions, and the state of a version in comparable form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from twinlake.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    RemoveFile,
    SetTransaction,
    encode_lines,
)
from twinlake.log import Snapshot, commit_key
from twinlake.log.columns import ADD_SCHEMA, REMOVE_SCHEMA
from twinlake.protocol import Metadata, Protocol
from twinlake.storage import Committed, Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOW = 1_750_000_000_000
DAY = 86_400_000

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in (("id", "long"), ("name", "string"), ("day", "date"))
        ],
    }
)


class FixedClock:
    """A clock that stands still."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


def metadata(**configuration: str) -> Metadata:
    return Metadata(
        id="8d7c4f3e-0000-4000-8000-000000000001",
        name="sample",
        schema_string=SCHEMA,
        partition_columns=("day",),
        configuration={f"delta.{k}": v for k, v in configuration.items()},
        created_time=NOW - DAY,
    )


V2 = frozenset({"v2Checkpoint", "deletionVectors"})
V2_PROTOCOL = Protocol(3, 7, reader_features=V2, writer_features=V2 | {"domainMetadata"})
V1_PROTOCOL = Protocol(
    3,
    7,
    reader_features=frozenset({"deletionVectors"}),
    writer_features=frozenset({"deletionVectors", "domainMetadata"}),
)


def add(path: str, n: int = 0, *, dv: int | None = None, **more: Any) -> AddFile:
    stats = {
        "numRecords": n + 1,
        "minValues": {"id": n, "name": f"n{n}"},
        "maxValues": {"id": n + 9, "name": f"n{n}z"},
        "nullCount": {"id": 0, "name": 1},
    }
    return AddFile(
        path=path,
        partition_values={"day": "2024-05-01" if n % 3 else None},
        size=100 + n,
        modification_time=NOW - n,
        data_change=True,
        **{"stats": json.dumps(stats), "deletion_vector": vector(dv), **more},
    )


def vector(n: int | None) -> DeletionVectorDescriptor | None:
    if n is None:
        return None
    return DeletionVectorDescriptor(
        storage_type="u",
        path_or_inline_dv=f"vBn[lx{{q8@P<9BNH/isA{n}",
        size_in_bytes=36,
        cardinality=n + 1,
        offset=4 * n if n else None,
    )


def remove(path: str, at: int | None = NOW - DAY, *, dv: int | None = None) -> RemoveFile:
    return RemoveFile(
        path=path,
        data_change=True,
        deletion_timestamp=at,
        extended_file_metadata=True,
        partition_values={"day": None},
        size=5,
        deletion_vector=vector(dv),
    )


def commit(store: Store, version: int, *actions: Action) -> None:
    assert store.create(commit_key(version), encode_lines(actions)) == Committed()


def info(operation: str = "WRITE", **more: Any) -> CommitInfo:
    return CommitInfo(operation=operation, timestamp=NOW, **more)


def sample_log(store: Store, protocol: Protocol = V2_PROTOCOL, **configuration: str) -> int:
    """A log with every kind of state in it; returns its last version."""
    commit(store, 0, info("CREATE TABLE"), protocol, metadata(**configuration))
    commit(store, 1, info(), *(add(f"f{n:03}.parquet", n) for n in range(40)))
    commit(
        store,
        2,
        info("DELETE"),
        remove("f000.parquet"),
        add("f000.parquet", 0, dv=0),
        remove("f001.parquet", None),
        remove("f002.parquet", NOW - 30 * DAY),
        SetTransaction(app_id="old", version=3, last_updated=NOW - 60 * DAY),
        SetTransaction(app_id="app", version=7, last_updated=NOW),
        SetTransaction(app_id="timeless", version=1),
    )
    commit(
        store,
        3,
        info("UPDATE"),
        add("odd%20name.parquet", 50, dv=3, tags={"k": "v", "none": None}, base_row_id=7),
        add("bare.parquet", 51, stats=None, clustering_provider="liquid"),
        DomainMetadata(
            domain="delta.clustering", configuration='{"clusteringColumns":[]}', removed=False
        ),
        DomainMetadata(domain="mine", configuration='{"a":1}', removed=False),
        DomainMetadata(domain="gone", configuration="", removed=True),
    )
    return 3


def state_of(snapshot: Snapshot, *, tombstones: bool = True) -> dict[str, Any]:
    """All a version consists of, comparable whatever it was read from."""
    removes = rows(snapshot.tombstones().select(REMOVE_SCHEMA.names)) if tombstones else None
    return {
        "version": snapshot.version,
        "protocol": snapshot.protocol,
        "metadata": snapshot.metadata,
        "txns": dict(snapshot.set_transactions),
        "domains": dict(snapshot.domains),
        "adds": rows(snapshot.add_files().select(ADD_SCHEMA.names)),
        "removes": removes,
    }


def rows(table: Any) -> list[dict[str, Any]]:
    """Files in a fixed order, without ``dataChange``, which a checkpoint does not keep."""
    found: Sequence[Mapping[str, Any]] = table.to_pylist(maps_as_pydicts="lossy")
    plain = [{k: v for k, v in row.items() if k != "data_change"} for row in found]
    return sorted(plain, key=lambda row: (row["path"], str(row["deletion_vector"])))
