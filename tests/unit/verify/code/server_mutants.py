"""The mistakes of servers and clients that the models have, put into the shipped code.

Each replaces names of the commit path while it is applied. Whatever a mistake has to remember it
keeps by thread: an actor has one of its own in every run.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from twinlake.commit import CommitOptions
from twinlake.errors import Code, ConflictError, UserError
from twinlake.storage import Unknown
from twinlake.verify.code import (
    FaultName,
    PlacedFault,
    Schedule,
    explore,
    find_workload,
    replay,
    sample,
)
from twinlake.verify.code.client_data import AnswerKind
from twinlake.verify.code.server.iceberg_client import CommitAnswer
from twinlake.verify.models.server import mutants

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from twinlake.iceberg.format import TableMetadata
    from twinlake.storage import CreateOutcome, Store
    from twinlake.verify.code import Exploration, Workload
    from twinlake.verify.code.client_data import SentRequest
    from twinlake.verify.code.server.iceberg_client import IcebergClient

__all__ = ["SERVER_MUTANTS", "ServerMutant"]

_COMMITS: Final = "twinlake.table.iceberg_commits"
_CLIENT: Final = "twinlake.verify.code.server.iceberg_client:IcebergClient"
_MEMORY: Final = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMutant:
    """A mistake: what it replaces, and where the explorer finds it."""

    name: str
    """As the models call it."""
    patches: tuple[tuple[str, Callable[[Any], Any]], ...]
    """Names of the shipped code, each with a function from what is there to what replaces it."""
    workload: str
    finds: frozenset[str]
    """The properties that may be broken first."""
    loses_reply: bool = False
    """Whether it takes a lost reply to the commit of the first server."""

    def find(self, *, runs: int = 100) -> Exploration:
        """Make the mistake, and look for it by random schedules, or by all with the one fault."""
        workload = find_workload(self.workload)
        if not self.loses_reply:
            with self.applied():
                return sample(workload, runs=runs, faults=0)
        lost = PlacedFault(0, _commit_call(workload), FaultName.LOST_REPLY)
        with self.applied():
            return explore(workload, faults=(lost,))

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Make the mistake for a while."""
        undone = []
        try:
            for target, replacement in self.patches:
                path, _, name = target.rpartition(".")
                owner = resolve_name(path)
                real = owner.__dict__[name]
                undone.append((owner, name, real))
                setattr(owner, name, replacement(real))
            yield
        finally:
            for owner, name, real in reversed(undone):
                setattr(owner, name, real)


def _commit_call(workload: Workload) -> int:
    """Which call of the first actor creates the commit, if it runs alone."""
    alone = replay(Schedule(workload, (0,)))
    return next(step.number for step in alone.trace.steps if step.action == "create")


# Servers


def _retry_as_delta_does(_real: Any) -> Callable[..., CommitOptions]:
    """After a lost race the next version is tried as soon as Delta's conflict rules allow it."""

    def options(**given: Any) -> CommitOptions:
        given.pop("max_attempts")
        return CommitOptions(**given)

    return options


def _remember_state(real: Callable[..., Any]) -> Callable[..., Any]:
    def load_state(*given: Any) -> Any:
        state = real(*given)
        _MEMORY.before = getattr(_MEMORY, "now", state)
        _MEMORY.now = state
        return state

    return load_state


