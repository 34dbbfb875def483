"""Models on which a careless checker answers wrongly: each is checked against its right answer."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import pytest

from tests.support.naive_search import naive_search
from tests.unit.verify.checker.two_phase_commit import TwoPhaseCommit
from twinlake.verify import Result, check, walk
from twinlake.verify.checker import (
    CompareAndSwap,
    Failure,
    InitialState,
    Model,
    ModelError,
    Next,
    Role,
    action,
    always,
    eventually_always,
    sometimes,
)
from twinlake.verify.models import IcebergV2

ENGINES = ("loop", "columns")


class Local(NamedTuple):
    state: str
    held: Any = None
    at: int = -1


class Pair(Model):
    """Two actors in state GO, unless a model says otherwise."""

    count: ClassVar[int] = 2

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Actor", count=self.count),)

    def initial(self) -> Iterator[InitialState]:
        yield InitialState(self.begins(), (Local("GO"),) * self.count)

    def begins(self) -> dict[str, Hashable]:
        return {"x": 0}


def agrees(model: Model, **options: Any) -> Result:
    """Check a model in every way there is; each must say what the naive search says."""
    states, verdicts = naive_search(model)
    for engine, symmetry, reduction in itertools.product(ENGINES, (False, True), (False, True)):
        result = check(
            model,
            engine=engine,
            symmetry=symmetry,
            reduction=reduction,
            stop_at_first=False,
            **options,
        )
        how = f"{engine}, symmetry={symmetry}, reduction={reduction}"
        for name, verdict in verdicts.items():
            assert result.verdicts[name] in (verdict, "not checked"), f"{name}: {how}"
        if not (symmetry or reduction or options):
            assert result.states == states, how
    return check(model, **options)


# --- append-only variables that start empty -----------------------------------------------------


class Mailbox(Pair):
    """One actor posts a letter, the other reads the first one: two letters, two outcomes."""

    append_only = ("letters",)

    def begins(self) -> dict[str, Hashable]:
        return {"letters": ()}

    @action(at="GO", writes=("letters",))
    def post(self, _actor: Local, letters: tuple[str, ...]) -> Iterator[Next]:
        if not letters:
            yield Next(Local("READ", at=0), {"letters": ("a",)})
            yield Next(Local("READ", at=0), {"letters": ("b",)})

    @action(at="READ", frozen={"letters": "at"})
    def read(self, actor: Local, letters: tuple[str, ...]) -> Iterator[Next]:
        yield Next(Local("DONE", letters[0]))

    @always
    def nobody_reads_a(self, actor: Local) -> Failure | None:
        return Failure("a") if actor.held == "a" else None

    @always
    def nobody_reads_b(self, actor: Local) -> Failure | None:
        return Failure("b") if actor.held == "b" else None


class EarlyReader(Mailbox):
    """A reader that may see nothing yet: its index is -1."""

    @action(at="GO", name="Peek")
    def peek(self, _actor: Local) -> Iterator[Next]:
        yield Next(Local("READ_NOTHING", at=-1))

    @action(at="READ_NOTHING", frozen={"letters": "at"})
    def read_nothing(self, actor: Local, letters: tuple[str, ...]) -> Iterator[Next]:
        yield Next(Local("DONE", letters))

    @always
    def nothing_is_nothing(self, actor: Local) -> Failure | None:
        return Failure("saw more") if actor.held not in (None, (), "a", "b") else None


class HastyReader(Mailbox):
    """A reader whose index lies beyond the end: what it sees is not frozen yet."""

    @action(at="GO", name="Peek")
    def peek(self, _actor: Local) -> Iterator[Next]:
        yield Next(Local("READ_SOON", at=0))

    @action(at="READ_SOON", frozen={"letters": "at"})
    def read_soon(self, actor: Local, letters: tuple[str, ...]) -> Iterator[Next]:
        yield Next(Local("DONE", letters))

    @sometimes
    def sees_nothing(self, actor: Local) -> bool:
        return bool(actor.held == ())

    @sometimes
    def sees_a(self, actor: Local) -> bool:
        return bool(actor.held == ("a",))


@pytest.mark.parametrize("model", [Mailbox(), EarlyReader(), HastyReader()])
def test_frozen_parts_of_a_log_that_starts_empty(model: Model) -> None:
    agrees(model)


# --- fairness -----------------------------------------------------------------------------------


class Sleeper(Pair):
    """An actor that need not go on: it may sleep for ever."""

    wakes_by: ClassVar[bool] = False
    count = 1

    @action(at="GO", fair=False)
    def wake(self, _actor: Local) -> Iterator[Next]:
        yield Next(Local("AWAKE"))

    @eventually_always
    def everybody_is_awake(self, actors: tuple[Local, ...]) -> bool:
        return all(one.state == "AWAKE" for one in actors)


class Sleepers(Sleeper):
    """Two of them, of which one is woken by a fair step that comes first."""

    count = 2

    @action(at="GO", writes=("x",), name="Alarm")
    def alarm(self, _actor: Local, x: int) -> Iterator[Next]:
        if x == 0:
            yield Next(Local("AWAKE"), {"x": 1})


class PrivateSleeper(Sleeper):
    """It sleeps in a state that nobody else sees, which a reduction would pass over."""

    @action(at="GO", fair=True, writes=("x",), name="LieDown")
    def wake(  # type: ignore[override]
        self, _actor: Local, x: int
    ) -> Iterator[Next]:
        yield Next(Local("BED"), {"x": x + 1})

    @action(at="BED", fair=False)
    def rise(self, _actor: Local) -> Iterator[Next]:
        yield Next(Local("AWAKE"))


class SwapSleeper(Sleeper):
    """It sleeps between looking at a register and an unfair compare-and-swap."""

    append_only = ("x",)

    def begins(self) -> dict[str, Hashable]:
        return {"x": ("first",)}

    @action(at="GO", name="Look")
    def wake(  # type: ignore[override]
        self, actor: Local, x: tuple[str, ...]
    ) -> Iterator[Next]:
        yield Next(Local("SWAP", at=len(x) - 1))

    @action(
        at="SWAP",
        writes=("x",),
        fair=False,
        swap=CompareAndSwap(variable="x", base="at", otherwise="again"),
    )
    def swap(self, _actor: Local, x: tuple[str, ...]) -> Iterator[Next]:
        yield Next(Local("AWAKE"), {"x": (*x, "more")})

    def again(self, actor: Local) -> Local:
        return Local("GO")


@pytest.mark.parametrize("model", [Sleeper(), Sleepers(), PrivateSleeper(), SwapSleeper()])
def test_a_run_may_stay_where_only_unfair_steps_lead_out(model: Model) -> None:
    result = agrees(model)
    assert result.violated == "EverybodyIsAwake"
    assert result.trace is not None
    assert walk(model, seed=1).violated == "EverybodyIsAwake"


def test_the_message_says_that_the_run_stays() -> None:
    (violation,) = check(Sleeper()).violations
    assert violation.message == (
        "EverybodyIsAwake is false in a state that no fair action leaves: a run may stay there"
    )


# --- values -------------------------------------------------------------------------------------


class Add(NamedTuple):
    name: str


class Remove(NamedTuple):
    name: str


class Log(Pair):
    """Values that Python takes for equal and a reader does not."""

    append_only = ("log",)
    entries: ClassVar[tuple[Hashable, ...]] = (Add("f"), Remove("f"))

    def begins(self) -> dict[str, Hashable]:
        return {"log": ()}

    @action(at="GO", writes=("log",))
    def write(self, _actor: Local, log: tuple[Any, ...]) -> Iterator[Next]:
        for entry in self.entries:
            yield Next(Local("DONE", entry), {"log": (*log, entry)})

    @sometimes
    def last_is_the_second(self, log: tuple[Any, ...]) -> bool:
        return repr(log[-1:]) == repr(self.entries[1:])

    @sometimes
    def someone_holds_the_second(self, actor: Local) -> bool:
        return repr(actor.held) == repr(self.entries[1])


class NumberLog(Log):
    entries = (1, True)


class NestedLog(Log):
    entries = (((Add("f"), 1),), ((Remove("f"), 1),))


class SetLog(Log):
    entries = (frozenset({Add("f"), Add("g")}), frozenset({Add("f"), Remove("g")}))


class FractionLog(Log):
    entries = (0, 0.0)


@pytest.mark.parametrize("kind", [Log, NumberLog, NestedLog, SetLog, FractionLog])
def test_values_of_different_types_are_different_values(kind: type[Log]) -> None:
    result = agrees(kind())
    assert result.verdicts == {"LastIsTheSecond": "reached", "SomeoneHoldsTheSecond": "reached"}
    assert result.states == 11


class Rewriting(Log):
    """It turns an entry into one that is equal in Python, which an append-only log forbids."""

    @action(at="DONE", writes=("log",))
    def rewrite(self, _actor: Local, log: tuple[Any, ...]) -> Iterator[Next]:
        yield Next(Local("END"), {"log": (Remove("f"), *log[1:])})


def test_a_rewritten_entry_is_not_an_append() -> None:
    with pytest.raises(ModelError, match="may only be appended to"):
        check(Rewriting())


@dataclass(frozen=True)
class Holder:
    """A local value that is a dataclass."""

    state: str
    colours: tuple[str, ...] = ()


class Colours(Model):
    """Actors that pick colours; a colour is as good as any other."""

    colours: ClassVar[tuple[str, ...]] = ("red", "blue")

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Actor", count=2),)

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"first": None}, (Holder("GO"),) * 2)

    def interchangeable(self) -> tuple[tuple[Hashable, ...], ...]:
        return (self.colours,)

    @action(at="GO", writes=("first",))
    def pick(self, actor: Holder, first: str | None) -> Iterator[Next]:
        for colour in self.colours:
            picked = replace(actor, state="DONE", colours=(colour,))
            yield Next(picked, {"first": first or colour})

    @always
    def some_pick_another(self, actor: Holder, /) -> Failure | None:
        return None

    @always
    def first_is_not_given(self, first: str | None) -> Failure | None:
        return Failure("given", {"first": first}) if first else None


def test_a_dataclass_is_renamed_field_by_field() -> None:
    result = check(Colours(), value_symmetry=True)
    assert result.violated == "FirstIsNotGiven"
    assert result.trace is not None
    assert len(result.trace) == 1
    assert result.trace.steps[0].actor_changes == {"colours": {"from": (), "to": ("red",)}}
    everything = check(Colours(), value_symmetry=True, stop_at_first=False)
    # Nobody has picked; one has; both have: the same colour, or the first or second was first.
    assert everything.states == 1 + 2 + 3


class Opaque:
    """A value that nobody can look into."""

    state = "GO"


class OpaqueColours(Colours):
    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"first": None}, (Opaque(), Holder("GO")))


def test_a_value_that_cannot_be_renamed_is_refused() -> None:
    with pytest.raises(ModelError, match=r"values of type Opaque.*value_symmetry"):
        check(OpaqueColours(), value_symmetry=True)


def test_violations_survive_a_wider_layout() -> None:
    model = IcebergV2(max_write_ops=4)
    # It stopped inside: violations kept the numbers of the layout in which they were found.
    by_engine = [
        check(model, stop_at_first=False, symmetry=True, reduction=True, engine=engine)
        for engine in ENGINES
    ]
    loop, columns = by_engine
    assert loop.violated == columns.violated == "ConsistentRead"
    assert loop.states == columns.states
    assert loop.violating_states == columns.violating_states
    assert loop.trace is not None
    assert columns.trace is not None
    assert len(loop.trace) == len(columns.trace)


# --- contracts ----------------------------------------------------------------------------------


class ShrinkingSwap(Pair):
    """A compare-and-swap on a variable that may shrink cannot see that it was changed."""

    def begins(self) -> dict[str, Hashable]:
        return {"x": ("first",)}

    @action(
        at="GO",
        writes=("x",),
        swap=CompareAndSwap(variable="x", base="at", otherwise="again"),
    )
    def swap(self, _actor: Local, x: tuple[str, ...]) -> Iterator[Next]:
        yield Next(Local("DONE"), {"x": ()})

    def again(self, actor: Local) -> Local:
        return actor


class Misspelt(Pair):
    @action(at="GO", role="Writer")
    def go(self, _actor: Local) -> Iterator[Next]:
        yield Next(Local("DONE"))


class UnknownRead(Pair):
    @always
    def fine(self, y: int) -> Failure | None:
        return None


class NoOtherwise(ShrinkingSwap):
    append_only = ("x",)
    again = None  # type: ignore[assignment]


class Unhashable(Pair):
    def begins(self) -> dict[str, Hashable]:
        return {"x": []}  # type: ignore[dict-item]


class OtherVariables(Pair):
    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"x": 0}, (Local("GO"),) * 2)
        yield InitialState({"y": 0}, (Local("GO"),) * 2)


class TooFewActors(Pair):
    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"x": 0}, (Local("GO"),))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (ShrinkingSwap(), r"Swap compares 'x', which is not append-only.*append_only"),
        (Misspelt(), r"Go is of role 'Writer'.*Actor"),
        (UnknownRead(), r"Fine reads 'y', which is no variable.*x"),
        (NoOtherwise(), r"Swap goes on with 'again', which is no method"),
        (Unhashable(), r"'x' has the value \[\].*unhashable"),
        (OtherVariables(), r"initial states.*same variables"),
        (TooFewActors(), r"1 local values.*2 actors"),
    ],
)
def test_a_broken_contract_is_refused_before_the_search(model: Model, reason: str) -> None:
    told: list[object] = []
    with pytest.raises(ModelError, match=reason):
        check(model, on_progress=told.append)
    assert told == []


class GrowingPast(Pair):
    only_grows = ("x",)

    def begins(self) -> dict[str, Hashable]:
        return {"x": (0,)}

    @action(at="GO", writes=("x",))
    def widen(self, _actor: Local, x: tuple[int, ...]) -> Iterator[Next]:
        yield Next(Local("DONE"), {"x": (*x, 1)})


def test_what_only_grows_keeps_its_length() -> None:
    with pytest.raises(ModelError, match="Widen gives 'x' another length"):
        check(GrowingPast())


class Named(Pair):
    """Properties that name one actor, or one value: a symmetry must not hide what they say."""

    @action(at="GO", writes=("x",))
    def win(self, _actor: Local, x: int) -> Iterator[Next]:
        yield Next(Local("WON" if x == 0 else "LOST"), {"x": 1})

    @always
    def the_second_loses(self, actors: tuple[Local, ...]) -> Failure | None:
        return Failure("it won") if actors[1].state == "WON" else None

    @always
    def the_first_loses(self, actors: tuple[Local, ...]) -> Failure | None:
        return Failure("it won") if actors[0].state == "WON" else None

    @sometimes
    def the_first_loses_after_all(self, actors: tuple[Local, ...]) -> bool:
        return actors[0].state == "LOST"


class NamedInTheEnd(Named):
    @eventually_always
    def the_first_wins(self, actors: tuple[Local, ...]) -> bool:
        return actors[0].state == "WON"

    @eventually_always
    def the_second_wins(self, actors: tuple[Local, ...]) -> bool:
        return actors[1].state == "WON"


class TellsIdleApart(Pair):
    """Idle is idle to every action, and not to its lasting property."""

    @action(at="GO", writes=("x",))
    def go(self, _actor: Local, x: int) -> Iterator[Next]:
        yield Next(Local("FAILED" if x else "DONE"), {"x": min(x + 1, 2)})

    @action(at=("DONE", "FAILED"), writes=("x",))
    def rest(self, _actor: Local, x: int) -> Iterator[Next]:
        if x < 2:
            yield Next(Local("DONE"), {"x": 2})

    @eventually_always
    def all_are_done(self, actors: tuple[Local, ...]) -> bool:
        return all(one.state == "DONE" for one in actors)


@pytest.mark.parametrize("model", [Named(), NamedInTheEnd(), TellsIdleApart()])
def test_a_symmetry_hides_nothing_from_a_property_that_tells_actors_apart(model: Model) -> None:
    agrees(model)
    result = check(model, symmetry=True, stop_at_first=False)
    assert result.options["given_up"], "what was not used must be said"


class OneColour(Colours):
    """A property that names a colour."""

    first_is_not_given = None  # type: ignore[assignment]

    @always
    def never_blue(self, first: str | None) -> Failure | None:
        return Failure("blue") if first == "blue" else None

    @always
    def never_red(self, first: str | None) -> Failure | None:
        return Failure("red") if first == "red" else None

    @sometimes
    def somebody_holds_blue(self, actor: Holder) -> bool:
        return "blue" in actor.colours


def test_a_property_that_names_a_value_is_seen_under_value_symmetry() -> None:
    result = check(OneColour(), value_symmetry=True, stop_at_first=False)
    assert result.verdicts["NeverBlue"] == result.verdicts["NeverRed"] == "violated"
    assert result.verdicts["SomebodyHoldsBlue"] == "reached"
    assert result.options["given_up"]


class SwapReader(Pair):
    """Blind to its local value but for the index that a compare-and-swap compares."""

    append_only = ("x",)

    def begins(self) -> dict[str, Hashable]:
        return {"x": ("first",)}

    @action(at="GO", name="Look")
    def look(self, _actor: Local, x: tuple[str, ...]) -> Iterator[Next]:
        yield Next(Local("SWAP", at=len(x) - 1))
        yield Next(Local("SWAP", at=len(x)))

    @action(
        at="SWAP",
        writes=("x",),
        swap=CompareAndSwap(variable="x", base="at", otherwise="again"),
    )
    def swap(self, _actor: Local, x: tuple[str, ...]) -> Iterator[Next]:
        yield Next(Local("DONE"), {"x": (*x, "more")})

    def again(self, actor: Local) -> Local:
        return Local("LOST")

    @sometimes
    def somebody_loses_alone(self, actors: tuple[Local, ...]) -> bool:
        return sorted(one.state for one in actors) == ["GO", "LOST"]

    @sometimes
    def three_entries(self, x: tuple[str, ...]) -> bool:
        return len(x) == 3


class QuietSwapReader(SwapReader):
    """The same without a property of all actors: alike local values are merged."""

    somebody_loses_alone = None  # type: ignore[assignment]

    @sometimes
    def somebody_loses(self, actor: Local) -> bool:
        return actor.state == "LOST"


@pytest.mark.parametrize("model", [SwapReader(), QuietSwapReader()])
def test_local_values_are_not_alike_if_a_swap_compares_them(model: Model) -> None:
    agrees(model)


class LongPrivatePath(Pair):
    """Two thousand steps that nobody sees, taken at once by the reduction."""

    count = 1

    @action(at="GO")
    def go(self, actor: Local) -> Iterator[Next]:
        yield Next(Local("GO", at=actor.at + 1) if actor.at < 2000 else Local("DONE"))


def test_a_long_private_path_is_no_deep_recursion() -> None:
    assert check(LongPrivatePath(), reduction=True).ok


class Unequal(Pair):
    """Actors of one role that begin differently keep their own names in a trace."""

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"x": 0}, (Local("WAIT"), Local("GO")))

    @action(at="GO", writes=("x",))
    def go(self, _actor: Local, x: int) -> Iterator[Next]:
        yield Next(Local("DONE"), {"x": x + 1})

    @always
    def nothing_happens(self, x: int) -> Failure | None:
        return Failure("it did") if x else None


def test_a_trace_names_the_actor_that_moved() -> None:
    result = check(Unequal())
    assert result.trace is not None
    assert [step.actor for step in result.trace.steps] == ["actor-1"]
    assert result.trace.actors[1].state == "DONE"


def test_a_property_is_not_asked_in_every_order_of_many_different_actors() -> None:
    # Eight that all differ have 40,320 orders, in each of thousands of states: it did not end.
    result = check(TwoPhaseCommit(participants=7), symmetry=True)
    assert result.ok
    assert "too many different actors" in result.options["given_up"][0]
    assert check(TwoPhaseCommit(participants=3), symmetry=True).options["given_up"] == ()
