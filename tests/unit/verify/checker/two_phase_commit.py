"""Two-phase commit: a model written from the how-to alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from twinlake.verify import (
    Failure,
    InitialState,
    Model,
    Next,
    Role,
    action,
    always,
    eventually,
    sometimes,
)

NAMES = tuple("abcdefg")


class Coordinator(NamedTuple):
    state: str = "WAITS"


class Participant(NamedTuple):
    name: str
    state: str = "WORKS"


@dataclass(frozen=True)
class TwoPhaseCommit(Model):
    """A coordinator collects votes and decides; participants follow, and it may crash."""

    title = "two-phase commit"
    participants: int = 3
    crashes: bool = False
    impatient: bool = False

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Coordinator"), Role(name="Participant", count=self.participants))

    def initial(self) -> Iterator[InitialState]:
        members = tuple(Participant(name) for name in NAMES[: self.participants])
        nothing: frozenset[str] = frozenset()
        yield InitialState(
            {"yes": nothing, "no": nothing, "decision": ""}, (Coordinator(), *members)
        )

    @action(role="Participant", at="WORKS", writes=("yes", "no"))
    def vote(self, actor: Participant, yes: frozenset[str], no: frozenset[str]) -> Iterator[Next]:
        yield Next(actor._replace(state="READY"), {"yes": yes | {actor.name}})
        yield Next(actor._replace(state="ABORTED"), {"no": no | {actor.name}})

    @action(role="Coordinator", at="WAITS", writes=("decision",))
    def decide(self, actor: Coordinator, yes: frozenset[str], no: frozenset[str]) -> Iterator[Next]:
        if no:
            yield Next(Coordinator("DECIDED"), {"decision": "abort"})
        elif len(yes) == self.participants or (self.impatient and yes):
            yield Next(Coordinator("DECIDED"), {"decision": "commit"})

    @action(role="Coordinator", at="WAITS", fair=False)
    def crash(self, actor: Coordinator) -> Iterator[Next]:
        if self.crashes:
            yield Next(Coordinator("CRASHED"))

    @action(role="Participant", at="READY")
    def learn(self, actor: Participant, decision: str) -> Iterator[Next]:
        if decision:
            state = "COMMITTED" if decision == "commit" else "ABORTED"
            yield Next(actor._replace(state=state))

    @always
    def all_agree(self, actors: tuple[Coordinator | Participant, ...]) -> Failure | None:
        states = {actor.state for actor in actors}
        if {"COMMITTED", "ABORTED"} <= states:
            return Failure("one has committed, another has aborted", {"states": sorted(states)})
        return None

    @sometimes
    def commit_is_possible(self, decision: str) -> bool:
        return decision == "commit"

    @sometimes
    def abort_is_possible(self, decision: str) -> bool:
        return decision == "abort"

    @eventually
    def everybody_knows(self, actors: tuple[Coordinator | Participant, ...]) -> bool:
        return all(one.state in ("COMMITTED", "ABORTED") for one in actors[1:])
