"""What becomes of the files of an operation when its commit is refused, in doubt, or cut short."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from twinlake import ConflictError, Table
from twinlake.actions import AddCDCFile, AddFile
from twinlake.errors import Code, CommitUnknown, StorageError
from twinlake.log import commit_key, dv_path, read_commit
from twinlake.runtime import Runtime, SystemClock
from twinlake.storage import Fault, MemoryStore
from twinlake.table.rows import UncommittedFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.storage import CreateOutcome

VECTORS = {"delta.enableDeletionVectors": "true"}
CHANGES = {**VECTORS, "delta.enableChangeDataFeed": "true"}
MORE = {"id": [3, 9], "n": [30, 90]}
NEW = {"id": [8, 9], "n": [80, 90]}
START = {1: 0, 2: 0, 3: 0, 4: 0}

Rows = dict[int, int]
OPERATIONS: dict[str, tuple[Callable[[Table], Table], Rows]] = {
    "append": (lambda t: t.append({"id": [9], "n": [90]}), {**START, 9: 90}),
    "overwrite": (lambda t: t.overwrite(MORE, where="id >= 3"), {1: 0, 2: 0, 3: 30, 9: 90}),
    "delete": (lambda t: t.delete("id = 3"), {1: 0, 2: 0, 4: 0}),
    "update": (lambda t: t.update({"n": "n + 1"}, where="id = 3"), {**START, 3: 1}),
    "merge": (lambda t: t.merge(MORE, on="id"), {**START, 3: 30, 9: 90}),
    "optimize": (lambda t: t.optimize(), START),
}

each_operation = pytest.mark.parametrize(
    ("change", "after"), OPERATIONS.values(), ids=OPERATIONS.keys()
)
each_layout = pytest.mark.parametrize(
    "properties", [{}, VECTORS, CHANGES], ids=["copy on write", "vectors", "change files"]
)


class NoPause(SystemClock):
    """Attempts follow each other at once."""

    def sleep(self, seconds: float) -> None:
        del seconds


def new_table(properties: dict[str, str]) -> tuple[Table, MemoryStore]:
    """Two files with the rows of :data:`START`, in a store of their own."""
    table = Table.create(
        f"memory://{uuid.uuid4()}",
        "id INT, n INT",
        properties=properties,
        runtime=Runtime(clock=NoPause()),
    )
    table = table.append({"id": [1, 2], "n": [0, 0]}).append({"id": [3, 4], "n": [0, 0]})
    store = table.snapshot.store
    assert isinstance(store, MemoryStore)
    return table, store


def rows_of(table: Table) -> Rows:
    found = Table.open(table.location).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["n"] for row in found}


def strays(table: Table) -> set[str]:
    """Objects outside of the log that no version names."""
    store, named = table.snapshot.store, set[str]()
    for version in range(Table.open(table.location).version + 1):
        for action in read_commit(store, version):
            if isinstance(action, AddFile | AddCDCFile):
                named.add(action.path)
            if isinstance(action, AddFile) and action.deletion_vector is not None:
                named.add(dv_path(action.deletion_vector) or "")
    return {
        meta.key for meta in store.list_from("") if not meta.key.startswith("_delta_log/")
    } - named


@each_layout
@each_operation
def test_a_lost_reply_is_one_commit(
    change: Callable[[Table], Table], after: Rows, properties: dict[str, str]
) -> None:
    table, store = new_table(properties)
    store.set_faults([("create", 1, Fault.after())])
    changed = change(table)
    assert changed.version == table.version + 1
    assert Table.open(table.location).version == changed.version
    assert rows_of(table) == after
    assert not strays(table)


@each_layout
@each_operation
def test_a_refused_commit_leaves_no_files(
    change: Callable[[Table], Table],
    after: Rows,
    properties: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, store = new_table(properties)

    def refuse(key: str, data: bytes) -> CreateOutcome:
        raise StorageError(Code.STORAGE, f"No permission for {key}.", why="denied", fix="ask")

    monkeypatch.setattr(store, "create", refuse)
    with pytest.raises(StorageError):
        change(table)
    monkeypatch.undo()
    assert not strays(table)
    assert rows_of(table) == START
    change(table)
    assert rows_of(table) == after


@each_layout
@pytest.mark.parametrize("name", ["overwrite", "delete", "update", "merge", "optimize"])
def test_a_conflict_leaves_no_files(name: str, properties: dict[str, str]) -> None:
    change, _ = OPERATIONS[name]
    table, _ = new_table(properties)
    table.delete("id >= 3")
    with pytest.raises(ConflictError):
        change(table)
    assert not strays(table)
    assert rows_of(table) == {1: 0, 2: 0}


@each_layout
@each_operation
def test_an_unknown_outcome_keeps_the_files(
    change: Callable[[Table], Table], after: Rows, properties: dict[str, str]
) -> None:
    """The commit is there, and nobody could see it: without the files the table were broken."""
    table, store = new_table(properties)
    key = commit_key(table.version + 1)
    store.set_faults(
        lambda op, at, _: (
            Fault.after()
            if at == key and op == "create"
            else (Fault.before() if at == key else None)
        )
    )
    with pytest.raises(CommitUnknown):
        change(table)
    store.set_faults(())
    assert rows_of(table) == after
    assert not strays(table)


def test_an_unknown_outcome_without_a_commit_keeps_the_files() -> None:
    """A late write might still land."""
    table, store = new_table({})
    store.set_faults(lambda op, *_: Fault.before() if op == "create" else None)
    with pytest.raises(CommitUnknown):
        table.append(MORE)
    store.set_faults(())
    assert len(strays(table)) == 1
    assert rows_of(table) == START


@each_layout
@each_operation
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_after_the_commit_keeps_the_files(
    change: Callable[[Table], Table],
    after: Rows,
    properties: dict[str, str],
    stop: type[BaseException],
) -> None:
    """Checksum, checkpoint and Iceberg metadata follow a commit; Ctrl-C may come meanwhile."""
    table, store = new_table(properties)

    def interrupt(op: str, key: str, _: int) -> None:
        if key.endswith(".crc") and op in ("create", "put"):
            raise stop

    store.set_faults(interrupt)
    with pytest.raises(stop):
        change(table)
    store.set_faults(())
    assert Table.open(table.location).version == table.version + 1
    assert rows_of(table) == after


class _Surprise:
    """Every call after the one that creates a key fails with an error that no store declares."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._created = False

    def __call__(self, op: str, key: str, _: int) -> None:
        if self._created:
            raise RuntimeError(f"{op} {key}")
        self._created = op == "create" and key == self._key


