"""Publishing settles every outcome that a store can leave open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinlake.commit.commit_write import CommitWritten, Lost, write_commit
from twinlake.errors import Code, CommitUnknown, StorageError
from twinlake.runtime import RandomIds
from twinlake.storage import (
    Conflict,
    Fault,
    MemoryStore,
    SimulatedCrash,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.storage import CreateOutcome

KEY = "_delta_log/00000000000000000007.json"
OURS = b'{"commitInfo":{"txnId":"ours"}}\n'
RIVAL = b'{"commitInfo":{"txnId":"rival"}}\n'


def always_failing(operation: str, key: str, nth: int) -> Fault:
    return Fault.before()


class RecordingClock:
    """Sleeps in no time and remembers how long it should have been."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now_ms(self) -> int:
        return 0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Scripted(MemoryStore):
    """Answers creates by a script of actions on the real contents; then behaves."""

    def __init__(self, *script: Callable[[MemoryStore], CreateOutcome]) -> None:
        super().__init__()
        self.script = list(script)

    def create(self, key: str, data: bytes) -> CreateOutcome:
        if self.script:
            return self.script.pop(0)(self)
        return super().create(key, data)


def run(
    store: MemoryStore, *, attempts: int = 8, clock: RecordingClock | None = None
) -> CommitWritten | Lost:
    return write_commit(
        store,
        KEY,
        OURS,
        clock=clock or RecordingClock(),
        ids=RandomIds(1),
        attempts=attempts,
        commit_id="ours",
    )


def test_the_plain_case_takes_one_call() -> None:
    clock = RecordingClock()
    store = MemoryStore()
    assert run(store, clock=clock) == CommitWritten(attempts=1)
    assert store.read(KEY) == OURS
    assert clock.slept == []


def test_a_rival_that_was_first_wins() -> None:
    store = MemoryStore()
    store.put(KEY, RIVAL)
    assert run(store) == Lost(winner=RIVAL, attempts=1)


FAULTS = [
    pytest.param([("create", 1, Fault.before())], CommitWritten(attempts=2), id="no effect"),
    pytest.param(
        [("create", 1, Fault.after())], CommitWritten(attempts=1, read_back=True), id="reply lost"
    ),
    pytest.param(
        [("create", 1, Fault.after()), ("read", 1, Fault.before())],
        CommitWritten(attempts=2, read_back=True),
        id="reply lost, then the first look fails",
    ),
    pytest.param(
        [("create", 1, Fault.before()), ("read", 1, Fault.before()), ("create", 2, Fault.after())],
        CommitWritten(attempts=2, read_back=True),
        id="everything fails once",
    ),
]


@pytest.mark.parametrize(("faults", "expected"), FAULTS)
def test_faults_without_a_rival(
    faults: list[tuple[str, int, Fault]], expected: CommitWritten
) -> None:
    store = MemoryStore(faults=faults)  # type: ignore[arg-type]
    assert run(store) == expected
    assert store.snapshot() == ((KEY, OURS),)


@pytest.mark.parametrize(("faults", "expected"), FAULTS)
def test_faults_with_a_rival_already_there(
    faults: list[tuple[str, int, Fault]], expected: CommitWritten
) -> None:
    del expected
    store = MemoryStore()
    store.put(KEY, RIVAL)
    store.set_faults(faults)  # type: ignore[arg-type]
    result = run(store)
    assert isinstance(result, Lost)
    assert result.winner == RIVAL
    assert store.snapshot() == ((KEY, RIVAL),)


def test_a_conflict_with_nothing_there_is_tried_again() -> None:
    store = Scripted(lambda _: Conflict(), lambda _: Conflict())
    assert run(store) == CommitWritten(attempts=3)


def test_a_conflict_with_our_own_bytes_is_our_success() -> None:
    def retried_by_the_library(store: MemoryStore) -> CreateOutcome:
        store.put(KEY, OURS)
        return Conflict()

    assert run(Scripted(retried_by_the_library)) == CommitWritten(attempts=1, read_back=True)


def test_a_rival_that_comes_between_two_attempts_wins() -> None:
    def rival_lands(store: MemoryStore) -> CreateOutcome:
        store.put(KEY, RIVAL)
        return Unknown("reply lost")

    store = Scripted(lambda _: Unknown("no effect"), rival_lands)
    assert run(store) == Lost(winner=RIVAL, attempts=2)


