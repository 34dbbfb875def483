"""States as small integers, and steps computed once.

Every value of a shared variable and every local value of an actor is *interned*: kept once and
known by a small number. A state is these numbers packed side by side into one integer. What a
step does depends only on the actor's local value and on the variables it reads, so its outcome
is computed once for these and remembered as the difference it makes to the packed state. The
fields widen when a variable takes more values than expected; see :class:`LayoutWidened`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from twinlake.verify.checker.model import (
    EVENTUALLY_ALWAYS,
    Action,
    ActionCheck,
    Model,
    ModelError,
    Next,
)
from twinlake.verify.checker.model_contract import require_contract
from twinlake.verify.checker.property_evaluator import FailingValues, PropertyEvaluator
from twinlake.verify.checker.state_layout import (
    ACTOR_BITS,
    MORE_BITS,
    SHARED_BITS,
    InternedValues,
    LayoutWidened,
    StateLayout,
)
from twinlake.verify.checker.value_identity import is_same_value
from twinlake.verify.checker.value_symmetry import (
    ValuePermutation,
    permute_values,
    renamings,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping

__all__ = ["ActionStep", "FailingValues", "LayoutWidened", "StateSpace", "Transition"]

Moves = tuple[tuple[int, int], ...]

SWAPPED = ActionCheck("compare-and-swap", True)


class ActionStep(NamedTuple):
    """One step of one actor as the model yielded it, for traces."""

    action: Action
    next: Next
    #: The shared variables as the step found them.
    shared: Mapping[str, Hashable]
    #: The local value as the step found it.
    actor: Any


class Transition(NamedTuple):
    """What one (possibly fused) move of an actor does."""

    steps: tuple[ActionStep, ...]
    shared: Mapping[str, Hashable]
    actor: Any


class StateSpace:
    """The states of a model, packed, with the moves of its actors computed once each."""

    #: Whether moves are known to be the same for several values of an append-only variable.
    shares_moves = True

    def __init__(
        self,
        model: Model,
        *,
        symmetric: bool = False,
        merge_alike: bool = False,
        interchange_values: bool = False,
        without: Collection[str] = (),
    ) -> None:
        """Prepare the space of a model.

        Args:
            model: the model.
            symmetric: the search keeps one of several states that differ only in which actor of
                a role is which; properties are held to that.
            merge_alike: keep one of several local values that no action can tell apart.
            interchange_values: keep one of several states that differ only in which of the
                model's interchangeable values is which.
            without: names of properties to leave out.
        """
        self.model = model
        self.properties = tuple(one for one in model.properties() if one.name not in without)
        #: Whether a safety or reachability property looks at the local values of all actors.
        self.sees_actors = any(
            one.sees_all_actors for one in self.properties if one.kind != EVENTUALLY_ALWAYS
        )
        self.symmetric = symmetric
        self.renamings = renamings(model) if interchange_values else ()
        self._merge_alike = merge_alike and not self.sees_actors
        #: Local values that no action can tell apart; the first one stands for all.
        self._alike: dict[tuple[int, tuple[str, ...]], InternedValues] = {}
        self.roles = model.roles
        self.starts = tuple(model.initial())
        require_contract(model, self.starts)
        self.variables = tuple(self.starts[0].shared)
        self._index = {name: index for index, name in enumerate(self.variables)}
        self._actions = _actions_by_control(model)
        self.shared = [
            InternedValues(f"the variable {name!r}", SHARED_BITS) for name in self.variables
        ]
        # What is only appended to holds all that was ever committed: it takes the most values.
        self._top = max(
            range(len(self.variables)),
            key=lambda index: self.variables[index] in model.append_only,
            default=-1,
        )
        self.actors = [
            InternedValues(f"an actor of role {role.name!r}", ACTOR_BITS) for role in self.roles
        ]
        #: The role of each actor, by the actor's position.
        self.role_of = tuple(
            index for index, role in enumerate(self.roles) for _ in range(role.count)
        )
        self.memo: list[dict[int, Moves]] = [{} for _ in self.roles]
        self.masks: list[list[int]] = [[] for _ in self.roles]
        self._reads: list[dict[str, tuple[int, ...]]] = [{} for _ in self.roles]
        self._shared_moves: dict[tuple[int, ...], Moves] = {}
        #: By append-only variable: of each value the numbers of its prefixes, by length.
        self._prefixes: list[dict[int, tuple[int, ...]]] = [{} for _ in self.variables]
        self.fired: dict[str, int] = {}
        #: By action, the lines of its method whose ``yield`` was the way a step went.
        self.branches: dict[str, set[int]] = {}
        self.failing_values: list[FailingValues] = []
        self.evaluator = PropertyEvaluator(self)
        self.layout = self._new_layout()
        self.permutations = tuple(ValuePermutation(self, one) for one in self.renamings)

    # --- values and numbers -----------------------------------------------------------------

    def initial(self) -> list[int]:
        """The initial states, packed."""
        while True:
            try:
                return [self.encode(start.shared, start.actors) for start in self.starts]
            except LayoutWidened:
                continue

    def encode(self, shared: Mapping[str, Hashable], actors: Iterable[Any]) -> int:
        """A state of values as a packed state."""
        numbers = [self._shared_number(i, shared[name]) for i, name in enumerate(self.variables)]
        self.evaluator.evaluate_shared(
            dict(zip(self.variables, numbers, strict=True)), self.variables
        )
        locals_ = [
            self._actor_number(role, value)
            for role, value in zip(self.role_of, actors, strict=True)
        ]
        return self.layout.pack(numbers, locals_)

    def shared_values(self, state: int) -> dict[str, Hashable]:
        """The shared variables of a packed state."""
        numbers = self.layout.shared(state)
        return {
            name: interned.values[number]
            for name, interned, number in zip(self.variables, self.shared, numbers, strict=True)
        }

    def actor_values(self, state: int) -> tuple[Any, ...]:
        """The local values of a packed state."""
        return tuple(
            self.actors[role].values[number]
            for role, number in zip(self.role_of, self.layout.actors(state), strict=True)
        )

    def permuted_shared(
        self, numbers: tuple[int, ...], mapping: dict[Hashable, Hashable]
    ) -> tuple[int, ...]:
        """The numbers of shared values after renaming what they are made of; evaluates them."""
        found = tuple(
            self._shared_number(index, permute_values(self.shared[index].values[number], mapping))
            for index, number in enumerate(numbers)
        )
        by_name = dict(zip(self.variables, found, strict=True))
        self.evaluator.evaluate_shared(by_name, self.variables)
        return found

    def permuted_actor(self, role: int, number: int, mapping: dict[Hashable, Hashable]) -> int:
        """The number of a local value after renaming what it is made of."""
        return self._actor_number(role, permute_values(self.actors[role].values[number], mapping))

    def _new_layout(self) -> StateLayout:
        layout = StateLayout(
            tuple(self.actors[role].bits for role in self.role_of),
            tuple(interned.bits for interned in self.shared),
            self._top,
        )
        for role, interned in enumerate(self.actors):
            self.masks[role] = [self._mask(layout, role, value) for value in interned.values]
        return layout

    def _mask(self, layout: StateLayout, role: int, local: Any) -> int:
        """The bits of the variables that matter to an actor with this local value."""
        mask = 0
        for index in self._touched_variables(role, local.state):
            mask |= layout.shared_masks[index] << layout.shared_shifts[index]
        return mask

    def _touched_variables(self, role: int, control: str) -> tuple[int, ...]:
        found = self._reads[role].get(control)
        if found is None:
            names = {
                name
                for act in self.actions_at(role, control)
                for name in (*act.reads, *act.writes, *((act.swap.variable,) if act.swap else ()))
            }
            found = tuple(i for i, name in enumerate(self.variables) if name in names)
            self._reads[role][control] = found
        return found

    def _shared_number(self, index: int, value: Hashable) -> int:
        interned = self.shared[index]
        number = interned.put(value)
        if number > self.layout.shared_masks[index]:
            interned.bits = number.bit_length() - MORE_BITS
            self._widen(interned)
        return number

    def _representative(self, role: int, value: Any) -> Any:
        """Local values in control states whose actions are the same, and blind, are all alike."""
        acts = self.actions_at(role, value.state)
        if not acts or not all(act.is_blind for act in acts):
            return value
        key = (role, tuple(act.name for act in acts))
        alike = self._alike.setdefault(key, InternedValues("a local value", 0))
        alike.put(value)
        return alike.values[0]

    def alike(self, role: int, value: Any) -> tuple[Any, ...]:
        """The local values for which this one stands."""
        names = tuple(act.name for act in self.actions_at(role, value.state))
        merged = self._alike.get((role, names))
        return (value,) if merged is None else tuple(merged.values)

    def _actor_number(self, role: int, value: Any) -> int:
        # A value that breaks a property is kept apart from those that do the same but break none.
        if self._merge_alike and not self.evaluator.fails_alone(value):
            value = self._representative(role, value)
        interned = self.actors[role]
        number = interned.put(value)
        if number == len(self.masks[role]):
            self.masks[role].append(self._mask(self.layout, role, value))
            self.evaluator.evaluate_actor(role, number, value)
        if number >> interned.bits:
            self._widen(interned)
        return number

    def _widen(self, interned: InternedValues) -> None:
        old = self.layout
        interned.bits += MORE_BITS
        self.layout = self._new_layout()
        for role, memo in enumerate(self.memo):
            self.memo[role] = self._moved(role, memo, old)
        raise LayoutWidened(old, self.layout)

    def _moved(self, role: int, memo: dict[int, Moves], old: StateLayout) -> dict[int, Moves]:
        """Remembered moves under the new layout: keys and differences hold field positions."""
        new = self.layout
        low = (1 << old.shared_shift) - 1
        moved: dict[int, Moves] = {}
        for key, moves in memo.items():
            local = key & low
            indices = self._touched_variables(role, self.actors[role].values[local].state)
            numbers = old.shared(key)
            base = sum(numbers[i] << new.shared_shifts[i] for i in indices)
            after: list[tuple[int, int]] = []
            for difference, end in moves:
                changed = old.shared(key + difference)
                total = sum(changed[i] << new.shared_shifts[i] for i in indices)
                after.append((total - base, end))
            moved[base | local] = tuple(after)
        return moved

    # --- moves ------------------------------------------------------------------------------

    def actions_at(self, role: int, control: str) -> tuple[Action, ...]:
        """The actions an actor of this role may take in this control state."""
        return self._actions.get((self.roles[role].name, control), ())

    def compute(self, role: int, local: int, state: int) -> Moves:
        """The moves of an actor with this local value in this state; remembers them."""
        layout = self.layout
        value = self.actors[role].values[local]
        numbers: dict[str, int] = {}
        shared: dict[str, Hashable] = {}
        for index in self._touched_variables(role, value.state):
            number = (state >> layout.shared_shifts[index]) & layout.shared_masks[index]
            name = self.variables[index]
            numbers[name] = number
            shared[name] = self.shared[index].values[number]
        same = self._shared_move_key(role, local, value, numbers)
        if same is not None and same in self._shared_moves:
            found = self._shared_moves[same]
            self.memo[role][(state & self.masks[role][local]) | local] = found
            return found
        moves: list[tuple[int, int]] = []
        for transition in self.transitions(role, value, shared):
            difference = 0
            if transition.shared:
                difference = self._difference(transition.shared, numbers)
            moves.append((difference, self._actor_number(role, transition.actor)))
            for step in transition.steps:
                self.fired[step.action.name] = self.fired.get(step.action.name, 0) + 1
        key = (state & self.masks[role][local]) | local
        found = self.memo[role][key] = tuple(moves)
        if same is not None:
            self._shared_moves[same] = found
        return found

    def _shared_move_key(
        self, role: int, local: int, value: Any, numbers: Mapping[str, int]
    ) -> tuple[int, ...] | None:
        """A key under which moves are the same for many values of an append-only variable.

        A lost swap does not depend on what was appended, and neither does a private step on what
        came after the part it may see. Such moves change no shared variable.
        """
        acts = self.actions_at(role, value.state)
        if not self.shares_moves or len(acts) != 1:
            return None
        act = acts[0]
        if act.swap is not None:
            index = self._index[act.swap.variable]
            current = self.shared[index].values[numbers[act.swap.variable]]
            return (role, local) if len(current) != getattr(value, act.swap.base) + 1 else None
        if not act.is_local or len(act.frozen) != 1:
            return None
        ((name, attribute),) = act.frozen.items()
        line = self._prefixes[self._index[name]].get(numbers[name], ())
        at = getattr(value, attribute)
        if at < 0:
            return (role, local, -1)
        return (role, local, line[at]) if at < len(line) and line[at] >= 0 else None

    def _difference(self, after: Mapping[str, Hashable], numbers: Mapping[str, int]) -> int:
        """What setting these variables adds to the packed state; evaluates the new values."""
        difference = 0
        written = dict(numbers)
        for name, value in after.items():
            index = self._index[name]
            written[name] = number = self._shared_number(index, value)
            if name in self.model.append_only:
                self._extend_prefixes(index, numbers[name], number)
            difference += (number - numbers[name]) << self.layout.shared_shifts[index]
        self.evaluator.evaluate_shared(written, after)
        return difference

    def _extend_prefixes(self, index: int, before: int, after: int) -> None:
        """Note of which value an append-only value is the continuation."""
        lines, values = self._prefixes[index], self.shared[index].values
        length = len(values[before])
        if after not in lines and len(values[after]) == length + 1:
            # The numbers of what it once was, by their last index; unknown ones are -1.
            unknown = (-1,) * (length - 1) + (before,) if length else ()
            line = lines.setdefault(before, unknown)
            lines[after] = (*line, after)

    def coverage(self) -> dict[str, dict[int, bool]]:
        """Of every action, the lines that yield an outcome, and whether a step came of it."""
        return {
            act.name: {line: line in self.branches.get(act.name, ()) for line in act.branches}
            for act in self.model.actions()
        }

    def transitions(
        self, role: int, local: Any, shared: Mapping[str, Hashable]
    ) -> Iterator[Transition]:
        """Every way an actor can move; a reduction overrides this to fuse steps."""
        for step in self.steps(role, local, shared):
            yield Transition((step,), step.next.shared, step.next.actor)

    def steps(self, role: int, local: Any, shared: Mapping[str, Hashable]) -> Iterator[ActionStep]:
        """Every single step an actor can take, as the model yields it."""
        for act in self.actions_at(role, local.state):
            outcomes = self._run(act, local, shared)
            frame = getattr(outcomes, "gi_frame", None)
            for taken in outcomes:
                if frame is not None:
                    self.branches.setdefault(act.name, set()).add(frame.f_lineno)
                if taken.shared:
                    self._check_writes(act, shared, taken.shared)
                    if act.swap is not None:
                        taken = taken._replace(checks=(SWAPPED, *taken.checks))
                yield ActionStep(act, taken, shared, local)

    def _run(self, act: Action, local: Any, shared: Mapping[str, Hashable]) -> Iterable[Next]:
        swap = act.swap
        if swap is not None:
            current: Any = shared[swap.variable]
            if len(current) != getattr(local, swap.base) + 1:
                lost = SWAPPED._replace(passed=False, detail=f"{swap.variable} has moved on")
                return (Next(getattr(self.model, swap.otherwise)(local), checks=(lost,)),)
        if act.is_blind:
            local = None
        if not act.frozen:
            return act.run(local, *[shared[name] for name in act.reads])
        values: list[Any] = []
        for name in act.reads:
            value: Any = shared[name]
            if name in act.frozen:
                value = value[: max(getattr(local, act.frozen[name]) + 1, 0)]
            values.append(value)
        return act.run(local, *values)

    def _check_writes(
        self, act: Action, before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        for name, value in after.items():
            if name not in act.writes:
                raise ModelError(f"{act.name} sets {name!r} but does not declare that it writes it")
            if name in self.model.append_only and not is_same_value(
                value[: len(before[name])], before[name]
            ):
                raise ModelError(f"{act.name} changes {name!r}, which may only be appended to")
            if name not in self.model.only_grows:
                continue
            if len(value) != len(before[name]):
                raise ModelError(f"{act.name} gives {name!r} another length, which must keep it")
            if any(new < old for new, old in zip(value, before[name], strict=True)):
                raise ModelError(f"{act.name} makes {name!r} smaller, which may only grow")


def _actions_by_control(model: Model) -> dict[tuple[str, str], tuple[Action, ...]]:
    found: dict[tuple[str, str], list[Action]] = {}
    for act in model.actions():
        for control in act.at:
            found.setdefault((act.role, control), []).append(act)
    return {key: tuple(acts) for key, acts in found.items()}
