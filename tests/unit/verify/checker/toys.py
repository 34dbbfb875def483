"""Small models that show one thing each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from twinlake.verify.checker import (
    CompareAndSwap,
    Failure,
    InitialState,
    Model,
    Next,
    Role,
    action,
    always,
    eventually_always,
    sometimes,
)


class At(NamedTuple):
    """A local value that is nothing but a place and a number."""

    state: str
    number: int = 0


@dataclass(frozen=True)
class Counter(Model):
    """Actors that add one to a shared counter: atomically, or by reading and writing."""

    title = "counter"
    only_grows = ("spent",)
    actors: int = 2
    atomic: bool = True
    rounds: int = 1

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Adder", count=self.actors),)

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"total": 0, "spent": (0,)}, (At("IDLE"),) * self.actors)

    @action(at="IDLE", writes=("total", "spent"))
    def add(self, actor: At, total: int, spent: tuple[int]) -> Iterator[Next]:
        if actor.number == self.rounds:
            return
        done = {"spent": (spent[0] + 1,)}
        if self.atomic:
            yield Next(At("IDLE", actor.number + 1), {"total": total + 1, **done}, {"by": 1})
        else:
            yield Next(At("HOLDS", actor.number * 1000 + total), done)

    @action(at="HOLDS", writes=("total",))
    def write_back(self, actor: At, total: int) -> Iterator[Next]:
        done, held = divmod(actor.number, 1000)
        yield Next(At("IDLE", done + 1), {"total": held + 1})

    @eventually_always
    def nothing_is_lost(self, total: int) -> bool:
        return total == self.actors * self.rounds

    @sometimes
    def total_is_two(self, total: int) -> bool:
        return total == 2


@dataclass(frozen=True)
class Lamp(Model):
    """A lamp that is switched on and off for ever, and a person who may leave."""

    title = "lamp"
    fair_leaving: bool = True

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Person"),)

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"lit": False}, (At("ROOM"),))

    @action(at="ROOM", writes=("lit",))
    def switch(self, _actor: At, lit: bool) -> Iterator[Next]:
        yield Next(At("ROOM"), {"lit": not lit})

    @action(at="ROOM", name="Leave")
    def leave_if_fair(self, _actor: At) -> Iterator[Next]:
        if self.fair_leaving:
            yield Next(At("GONE"))

    @action(at="ROOM", name="LeaveMaybe", fair=False)
    def leave_if_unfair(self, _actor: At) -> Iterator[Next]:
        if not self.fair_leaving:
            yield Next(At("GONE"))

    @eventually_always
    def everybody_left(self, actors: tuple[At, ...]) -> bool:
        return actors[0].state == "GONE"


@dataclass(frozen=True)
class Register(Model):
    """Actors that append to a register by compare-and-swap, after private preparations."""

    title = "register"
    append_only = ("entries",)
    actors: int = 3
    limit: int = 4
    look_at_actors: bool = False

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Appender", count=self.actors),)

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"entries": ("first",)}, (Appender("IDLE"),) * self.actors)

    @action(at="IDLE")
    def begin(self, _actor: Appender) -> Iterator[Next]:
        yield Next(Appender("DRAFT"))

    @action(at="DRAFT")
    def draft(self, actor: Appender) -> Iterator[Next]:
        for word in ("a", "b"):
            yield Next(actor._replace(state="BUILD", word=word))

    @action(at="BUILD")
    def build(self, actor: Appender, entries: tuple[str, ...]) -> Iterator[Next]:
        if len(entries) < self.limit:
            yield Next(actor._replace(state="SWAP", base=len(entries) - 1))

    @action(
        at="SWAP",
        writes=("entries",),
        swap=CompareAndSwap(variable="entries", base="base", otherwise="again"),
    )
    def append(self, actor: Appender, entries: tuple[str, ...]) -> Iterator[Next]:
        yield Next(Appender("DONE"), {"entries": (*entries, actor.word)})

    def again(self, actor: Appender) -> Appender:
        return actor._replace(state="BUILD", base=-1)

    @always
    def never_three_alike(self, entries: tuple[str, ...]) -> Failure | None:
        if entries[-3:] == ("b", "b", "b"):
            return Failure("three b in a row", {"entries": entries})
        return None


class Appender(NamedTuple):
    state: str
    word: str = ""
    base: int = -1


class WatchedRegister(Register):
    """The same with a property that looks at all actors at once."""

    @always
    def someone_is_not_drafting(self, actors: tuple[Appender, ...]) -> Failure | None:
        if all(actor.state == "BUILD" for actor in actors):
            return Failure("all build at once")
        return None
