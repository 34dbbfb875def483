"""Deletion vectors on Delta: two deletes of one file, by file or row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from twinlake.verify.checker import Failure, InitialState, Next, action, always, eventually_always
from twinlake.verify.models.mutation import WriterModel

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ConcurrentVectors"]

#: Mutants: a rebased delete replaces the winner's vector instead of uniting with it; the conflict
#: check looks whether the path is still live and not whether its vector is still the one read.
REPLACES_VECTOR, PATH_ONLY = "replaces-vector", "path-only"

IDLE, COMMIT = "IDLE", "COMMIT"
Vector = frozenset[int]


class _Version(NamedTuple):
    """A version: the live files with their vectors, and what its commit meant to delete."""

    files: tuple[tuple[str, Vector], ...]
    deleted: tuple[tuple[str, int], ...] = ()


class _Deleter(NamedTuple):
    """A writer that deletes one row of one file."""

    state: str = IDLE
    read_version: int = 0
    path: str = ""
    position: int = -1
    vector: Vector = frozenset()


Log = tuple[_Version, ...]


@dataclass(frozen=True, kw_only=True)
class ConcurrentVectors(WriterModel):
    """Deletes that replace ``(path, old vector)`` by ``(path, new vector)``.

    Two deletes of one file conflict. With ``row_level`` the loser unites its rows with the
    winner's vector if they are different rows.
    """

    title: ClassVar[str] = "Delta deletion vectors"
    mutants: ClassVar[tuple[str | None, ...]] = (None, REPLACES_VECTOR, PATH_ONLY)
    append_only: ClassVar[tuple[str, ...]] = ("log",)
    only_grows: ClassVar[tuple[str, ...]] = ("started", "aborted")

    files: int = 1
    rows: int = 2
    max_ops: int = 3
    row_level: bool = False

    def initial(self) -> Iterator[InitialState]:
        """Some full files without vectors."""
        first = _Version(tuple((f"file-{number}", frozenset()) for number in range(self.files)))
        shared = {"log": (first,), "started": (0,), "aborted": (0,)}
        yield InitialState(shared, (_Deleter(),) * self.writers)

    @action(at=IDLE, writes=("started",))
    def start(self, _writer: _Deleter, log: Log, started: tuple[int]) -> Iterator[Next]:
        """Read the newest version and choose a live row of it."""
        if started[0] >= self.max_ops:
            return
        for path, vector in log[-1].files:
            for position in range(self.rows):
                if position not in vector:
                    opened = _Deleter(COMMIT, len(log) - 1, path, position, vector)
                    arguments = {"path": path, "position": position}
                    yield Next(opened, {"started": (started[0] + 1,)}, arguments)

    @action(at=COMMIT, writes=("log",))
    def commit(self, writer: _Deleter, log: Log) -> Iterator[Next]:
        """Commit if nobody touched the file, or if the rows can be united."""
        vector = self._rebased(writer, log)
        if vector is None:
            return
        files = tuple((path, vector if path == writer.path else old) for path, old in log[-1].files)
        done = _Version(files, ((writer.path, writer.position),))
        yield Next(_Deleter(), {"log": (*log, done)}, {"version": len(log), "vector": vector})

    @action(at=COMMIT, writes=("aborted",))
    def conflict(self, writer: _Deleter, log: Log, aborted: tuple[int]) -> Iterator[Next]:
        """Give up: somebody has changed the file."""
        if self._rebased(writer, log) is None:
            yield Next(_Deleter(), {"aborted": (aborted[0] + 1,)}, {"path": writer.path})

    def _rebased(self, writer: _Deleter, log: Log) -> Vector | None:
        mine = writer.vector | {writer.position}
        current = dict(log[-1].files)[writer.path]
        if current == writer.vector or self.mutant == PATH_ONLY:
            return mine
        if not self.row_level or writer.position in current:
            return None
        return mine if self.mutant == REPLACES_VECTOR else mine | current

    @always
    def consistent_read(self, log: Log) -> Failure | None:
        """The vectors of a version hold exactly what its commits deleted."""
        wanted = {one for version in log for one in version.deleted}
        found = {(path, at) for path, vector in log[-1].files for at in vector}
        if wanted == found:
            return None
        return Failure(
            f"version {len(log) - 1}: deleted {sorted(wanted)}, but vectors hold {sorted(found)}",
            {"expected": sorted(wanted), "actual": sorted(found)},
        )

    @always
    def nothing_is_deleted_twice(self, log: Log) -> Failure | None:
        """No row is deleted by two commits: each counted it as its own."""
        every = [one for version in log for one in version.deleted]
        twice = sorted({one for one in every if every.count(one) > 1})
        return Failure(f"{twice[0]} was deleted twice") if twice else None

    @eventually_always
    def everything_ends(self, log: Log, aborted: tuple[int], started: tuple[int]) -> bool:
        """In the end every delete has committed or aborted."""
        return len(log) - 1 + aborted[0] == started[0]