@each_layout
@each_operation
def test_nothing_that_fails_after_the_commit_is_a_failure(
    change: Callable[[Table], Table], after: Rows, properties: dict[str, str]
) -> None:
    table, store = new_table({**properties, "delta.checkpointInterval": "1"})
    store.set_faults(_Surprise(commit_key(table.version + 1)))
    changed = change(table)
    store.set_faults(())
    assert changed.version == table.version + 1
    assert {w.hook for w in changed.warnings} >= {"checksum", "checkpoint"}
    assert rows_of(table) == after
    assert not strays(table)


@each_operation
def test_an_error_of_the_callers_log_is_not_one_of_the_commit(
    change: Callable[[Table], Table], after: Rows
) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise RuntimeError(record.getMessage())

    table, store = new_table({})
    store.set_faults(_Surprise(commit_key(table.version + 1)))
    handler = Broken()
    logging.getLogger("twinlake.commit").addHandler(handler)
    try:
        changed = change(table)
    finally:
        logging.getLogger("twinlake.commit").removeHandler(handler)
        store.set_faults(())
    assert changed.warnings
    assert rows_of(table) == after


@each_operation
@pytest.mark.parametrize("has_effect", [True, False])
def test_an_undeclared_error_of_the_commit_is_settled_by_a_look(
    change: Callable[[Table], Table],
    after: Rows,
    has_effect: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, store = new_table({})
    create, failed = store.create, list[str]()

    def fail_once(key: str, data: bytes) -> CreateOutcome:
        if failed or key != commit_key(table.version + 1):
            return create(key, data)
        failed.append(key)
        if has_effect:
            create(key, data)
        raise MemoryError

    monkeypatch.setattr(store, "create", fail_once)
    changed = change(table)
    assert failed
    assert changed.version == table.version + 1
    assert rows_of(table) == after
    assert not strays(table)


@each_operation
def test_an_undeclared_error_that_hides_the_outcome_keeps_the_files(
    change: Callable[[Table], Table], after: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, store = new_table({})
    key = commit_key(table.version + 1)
    create = store.create

    def created(at: str, data: bytes) -> CreateOutcome:
        outcome = create(at, data)
        if at == key:
            raise MemoryError
        return outcome

    def fail_reading(op: str, at: str, _: int) -> None:
        if at == key and op == "read":
            raise RuntimeError(at)

    monkeypatch.setattr(store, "create", created)
    store.set_faults(fail_reading)
    with pytest.raises(CommitUnknown):
        change(table)
    monkeypatch.undo()
    store.set_faults(())
    assert rows_of(table) == after


def test_files_that_are_kept_outlive_every_error() -> None:
    store = MemoryStore()
    store.put("a", b"1")
    with pytest.raises(RuntimeError), UncommittedFiles(store) as made:
        made.add_key("a")
        made.keep()
        raise RuntimeError
    assert store.read("a") == b"1"


@pytest.mark.parametrize("name", ["append", "overwrite", "merge"])
def test_what_an_application_wrote_before_writes_no_files(name: str) -> None:
    table, _ = new_table({})
    call: Any = getattr(table, name)
    keys = {"on": "id"} if name == "merge" else {}
    first = call(NEW, txn=("app", 1), **keys)
    before = rows_of(table)
    again = getattr(first, name)(NEW, txn=("app", 1), **keys)
    assert again.version == first.version
    assert rows_of(table) == before
    assert not strays(table)


def test_a_deletion_vector_whose_write_failed_is_deleted() -> None:
    """The store kept it, and the reply was lost."""
    table, store = new_table(VECTORS)
    store.set_faults(lambda op, *_: Fault.after() if op == "put" else None)
    with pytest.raises(StorageError):
        table.delete("id = 3")
    store.set_faults(())
    assert not strays(table)
    assert rows_of(table) == START