def _check_what_was_loaded_before(real: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def failed_requirements(requirements: Iterable[Any], _table: TableMetadata) -> list[str]:
        return real(requirements, _MEMORY.before.table_metadata)

    return failed_requirements


def _count(_real: Any) -> Callable[..., int]:
    """Snapshots are numbered as this server comes across them."""

    def recorded_id(*_log: Any) -> int:
        if not hasattr(_MEMORY, "numbers"):
            _MEMORY.numbers = count(1)
        number: int = next(_MEMORY.numbers)
        return number

    return recorded_id


def _keep_last_vector(real: Callable[..., Any]) -> Callable[..., Any]:
    """One vector for each delete file, so that the last of them counts."""

    def read_deletes(deletes: Iterable[Any], *given: Any, **more: Any) -> Any:
        found: dict[str, Any] = {}
        for one in deletes:
            found |= real([one], *given, **more)
        return found

    return read_deletes


def _know_nothing(_real: Any) -> Callable[..., bool]:
    return lambda *_request: False


def _look_once(real: Callable[..., bool]) -> Callable[..., bool]:
    """The log is asked for the request when it comes, and not again after a lost race."""

    def is_committed(identity: Any, *given: Any) -> bool:
        if getattr(_MEMORY, "asked", None) is identity:
            return False
        _MEMORY.asked = identity
        return real(identity, *given)

    return is_committed


def _give_up(real: Callable[..., Any]) -> Callable[..., Any]:
    """No answer of the store is taken for a failure."""

    def write_commit(store: Store, key: str, body: bytes, **ports: Any) -> Any:
        first = store.create(key, body)
        if isinstance(first, Unknown):
            raise _conflict()
        return real(_AnsweredStore(store, first), key, body, **ports)

    return write_commit


class _AnsweredStore:
    """A store that has been asked to create a commit already."""

    def __init__(self, store: Store, answer: CreateOutcome) -> None:
        self._store = store
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def create(self, _key: str, _body: bytes) -> CreateOutcome:
        return self._answer


def _refuse_as_conflict(real: Callable[..., Any]) -> Callable[..., Any]:
    def commit(*given: Any) -> Any:
        try:
            return real(*given)
        except UserError as error:
            raise _conflict() from error

    return commit


def _conflict() -> ConflictError:
    return ConflictError(
        Code.CONFLICT_REQUIREMENT, "The commit was not made.", fix="Refresh and commit again."
    )


# Clients


def _start_over(_real: Any) -> Callable[..., CommitAnswer]:
    """No answer came, so nothing has happened: a new snapshot with new files."""

    def send_again(client: IcebergClient, _request: SentRequest) -> CommitAnswer:
        client.draw_snapshot_id()
        return CommitAnswer(AnswerKind.CONFLICT, error=_conflict())

    return send_again


def _take_for_failure(_real: Any) -> Callable[..., UserError]:
    def not_found(_client: IcebergClient, request: SentRequest) -> UserError:
        return UserError(
            Code.INVALID_ARGUMENT,
            f"The snapshot {request.snapshot_id} was not committed.",
            fix="Commit it again.",
        )

    return not_found


_ONCE: Final = frozenset({"CommittedMeansOnce", "CommittedAtMostOnce"})
_NOT_AT_ALL: Final = frozenset({"FailedMeansNotAtAll"})
_LOOP: Final = f"{_COMMITS}.commit_loop"
_IDENTITY: Final = f"{_COMMITS}.previous_commit:RequestIdentity"

SERVER_MUTANTS: Final = (
    ServerMutant(
        name=mutants.RETRIES_PUT,
        patches=((f"{_LOOP}.CommitOptions", _retry_as_delta_does),),
        workload="client-append",
        finds=frozenset({"RequirementsHeld"}),
    ),
    ServerMutant(
        name=mutants.CACHED_VIEW,
        patches=(
            (f"{_LOOP}.load_state", _remember_state),
            (f"{_LOOP}.failed_requirements", _check_what_was_loaded_before),
        ),
        workload="client-schema",
        finds=frozenset({"RequirementsHeld"}),
    ),
    ServerMutant(
        name=mutants.LOCAL_IDS,
        patches=(("twinlake.iceberg.sync.log_reader.recorded_id", _count),),
        workload="clients",
        finds=frozenset({"SnapshotIdsAgree", *_ONCE}),
    ),
    ServerMutant(
        name=mutants.TWO_VECTORS,
        patches=((f"{_COMMITS}.translation.read_deletes", _keep_last_vector),),
        workload="client-two-vectors",
        finds=frozenset({"ConsistentRead"}),
    ),
    ServerMutant(
        name=mutants.NO_KEY,
        patches=((f"{_IDENTITY}._is_key_used", _know_nothing),),
        workload="column-twice",
        finds=_NOT_AT_ALL,
    ),
    ServerMutant(
        name=mutants.FORGETS_KEY,
        patches=((f"{_IDENTITY}.is_committed", _look_once),),
        workload="request-twice",
        finds=_NOT_AT_ALL,
    ),
    ServerMutant(
        name=mutants.RESENDS,
        patches=((f"{_CLIENT}.send_again", _start_over),),
        workload="client-resend",
        finds=_ONCE,
    ),
    ServerMutant(
        name=mutants.UNKNOWN_IS_FAILURE,
        patches=((f"{_CLIENT}.not_found", _take_for_failure),),
        workload="request-late",
        finds=_NOT_AT_ALL,
    ),
    ServerMutant(
        name=mutants.SERVER_GIVES_UP,
        patches=(("twinlake.commit.transaction.write_commit", _give_up),),
        workload="request-twice",
        finds=_NOT_AT_ALL,
        loses_reply=True,
    ),
    ServerMutant(
        name=mutants.REFUSES_AS_CONFLICT,
        patches=((f"{_LOOP}:IcebergCommits.commit", _refuse_as_conflict),),
        workload="client-gone-file",
        finds=frozenset({"RefusalIsNoConflict"}),
    ),
)
"""One for each mutant of ``models.server``."""
