"""What lasts in the end: *eventually always* under weak fairness.

Such a property can fail in two ways: in a state where the run ends, which the search sees, or on
a cycle that a fair run may follow for ever. Most models have no cycle, and that is proved without
looking at states at all: variables that only grow are constant on a cycle, so some actor would
have to come back to its local value by moves that leave them alone. The remembered moves are few,
and whether they contain such a round trip is a small search. Where one is found, the strongly
connected components of the full state graph decide.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from twinlake.verify.checker.state_space import LayoutWidened, StateSpace
from twinlake.verify.checker.successors import expander
from twinlake.verify.checker.trace import Trace, retrace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.verify.checker.model import Model, ModelProperty

__all__ = ["FairCycle", "has_no_cycle", "violations_on_cycles"]

#: ``(role, local value, growing variables it touches)``.
Node = tuple[int, int, int]


class FairCycle(NamedTuple):
    """A property that is false again and again on a fair cycle: a path to it, and once round it."""

    property: ModelProperty
    trace: Trace
    #: How many states the cycle may run through.
    cycle: int


def has_no_cycle(space: StateSpace) -> bool:
    """Whether the explored states provably form no cycle."""
    graph = _LocalGraph(space)
    done: set[Node] = set()
    for start in graph.nodes():
        if start in done:
            continue
        path: dict[Node, Iterator[Node]] = {start: graph.successors(start)}
        while path:
            node, rest = next(reversed(path.items()))
            following = next(rest, None)
            if following is None:
                done.add(node)
                del path[node]
            elif following in path:
                return False
            elif following not in done:
                path[following] = graph.successors(following)
    return True


class _LocalGraph:
    """Local values and the moves between them that leave all growing variables alone."""

    def __init__(self, space: StateSpace) -> None:
        growing = {*space.model.append_only, *space.model.only_grows}
        layout = space.layout
        self._mask = sum(
            layout.shared_masks[index] << layout.shared_shifts[index]
            for index, name in enumerate(space.variables)
            if name in growing
        )
        self._masks = space.masks
        self._edges: dict[Node, set[int]] = {}
        self._known: dict[tuple[int, int], set[int]] = {}
        low = (1 << layout.shared_shift) - 1
        for role, memo in enumerate(space.memo):
            for key, moves in memo.items():
                local, grown = key & low, key & self._mask
                self._known.setdefault((role, local), set()).add(grown)
                still = {
                    to for change, to in moves if ((key - local + change) & self._mask) == grown
                }
                self._edges.setdefault((role, local, grown), set()).update(still)

    def nodes(self) -> Iterator[Node]:
        yield from self._edges

    def successors(self, node: Node) -> Iterator[Node]:
        role, local, grown = node
        for to in self._edges[node]:
            # Only what both local values touch can be compared; the rest may be anything.
            both = self._mask & self._masks[role][local] & self._masks[role][to]
            for other in self._known.get((role, to), ()):
                if other & both == grown & both:
                    yield (role, to, other)


def violations_on_cycles(
    model: Model, properties: list[ModelProperty], limit: int
) -> list[FairCycle] | None:
    """Properties that fail on a fair cycle; ``None`` if there are more states than the limit."""
    space = StateSpace(model)
    graph = _explore(space, limit)
    if graph is None:
        return None
    found: list[FairCycle] = []
    for component in _components(graph):
        inside = set(component)
        if len(component) == 1 and component[0] not in graph[component[0]]:
            continue
        wrong = {
            one.name: state
            for one in properties
            for state in component
            if not space.evaluator.lasts_in(one, state)
        }
        if wrong and _is_fair(space, component, inside):
            for one in properties:
                if one.name in wrong:
                    path = _path(space, graph, wrong[one.name])
                    round_trip = _round_trip(space, graph, component, wrong[one.name])
                    at = len(path) - 1
                    trace = retrace(space, [*path, *round_trip], symmetry=False, cycle_at=at)
                    found.append(FairCycle(one, trace, len(component)))
    return found


def _path(space: StateSpace, graph: dict[int, tuple[int, ...]], state: int) -> list[int]:
    """A shortest path to a state of the graph."""
    came: dict[int, int | None] = dict.fromkeys(space.initial())
    todo = deque(came)
    while state not in came:
        at = todo.popleft()
        for following in graph[at]:
            if following not in came:
                came[following] = at
                todo.append(following)
    path = [state]
    while (before := came[path[-1]]) is not None:
        path.append(before)
    return path[::-1]


def _explore(space: StateSpace, limit: int) -> dict[int, tuple[int, ...]] | None:
    while True:
        graph: dict[int, tuple[int, ...]] = {}
        todo = space.initial()
        expand = expander(space, symmetry=False)
        try:
            while todo:
                state = todo.pop()
                if state in graph:
                    continue
                successors: list[int] = []
                expand((state,), successors, [])
                graph[state] = tuple(dict.fromkeys(successors))
                todo += graph[state]
                if len(graph) > limit:
                    return None
        except LayoutWidened:
            continue
        return graph


def _components(graph: dict[int, tuple[int, ...]]) -> Iterator[list[int]]:
    """Tarjan's strongly connected components, without recursion."""
    order: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in graph:
        if root in order:
            continue
        work = [(root, iter(graph[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            state, rest = work[-1]
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[state])
                if low[state] == order[state]:
                    at = stack.index(state)
                    yield stack[at:]
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
            elif following not in order:
                order[following] = low[following] = len(order)
                stack.append(following)
                on_stack.add(following)
                work.append((following, iter(graph[following])))
            elif following in on_stack:
                low[state] = min(low[state], order[following])


def _round_trip(
    space: StateSpace, graph: dict[int, tuple[int, ...]], component: list[int], start: int
) -> list[int]:
    """States from a state of a component back to it, by way of what makes the cycle fair.

    Every fair action of the component is not possible somewhere on the way, or taken on it.
    """
    inside = set(component)
    moves = {state: _fair_moves(space, state, inside) for state in component}
    trip = [start]
    for who in sorted({who for possible in moves.values() for who in possible}):
        if any(who not in moves[state] for state in trip):
            continue
        pause = next((state for state in component if who not in moves[state]), None)
        if pause is not None:
            trip += _path_within(graph, inside, trip[-1], pause)
            continue
        state = next(state for state in component if moves[state][who])
        trip += _path_within(graph, inside, trip[-1], state)
        trip.append(moves[state][who][0])
    if len(trip) == 1:
        trip.append(next(state for state in graph[start] if state in inside))
    return [*trip, *_path_within(graph, inside, trip[-1], start)][1:]


def _path_within(
    graph: dict[int, tuple[int, ...]], inside: set[int], start: int, end: int
) -> list[int]:
    """A shortest path between two states of a component, without the first."""
    came: dict[int, int | None] = {start: None}
    todo = deque([start])
    while end not in came:
        at = todo.popleft()
        for following in graph[at]:
            if following in inside and following not in came:
                came[following] = at
                todo.append(following)
    path = [end]
    while (before := came[path[-1]]) is not None:
        path.append(before)
    return path[-2::-1] if len(path) > 1 else []


def _fair_moves(
    space: StateSpace, state: int, inside: set[int]
) -> dict[tuple[int, str], list[int]]:
    """The fair actions that are possible in a state, each with where it leads inside."""
    shared = space.shared_values(state)
    actors = space.actor_values(state)
    found: dict[tuple[int, str], list[int]] = {}
    for index, role in enumerate(space.role_of):
        for transition in space.transitions(role, actors[index], shared):
            act = transition.steps[0].action
            if act.fair:
                after = [*actors[:index], transition.actor, *actors[index + 1 :]]
                number = space.encode({**shared, **transition.shared}, after)
                ends = found.setdefault((index, act.name), [])
                ends += [number] if number in inside else []
    return found


def _is_fair(space: StateSpace, component: list[int], inside: set[int]) -> bool:
    """Weak fairness: no fair action is possible all along the cycle and never taken on it."""
    always_possible: set[tuple[int, str]] | None = None
    taken: set[tuple[int, str]] = set()
    for state in component:
        moves = _fair_moves(space, state, inside)
        taken |= {who for who, ends in moves.items() if ends}
        possible = set(moves)
        always_possible = possible if always_possible is None else always_possible & possible
    return not (always_possible or set()) - taken