def test_our_own_late_write_is_recognised() -> None:
    late: list[MemoryStore] = []

    def delayed(store: MemoryStore) -> CreateOutcome:
        late.append(store)
        return Unknown("timed out")

    def lands_before_the_second(store: MemoryStore) -> CreateOutcome:
        late.pop().put(KEY, OURS)
        return Conflict()

    assert run(Scripted(delayed, lands_before_the_second)) == CommitWritten(
        attempts=2, read_back=True
    )


def test_giving_up_names_the_key_and_the_commit() -> None:
    clock = RecordingClock()
    store = MemoryStore(faults=always_failing)
    with pytest.raises(CommitUnknown) as caught:
        run(store, attempts=8, clock=clock)
    error = caught.value
    assert error.code is Code.COMMIT_UNKNOWN
    assert error.fields["key"] == KEY
    assert error.fields["commit_id"] == "ours"
    assert KEY in error.what
    assert "ours" in error.what
    assert "ours" in error.fix
    assert len(clock.slept) == 7
    assert all(0.025 <= pause <= 2 for pause in clock.slept)
    assert sum(clock.slept) < 6


def test_without_an_id_the_digest_of_the_body_stands_in() -> None:
    store = MemoryStore(faults=always_failing)
    with pytest.raises(CommitUnknown, match="sha256:"):
        write_commit(store, KEY, OURS, clock=RecordingClock(), ids=RandomIds(1), attempts=2)


REFUSAL = StorageError(Code.STORAGE, "Could not create.", why="the disk is full", fix="free space")


def refuse(_: MemoryStore) -> CreateOutcome:
    return Unknown("refused", REFUSAL)


def refuse_loudly(_: MemoryStore) -> CreateOutcome:
    raise REFUSAL


@pytest.mark.parametrize("refusing", [refuse, refuse_loudly])
def test_a_store_that_refuses_from_the_start_is_believed_at_once(
    refusing: Callable[[MemoryStore], CreateOutcome],
) -> None:
    clock = RecordingClock()
    with pytest.raises(StorageError) as caught:
        run(Scripted(refusing), clock=clock)
    assert caught.value is REFUSAL
    assert clock.slept == []


@pytest.mark.parametrize("refusing", [refuse, refuse_loudly])
def test_a_refusal_after_an_unknown_outcome_proves_nothing(
    refusing: Callable[[MemoryStore], CreateOutcome],
) -> None:
    store = Scripted(lambda _: Unknown("timed out"), *[refusing] * 9)
    with pytest.raises(CommitUnknown):
        run(store)
    # ... and once the store takes writes again, the commit is placed after all.
    assert run(Scripted(lambda _: Unknown("timed out"), refusing)) == CommitWritten(attempts=3)


@pytest.mark.parametrize("keep", [0, 5, len(OURS) - 1])
def test_a_torn_create_is_reported_as_a_broken_store(keep: int) -> None:
    store = MemoryStore(faults=[("create", 1, Fault.torn(keep))])
    with pytest.raises(StorageError, match="not atomic") as caught:
        run(store)
    assert caught.value.fields["kept"] == keep


@pytest.mark.parametrize("fault", [Fault.crash_before(), Fault.crash_after()])
def test_a_crash_is_not_survived(fault: Fault) -> None:
    store = MemoryStore(faults=[("create", 1, fault)])
    with pytest.raises(SimulatedCrash):
        run(store)


CREATE_FAULTS = st.sampled_from([None, Fault.before(), Fault.after()])
READ_FAULTS = st.sampled_from([None, Fault.before()])


@given(
    st.lists(CREATE_FAULTS, max_size=6),
    st.lists(READ_FAULTS, max_size=6),
    st.integers(0, 6),
)
def test_whatever_fails_the_answer_is_the_truth(
    creates: list[Fault | None], reads: list[Fault | None], rival_at: int
) -> None:
    """The answer names what is under the key; a rival comes before the n-th create, 0: never."""
    scripts = {"create": creates, "read": reads}
    store = MemoryStore()

    def plan(operation: str, key: str, nth: int) -> Fault | None:
        if operation == "create" and nth == rival_at and key not in dict(store.snapshot()):
            store._store(key, RIVAL)
        script = scripts.get(operation, [])
        return script[nth - 1] if nth <= len(script) else None

    store.set_faults(plan)
    result = run(store)
    held = dict(store.snapshot())[KEY]
    assert held == (OURS if isinstance(result, CommitWritten) else RIVAL)
    if isinstance(result, Lost):
        assert result.winner == RIVAL
