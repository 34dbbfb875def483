"""Snapshot expiry: old versions are forgotten, then their files deleted, one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from twinlake.verify.checker import (
    ActionCheck,
    Failure,
    InitialState,
    ModelError,
    Next,
    Role,
    action,
    always,
    eventually_always,
)
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.operations import CANONICAL, Aborted
from twinlake.verify.models.iceberg.snapshot_scan import live_data, live_deletes
from twinlake.verify.models.iceberg.values import (
    ABORTED,
    COMMIT,
    COMMITTED,
    IDLE,
    INSERT,
    READ_DATA_FILES,
    WRITE_METADATA_FILES,
    Table,
    TableVersion,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["SnapshotExpiry"]

#: Mutants: a writer whose scan snapshot is gone finds no new snapshots and so no conflict; a
#: writer that does not know whether its swap happened deletes its files; the expirer deletes
#: every file of an expired version, also those that a retained one still has.
SKIPS_VALIDATION, CLEANS_ON_UNKNOWN = "skips-validation", "cleans-on-unknown"
DELETES_SHARED = "deletes-shared"

WAITING, DELETING = "WAITING", "DELETING"
Expired = tuple[int]
Deleted = frozenset[str]


class _Expirer(NamedTuple):
    """The one who expires snapshots."""

    state: str = WAITING
    doomed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SnapshotExpiry(IcebergV2):
    """The base model with an actor that expires old snapshots while writers work on them."""

    title: ClassVar[str] = "Iceberg v2 with snapshot expiry"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        SKIPS_VALIDATION,
        CLEANS_ON_UNKNOWN,
        DELETES_SHARED,
    )
    only_grows: ClassVar[tuple[str, ...]] = ("started", "aborted", "expired", "unknowns")

    #: How many swaps may succeed without the writer learning it.
    max_unknowns: int = 0
    identity: str = CANONICAL

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.identity != CANONICAL:
            raise ModelError("snapshot expiry is modelled in canonical identity only")

    @property
    def roles(self) -> tuple[Role, ...]:
        """The writers, and one who expires."""
        return (Role(name="Writer", count=self.writers), Role(name="Expirer"))

    def initial(self) -> Iterator[InitialState]:
        """The empty table; nothing is expired, nothing deleted."""
        more: dict[str, Hashable] = {"expired": (0,), "deleted": frozenset(), "unknowns": (0,)}
        for start in super().initial():
            yield InitialState({**start.shared, **more}, (*start.actors, _Expirer()))

    # --- expiry -----------------------------------------------------------------------------------

    @action(role="Expirer", at=WAITING, writes=("expired",))
    def expire_snapshots(
        self, _expirer: _Expirer, table: Table, expired: Expired, deleted: Deleted
    ) -> Iterator[Next]:
        """Forget all versions but the newest ones, and find the files that only they have."""
        for upto in range(expired[0] + 1, len(table) - 1):
            kept = {path for version in table[upto + 1 :] for path in _files(version)}
            old = {path for version in table[1 : upto + 1] for path in _files(version)}
            doomed = sorted((old if self.mutant == DELETES_SHARED else old - kept) - deleted)
            after = _Expirer(DELETING, tuple(doomed)) if doomed else _Expirer()
            yield Next(after, {"expired": (upto,)}, {"expired up to": upto, "files": doomed})

    @action(role="Expirer", at=DELETING, writes=("deleted",))
    def delete_file(self, expirer: _Expirer, deleted: Deleted) -> Iterator[Next]:
        """Delete one file."""
        path, *rest = expirer.doomed
        after = _Expirer(DELETING, tuple(rest)) if rest else _Expirer()
        yield Next(after, {"deleted": deleted | {path}}, {"file": path})

    # --- writers, who may find that what they read is gone ----------------------------------------

    @action(at=READ_DATA_FILES, frozen={"table": "scan_version"})
    def read_data_files(  # type: ignore[override]
        self, writer: Writer, table: Table, deleted: Deleted
    ) -> Iterator[Next]:
        """Scan, if all files of the scan version are still there."""
        if deleted.isdisjoint(_files(table[-1])):
            yield from super().read_data_files(writer, table)

    @action(
        at=READ_DATA_FILES,
        writes=("aborted",),
        frozen={"table": "scan_version"},
        name="ReadDataFiles (file is gone)",
    )
    def fail_to_read(
        self, writer: Writer, table: Table, deleted: Deleted, aborted: Aborted
    ) -> Iterator[Next]:
        """Give up, since a file of the scan version was deleted."""
        gone = sorted(deleted.intersection(_files(table[-1])))
        if gone:
            done = {"aborted": (aborted[0] + 1,)}
            yield Next(Writer(state=ABORTED), done, {"gone": gone, "was": writer.sql_op})

    @action(at=WRITE_METADATA_FILES)
    def write_metadata_files(  # type: ignore[override]
        self, writer: Writer, table: Table, expired: Expired
    ) -> Iterator[Next]:
        """Validate against the snapshots since the scan, which must still be known."""
        checks = self._checks(table, writer, expired)
        if all(check.passed for check in checks):
            ready = writer._replace(state=COMMIT, base=len(table) - 1)
            yield Next(ready, arguments={"base version": ready.base}, checks=checks)

    @action(at=WRITE_METADATA_FILES, writes=("aborted",), name="WriteMetadataFiles (abort)")
    def abort(  # type: ignore[override]
        self, writer: Writer, table: Table, expired: Expired, aborted: Aborted
    ) -> Iterator[Next]:
        """Give up because a validation fails, or cannot be made."""
        checks = self._checks(table, writer, expired)
        if not all(check.passed for check in checks):
            done = {"aborted": (aborted[0] + 1,)}
            yield Next(Writer(state=ABORTED), done, checks=checks)

    def _checks(self, table: Table, writer: Writer, expired: Expired) -> tuple[ActionCheck, ...]:
        if 0 < writer.scan_version <= expired[0] and writer.sql_op != INSERT:
            if self.mutant == SKIPS_VALIDATION:
                return ()
            lost = f"version {writer.scan_version} is expired"
            return (ActionCheck("scan snapshot is known", False, lost),)
        return self._validate(table, writer)

    @action(at=COMMIT, writes=("table", "inserting", "unknowns", "deleted"), name="Commit")
    def commit(  # type: ignore[override]
        self,
        writer: Writer,
        table: Table,
        inserting: frozenset[str],
        unknowns: tuple[int],
        deleted: Deleted,
    ) -> Iterator[Next]:
        """Swap the register; the reply may be lost, and then the files must stay."""
        if writer.base != len(table) - 1:
            yield Next(self.retry(writer), arguments={"swap": "failed"})
            return
        version = self.build(table, writer)
        shared: dict[str, Any] = {"table": (*table, version)}
        if writer.sql_op == INSERT:
            shared["inserting"] = inserting - {writer.row_history[0][0][0]}
        yield Next(Writer(state=COMMITTED), shared, {"version": len(table)})
        if unknowns[0] < self.max_unknowns:
            shared = {**shared, "unknowns": (unknowns[0] + 1,)}
            if self.mutant == CLEANS_ON_UNKNOWN:
                mine = {path for path in _files(version) if path not in _files(table[-1])}
                shared["deleted"] = deleted | mine
            yield Next(Writer(state=COMMITTED), shared, {"version": len(table), "reply": "lost"})

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def retained_versions_are_whole(
        self, table: Table, expired: Expired, deleted: Deleted
    ) -> Failure | None:
        """Every file of every version that is not expired exists."""
        for number in range(expired[0] + 1, len(table)):
            gone = sorted(deleted.intersection(_files(table[number])))
            if gone:
                return Failure(f"{gone[0]} of version {number} is gone", {"version": number})
        return None

    @eventually_always
    def operations_eventually_commit_or_abort(self, actors: tuple[Any, ...]) -> bool:
        """In the end all writers are idle, and nothing is left to be deleted."""
        return all(actor.state in (*IDLE, WAITING) for actor in actors)


def _files(version: TableVersion) -> list[str]:
    data = [file.path for _, file in live_data(version)]
    return data + [file.path for _, file in live_deletes(version)]
