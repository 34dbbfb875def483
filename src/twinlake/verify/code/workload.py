"""A workload: a small table, and the statements that actors run on it concurrently.

Tables have two files. In the layout ``vectors`` each is a partition of its own and some rows are
hidden already; in ``copy`` the table has no partitions and files are rewritten.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.commit import DELTA_HOOKS, CommitOptions, Operation, OperationName, Transaction
from twinlake.iceberg import ICEBERG_HOOKS
from twinlake.log import dv_key, write_dv_file
from twinlake.protocol import Protocol, features, keys
from twinlake.runtime import RandomIds, Runtime
from twinlake.storage import MemoryStore
from twinlake.table.operations import new_metadata
from twinlake.verify.code.actor_thread import ActorClock
from twinlake.verify.code.row_engine import Row, RowEngine, Rows, add_of, encode_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.actions import AddFile
    from twinlake.commit import PostCommitHook
    from twinlake.protocol import Metadata
    from twinlake.verify.code.statements import Statement

__all__ = ["TABLE_SETUPS", "TableSetup", "Workload"]

_NOW: Final = 1_700_000_000_000
_DAY: Final = 86_400_000
_SCHEMA: Final = "p STRING, id INT, value STRING"
Files = tuple[tuple[Row, ...], ...]
_FILES: Final[Files] = (
    (("a", 1, "x"), ("a", 2, "x"), ("a", 3, "x")),
    (("b", 4, "x"), ("b", 5, "x"), ("b", 6, "x")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSetup:
    """How the table is made."""

    name: str
    partitioned: bool = False
    hidden: int = 0
    """How many rows at the end of each file a deletion vector hides from the start."""
    properties: tuple[tuple[str, str], ...] = ()
    twin: bool = False
    """Whether every commit is followed by the Iceberg metadata, as tables of both formats are."""
    cached: bool = False
    """Whether the writers have the snapshot cache of one process."""
    features: tuple[str, ...] = ()
    """Writer features that the table is made with."""
    serializable: bool = False
    """Whether the statements must have had their effects in the order of their commits."""

    @property
    def hooks(self) -> tuple[PostCommitHook, ...]:
        """What follows a commit."""
        return ICEBERG_HOOKS if self.twin else DELTA_HOOKS


_VECTORS: Final = ((keys.ENABLE_DELETION_VECTORS, "true"),)
_COMPAT: Final = ((keys.COLUMN_MAPPING_MODE, "id"), (keys.ENABLE_ICEBERG_COMPAT_V2, "true"))
_COMPAT_3: Final = (
    (keys.COLUMN_MAPPING_MODE, "id"),
    (keys.ENABLE_ICEBERG_COMPAT_V3, "true"),
    (keys.ENABLE_ROW_TRACKING, "true"),
    *_VECTORS,
)
_CHECKPOINTS: Final = ((keys.CHECKPOINT_INTERVAL, "1"),)
TABLE_SETUPS: Final[Mapping[str, TableSetup]] = {
    layout.name: layout
    for layout in (
        TableSetup(name="vectors", partitioned=True, hidden=1, properties=_VECTORS),
        TableSetup(name="copy"),
        TableSetup(
            name="serializable",
            properties=((keys.ISOLATION_LEVEL, "Serializable"),),
            serializable=True,
        ),
        TableSetup(name="merge-on-read", properties=_VECTORS),
        TableSetup(name="checkpoints", properties=_CHECKPOINTS),
        TableSetup(name="cached", cached=True),
        TableSetup(name="domains", features=(features.DOMAIN_METADATA, features.APPEND_ONLY)),
        TableSetup(name="stamped", properties=((keys.ENABLE_IN_COMMIT_TIMESTAMPS, "true"),)),
        TableSetup(name="widened", properties=((keys.ENABLE_TYPE_WIDENING, "true"),)),
        TableSetup(name="row-ids", properties=((keys.ENABLE_ROW_TRACKING, "true"),)),
        TableSetup(name="compat-v2", properties=_COMPAT),
        TableSetup(name="compat-v3", properties=_COMPAT_3),
        TableSetup(name="twin", twin=True, properties=(*_COMPAT, (keys.ICEBERG_SYNC, "commit"))),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A table and the statements that actors run on it concurrently."""

    name: str
    title: str
    group: str
    layout: TableSetup
    actors: tuple[tuple[str, Statement], ...]
    before: tuple[tuple[Statement, int], ...] = ()
    """What happened to the table before, and how many days ago."""
    retained_from: int = 0
    """The first version whose data files must all stay."""
    changes_table: bool = False
    """Whether some statement changes the metadata or the protocol."""
    drops_features: bool = False
    requires_commit: bool = True
    """Whether some actor must get its commit through where nothing fails."""
    shared_tag: str = ""
    """What commits are found by in the log, where all actors are about one commit."""

    @property
    def names(self) -> tuple[str, ...]:
        """The actors by name."""
        return tuple(name for name, _ in self.actors)

    def tag(self, actor: str) -> str:
        """By what the commit of an actor is found in the log."""
        return self.shared_tag or actor

    def statement(self, tag: str) -> Statement:
        """What a commit of the log was made for."""
        return next(one for actor, one in self.actors if self.tag(actor) == tag)

    def table(self) -> tuple[MemoryStore, ActorClock]:
        """A fresh copy of the table as it is before anybody moves, and the clock of its store."""
        store, clock = _created_table(self.layout, self.before)
        return store.fork(), clock

    def rows(self) -> Rows:
        """The rows of the table before anybody moves."""
        rows: Rows = Counter(row for file in _live_rows(self.layout) for row in file)
        for statement, _ in self.before:
            rows = statement.apply(rows)
        return rows

    def engine(self, number: int, clock: ActorClock) -> RowEngine:
        """The data engine of an actor, still without its store."""
        return RowEngine(
            tag=self.tag(self.names[number]),
            store=MemoryStore(),
            runtime=Runtime(clock=clock, ids=RandomIds(number)),
            hooks=self.layout.hooks,
            cached=self.layout.cached,
        )

    def now(self, number: int) -> int:
        """The time on the clock of an actor."""
        return _NOW + 1000 * (number + 1)


