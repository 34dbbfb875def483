"""The checker itself, on small models."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tests.unit.verify.checker.toys import Appender, At, Counter, Lamp, Register, WatchedRegister
from twinlake.verify import Result, check
from twinlake.verify.checker import (
    Failure,
    InitialState,
    Model,
    ModelError,
    Next,
    Progress,
    Role,
    ScheduledStep,
    action,
    always,
    explore,
    run_schedule,
    search,
    state_space,
    walk,
)
from twinlake.verify.checker.number_table import NumberTable


def test_atomic_counter_loses_nothing() -> None:
    result = check(Counter(actors=3, rounds=2))
    # Each actor is at 0, 1 or 2; the total follows.
    assert result.states == 27
    assert result.generated == 1 + 3 * 18
    assert result.depth == 7
    assert result.ok
    assert result.verdicts == {"NothingIsLost": "holds", "TotalIsTwo": "reached"}
    assert result.unreached == ("WriteBack",)


def test_symmetry_counts_interchangeable_actors_once() -> None:
    result = check(Counter(actors=3, rounds=2), symmetry=True)
    # Multisets of three numbers out of 0, 1, 2.
    assert result.states == 10
    assert result.ok


@pytest.mark.parametrize("actors", [2, 3, 4])
def test_symmetry_has_one_state_for_each_orbit(actors: int) -> None:
    model = Counter(actors=actors, atomic=False)
    space, found = explore(model)
    orbits = {
        (space.layout.shared(state), tuple(sorted(space.layout.actors(state))))
        for level in found.levels
        for state in level
    }
    assert check(model, symmetry=True, stop_at_first=False).states == len(orbits)


def test_lost_update_is_found_with_a_shortest_trace() -> None:
    result = check(Counter(atomic=False))
    assert result.violated == "NothingIsLost"
    assert result.trace is not None
    assert [(step.actor, step.action) for step in result.trace.steps] == [
        ("adder-0", "Add"),
        ("adder-1", "Add"),
        ("adder-0", "WriteBack"),
        ("adder-1", "WriteBack"),
    ]
    assert result.trace.shared["total"] == 1
    assert result.verdicts["NothingIsLost"] == "violated"


def test_what_is_never_reached_is_said() -> None:
    result = check(Counter(actors=1))
    assert result.verdicts["TotalIsTwo"] == "not reached"
    assert not result.ok


def test_cycle_breaks_a_lasting_property_unless_fairness_ends_it() -> None:
    assert check(Lamp(fair_leaving=True)).verdicts["EverybodyLeft"] == "holds"
    unfair = check(Lamp(fair_leaving=False))
    assert unfair.verdicts["EverybodyLeft"] == "violated"
    assert unfair.violated == "EverybodyLeft"
    assert unfair.trace is not None
    assert not unfair.ok


def test_fields_widen_when_a_variable_takes_many_values() -> None:
    # More than 4,096 local values and more totals than four bits hold.
    result = check(Counter(actors=1, rounds=5000))
    assert result.states == 5001
    assert result.verdicts["NothingIsLost"] == "holds"
    reached = check(Counter(actors=2, rounds=90))
    assert reached.states == 91 * 91


def test_search_stops_at_the_limit_and_says_so() -> None:
    result = check(Counter(actors=2, rounds=50), max_states=100)
    assert not result.complete
    assert not result.ok
    assert 100 <= result.states < 51 * 51
    assert result.verdicts["NothingIsLost"] == "not checked"


def test_progress_is_told_level_by_level() -> None:
    lines: list[Progress] = []
    result = check(Counter(actors=2, rounds=3), on_progress=lines.append)
    assert [one.depth for one in lines] == list(range(1, result.depth + 1))
    assert lines[-1].states == result.states
    assert "states" in str(lines[-1])


def test_result_is_json() -> None:
    told = json.loads(json.dumps(check(Counter(atomic=False)).to_dict()))
    assert told["ok"] is False
    assert told["trace"][0]["action"] == "Add"
    assert told["trace"][2]["changes"] == {"total": {"from": 0, "to": 1}}
    assert told["trace"][3]["changes"] == {}


# --- reductions -------------------------------------------------------------------------------


def reachable_entries(model: Model, **options: bool) -> set[Any]:
    symmetry, reduction = options.get("symmetry", False), options.get("reduction", False)
    space, found = explore(model, symmetry=symmetry, reduction=reduction)
    return {space.shared_values(state)["entries"] for level in found.levels for state in level}


@pytest.mark.parametrize("actors", [1, 2, 3])
def test_private_steps_and_swaps_are_fused_without_losing_anything(actors: int) -> None:
    model = Register(actors=actors)
    full = check(model, stop_at_first=False)
    reduced = check(model, reduction=True, stop_at_first=False)
    both = check(model, reduction=True, symmetry=True, stop_at_first=False)
    assert reduced.verdicts == full.verdicts == both.verdicts
    assert both.states <= reduced.states < full.states
    wanted = reachable_entries(model)
    assert reachable_entries(model, reduction=True) == wanted
    assert reachable_entries(model, reduction=True, symmetry=True) == wanted
    assert reduced.unreached == full.unreached == ()


def test_trace_of_fused_steps_is_told_in_full() -> None:
    model = Register(actors=3)
    full, reduced = check(model), check(model, reduction=True, symmetry=True)
    assert full.violated == reduced.violated == "NeverThreeAlike"
    assert full.trace is not None
    assert reduced.trace is not None
    assert len(full.trace) == len(reduced.trace) == 12
    assert reduced.trace.moves == 6


def test_property_that_looks_at_all_actors_switches_fusing_off() -> None:
    model = WatchedRegister(actors=3)
    full = check(model, stop_at_first=False)
    reduced = check(model, reduction=True, stop_at_first=False)
    assert reduced.states == full.states
    assert full.verdicts["SomeoneIsNotDrafting"] == "violated"


@dataclass(frozen=True)
class PeekedRegister(Register):
    """A register whose drafts are announced: drafting is no longer private."""

    def initial(self) -> Iterator[InitialState]:
        for start in super().initial():
            yield InitialState({**start.shared, "announced": 0}, start.actors)

    @action(at="DRAFT", writes=("announced",))
    def draft(  # type: ignore[override]
        self, actor: Any, announced: int
    ) -> Iterator[Next]:
        yield Next(actor._replace(state="BUILD", word="a"), {"announced": announced + 1})


def test_step_that_others_can_see_is_not_fused() -> None:
    model = PeekedRegister(actors=2)
    space, _ = explore(model, reduction=True)
    drafting = Appender("DRAFT")
    assert not space.is_private(0, drafting, space.starts[0].shared)  # type: ignore[attr-defined]
    plain, _ = explore(Register(actors=2), reduction=True)
    assert plain.is_private(0, drafting, plain.starts[0].shared)  # type: ignore[attr-defined]


# --- what a model may not do ------------------------------------------------------------------


@dataclass(frozen=True)
class Wrong(Model):
    title = "wrong"
    append_only = ("entries",)
    only_grows = ("spent",)
    how: str = ""

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Actor"),)

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"entries": ("a",), "spent": (1,), "other": 0}, (At("IDLE"),))

    @action(at="IDLE", writes=("entries", "spent"))
    def go(self, _actor: At, entries: tuple[str, ...], spent: tuple[int]) -> Iterator[Next]:
        wrong: dict[str, Any] = {
            "undeclared": {"other": 1},
            "rewrites": {"entries": ("b",)},
            "shrinks": {"spent": (0,)},
        }
        yield Next(At("DONE"), wrong[self.how])


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("undeclared", "Go sets 'other' but does not declare that it writes it"),
        ("rewrites", "Go changes 'entries', which may only be appended to"),
        ("shrinks", "Go makes 'spent' smaller, which may only grow"),
    ],
)
def test_declarations_are_enforced(how: str, text: str) -> None:
    with pytest.raises(ModelError, match=text):
        check(Wrong(how=how))


class Unknown(Wrong):
    @action(at="IDLE")
    def go(self, _actor: At, nowhere: int) -> Iterator[Next]:  # type: ignore[override]
        yield Next(At("DONE"))


def test_action_that_reads_an_unknown_variable_is_refused() -> None:
    with pytest.raises(ModelError, match="Go names 'nowhere'"):
        check(Unknown())


def test_unknown_property_to_leave_out_is_refused() -> None:
    with pytest.raises(ModelError, match="'Nothing' is no property of counter"):
        check(Counter(), without=("Nothing",))


class PerActor(Counter):
    @always
    def no_actor_adds_twice(self, actor: At) -> Failure | None:
        return Failure("twice", {"number": actor.number}) if actor.number == 2 else None


@pytest.mark.parametrize("symmetry", [False, True])
def test_property_of_one_actor_is_judged_once_for_each_local_value(symmetry: bool) -> None:
    result = check(PerActor(actors=2, rounds=2), symmetry=symmetry)
    assert result.violated == "NoActorAddsTwice"
    assert result.trace is not None
    assert len(result.trace) == 2
    assert check(PerActor(actors=3, rounds=1), symmetry=symmetry).violated is None


# --- following a schedule -----------------------------------------------------------------------


def test_schedule_is_followed_or_refused() -> None:
    steps = [ScheduledStep("adder-0", "Add"), ScheduledStep("adder-1", "Add")]
    followed = run_schedule(Counter(atomic=False), steps)
    assert [step.action for step in followed.trace.steps] == ["Add", "Add"]
    with pytest.raises(ModelError, match="step 3: adder-0 cannot take Add"):
        run_schedule(Counter(atomic=False), [*steps, ScheduledStep("adder-0", "Add")])
    with pytest.raises(ModelError, match="there is no actor 'adder-7'"):
        run_schedule(Counter(), [ScheduledStep("adder-7", "Add")])


def test_checker_imports_nothing_else_of_ours() -> None:
    code = (
        "import sys, twinlake; before = set(sys.modules); import twinlake.verify.checker;"
        "print(*(name for name in set(sys.modules) - before if name.startswith('twinlake.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = done.stdout.split()
    assert "twinlake.verify.checker.search" in loaded
    assert {name for name in loaded if not name.startswith("twinlake.verify.checker.")} == {
        "twinlake.verify",
        "twinlake.verify.checker",
    }


# --- the other engine, and walks ----------------------------------------------------------------


@pytest.mark.parametrize("symmetry", [False, True])
@pytest.mark.parametrize(
    "model",
    [Counter(actors=3, rounds=3), Counter(actors=4, atomic=False), Register(actors=3)],
    ids=["counter", "lost updates", "register"],
)
def test_columns_find_what_the_loop_finds(model: Model, symmetry: bool) -> None:
    loop, columns = (
        check(model, symmetry=symmetry, stop_at_first=False, engine=engine)
        for engine in ("loop", "columns")
    )
    assert (loop.options["engine"], columns.options["engine"]) == ("loop", "columns")
    assert _without_engine(loop) == _without_engine(columns)


def _without_engine(result: Result) -> dict[str, Any]:
    found = result.to_dict()
    for name in ("cpu_seconds", "memory_bytes"):
        del found[name]
    del found["options"]["engine"]
    return found


def test_large_levels_are_expanded_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Counter(actors=4, rounds=2, atomic=False)
    loop = check(model, stop_at_first=False)
    assert loop.options["engine"] == "loop"
    # Half way: what the loop has seen is known to the columns, and the trace is the same.
    monkeypatch.setattr(search, "LARGE_LEVEL", 100)
    both = check(model, stop_at_first=False)
    assert both.options["engine"] == "columns"
    assert _without_engine(both) == _without_engine(loop)


def test_columns_follow_fields_that_widen() -> None:
    model = Counter(actors=2, rounds=90)
    assert check(model, engine="columns").states == 91 * 91


def test_states_too_wide_for_a_column_are_taken_one_by_one() -> None:
    model = Counter(actors=6, rounds=1)
    result = check(model, engine="columns")
    assert result.options["engine"] == "loop"
    assert result.states == 2**6


def test_columns_end_where_states_become_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    real = search.Search._expander_of

    def noted(self: search.Search, level: Any) -> Any:
        expander = real(self, level)
        taken.append(self.engine_used)
        return expander

    monkeypatch.setattr(search.Search, "_expander_of", noted)
    # 60 bits of actors, and three of a number that comes to need a fourth: that makes 64.
    monkeypatch.setattr(state_space, "SHARED_BITS", 1)
    model = Counter(actors=5, rounds=2)
    result = check(model, stop_at_first=False, engine="columns")
    assert (taken[0], taken[-1]) == ("columns", "loop")
    assert result.states == 3**5
    assert _without_engine(result) == _without_engine(
        check(model, stop_at_first=False, engine="loop")
    )


def test_unknown_engine_is_refused() -> None:
    with pytest.raises(ModelError, match="auto, loop, columns"):
        check(Counter(), engine="quantum")


# --- the set of states that were seen -----------------------------------------------------------


@pytest.mark.parametrize("spread", [1, 1 << 40, 0x9E3779B97F4A7C15 >> 1])
def test_a_table_of_numbers_is_a_set(spread: int) -> None:
    drawn = np.random.default_rng(7).integers(0, 20_000, 60_000) * spread % (1 << 62)
    table, known = NumberTable(), set[int]()
    for at in range(0, len(drawn), 5_000):
        part = drawn[at : at + 5_000]
        first = []
        for one in part.tolist():
            first.append(one not in known)
            known.add(one)
        assert table.add(part).tolist() == first
        assert table.count == len(known)
    absent = [one for one in range(0, 1 << 62, 1 << 48) if one not in known]
    assert (table.find(np.array(absent)) == -1).all()
    places = table.find(np.array(sorted(known)))
    assert len(set(places.tolist())) == len(known)
    assert (places >= 0).all()


def test_of_many_equal_numbers_the_first_is_new() -> None:
    table = NumberTable()
    assert np.flatnonzero(table.add(np.full(50_000, 3))).tolist() == [0]
    assert not table.add(np.full(50_000, 3)).any()


def test_walk_finds_the_lost_update_and_repeats_itself() -> None:
    model = Counter(actors=3, atomic=False, rounds=2)
    first, second = walk(model, seed=7, walks=50), walk(model, seed=7, walks=50)
    assert first.violated == "NothingIsLost"
    assert not first.complete
    assert not first.ok
    assert first.trace is not None
    assert second.trace is not None
    assert first.trace.to_list() == second.trace.to_list()
    assert len(first.trace) == 12


def test_walk_that_finds_nothing_proves_nothing() -> None:
    result = walk(Counter(actors=3, rounds=2), seed=1, walks=5)
    assert result.violated is None
    assert result.verdicts == {"NothingIsLost": "not checked", "TotalIsTwo": "reached"}
    assert not result.ok
