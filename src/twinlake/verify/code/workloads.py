"""The workloads that are explored: a small table, and who does what to it at the same time.

Tables have two files. In the layout ``vectors`` each is a partition of its own and some rows are
hidden already; in ``copy`` the table has no partitions and files are rewritten. ``shared`` means
that both actors want the same row, ``disjoint`` that they want different files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.commit import DEFAULT_HOOKS, CommitOptions, Operation, OperationName, Transaction
from twinlake.errors import Code, UserError
from twinlake.log.deletion_vectors import dv_key, write_dv_file
from twinlake.runtime import RandomIds, Runtime
from twinlake.storage import MemoryStore
from twinlake.verify.code.actors import ActorClock
from twinlake.verify.code.bench import Bench, Row, Rows, add_of, encode_rows
from twinlake.verify.code.statements import Append, Delete, Merge, Optimize, Update
from twinlake.verify.code.upkeep import (
    Checkpoint,
    CleanLog,
    Followed,
    Restarted,
    Sync,
    VacuumFiles,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.actions import AddFile
    from twinlake.commit import PostCommitHook
    from twinlake.protocol import Metadata
    from twinlake.verify.code.statements import Statement

__all__ = ["GROUPS", "LAYOUTS", "WORKLOADS", "Layout", "Workload", "find_workload"]

_NOW: Final = 1_700_000_000_000
_DAY: Final = 86_400_000
_SCHEMA: Final = "p STRING, id INT, value STRING"
Files = tuple[tuple[Row, ...], ...]
_FILES: Final[Files] = (
    (("a", 1, "x"), ("a", 2, "x"), ("a", 3, "x")),
    (("b", 4, "x"), ("b", 5, "x"), ("b", 6, "x")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the table is made."""

    name: str
    partitioned: bool = False
    hidden: int = 0
    """How many rows at the end of each file a deletion vector hides from the start."""
    properties: tuple[tuple[str, str], ...] = ()
    twin: bool = False
    """Whether every commit is followed by the Iceberg metadata, as tables of both formats are."""
    serializable: bool = False
    """Whether the statements must have had their effects in the order of their commits."""

    @property
    def hooks(self) -> tuple[PostCommitHook, ...]:
        """What follows a commit."""
        if not self.twin:
            return DEFAULT_HOOKS
        from twinlake.iceberg import HOOKS

        return HOOKS


