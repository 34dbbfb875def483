"""A search that is nothing but its definition, slow: it shares no code with the checker."""

from __future__ import annotations

from inspect import signature
from typing import Any


def exact(value: Any) -> Any:
    """A value with the types of all its parts: equal in Python need not be the same."""
    if isinstance(value, frozenset):
        return type(value), frozenset(map(exact, value))
    return type(value), tuple(map(exact, value)) if isinstance(value, tuple) else value


def marked(model: Any, mark: str) -> list[tuple[str, Any, Any]]:
    kind, names = type(model), {n: n for one in type(model).__mro__ for n in vars(one)}
    found = [(n, getattr(model, n), getattr(getattr(kind, n), mark, None)) for n in names]
    return [one for one in found if one[2]]


def successors(model: Any, shared: Any, actors: Any) -> list[Any]:
    found, owners = [], [role.name for role in model.roles for _ in range(role.count)]
    for who, me in enumerate(actors):
        for name, run, act in marked(model, "__verify_action__"):
            if (act.role or owners[0]) != owners[who] or me.state not in act.at:
                continue
            seen = {k: v[: max(getattr(me, act.frozen[k]) + 1, 0)] if k in act.frozen else v
                    for k, v in shared.items()}  # fmt: skip
            if act.swap and len(shared[act.swap.variable]) != getattr(me, act.swap.base) + 1:
                ways: Any = [(getattr(model, act.swap.otherwise)(me), {})]
            else:
                read = [seen[k] for k in list(signature(run).parameters)[1:]]
                ways = [(one.actor, one.shared) for one in run(me, *read)]
            for to, changed in ways:
                after = ({**shared, **changed}, (*actors[:who], to, *actors[who + 1 :]))
                found.append(((who, name) if act.fair else None, after))
    return found


def naive_search(model: Any, most: float = float("inf")) -> tuple[int, dict[str, str]]:
    """How many states there are, and one word a property (none if there are too many states)."""
    starts = [(dict(one.shared), one.actors) for one in model.initial()]
    states = {exact((tuple(one[0].items()), one[1])): one for one in starts}
    graph: dict[Any, list[Any]] = {}
    for key in (todo := list(states)):
        graph[key] = []
        if len(states) > most:
            return len(states), {}
        for by, after in successors(model, *states[key]):
            graph[key].append((by, to := exact((tuple(after[0].items()), after[1]))))
            if states.setdefault(to, after) is after:
                todo.append(to)
    verdicts = {}
    for name, judge, kind in marked(model, "__verify_property__"):
        true, reads = {}, list(signature(judge).parameters)
        for key, (shared, actors) in states.items():
            ones = actors if "actor" in reads else actors[:1]
            given = [{**shared, "actors": actors, "actor": one} for one in ones]
            said = [judge(*[values[k] for k in reads]) for values in given]
            if kind == "always":
                said = [one is None for one in said]
            true[key] = any(said) if kind == "sometimes" else all(said)
        lasts = can_last if kind == "eventually always" else lambda *_: True
        wrong = [key for key in true if not true[key] and lasts(graph, key)]
        good = len(wrong) < len(true) if kind == "sometimes" else not wrong
        words = {"sometimes": ("not reached", "reached")}.get(kind, ("violated", "holds"))[good]
        verdicts["".join(map(str.capitalize, name.split("_")))] = words
    return len(states), verdicts


def can_last(graph: Any, key: Any) -> bool:
    """Whether a fair run can come back to a state for ever, or stay in it."""
    ahead, ring = [key], {key}
    for one in ahead:
        ahead += {to for _, to in graph[one]} - set(ahead)
    while new := {o for o in ahead if any(to in ring for _, to in graph[o])} - ring:
        ring |= new
    can = [{by for by, _ in graph[one] if by} for one in ring]
    return not set.intersection(*can) - {b for o in ring for b, to in graph[o] if to in ring}
