"""Workloads in which the table changes, or in which old parts of the log stand for it.

Each was added because some mistake in the commit path survived all the others; the tests name
mistake and workload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.protocol import features
from twinlake.verify.code.maintenance import (
    CleanUpLog,
    RestartOnFailure,
    StatementSequence,
    SyncIceberg,
    VacuumTable,
    WriteCheckpoint,
)
from twinlake.verify.code.statements import Append, Delete, DeletePart, Update
from twinlake.verify.code.table_changes import (
    AddFeature,
    AlterProperties,
    AppendToDomain,
    CopyRow,
    DropDomains,
    Overwrite,
    PreparedStatement,
    Restore,
    TouchApplication,
    TruncateFile,
    WidenType,
)
from twinlake.verify.code.workload import TABLE_SETUPS, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.verify.code.statements import Statement

__all__ = ["table_workloads"]

_APPEND: Final = Append((("a", 7, "P"),))
_OTHER: Final = Append((("b", 9, "Q"),))
_JOB: Final = Append((("a", 7, "P"),), application="job")
_START: Final = (
    ("a", 1, "x"),
    ("a", 2, "x"),
    ("a", 3, "x"),
    ("b", 4, "x"),
    ("b", 5, "x"),
    ("b", 6, "x"),
)


def table_workloads() -> Iterator[Workload]:
    """All of them."""
    yield from _changes()
    yield from _replaced()
    yield from _reads()
    yield from _after_checkpoints()
    yield from _clean_ups()
    yield from _applications()


def _table(name: str, title: str, layout: str, *statements: Statement, **more: object) -> Workload:
    return Workload(
        name=name,
        title=title,
        group="table",
        layout=TABLE_SETUPS[layout],
        actors=tuple((f"w{number}", one) for number, one in enumerate(statements)),
        changes_table=True,
        **more,  # type: ignore[arg-type]
    )


def _changes() -> Iterator[Workload]:
    one, other = AlterProperties("team", "orders"), AlterProperties("owner", "ana")
    yield _table("alter-alter", "two properties are set at once", "copy", one, other)
    yield _table(
        "alter-update", "a property is set while rows change", "vectors", one, Update("a", 1, "P")
    )
    yield _table("alter-append", "a property is set while rows come", "cached", one, _APPEND)
    yield _table(
        "feature-feature",
        "two features are added at once",
        "domains",
        AddFeature(features.INVARIANTS),
        AddFeature(features.CHECK_CONSTRAINTS),
    )
    yield _table(
        "feature-delete",
        "a feature is added while rows are deleted",
        "domains",
        AddFeature(features.INVARIANTS),
        Delete("a", 1),
    )
    yield _table(
        "note-note",
        "one domain is read and written twice",
        "domains",
        AppendToDomain("1"),
        AppendToDomain("2"),
    )
    yield _table(
        "drop-note",
        "a feature is dropped while somebody uses it",
        "domains",
        DropDomains(),
        AppendToDomain("1"),
        drops_features=True,
    )
    yield _table(
        "widen-append", "a type change is dated while rows come", "widened", WidenType(), _APPEND
    )
    yield _table("stamps", "commits state when they happened", "stamped", _APPEND, _OTHER)


def _replaced() -> Iterator[Workload]:
    replace = Overwrite((("a", 20, "n"),))
    yield _table("replace-append", "a table is replaced while rows come", "copy", replace, _APPEND)
    yield _table(
        "replace-update",
        "a table is replaced while rows change",
        "copy",
        replace,
        Update("a", 1, "P"),
    )
    yield _table(
        "replace-alter",
        "a table is replaced while it is altered",
        "copy",
        replace,
        AlterProperties("team", "orders"),
    )
    yield _table(
        "replace-replace",
        "a table is replaced twice",
        "copy",
        replace,
        Overwrite((("b", 21, "m"),)),
    )
    before = ((Delete("a", 1), 2),)
    restore = Restore(0, _START)
    yield _table(
        "restore-append",
        "a version is restored while rows come",
        "copy",
        restore,
        _APPEND,
        before=before,
    )
    yield _table(
        "restore-delete",
        "a version is restored while rows go",
        "copy",
        restore,
        Delete("b", 4),
        before=before,
    )
    yield _table(
        "restore-alter",
        "a version is restored while the table is altered",
        "copy",
        restore,
        AlterProperties("team", "orders"),
        before=before,
    )


def _reads() -> Iterator[Workload]:
    yield _table(
        "copy-delete",
        "rows are copied from a file that goes as a whole",
        "serializable",
        CopyRow("a", 1, 30),
        DeletePart("a"),
    )
    yield _table(
        "truncate-truncate",
        "one file goes twice, and nobody has read it",
        "copy",
        TruncateFile("a"),
        TruncateFile("a"),
    )
    yield _table(
        "truncate-update",
        "a file goes while its rows change",
        "vectors",
        TruncateFile("a"),
        Update("a", 1, "P"),
    )
    twice = PreparedStatement(TouchApplication(), Delete("a", 1))
    yield _table(
        "cached-delete",
        "a long-lived process deletes after a commit of its own",
        "cached",
        twice,
        Update("a", 1, "P"),
    )


def _after_checkpoints() -> Iterator[Workload]:
    stood = ((WriteCheckpoint(), 3),)
    yield _table(
        "checkpoint-job",
        "a job runs again after a checkpoint",
        "copy",
        _JOB,
        _OTHER,
        before=((_JOB, 3), *stood),
        requires_commit=False,
    )
    yield _table(
        "checkpoint-vacuum",
        "VACUUM knows of removals from a checkpoint",
        "copy",
        _OTHER,
        VacuumTable(),
        before=((Delete("a", 1), 3), *stood),
    )
    yield _table(
        "checkpoint-vectors",
        "a delete reads vectors from a checkpoint",
        "vectors",
        Delete("a", 2),
        Update("b", 4, "P"),
        before=((Delete("a", 1), 3), *stood),
    )
    yield _table(
        "checkpoint-notes",
        "a domain is read from a checkpoint",
        "domains",
        AppendToDomain("2"),
        _OTHER,
        before=((AppendToDomain("1"), 3), *stood),
    )
    yield _table(
        "checkpoint-row-ids",
        "row ids go on after a checkpoint",
        "row-ids",
        _APPEND,
        _OTHER,
        before=stood,
    )
    yield _table(
        "checkpoint-alter",
        "properties are read from a checkpoint",
        "copy",
        AlterProperties("owner", "ana"),
        _OTHER,
        before=((AlterProperties("team", "orders"), 3), *stood),
    )
    yield _table(
        "checkpoint-now",
        "a checkpoint is written while a delete commits",
        "vectors",
        Delete("a", 1),
        WriteCheckpoint(),
        before=((DeletePart("b"), 3), (Delete("a", 2), 3), (_JOB, 3)),
    )
    yield _table(
        "checkpoint-note",
        "a checkpoint is written while a domain changes",
        "domains",
        AppendToDomain("2"),
        WriteCheckpoint(),
        before=((AppendToDomain("1"), 3),),
    )
    yield _table(
        "checkpoint-parts",
        "a checkpoint in parts is written while rows come",
        "copy",
        _OTHER,
        WriteCheckpoint(2),
        before=((Delete("a", 1), 3), (_JOB, 3)),
    )


def _clean_ups() -> Iterator[Workload]:
    yield _table(
        "vacuum-vectors",
        "VACUUM of a table with vectors while a delete commits",
        "vectors",
        Delete("a", 1),
        VacuumTable(),
        before=((Delete("b", 4), 40),),
        retained_from=1,
    )
    yield _table(
        "vacuum-restore",
        "VACUUM while an old version comes back",
        "copy",
        Restore(0, _START),
        VacuumTable(),
        before=((Delete("a", 1), 2),),
    )
    gone: Statement = StatementSequence(TouchApplication(), TouchApplication("other"))
    gone = StatementSequence(gone, WriteCheckpoint())
    yield _table(
        "left-far-behind",
        "two commits, a checkpoint and a cleanup overtake an update",
        "copy",
        Update("b", 4, "P"),
        gone,
        CleanUpLog(),
    )
    yield _table(
        "vacuum-sync-vectors",
        "VACUUM while vectors are converted",
        "compat-v3",
        SyncIceberg(),
        VacuumTable(),
        before=((SyncIceberg(), 50), (Delete("b", 4), 40), (Delete("a", 1), 3)),
        retained_from=1,
        requires_commit=False,
    )


def _applications() -> Iterator[Workload]:
    yield _table("job-job", "two instances of one application", "copy", _JOB, _JOB)
    yield _table(
        "job-job-restarts",
        "two instances that start again after a crash",
        "copy",
        RestartOnFailure(_JOB),
        RestartOnFailure(_JOB),
    )
    yield _table(
        "touch-job", "another application comes in between", "copy", _JOB, TouchApplication()
    )
