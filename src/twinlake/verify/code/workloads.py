"""The workloads that are explored, by name and by group.

``shared`` means that both actors want the same row, ``disjoint`` that they want different files.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError
from twinlake.verify.code.maintenance import (
    CleanUpLog,
    RestartOnFailure,
    StatementSequence,
    SyncIceberg,
    VacuumTable,
    WriteCheckpoint,
)
from twinlake.verify.code.server import server_workloads
from twinlake.verify.code.statements import Append, Delete, Merge, Optimize, Update
from twinlake.verify.code.table_workloads import table_workloads
from twinlake.verify.code.workload import TABLE_SETUPS, TableSetup, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.verify.code.statements import Statement

__all__ = ["GROUPS", "WORKLOADS", "find_workload"]

_KINDS: Final = ("append", "delete", "update", "optimize", "merge")
_TARGETS: Final[Mapping[str, tuple[str, str]]] = {"shared": ("a", "a"), "disjoint": ("a", "b")}
_IDS: Final = {"a": 1, "b": 4}


def _statement(kind: str, part: str, letter: str, layout: TableSetup) -> Statement:
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
            for layout in (TABLE_SETUPS["vectors"], TABLE_SETUPS["copy"]):
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
    layout = TABLE_SETUPS["serializable"]
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
    layout = TABLE_SETUPS["vectors"]
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


_OLD: Final = (Append((("a", 8, "o"),)), 40)
"""What happened so long ago that the log of it may go."""


def _log_cleanups() -> Iterator[Workload]:
    layout = TABLE_SETUPS["copy"]
    append, delete = Append((("a", 7, "P"),)), Delete("a", 1)
    for name, statement in (("append", append), ("delete", delete)):
        yield Workload(
            name=f"clean-log-{name}",
            title=f"the log is cleaned up while {name} commits",
            group="upkeep",
            layout=layout,
            before=(_OLD, (WriteCheckpoint(), 30)),
            actors=(("w0", statement), ("cleaner", CleanUpLog())),
            requires_commit=False,
        )
    yield Workload(
        name="clean-log-bare",
        title="the log is to be cleaned up, but no checkpoint stands for it, while append commits",
        group="upkeep",
        layout=layout,
        before=(_OLD,),
        actors=(("w0", append), ("cleaner", CleanUpLog())),
        requires_commit=False,
    )
    yield Workload(
        name="clean-log-checkpoint",
        title="the log is cleaned up while a newer checkpoint is written",
        group="upkeep",
        layout=layout,
        before=((WriteCheckpoint(), 50), _OLD),
        actors=(("w0", WriteCheckpoint()), ("cleaner", CleanUpLog())),
        requires_commit=False,
    )


def _maintenance() -> Iterator[Workload]:
    layout = TABLE_SETUPS["copy"]
    append, update = Append((("a", 7, "P"),)), Update("b", 4, "P")
    yield Workload(
        name="checkpoints",
        title="two writers that each write a checkpoint and the hint",
        group="upkeep",
        layout=TABLE_SETUPS["checkpoints"],
        actors=(("w0", append), ("w1", Delete("b", 4))),
    )
    yield Workload(
        name="restarts",
        title="an application that starts again after a crash, against another writer",
        group="upkeep",
        layout=layout,
        actors=(
            ("w0", RestartOnFailure(Append((("a", 7, "P"),), application="job"))),
            ("w1", Append((("b", 9, "Q"),))),
        ),
    )
    yield Workload(
        name="left-behind",
        title="a checkpoint and a log cleanup remove the version that an update has read",
        group="upkeep",
        layout=layout,
        actors=(
            ("w0", update),
            ("w1", StatementSequence(StatementSequence(append, WriteCheckpoint()), CleanUpLog())),
        ),
    )
    for name, writer in (("append", append), ("update", update)):
        yield Workload(
            name=f"vacuum-{name}",
            title=f"VACUUM of files that left the table long ago while {name} commits",
            group="upkeep",
            layout=layout,
            before=((Delete("a", 1), 40),),
            actors=(("w0", writer), ("cleaner", VacuumTable())),
            retained_from=1,
        )


def _conversions() -> Iterator[Workload]:
    compat = TABLE_SETUPS["compat-v2"]
    update, append = Update("b", 4, "P"), Append((("a", 7, "P"),))
    yield Workload(
        name="sync-append",
        title="Iceberg metadata is created while a commit comes in",
        group="twin",
        layout=compat,
        actors=(("w0", append), ("converter", SyncIceberg())),
    )
    yield Workload(
        name="sync-update",
        title="Iceberg metadata is synced while an update commits",
        group="twin",
        layout=compat,
        before=((SyncIceberg(), 20), (Append((("a", 8, "o"),)), 10)),
        actors=(("w0", update), ("converter", SyncIceberg())),
    )
    yield Workload(
        name="sync-delete",
        title="Iceberg metadata with deletion vectors is synced while a delete commits",
        group="twin",
        layout=TABLE_SETUPS["compat-v3"],
        before=((SyncIceberg(), 20), (Delete("b", 4), 10)),
        actors=(("w0", Delete("b", 5)), ("converter", SyncIceberg())),
    )
    yield Workload(
        name="sync-rest",
        title="a converter syncs twice while an update commits",
        group="twin",
        layout=compat,
        before=((SyncIceberg(), 20), (Append((("a", 8, "o"),)), 10)),
        actors=(("w0", update), ("converter", StatementSequence(SyncIceberg(), SyncIceberg()))),
    )
    yield Workload(
        name="sync-sync",
        title="two converters sync the same metadata",
        group="twin",
        layout=compat,
        before=((SyncIceberg(), 20), (Append((("a", 8, "o"),)), 10)),
        actors=(("converter", SyncIceberg()), ("other", SyncIceberg())),
        requires_commit=False,
    )


def _twin() -> Iterator[Workload]:
    compat = TABLE_SETUPS["compat-v2"]
    update, append = Update("b", 4, "P"), Append((("a", 7, "P"),))
    yield Workload(
        name="vacuum-sync",
        title="VACUUM expires Iceberg snapshots while a converter syncs them",
        group="twin",
        layout=compat,
        before=((SyncIceberg(), 50), (Delete("a", 1), 40), (append, 10)),
        actors=(("converter", SyncIceberg()), ("cleaner", VacuumTable())),
        retained_from=1,
        requires_commit=False,
    )
    yield Workload(
        name="everybody",
        title="two writers, a converter, and a cleaner of the log",
        group="all",
        layout=compat,
        before=((SyncIceberg(), 50), (Append((("a", 8, "o"),)), 40), (WriteCheckpoint(), 40)),
        actors=(
            ("w0", update),
            ("w1", append),
            ("converter", SyncIceberg()),
            ("cleaner", CleanUpLog()),
        ),
        requires_commit=False,
    )
    yield Workload(
        name="twin-append-append",
        title="two writers of a twin table, each syncing after its commit",
        group="twin",
        layout=TABLE_SETUPS["twin"],
        actors=(("w0", append), ("w1", Append((("b", 9, "Q"),)))),
    )


def _models() -> Iterator[Workload]:
    """The operations of counterexamples that the models have; see ``model_replays``."""
    insert = Append((("a", 11, "red"), ("a", 12, "red")))
    again = Append((("a", 11, "red"),))
    delete, update = Delete("a", 11), Update("a", 11, "blue")
    rows = TABLE_SETUPS["merge-on-read"]
    operations: tuple[tuple[str, TableSetup, tuple[Statement, ...]], ...] = (
        ("model-seed", rows, (insert, delete, update)),
        ("model-reinsert", rows, (insert, delete, delete, again)),
        ("model-inserts", rows, (insert, again)),
        ("model-insert", rows, (insert,)),
        ("model-deletes", rows, (Delete("a", 1), Delete("a", 1))),
        ("model-row-ids", TABLE_SETUPS["row-ids"], (insert, again)),
        ("model-half-checkpoint", TABLE_SETUPS["copy"], (WriteCheckpoint(2), CleanUpLog())),
        ("model-clean-up", TABLE_SETUPS["copy"], (again, WriteCheckpoint(2), CleanUpLog(None))),
        ("model-vacuum", TABLE_SETUPS["copy"], (again, VacuumTable())),
    )
    for name, layout, statements in operations:
        yield Workload(
            name=name,
            title=f"{name}: {', '.join(one.name for one in statements)}, as a model has them",
            group="models",
            layout=layout,
            actors=tuple((f"op{n}", one) for n, one in enumerate(statements)),
        )


WORKLOADS: Final[Mapping[str, Workload]] = {
    workload.name: workload
    for workload in (
        *_pairs(),
        *_isolation(),
        *_three(),
        *_log_cleanups(),
        *_maintenance(),
        *_conversions(),
        *_twin(),
        *_models(),
        *server_workloads(),
        *table_workloads(),
    )
}
"""Every workload by its name."""
_GROUPS: Final = (
    *("pairs", "isolation", "three", "upkeep", "twin", "all", "models"),
    *("server", "table"),
)
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    group: tuple(name for name, one in WORKLOADS.items() if one.group == group) for group in _GROUPS
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
