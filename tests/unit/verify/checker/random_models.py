"""Models drawn from a seed: what an action does is a table that nobody wrote.

Every declaration that a reduction rests on occurs: logs that start empty or not, parts of them
taken as frozen, compare-and-swaps, unfair and blind actions, actors of several roles that begin
alike or not, values of two classes that Python takes for equal, and interchangeable colours.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

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

__all__ = ["random_model"]

COLOURS = ("red", "blue")
CONTROLS = ("A", "B", "C", "D")
#: What the actions of a control state are like, as often as it is said.
KINDS = {
    "A": ("plain", "plain", "plain", "log", "log", "private"),
    "B": ("frozen", "frozen", "private", "plain"),
    "C": ("look", "log", "private", "frozen"),
    "D": ("swap", "swap", "plain", "frozen"),
}
#: How long the log may become.
LONGEST = 3


class Add(NamedTuple):
    colour: str


class Remove(NamedTuple):
    colour: str


class Here(NamedTuple):
    state: str
    at: int = -1
    held: Any = None


class There(NamedTuple):
    state: str
    at: int = -1
    held: Any = None


def random_model(seed: int) -> Model:
    """The model of a seed, always the same one."""
    chance = random.Random(seed)
    roles = tuple(
        Role(name=name, count=chance.choice((1, 2, 2)))
        for name in ("First", "Second")[: chance.choice((1, 1, 2))]
    )
    empty = chance.random() < 0.5
    starts = tuple(_start(chance, roles, empty=empty) for _ in range(chance.choice((1, 1, 1, 2))))
    members: dict[str, Any] = {
        "title": f"model {seed}",
        "append_only": ("log",),
        "only_grows": ("spent",),
        "roles": property(lambda _self: roles),
        "initial": lambda _self: iter(starts),
        "interchangeable": lambda _self: (COLOURS,),
        "lost": lambda _self, actor: actor._replace(state="A", at=-1),
    }
    for role in roles:
        # Most control states have one action: that is where moves are shared and fused.
        for control in CONTROLS:
            for number in range(chance.choice((0, 1, 1, 1, 2))):
                name = f"{role.name}{control}{number}"
                members[name] = _action(chance, f"{seed}:{name}", role, control)
    for number in range(chance.randint(2, 4)):
        members[f"property{number}"] = _property(chance, f"{seed}:p{number}")
    return type("RandomModel", (Model,), members)()  # type: ignore[no-any-return]


def _start(chance: random.Random, roles: tuple[Role, ...], *, empty: bool) -> InitialState:
    actors: list[Any] = []
    for role in roles:
        alike = chance.random() < 0.8
        first = Here(chance.choice("AAB"))
        actors += [first if alike else Here(chance.choice("AB")) for _ in range(role.count)]
    log = () if empty else (Add("red"),) if chance.random() < 0.2 else ("begin",)
    return InitialState({"log": log, "flag": 0, "spent": (0,)}, tuple(actors))


def _action(chance: random.Random, salt: str, role: Role, control: str) -> Callable[..., Any]:
    at = tuple(dict.fromkeys((control, chance.choice((control, control, *CONTROLS)))))
    kind = chance.choice(KINDS[control])
    blind = chance.random() < 0.3
    reads: list[str] = []
    writes: list[str] = []
    swap, frozen = None, {}
    if kind == "swap":
        reads, writes = ["log"], ["log"]
        swap = CompareAndSwap(variable="log", base="at", otherwise="lost")
    elif kind == "frozen":
        reads, frozen = ["log"], {"log": "at"}
    elif kind == "look":
        reads = ["log"]
    elif kind == "log":
        reads, writes = ["spent", "log"], ["spent", "log"]
    elif kind == "plain":
        reads = ["spent", *chance.sample(("log", "flag"), chance.choice((1, 1, 2)))]
        writes = ["spent", *(name for name in reads[1:] if chance.random() < 0.7)]
    body = _body(salt, reads, writes, blind=blind)
    return action(
        at=at,
        writes=writes,
        frozen=frozen,
        swap=swap,
        fair=chance.random() < 0.75,
        role=role.name,
        name=f"Step{salt}",
    )(_with_parameters(body, ["_actor" if blind else "actor", *reads]))


def _body(
    salt: str, reads: list[str], writes: list[str], *, blind: bool
) -> Callable[..., Iterator[Next]]:
    def run(_self: Model, actor: Any, *values: Any) -> Iterator[Next]:
        seen = (None if blind else actor, *values)
        named = dict(zip(reads, values, strict=True))
        spends = "spent" in writes
        if spends and named["spent"][0] >= 2:
            return
        names = _colours_in(seen)
        chance = random.Random(zlib.crc32(f"{salt}{_normal(seen)!r}".encode()))
        for _ in range(chance.choice((0, 1, 1, 2))):
            draw = chance.random(), chance.random(), chance.random(), chance.random()
            for colour in COLOURS if draw[0] < 0.25 or not names else names[:1]:
                yield _outcome(salt, draw, colour, named, writes)

    return run


def _outcome(
    salt: str,
    draw: tuple[float, float, float, float],
    colour: str,
    named: dict[str, Any],
    writes: list[str],
) -> Next:
    chance = random.Random(zlib.crc32(f"{salt}{draw}".encode()))
    log = named.get("log", ())
    at = chance.choice((-1, 0, 0, 1, len(log) - 1, len(log) - 1))
    held = chance.choice((None, None, 1, True, Add(colour), Remove(colour)))
    kind = Here if chance.random() < 0.8 else There
    changed: dict[str, Hashable] = {}
    if "spent" in writes:
        changed["spent"] = (named["spent"][0] + 1,)
    if "flag" in writes:
        changed["flag"] = chance.choice((0, 1, 2))
    if "log" in writes and len(log) < LONGEST and chance.random() < 0.8:
        entries = (Add(colour), Remove(colour), colour)
        changed["log"] = (*log, *chance.sample(entries, chance.choice((1, 1, 1, 2))))[:LONGEST]
    return Next(kind(chance.choice(CONTROLS), at, held), changed)


def _property(chance: random.Random, salt: str) -> Callable[..., Any]:
    reads = chance.choice(
        (["log"], ["flag"], ["log", "flag"], ["actor"], ["actors"], ["actors", "flag"])
    )
    mark = chance.choice((always, sometimes, eventually_always, eventually_always))
    rare = chance.choice((3, 10, 40))
    sides = chance.random() < 0.3

    def holds(_self: Model, *values: Any) -> Any:
        seen = tuple(
            tuple(sorted(value, key=repr)) if name == "actors" and not sides else value
            for name, value in zip(reads, values, strict=True)
        )
        # A property without sides is told neither which actor is which nor which colour.
        if not sides:
            seen = tuple(_shape(part) for part in seen)
        hit = zlib.crc32(f"{salt}{seen!r}".encode()) % rare == 0
        if mark is always:
            return Failure("drawn", {"seen": repr(seen)}) if hit else None
        return hit if mark is sometimes else not hit

    return mark(_with_parameters(holds, reads))


def _with_parameters(body: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
    """The same function with named parameters: a signature is a declaration."""
    given = ", ".join(names)
    made: dict[str, Any] = {"body": body}
    exec(f"def run(self, {given}): return body(self, {given})", made)
    run: Callable[..., Any] = made["run"]
    return run


def _colours_in(value: Any) -> list[str]:
    """The colours of a value in the order in which they occur in it."""
    if isinstance(value, tuple):
        return list(dict.fromkeys(one for part in value for one in _colours_in(part)))
    return [value] if value in COLOURS else []


def _normal(value: Any) -> Any:
    """A value with its colours called by the order in which they occur."""
    order = _colours_in(value)

    def renamed(part: Any) -> Any:
        if isinstance(part, tuple):
            parts = [renamed(one) for one in part]
            return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)
        return f"#{order.index(part)}" if part in COLOURS else part

    return renamed(value)


def _shape(value: Any) -> Any:
    """A value without its colours."""
    if isinstance(value, tuple):
        parts = [_shape(one) for one in value]
        parts = sorted(parts, key=repr) if value and isinstance(value[0], Here | There) else parts
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return "colour" if value in COLOURS else value
