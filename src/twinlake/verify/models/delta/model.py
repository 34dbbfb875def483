"""The Delta log under concurrent writers: copy-on-write, with and without put-if-absent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import (
    Failure,
    InitialState,
    Model,
    ModelError,
    Next,
    Role,
    action,
    always,
    eventually_always,
)
from twinlake.verify.models.delta.values import (
    ACTIVE,
    COMMIT,
    DELETE,
    FAILED,
    INSERT,
    READ,
    READY,
    UPDATE,
    VERSION_CHECK,
    WRITE,
    DeltaDataFile,
    DeltaLogEntry,
    DeltaTransaction,
    DeltaWriter,
    FileId,
    Files,
    History,
    Log,
    is_live,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["DeltaLog"]

Row = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class DeltaLog(Model):
    """The Delta model; without put-if-absent and without coordination it is unsafe.

    >>> from twinlake.verify import check
    >>> check(DeltaLog(max_ops=2)).ok
    True
    >>> check(DeltaLog(max_ops=2, put_if_absent=False)).violated
    'ConsistentRead'
    """

    title: ClassVar[str] = "Delta log"
    only_grows: ClassVar[tuple[str, ...]] = ("started",)

    writers: int = 2
    col1_values: tuple[str, ...] = ("a",)
    col2_values: tuple[str, ...] = ("x", "y")
    max_ops: int = 3
    #: Whether the store refuses to write a log entry that exists.
    put_if_absent: bool = True
    #: Whether writers take a table lock around the check of the version and the commit.
    coordination: bool = False
    #: Whether the table is partitioned by col1.
    partitioned: bool = True

    def __post_init__(self) -> None:
        if self.writers < 1 or self.max_ops < 0:
            raise ModelError("a model needs a writer, and max_ops must not be negative")

    @property
    def roles(self) -> tuple[Role, ...]:
        """The writers."""
        return (Role(name="Writer", count=self.writers),)

    def interchangeable(self) -> tuple[tuple[Hashable, ...], ...]:
        """The values of col2. Those of col1 differ by their position in the history."""
        return (self.col2_values,)

    def initial(self) -> Iterator[InitialState]:
        """An empty log."""
        shared: dict[str, Hashable] = {
            "log": (),
            "files": (),
            "history": tuple((col1, ()) for col1 in self.col1_values),
            "started": (0,),
            "locked": False,
        }
        yield InitialState(shared, (DeltaWriter(),) * self.writers)

    # --- a transaction ------------------------------------------------------------------------

    @action(at=READY, writes=("started",))
    def start_operation(
        self, _writer: DeltaWriter, log: Log, started: tuple[int]
    ) -> Iterator[Next]:
        """Choose an operation and cache the log."""
        if started[0] >= self.max_ops:
            return
        choices: list[tuple[str, str, str | None]] = []
        for col1 in self.col1_values:
            choices += [(INSERT, col1, col2) for col2 in self.col2_values]
            choices += [(UPDATE, col1, col2) for col2 in self.col2_values]
            choices.append((DELETE, col1, None))
        for kind, col1, col2 in choices:
            partition = col1 if self.partitioned else None
            yield Next(
                DeltaWriter(
                    state=READ,
                    cached=log,
                    transaction=DeltaTransaction(len(log), kind, col1, col2, partition),
                    commit_version=len(log) + 1,
                ),
                {"started": (started[0] + 1,)},
                {"operation": kind, "col1": col1, "col2": col2, "read version": len(log)},
            )

    @action(at=READ)
    def read_data_files(self, writer: DeltaWriter, log: Log, files: Files) -> Iterator[Next]:
        """Find the files to merge into; an update or delete that finds none is done."""
        wanted = _of(writer)
        live = [
            file
            for file in files
            if file.id.partition == wanted.partition and is_live(file.id, log, len(writer.cached))
        ]
        if wanted.kind != INSERT:
            matching = [file for file in live if any(row[0] == wanted.col1 for row in file.rows)]
            if matching:
                yield Next(writer._replace(state=WRITE, targets=frozenset(matching)))
            else:
                yield Next(DeltaWriter(), arguments={"found": "nothing to change"})
            return
        taken = {file.id for file in files}
        # An insert may merge into any live file or open a file of any number not in use.
        new = [
            DeltaDataFile(FileId(number, wanted.partition), frozenset())
            for number in range(max(1, len(files)) + 1)
            if FileId(number, wanted.partition) not in taken
        ]
        for target in sorted([*live, *new], key=lambda file: file.id.number):
            arguments = {"target": target.id}
            yield Next(
                writer._replace(state=WRITE, targets=frozenset((target,))), arguments=arguments
            )

    @action(at=WRITE, writes=("files",))
    def write_data_files(self, writer: DeltaWriter, files: Files) -> Iterator[Next]:
        """Write each target, merged with the transaction, as a new file."""
        wanted = _of(writer)
        exist = {file.id for file in files}
        written = tuple(
            DeltaDataFile(
                FileId(len(files) + index, wanted.partition), _merged(target.rows, wanted)
            )
            for index, target in enumerate(
                sorted(writer.targets, key=lambda target: target.id.number), 1
            )
        )
        ready = writer._replace(
            state=VERSION_CHECK if self.coordination else COMMIT,
            added=frozenset(file.id for file in written),
            removed=frozenset(one.id for one in writer.targets if one.id in exist),
        )
        yield Next(ready, {"files": files + written}, {"written": written})

    @action(at=VERSION_CHECK, writes=("locked",))
    def coordinate_prepare_write(
        self, writer: DeltaWriter, log: Log, locked: bool
    ) -> Iterator[Next]:
        """Under the table lock: is the version still free? If so, keep the lock."""
        if locked:
            return
        if writer.commit_version > len(log):
            yield Next(writer._replace(state=COMMIT), {"locked": True})
        elif self._conflicts(writer, log):
            yield Next(DeltaWriter(), arguments={"conflict": True})
        else:
            yield Next(writer._replace(commit_version=len(log) + 1))

    @action(at=COMMIT, writes=("log", "history", "locked"))
    def try_commit(self, writer: DeltaWriter, log: Log, history: History) -> Iterator[Next]:
        """Write the log entry; where it exists already, look for conflicts and try the next."""
        version = writer.commit_version
        freed: dict[str, Hashable] = {"locked": False} if self.coordination else {}
        if version <= len(log) and self.put_if_absent:
            if self._conflicts(writer, log):
                yield Next(DeltaWriter(), freed, {"conflict": True})
            else:
                yield Next(writer._replace(commit_version=len(log) + 1), freed)
            return
        entry = DeltaLogEntry(writer.added, writer.removed)
        freed["log"] = (*log[: version - 1], entry, *log[version:])
        freed["history"] = tuple(
            (col1, (*done, (version, _of(writer))) if col1 == _of(writer).col1 else done)
            for col1, done in history
        )
        yield Next(DeltaWriter(), freed, {"version": version, "overwritten": version <= len(log)})

    @action(at=COMMIT, writes=("locked",), fair=False)
    def writer_fail(self, _writer: DeltaWriter, locked: bool) -> Iterator[Next]:
        """The writer stops for good; a lock it holds is released."""
        yield Next(
            DeltaWriter(state=FAILED), {"locked": False} if self.coordination and locked else {}
        )

    def _conflicts(self, writer: DeltaWriter, log: Log) -> bool:
        """Whether an entry from the read version on, that one included, touches my partition."""
        wanted = _of(writer)
        return any(
            not self.partitioned
            or any(file.partition == wanted.partition for file in entry.added | entry.removed)
            for entry in log[max(wanted.read_version, 1) - 1 :]
        )

    # --- what must hold -------------------------------------------------------------------------

    @always
    def valid_delta_log(self, log: Log) -> Failure | None:
        """No entry adds and removes one file."""
        for version, entry in enumerate(log, 1):
            both = entry.added & entry.removed
            if both:
                return Failure(f"version {version} adds and removes {sorted(both)[0]}")
        return None

    @always
    def consistent_read(self, log: Log, files: Files, history: History) -> Failure | None:
        """Every version of every key reads as the replay of the committed transactions."""
        for version in range(1, len(log) + 1):
            live = [file for file in files if is_live(file.id, log, version)]
            for col1, done in history:
                wanted = _replayed(done, version)
                found = {row[1] for file in live for row in file.rows if row[0] == col1}
                if wanted != found:
                    return Failure(
                        f"key {col1!r}, version {version}: expected {sorted(wanted)},"
                        f" read {sorted(found)}",
                        {"col1": col1, "version": version, "expected": wanted, "actual": found},
                    )
        return None

    @eventually_always
    def eventually_completes(self, actors: tuple[DeltaWriter, ...]) -> bool:
        """Every transaction ends: it commits, gives up or fails."""
        return all(writer.state not in ACTIVE for writer in actors)


def _of(writer: DeltaWriter) -> DeltaTransaction:
    if writer.transaction is None:
        raise ModelError("an active writer has a transaction")
    return writer.transaction


def _merged(rows: frozenset[Row], wanted: DeltaTransaction) -> frozenset[Row]:
    if wanted.kind == INSERT:
        return rows | {(wanted.col1, wanted.col2 or "")}
    others = frozenset(row for row in rows if row[0] != wanted.col1)
    if wanted.kind == DELETE or others == rows:
        return others
    return others | {(wanted.col1, wanted.col2 or "")}


def _replayed(done: tuple[tuple[int, DeltaTransaction], ...], version: int) -> set[str]:
    values: set[str] = set()
    for at, wanted in done:
        if at > version:
            continue
        if wanted.kind == INSERT:
            values.add(wanted.col2 or "")
        elif wanted.kind == DELETE:
            values = set()
        elif values:
            values = {wanted.col2 or ""}
    return values
