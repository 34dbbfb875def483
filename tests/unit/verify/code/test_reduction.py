"""Which interleavings are run: none is missed, and no two that are run are the same."""

from __future__ import annotations

import random

import pytest

from tests.support.scale import scale
from twinlake.verify.code.reduction import SearchPath
from twinlake.verify.code.storage_call import (
    NO_FOOTPRINT,
    FaultName,
    Footprint,
    StorageCall,
    are_dependent,
    footprint,
)

Program = tuple[tuple[StorageCall, ...], ...]
End = tuple[object, ...]

KEYS = ("a/1", "a/2", "b/1")


def programs(seed: int) -> Program:
    """Two or three actors with a few calls each on three keys."""
    chance = random.Random(seed)
    sizes = chance.choice(((4, 4), (3, 3), (2, 2, 2), (3, 2, 2), (1, 3, 3)))
    return tuple(tuple(some_call(chance) for _ in range(size)) for size in sizes)


def some_call(chance: random.Random) -> StorageCall:
    operation = chance.choice(("read", "put", "create", "delete", "list_from", "head"))
    if operation == "list_from":
        return StorageCall(operation, chance.choice("ab"), chance.choice(("", "a/1")))
    return StorageCall(operation, chance.choice(KEYS))


class Toy:
    """A store that notes what every actor sees."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.done = [0] * len(program)
        self.objects: dict[str, str] = {}
        self.seen: list[list[object]] = [[] for _ in program]
        self.made: list[tuple[int, int]] = []

    def enabled(self) -> dict[int, Footprint]:
        return {
            actor: footprint(calls[self.done[actor]])
            for actor, calls in enumerate(self.program)
            if self.done[actor] < len(calls)
        }

    def step(self, actor: int) -> None:
        call = self.program[actor][self.done[actor]]
        self.seen[actor].append(self.answer(call, f"{actor}.{self.done[actor]}"))
        self.made.append((actor, self.done[actor]))
        self.done[actor] += 1

    def answer(self, call: StorageCall, mark: str) -> object:
        match call.operation:
            case "list_from":
                below = [key for key in self.objects if key.startswith(f"{call.key}/")]
                return tuple(sorted(key for key in below if key > call.after))
            case "put":
                self.objects[call.key] = mark
                return None
            case "create":
                if call.key in self.objects:
                    return "taken"
                self.objects[call.key] = mark
                return "created"
            case "delete":
                self.objects.pop(call.key, None)
                return None
            case _:
                return self.objects.get(call.key)

    def end(self) -> End:
        return (tuple(sorted(self.objects.items())), *(tuple(seen) for seen in self.seen))

    def order(self) -> frozenset[tuple[tuple[int, int], tuple[int, int]]]:
        """The order of dependent calls, which is all that tells one run from another."""
        return frozenset(
            (one, other)
            for n, one in enumerate(self.made)
            for other in self.made[n + 1 :]
            if one[0] != other[0] and are_dependent(self.touched(one), self.touched(other))
        )

    def touched(self, made: tuple[int, int]) -> Footprint:
        return footprint(self.program[made[0]][made[1]])


def run_all(program: Program, *, reduce: bool) -> tuple[list[Toy], int]:
    path, ended, blocked = SearchPath(reduce=reduce), [], 0
    while True:
        toy = Toy(program)
        depth = 0
        while enabled := toy.enabled():
            actor = path.choose(depth, enabled)
            if actor is None:
                break
            toy.step(actor)
            depth += 1
        if toy.enabled():
            blocked += 1
        else:
            ended.append(toy)
        if not path.backtrack():
            return ended, blocked


@pytest.mark.parametrize("seed", range(scale(25, 400)))
def test_every_result_is_found_and_none_is_run_twice(seed: int) -> None:
    program = programs(seed)
    full, _ = run_all(program, reduce=False)
    reduced, _ = run_all(program, reduce=True)
    assert {toy.end() for toy in reduced} == {toy.end() for toy in full}
    classes = {toy.order() for toy in full}
    assert {toy.order() for toy in reduced} == classes
    assert len(reduced) == len(classes)


def test_independent_actors_are_run_once() -> None:
    program = tuple(
        tuple(StorageCall("put", f"{actor}/{n}") for n in range(20)) for actor in ("a", "b", "c")
    )
    ended, blocked = run_all(program, reduce=True)
    assert (len(ended), blocked) == (1, 0)


def test_code_that_does_not_repeat_itself_is_noticed() -> None:
    path = SearchPath()
    one, other = footprint(StorageCall("put", "a")), footprint(StorageCall("put", "b"))
    path.choose(0, {0: one, 1: one})
    path.choose(1, {1: one})
    assert path.backtrack()
    with pytest.raises(AssertionError, match="does not repeat itself"):
        path.choose(0, {0: one, 1: other})


@pytest.mark.parametrize(
    ("fault", "touches"),
    [
        (FaultName.ERROR, False),
        (FaultName.CRASH, False),
        (FaultName.LOST_REPLY, True),
        (None, True),
    ],
)
def test_a_call_that_fails_before_its_effect_touches_nothing(
    fault: FaultName | None, touches: bool
) -> None:
    assert (footprint(StorageCall("create", "a"), fault) != NO_FOOTPRINT) is touches


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (StorageCall("read", "a/1"), StorageCall("head", "a/1"), False),
        (StorageCall("read", "a/1"), StorageCall("create", "a/1"), True),
        (StorageCall("put", "a/1"), StorageCall("delete", "a/1"), True),
        (StorageCall("put", "a/1"), StorageCall("put", "a/2"), False),
        (StorageCall("list_from", "a"), StorageCall("create", "a/1"), True),
        (StorageCall("list_from", "a"), StorageCall("create", "ab/1"), False),
        (StorageCall("list_from", "a", "a/1"), StorageCall("create", "a/1"), False),
        (StorageCall("list_from", "a", "a/1"), StorageCall("create", "a/2"), True),
        (StorageCall("list_from", ""), StorageCall("delete", "a/2"), True),
        (StorageCall("list_from", "a"), StorageCall("list_from", "a"), False),
    ],
    ids=str,
)
def test_dependence(one: StorageCall, other: StorageCall, expected: bool) -> None:
    assert are_dependent(footprint(one), footprint(other)) is expected
    assert are_dependent(footprint(other), footprint(one)) is expected