def _live_rows(layout: TableSetup) -> Files:
    return tuple(file[: len(file) - layout.hidden] for file in _FILES)


@cache
def _created_table(
    layout: TableSetup, before: tuple[tuple[Statement, int], ...]
) -> tuple[MemoryStore, ActorClock]:
    """The table, made and used by the shipped code."""
    clock = ActorClock(_NOW - 60 * _DAY)
    runtime = Runtime(clock=clock, ids=RandomIds(1_000))
    store = MemoryStore("table", clock=clock)
    metadata = new_metadata(
        _SCHEMA,
        partition_by=("p",) if layout.partitioned else (),
        cluster_by=(),
        properties=dict(layout.properties),
        name=None,
        description=None,
        runtime=runtime,
    )
    operation = Operation(name=OperationName.CREATE_TABLE_AS_SELECT)
    options = CommitOptions(trusted_files=True)
    txn = Transaction.for_new_table(store, operation, runtime, layout.hooks, options=options)
    txn.update_metadata(metadata)
    if layout.features:
        txn.update_protocol(
            Protocol(3, 7, reader_features=set(), writer_features=set(layout.features))
        )
    txn.add(*_files(store, metadata, layout, runtime))
    txn.commit()
    for statement, days in before:
        clock.now = _NOW - days * _DAY
        engine = RowEngine(tag="", store=store, runtime=runtime, hooks=layout.hooks)
        statement.run(engine)
    return store, clock


def _files(
    store: MemoryStore, metadata: Metadata, layout: TableSetup, runtime: Runtime
) -> Iterator[AddFile]:
    for number, rows in enumerate(_FILES):
        key, data = f"part-{number}.parquet", encode_rows(rows)
        store.put(key, data)
        add = add_of(metadata, key, rows, size=len(data), now=runtime.clock.now_ms())
        if layout.hidden:
            uuid = runtime.ids.uuid()
            body, (vector,) = write_dv_file([range(len(rows) - layout.hidden, len(rows))], uuid)
            store.put(dv_key(uuid), body)
            add = msgspec.structs.replace(add, deletion_vector=vector)
        yield add