_VECTORS: Final = (("delta.enableDeletionVectors", "true"),)
_COMPAT: Final = (
    ("delta.columnMapping.mode", "id"),
    ("delta.enableIcebergCompatV2", "true"),
)
_COMPAT_3: Final = (
    ("delta.columnMapping.mode", "id"),
    ("delta.enableIcebergCompatV3", "true"),
    ("delta.enableRowTracking", "true"),
    *_VECTORS,
)
_CHECKPOINTS: Final = (("delta.checkpointInterval", "1"),)
LAYOUTS: Final[Mapping[str, Layout]] = {
    layout.name: layout
    for layout in (
        Layout(name="vectors", partitioned=True, hidden=1, properties=_VECTORS),
        Layout(name="copy"),
        Layout(
            name="serializable",
            properties=(("delta.isolationLevel", "Serializable"),),
            serializable=True,
        ),
        Layout(name="merge-on-read", properties=_VECTORS),
        Layout(name="checkpoints", properties=_CHECKPOINTS),
        Layout(name="row-ids", properties=(("delta.enableRowTracking", "true"),)),
        Layout(name="face", properties=_COMPAT),
        Layout(name="face-vectors", properties=_COMPAT_3),
        Layout(
            name="twin",
            twin=True,
            properties=(*_COMPAT, ("twinlake.iceberg.sync", "commit")),
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A table and the actors that work on it at the same time."""

    name: str
    title: str
    group: str
    layout: Layout
    actors: tuple[tuple[str, Statement], ...]
    before: tuple[tuple[Statement, int], ...] = ()
    """What happened to the table before, and how many days ago."""
    keeps_from: int = 0
    """The first version whose data files must all stay."""
    somebody_wins: bool = True
    """Whether some actor must get its commit through where nothing fails."""

    @property
    def names(self) -> tuple[str, ...]:
        """The actors by name."""
        return tuple(name for name, _ in self.actors)

    def statement(self, actor: str) -> Statement:
        """What an actor does."""
        return dict(self.actors)[actor]

    def table(self) -> tuple[MemoryStore, ActorClock]:
        """A fresh copy of the table as it is before anybody moves, and the clock of its store."""
        store, clock = _made(self.layout, self.before)
        return store.fork(), clock

    def rows(self) -> Rows:
        """The rows of the table before anybody moves."""
        rows: Rows = Counter(row for file in _live(self.layout) for row in file)
        for statement, _ in self.before:
            rows = statement.apply(rows)
        return rows

    def bench(self, number: int, clock: ActorClock) -> Bench:
        """Where an actor works, yet without a store."""
        return Bench(
            tag=self.names[number],
            store=MemoryStore(),
            runtime=Runtime(clock=clock, ids=RandomIds(number)),
            hooks=self.layout.hooks,
        )

    def now(self, number: int) -> int:
        """The time on the clock of an actor."""
        return _NOW + 1000 * (number + 1)


def _live(layout: Layout) -> Files:
    return tuple(file[: len(file) - layout.hidden] for file in _FILES)


@cache
def _made(
    layout: Layout, before: tuple[tuple[Statement, int], ...]
) -> tuple[MemoryStore, ActorClock]:
    """The table, made and used by the shipped code."""
    from twinlake.table.creation import new_metadata

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
    txn.add(*_files(store, metadata, layout, runtime))
    txn.commit()
    for statement, days in before:
        clock.now = _NOW - days * _DAY
        bench = Bench(tag="", store=store, runtime=runtime, hooks=layout.hooks)
        statement.run(bench)
    return store, clock


def _files(
    store: MemoryStore, metadata: Metadata, layout: Layout, runtime: Runtime
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


# The registry

_KINDS: Final = ("append", "delete", "update", "optimize", "merge")
_TARGETS: Final[Mapping[str, tuple[str, str]]] = {"shared": ("a", "a"), "disjoint": ("a", "b")}
_IDS: Final = {"a": 1, "b": 4}


def _statement(kind: str, part: str, letter: str, layout: Layout) -> Statement:
    number = _IDS[part]
    match kind:
        case "append":
            return Append(((part, number, letter),))
        case "delete":
            return Delete(part, number)
        case "update":
            return Update(part, number, letter)
        case "merge":
            return Merge((part, number, letter), letter)
        case _:
            return Optimize(part if layout.partitioned else None)


def _pairs() -> Iterator[Workload]:
    for one, other in combinations_with_replacement(_KINDS, 2):
        for target, parts in _TARGETS.items():
            for layout in (LAYOUTS["vectors"], LAYOUTS["copy"]):
                yield Workload(
                    name=f"{one}-{other}.{target}.{layout.name}",
                    title=f"{one} against {other}, {target} targets, {layout.name}",
                    group="pairs",
                    layout=layout,
                    actors=(
                        ("w0", _statement(one, parts[0], "P", layout)),
                        ("w1", _statement(other, parts[1], "Q", layout)),
                    ),
                )


def _isolation() -> Iterator[Workload]:
    """Where an append may not slip in behind the back of a statement that read."""
    layout = LAYOUTS["serializable"]
    for other in ("delete", "update", "merge", "optimize"):
        yield Workload(
            name=f"append-{other}.shared.serializable",
            title=f"append against {other} of a table that is serializable",
            group="isolation",
            layout=layout,
            actors=(
                ("w0", _statement("append", "a", "P", layout)),
                ("w1", _statement(other, "a", "Q", layout)),
            ),
        )


def _three() -> Iterator[Workload]:
    layout = LAYOUTS["vectors"]
    for kinds in (("append", "delete", "update"), ("delete", "update", "optimize")):
        yield Workload(
            name=f"{'-'.join(kinds)}.shared.vectors",
            title=f"{', '.join(kinds)} at once, on the same file",
            group="three",
            layout=layout,
            actors=tuple(
                (f"w{n}", _statement(kind, "a", "PQR"[n], layout)) for n, kind in enumerate(kinds)
            ),
        )


def _upkeep() -> Iterator[Workload]:
    layout = LAYOUTS["copy"]
    append, delete = Append((("a", 7, "P"),)), Delete("a", 1)
    update = Update("b", 4, "P")
    old = (Append((("a", 8, "o"),)), 40)
    yield Workload(
        name="checkpoints",
        title="two writers that each write a checkpoint and the hint",
        group="upkeep",
        layout=LAYOUTS["checkpoints"],
        actors=(("w0", append), ("w1", Delete("b", 4))),
    )
    for name, statement in (("append", append), ("delete", delete)):
        yield Workload(
            name=f"clean-log-{name}",
            title=f"the log is cleaned up while {name} commits",
            group="upkeep",
            layout=layout,
            before=(old, (Checkpoint(), 30)),
            actors=(("w0", statement), ("cleaner", CleanLog())),
            somebody_wins=False,
        )
    yield Workload(
        name="clean-log-bare",
        title="the log is to be cleaned up, but no checkpoint stands for it, while append commits",
        group="upkeep",
        layout=layout,
        before=(old,),
        actors=(("w0", append), ("cleaner", CleanLog())),
        somebody_wins=False,
    )
    yield Workload(
        name="restarts",
        title="an application that starts again after a crash, against another writer",
        group="upkeep",
        layout=layout,
        actors=(
            ("w0", Restarted(Append((("a", 7, "P"),), application="job"))),
            ("w1", Append((("b", 9, "Q"),))),
        ),
    )
    yield Workload(
        name="left-behind",
        title="an update is overtaken by a checkpoint and a clean-up of what it stands on",
        group="upkeep",
        layout=layout,
        actors=(
            ("w0", update),
            ("w1", Followed(Followed(append, Checkpoint()), CleanLog())),
        ),
    )
    yield Workload(
        name="clean-log-checkpoint",
        title="the log is cleaned up while a newer checkpoint is written",
        group="upkeep",
        layout=layout,
        before=((Checkpoint(), 50), old),
        actors=(("w0", Checkpoint()), ("cleaner", CleanLog())),
        somebody_wins=False,
    )
    for name, writer in (("append", append), ("update", update)):
        yield Workload(
            name=f"vacuum-{name}",
            title=f"VACUUM of files that left the table long ago while {name} commits",
            group="upkeep",
            layout=layout,
            before=((delete, 40),),
            actors=(("w0", writer), ("cleaner", VacuumFiles())),
            keeps_from=1,
        )


def _twin() -> Iterator[Workload]:
    face, twin = LAYOUTS["face"], LAYOUTS["twin"]
    update, append = Update("b", 4, "P"), Append((("a", 7, "P"),))
    yield Workload(
        name="sync-append",
        title="Iceberg metadata is made for the first time while a commit comes in",
        group="twin",
        layout=face,
        actors=(("w0", append), ("converter", Sync())),
    )
    yield Workload(
        name="sync-update",
        title="Iceberg metadata is carried on while an update comes in",
        group="twin",
        layout=face,
        before=((Sync(), 20), (Append((("a", 8, "o"),)), 10)),
        actors=(("w0", update), ("converter", Sync())),
    )
    yield Workload(
        name="sync-delete",
        title="Iceberg metadata with deletion vectors is carried on while a delete comes in",
        group="twin",
        layout=LAYOUTS["face-vectors"],
        before=((Sync(), 20), (Delete("b", 4), 10)),
        actors=(("w0", Delete("b", 5)), ("converter", Sync())),
    )
    yield Workload(
        name="sync-sync",
        title="two converters carry the same metadata on",
        group="twin",
        layout=face,
        before=((Sync(), 20), (Append((("a", 8, "o"),)), 10)),
        actors=(("converter", Sync()), ("other", Sync())),
        somebody_wins=False,
    )
    yield Workload(
        name="vacuum-sync",
        title="VACUUM lets go of Iceberg snapshots while a converter carries them on",
        group="twin",
        layout=face,
        before=((Sync(), 50), (Delete("a", 1), 40), (append, 10)),
        actors=(("converter", Sync()), ("cleaner", VacuumFiles())),
        keeps_from=1,
        somebody_wins=False,
    )
    yield Workload(
        name="everybody",
        title="two writers, a converter, and a cleaner of the log",
        group="all",
        layout=face,
        before=((Sync(), 50), (Append((("a", 8, "o"),)), 40), (Checkpoint(), 40)),
        actors=(
            ("w0", update),
            ("w1", append),
            ("converter", Sync()),
            ("cleaner", CleanLog()),
        ),
        somebody_wins=False,
    )
    yield Workload(
        name="twin-append-append",
        title="two writers of a table of both formats, each making the metadata of its commit",
        group="twin",
        layout=twin,
        actors=(("w0", append), ("w1", Append((("b", 9, "Q"),)))),
    )


def _models() -> Iterator[Workload]:
    """The operations of counterexamples that the models have; see ``model_replays``."""
    insert = Append((("a", 11, "red"), ("a", 12, "red")))
    again = Append((("a", 11, "red"),))
    delete, update = Delete("a", 11), Update("a", 11, "blue")
    rows = LAYOUTS["merge-on-read"]
    told: tuple[tuple[str, Layout, tuple[Statement, ...]], ...] = (
        ("model-seed", rows, (insert, delete, update)),
        ("model-reinsert", rows, (insert, delete, delete, again)),
        ("model-inserts", rows, (insert, again)),
        ("model-insert", rows, (insert,)),
        ("model-deletes", rows, (Delete("a", 1), Delete("a", 1))),
        ("model-row-ids", LAYOUTS["row-ids"], (insert, again)),
        ("model-half-checkpoint", LAYOUTS["copy"], (Checkpoint(2), CleanLog())),
        ("model-clean-up", LAYOUTS["copy"], (again, Checkpoint(2), CleanLog(None))),
        ("model-vacuum", LAYOUTS["copy"], (again, VacuumFiles())),
    )
    for name, layout, statements in told:
        yield Workload(
            name=name,
            title=f"{name}: {', '.join(one.name for one in statements)}, as a model has them",
            group="models",
            layout=layout,
            actors=tuple((f"op{n}", one) for n, one in enumerate(statements)),
        )


WORKLOADS: Final[Mapping[str, Workload]] = {
    workload.name: workload
    for workload in (*_pairs(), *_isolation(), *_three(), *_upkeep(), *_twin(), *_models())
}
"""Every workload by its name."""
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    group: tuple(name for name, one in WORKLOADS.items() if one.group == group)
    for group in ("pairs", "isolation", "three", "upkeep", "twin", "all", "models")
}
"""The names of the workloads, by what they are about."""


def find_workload(workload: Workload | str) -> Workload:
    """A workload by name; one that is given stays what it is."""
    if isinstance(workload, Workload):
        return workload
    found = WORKLOADS.get(workload)
    if found is None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no workload {workload!r}.",
            fix=f"Choose one of: {', '.join(WORKLOADS)}.",
            fields={"workload": workload},
        )
    return found
