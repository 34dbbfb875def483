"""Two tables committed together: nobody may see the one without the other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, NamedTuple

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
from twinlake.verify.models.mutation import MutantModel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["AT_ONCE", "ONE_BY_ONE", "RECHECKED", "MultiTableTransaction"]

#: Mutants: the catalog checks the requirements on the first table only; it swaps the registers
#: one after the other; it commits to those tables whose requirements hold.
CHECKS_FIRST_TABLE, SWAPS_ONE_BY_ONE = "checks-first-table", "swaps-one-by-one"
APPLIES_WHAT_IT_CAN = "applies-what-it-can"

#: How a reader loads both tables: in one look; one after the other, starting over if the first
#: has moved on meanwhile; or one after the other and nothing more.
AT_ONCE, RECHECKED, ONE_BY_ONE = READINGS = ("at once", "rechecked", "one by one")

IDLE, READ_FIRST, COMMIT, SWAP_SECOND = "IDLE", "READ_FIRST", "COMMIT", "SWAP_SECOND"
SAW_FIRST, SAW_BOTH, DONE = "SAW_FIRST", "SAW_BOTH", "DONE"
BOTH, FIRST, SECOND = "both", "first", "second"

#: The operations of a version: ``both 1`` is number 1 and went to both tables.
Tokens = tuple[str, ...]
#: The committed versions of one table.
Versions = tuple[Tokens, ...]
#: How many operations have started, and how many have failed.
Counts = tuple[int, int]


class _Actor(NamedTuple):
    """A writer with an operation, or a reader with what it has seen."""

    state: str = IDLE
    token: str = ""
    #: The versions that were loaded: what a writer requires, what a reader shows.
    first: Versions = ()
    second: Versions = ()


@dataclass(frozen=True, kw_only=True)
class MultiTableTransaction(MutantModel):
    """Transactions on two tables and operations on one, through one catalog."""

    title: ClassVar[str] = "Two tables in one transaction"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        CHECKS_FIRST_TABLE,
        SWAPS_ONE_BY_ONE,
        APPLIES_WHAT_IT_CAN,
    )
    append_only: ClassVar[tuple[str, ...]] = ("first", "second")
    only_grows: ClassVar[tuple[str, ...]] = ("counts",)

    writers: int = 2
    readers: int = 1
    reading: str = AT_ONCE
    max_ops: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reading not in READINGS:
            raise ModelError(f"reading={self.reading!r} is none of {', '.join(READINGS)}")

    @property
    def roles(self) -> tuple[Role, ...]:
        """Writers and readers; the catalog does nothing of itself."""
        return (Role(name="Writer", count=self.writers), Role(name="Reader", count=self.readers))

    def initial(self) -> Iterator[InitialState]:
        """Two empty tables."""
        shared: dict[str, Hashable] = {"first": ((),), "second": ((),), "counts": (0, 0)}
        yield InitialState(shared, (_Actor(),) * (self.writers + self.readers))

    # --- writers ----------------------------------------------------------------------------------

    @action(role="Writer", at=IDLE, writes=("counts",))
    def start(self, _writer: _Actor, first: Versions, counts: Counts) -> Iterator[Next]:
        """Choose the tables to write to, and load the first."""
        if counts[0] < self.max_ops:
            for target in (BOTH, FIRST, SECOND):
                opened = _Actor(READ_FIRST, f"{target} {counts[0] + 1}", first)
                after = {"counts": (counts[0] + 1, counts[1])}
                yield Next(opened, after, {"operation": opened.token})

    @action(role="Writer", at=READ_FIRST)
    def load_second(self, writer: _Actor, second: Versions) -> Iterator[Next]:
        """Load the second table."""
        yield Next(writer._replace(state=COMMIT, second=second))

    @action(role="Writer", at=COMMIT, writes=("first", "second"))
    def commit(self, writer: _Actor, first: Versions, second: Versions) -> Iterator[Next]:
        """Commit to all tables of the operation if every requirement on them holds."""
        checks = self._requirements(writer, first, second)
        after = self._after(writer, first, second)
        if all(check.passed for check in checks):
            if self.mutant == SWAPS_ONE_BY_ONE and len(after) == 2:
                swapped = {"first": after["first"]}
                yield Next(writer._replace(state=SWAP_SECOND), swapped, checks=checks)
            else:
                yield Next(_Actor(), after, {"operation": writer.token}, checks)
        elif self.mutant == APPLIES_WHAT_IT_CAN and any(check.passed for check in checks):
            held = {check.name.split()[0] for check in checks if check.passed}
            able = {name: value for name, value in after.items() if name in held}
            yield Next(_Actor(), able, {"operation": writer.token}, checks)

    @action(role="Writer", at=COMMIT, writes=("counts",), name="Commit (requirement fails)")
    def fail(
        self, writer: _Actor, first: Versions, second: Versions, counts: Counts
    ) -> Iterator[Next]:
        """Give up: a table has moved on since it was loaded."""
        checks = self._requirements(writer, first, second)
        partly = self.mutant == APPLIES_WHAT_IT_CAN and any(check.passed for check in checks)
        if not all(check.passed for check in checks) and not partly:
            yield Next(_Actor(), {"counts": (counts[0], counts[1] + 1)}, checks=checks)

    @action(role="Writer", at=SWAP_SECOND, writes=("second",))
    def swap_second(self, writer: _Actor, second: Versions) -> Iterator[Next]:
        """The second half of a commit that is not atomic."""
        yield Next(_Actor(), {"second": (*second, (*second[-1], writer.token))})

    def _requirements(
        self, writer: _Actor, first: Versions, second: Versions
    ) -> tuple[ActionCheck, ...]:
        target = writer.token.split()[0]
        checks: list[ActionCheck] = []
        if target != SECOND:
            checks.append(ActionCheck("first table is as loaded", first == writer.first))
        if target == SECOND or (target == BOTH and self.mutant != CHECKS_FIRST_TABLE):
            checks.append(ActionCheck("second table is as loaded", second == writer.second))
        return tuple(checks)

    def _after(self, writer: _Actor, first: Versions, second: Versions) -> dict[str, Hashable]:
        """The tables with a version more, which holds what the writer loaded and its own."""
        target = writer.token.split()[0]
        after: dict[str, Hashable] = {}
        if target != SECOND:
            after["first"] = (*first, (*writer.first[-1], writer.token))
        if target != FIRST:
            after["second"] = (*second, (*writer.second[-1], writer.token))
        return after

    # --- readers ----------------------------------------------------------------------------------

    @action(role="Reader", at=(IDLE, DONE))
    def open_tables(self, _reader: _Actor, first: Versions, second: Versions) -> Iterator[Next]:
        """Load the first table, or both where the catalog can show them in one look."""
        if self.reading == AT_ONCE:
            yield Next(_Actor(DONE, "", first, second))
        else:
            yield Next(_Actor(SAW_FIRST, "", first))

    @action(role="Reader", at=SAW_FIRST)
    def open_second(self, reader: _Actor, second: Versions) -> Iterator[Next]:
        """Load the second table."""
        state = SAW_BOTH if self.reading == RECHECKED else DONE
        yield Next(reader._replace(state=state, second=second))

    @action(role="Reader", at=SAW_BOTH)
    def look_again(self, reader: _Actor, first: Versions) -> Iterator[Next]:
        """Has the first table moved on? Then load both once more."""
        same = first == reader.first
        yield Next(reader._replace(state=DONE) if same else _Actor(), arguments={"same": same})

    # --- what must hold ---------------------------------------------------------------------------

    @always
    def nobody_sees_half_a_transaction(self, actor: _Actor) -> Failure | None:
        """A reader that has loaded both tables finds a transaction in both or in neither."""
        if actor.state != DONE:
            return None
        seen = [
            {token for token in versions[-1] if token.startswith(BOTH)}
            for versions in (actor.first, actor.second)
        ]
        half = sorted(seen[0] ^ seen[1])
        return Failure(f"a reader sees {half[0]!r} in one table only") if half else None

    @always
    def no_commit_is_lost(self, first: Versions, second: Versions) -> Failure | None:
        """A version holds all that the version before it holds."""
        for name, versions in ((FIRST, first), (SECOND, second)):
            for number, (before, after) in enumerate(pairwise(versions), 1):
                lost = [token for token in before if token not in after]
                if lost:
                    return Failure(f"version {number} of the {name} table has lost {lost[0]!r}")
        return None

    @eventually_always
    def everything_ends(self, first: Versions, second: Versions, counts: Counts) -> bool:
        """In the end every operation has committed or failed."""
        done = {*first[-1], *second[-1]}
        return len(done) + counts[1] == counts[0] == self.max_ops
