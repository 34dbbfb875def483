"""Iceberg clients whose commits a REST server turns into commits of a Delta log.

The servers hold no authority: the log is the truth, and the table that a client sees is a pure
function of it. A server loads the log, looks the request's idempotency key up, checks the
requirements against the view of the version it has loaded, translates the files, and puts the
next entry if it is absent; after a lost race it loads and checks again. Other clients write the
same log directly. Answers get lost, clients time out, servers stop, and the store may not say
whether a put took effect.

When a client refreshes, some server loads the log for it: which one does not matter as long as
all show the same, and what it is shown may be old by the time it commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from twinlake.verify.checker import Failure, always, eventually_always, sometimes
from twinlake.verify.models.iceberg.snapshot_scan import dangling
from twinlake.verify.models.iceberg.values import IDLE, Row
from twinlake.verify.models.server.delta_clients import DeltaClients
from twinlake.verify.models.server.translation import (
    delta_rows,
    replay,
    schema_of,
    snapshot_id_of,
    view,
)
from twinlake.verify.models.server.values import (
    REPLY_COMMITTED,
    REPLY_FAILED,
    REPLY_UNKNOWN,
    WAITING,
    Log,
    Published,
    Reports,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from twinlake.verify.models.iceberg.operations import Started

__all__ = ["ServerCommits", "ServerReachability"]


@dataclass(frozen=True, kw_only=True)
class ServerCommits(DeltaClients):
    """The Iceberg model with the catalog's register replaced by servers on a Delta log.

    >>> from twinlake.verify import check
    >>> check(ServerCommits(max_write_ops=2), symmetry=True, reduction=True).violated is None
    True
    """

    title: ClassVar[str] = "Iceberg commits through a server on a Delta log"

    def show_change(self, variable: str, before: Any, after: Any) -> Any:
        """A new entry as its version, its kind and its files."""
        if variable != "log":
            return super().show_change(variable, before, after)
        entry = after[-1]
        return {
            "version": len(after) - 1,
            "operation": entry.operation,
            "adds": {add.file.path: sorted(add.vector) for add in entry.adds},
            "removes": [remove.path for remove in entry.removes],
            "schema": schema_of(after),
            "snapshot": snapshot_id_of(after, len(after) - 1),
            "history": [record._asdict() for record in entry.recorded],
        }

    # --- commits ------------------------------------------------------------------------------

    @always
    def requirements_held(self, log: Log) -> Failure | None:
        """What a request required was so in the version before the one it made."""
        number = len(log) - 1
        required = log[-1].required
        if required is None:
            return None
        found = (snapshot_id_of(log, number - 1), schema_of(log[:-1]))
        if required == found:
            return None
        return Failure(
            f"version {number} required snapshot {required[0]} and schema {required[1]},"
            f" but they were {found[0]} and {found[1]}",
            {"required": required, "found": found},
        )

    @always
    def committed_exactly_once(self, log: Log) -> Failure | None:
        """No operation is in the log twice."""
        done = [entry.key[0] for entry in log if entry.key is not None]
        twice = sorted({one for one in done if done.count(one) > 1})
        return Failure(f"operation {twice[0]} was committed twice") if twice else None

    @always
    def reports_are_true(self, log: Log, reported: Reports) -> Failure | None:
        """What was reported as committed is in the log; what was reported as failed is not."""
        done = _committed(log)
        for token, answer in reported:
            if answer == REPLY_COMMITTED and token not in done:
                return Failure(f"operation {token} was reported as committed and is not in the log")
            if answer == REPLY_FAILED and token in done:
                return Failure(f"operation {token} was reported as failed and is in the log")
        return None

    # --- numbers ------------------------------------------------------------------------------

    @always
    def sequential_sequence_numbers(self, log: Log) -> Failure | None:  # type: ignore[override]
        """Each snapshot's sequence number is greater than the one before it."""
        numbers = [
            version.sequence_number
            for entry, version in zip(log, view(log), strict=True)
            if entry.makes_snapshot
        ]
        if all(one < two for one, two in pairwise(numbers)):
            return None
        return Failure(f"sequence numbers are {numbers}")

    @always
    def snapshot_ids_name_one_version(self, log: Log) -> Failure | None:
        """No two snapshots of a view have the same id."""
        ids = [
            version.snapshot_id
            for entry, version in zip(log, view(log), strict=True)
            if entry.makes_snapshot
        ]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        return Failure(f"two versions have the snapshot id {twice[0]}") if twice else None

    @always
    def servers_show_the_same(self, published: Published) -> Failure | None:
        """Version, snapshot id and sequence number go together, whichever server is asked."""
        shown = sorted(published)
        for index, one in enumerate(shown):
            for other in shown[index + 1 :]:
                same = [a == b for a, b in zip(one, other, strict=True)]
                if any(same):
                    return Failure(
                        f"version {one[0]} is shown as snapshot {one[1]}, number {one[2]}, and"
                        f" version {other[0]} as snapshot {other[1]}, number {other[2]}",
                        {"shown": [one, other]},
                    )
                if one[2] >= other[2]:
                    return Failure(f"sequence numbers {one[2]} and {other[2]} do not increase")
        return None

    # --- both sides ---------------------------------------------------------------------------

    @always
    def consistent_read(self, log: Log) -> Failure | None:  # type: ignore[override]
        """Reading a row by its id gives what the history says; old versions never change."""
        return super().consistent_read(view(log))

    @always
    def both_faces_read_the_same(self, log: Log) -> Failure | None:
        """A scan of the Iceberg view and a scan of the Delta version give the same rows."""
        found = sorted(row for _, rows in self.scan(view(log)[-1]) for _, row in rows)
        return _same(len(log) - 1, found, delta_rows(log), "Delta")

    @always
    def translation_keeps_the_rows(self, log: Log) -> Failure | None:
        """A version reads as the metadata that its client built would have read."""
        meant = log[-1].meant
        return None if meant is None else _same(len(log) - 1, meant, delta_rows(log), "the log")

    @always
    def log_is_valid(self, log: Log) -> Failure | None:
        """An entry adds no path twice, and removes only what is there, with its vector."""
        entry, number = log[-1], len(log) - 1
        paths = [add.file.path for add in entry.adds]
        twice = sorted({path for path in paths if paths.count(path) > 1})
        if twice:
            return Failure(f"version {number} adds {twice[0]} twice, with different vectors")
        before = replay(log[:-1]) if number else {}
        for remove in entry.removes:
            if remove.path not in before or before[remove.path].vector != remove.vector:
                return Failure(f"version {number} removes {remove.path}, which is not as it was")
        return None

    @always
    def no_dangling_delete_files(self, log: Log) -> Failure | None:  # type: ignore[override]
        """Every position of every delete file of the view points to a data file of the view."""
        left = dangling(view(log)[-1])
        return Failure(f"version {len(log) - 1} deletes {left[0]}, which is gone") if left else None

    def dangling_deletes_hide_no_row(self, table: Any) -> Failure | None:
        """Not asked: no delete is ever dangling here."""
        raise NotImplementedError

    # --- in the end ---------------------------------------------------------------------------

    @eventually_always
    def operations_eventually_commit_or_abort(self, actors: tuple[Any, ...]) -> bool:
        """In the end everyone is idle."""
        return all(actor.state in (*IDLE, WAITING) for actor in actors)

    @eventually_always
    def every_outcome_is_told(self, reported: Reports, started: Started) -> bool:
        """In the end every operation that was started has a reported outcome."""
        return len(reported) == sum(started)

    def all_snapshots_committed(self, table: Any, aborted: Any) -> bool:
        """Not asked: an outcome may stay unknown."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class ServerReachability(ServerCommits):
    """The model with faults and a direct client, and what must be possible in it."""

    title: ClassVar[str] = "Iceberg commits through servers, with faults"

    @sometimes
    def a_lost_race_ends_in_a_commit(self, log: Log) -> bool:
        """A request is committed after a metadata change that came between."""
        return any(
            entry.key is not None and entry.key[1] < number - 1 for number, entry in enumerate(log)
        )

    @sometimes
    def an_unknown_outcome_was_a_commit(self, log: Log, reported: Reports) -> bool:
        """An operation whose outcome was reported as unknown is in the log."""
        done = _committed(log)
        return any(answer == REPLY_UNKNOWN and token in done for token, answer in reported)

    @sometimes
    def both_kinds_of_client_commit(self, log: Log) -> bool:
        """A snapshot of a direct client lies between two of Iceberg clients."""
        kinds = [entry.key is not None for entry in log[1:] if entry.makes_snapshot]
        return any(kinds[at : at + 3] == [True, False, True] for at in range(len(kinds)))


def _committed(log: Log) -> set[int]:
    return {entry.key[0] for entry in log if entry.key is not None}


def _same(version: int, iceberg: Iterable[Row], delta: Iterable[Row], side: str) -> Failure | None:
    one, other = list(iceberg), list(delta)
    if one == other:
        return None
    return Failure(
        f"version {version}: Iceberg reads {one}, {side} reads {other}",
        {"iceberg": one, "delta": other},
    )
