"""Small commits, winners and tables for the tests of this room."""

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
)
from twinlake.commit import (
    Base,
    Change,
    CommitOptions,
    Operation,
    PostCommitHook,
    ReadSet,
    Transaction,
    Winner,
    client_context,
)
from twinlake.protocol import Metadata, Protocol
from twinlake.runtime import RandomIds, Runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.log import Snapshot
    from twinlake.storage import Store

SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
            {"name": "x", "type": "long", "nullable": True, "metadata": {}},
        ],
    }
)
CONTEXT = client_context()
NO_HOOKS: tuple[PostCommitHook, ...] = ()


class StillClock:
    """A clock that only moves when told to, or when somebody sleeps."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def runtime(clock: StillClock | None = None, seed: int = 7) -> Runtime:
    return Runtime(clock=clock or StillClock(), ids=RandomIds(seed))


def dv(name: str, cardinality: int = 1) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor("i", name, 40, cardinality)


def add(path: str, part: str | None = None, **fields: Any) -> AddFile:
    rows = fields.pop("rows", 10)
    stats = None if rows is None else f'{{"numRecords":{rows}}}'
    values: dict[str, Any] = {
        "path": path,
        "partition_values": {} if part is None else {"p": part},
        "size": 100,
        "modification_time": 1,
        "data_change": True,
        "stats": stats,
    }
    return AddFile(**{**values, **fields})


def remove(path: str, **fields: Any) -> RemoveFile:
    return RemoveFile(**{"path": path, "data_change": True, "deletion_timestamp": 1, **fields})


def domain(name: str, configuration: str = "{}", removed: bool = False) -> DomainMetadata:
    return DomainMetadata(domain=name, configuration=configuration, removed=removed)


def metadata(
    configuration: Mapping[str, str] | None = None, *, parts: Iterable[str] = ()
) -> Metadata:
    return Metadata(
        id="t",
        schema_string=SCHEMA,
        partition_columns=tuple(parts),
        configuration=dict(configuration or {}),
    )


def features(*names: str, reader: Iterable[str] = ()) -> Protocol:
    read = frozenset(reader)
    return Protocol(
        3 if read else 1,
        7,
        reader_features=read or None,
        writer_features=frozenset(names) | read,
    )


def base(
    *,
    version: int = 4,
    protocol: Protocol | None = None,
    meta: Metadata | None = None,
    **fields: Any,
) -> Base:
    return Base(
        version=version,
        protocol=protocol or Protocol(1, 2),
        metadata=meta or metadata(parts=["p"]),
        **fields,
    )


def change(
    *actions: Action,
    operation: str = "WRITE",
    reads: ReadSet | None = None,
    on: Base | None = None,
    **fields: Any,
) -> Change:
    state = on or base()
    return Change(
        base=state,
        operation=Operation(name=operation),
        actions=actions,
        reads=reads or ReadSet(),
        read_version=state.version,
        read_mark=state.row_id_mark,
        **fields,
    )


def winner(
    *actions: Action,
    operation: str = "WRITE",
    version: int = 5,
    blind: bool | None = None,
    stamp: int | None = None,
    modified_ms: int | None = None,
) -> Winner:
    info = CommitInfo(operation=operation, is_blind_append=blind, in_commit_timestamp=stamp)
    return Winner(version=version, actions=(info, *actions), modified_ms=modified_ms)


def create_table(
    store: Store,
    configuration: Mapping[str, str] | None = None,
    *,
    parts: Iterable[str] = (),
    protocol: Protocol | None = None,
    clock: StillClock | None = None,
    policy: str = "bundled",
) -> Snapshot:
    txn = Transaction.for_new_table(
        store,
        Operation(name="CREATE TABLE"),
        runtime(clock),
        NO_HOOKS,
        options=CommitOptions(policy=policy),
    )
    txn.update_metadata(metadata(configuration, parts=parts))
    if protocol is not None:
        txn.update_protocol(protocol)
    return txn.commit().snapshot


def begin(
    snapshot: Snapshot,
    operation: str = "WRITE",
    *,
    ports: Runtime | None = None,
    hooks: tuple[PostCommitHook, ...] = NO_HOOKS,
    **options: Any,
) -> Transaction:
    return Transaction(
        snapshot,
        Operation(name=operation),
        ports or runtime(),
        hooks,
        options=CommitOptions(**options),
    )
