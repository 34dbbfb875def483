"""How a model is written down: variables, actors, actions and properties.

A model is a class. Its shared variables are named by :meth:`Model.initial`; its actors belong to
roles, and every actor has one local value with an attribute ``state``, its control state.
An action is a method marked with :func:`action`: it takes the local value of the actor that
moves (or nothing at all, if that parameter begins with an underscore) and *the shared variables
it reads, by their names*, and yields one :class:`Next` for every
way it can go. The signature is the read set, so a step cannot see more than it declares, and
``writes`` is the write set, which the checker enforces. A parameter with a default is for a
variable that the model may lack, as configured. Everything the checker derives
(memoised steps, symmetry, partial order) rests on these declarations alone. An actor never knows
which one of its role it is: that makes the actors of a role interchangeable.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

__all__ = [
    "Action",
    "ActionCheck",
    "CompareAndSwap",
    "Failure",
    "InitialState",
    "Model",
    "ModelError",
    "ModelProperty",
    "Next",
    "PropertyKind",
    "Role",
    "action",
    "always",
    "eventually",
    "eventually_always",
    "sometimes",
]

F = TypeVar("F", bound=Callable[..., Any])
PropertyKind = str
ALWAYS, SOMETIMES, EVENTUALLY_ALWAYS = "always", "sometimes", "eventually always"
NOTHING: Mapping[str, Hashable] = {}


class ModelError(Exception):
    """The model breaks a rule of this module; the text says which one and where."""


class ActionCheck(NamedTuple):
    """One check that a step ran, with its outcome: what a trace shows of a validation."""

    name: str
    passed: bool
    detail: str = ""


class Next(NamedTuple):
    """One outcome of a step: the actor's next local value and the shared variables it sets."""

    actor: Any
    shared: Mapping[str, Hashable] = NOTHING
    arguments: Mapping[str, Any] = NOTHING
    checks: tuple[ActionCheck, ...] = ()


class Failure(NamedTuple):
    """Why a property does not hold: a sentence, and the compared values by name."""

    message: str
    fields: Mapping[str, Any] = NOTHING


class InitialState(NamedTuple):
    """An initial state: shared variables by name, and one local value an actor, role by role."""

    shared: Mapping[str, Hashable]
    actors: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A kind of actor and how many there are of it."""

    name: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareAndSwap:
    """A compare-and-swap: the action runs only while nobody has appended to ``variable``.

    ``base`` names the attribute of the local value that holds the index of the last element the
    actor built on. If the variable has grown since, the action does not run; instead the method
    ``otherwise`` turns the local value into the one to go on with, and nothing else changes.
    """

    variable: str
    base: str
    otherwise: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """An action as declared, with the read set taken from its signature."""

    name: str
    role: str
    at: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    frozen: Mapping[str, str]
    swap: CompareAndSwap | None
    fair: bool
    #: Whether it does not look at the local value: its parameter begins with an underscore.
    is_blind: bool
    run: Callable[..., Iterable[Next]] = field(repr=False)

    @property
    def live_reads(self) -> frozenset[str]:
        """The variables whose *current* value matters: frozen parts can no longer change."""
        compared = (self.swap.variable,) if self.swap is not None else ()
        return (frozenset(self.reads) - frozenset(self.frozen)).union(compared)

    @property
    def branches(self) -> tuple[int, ...]:
        """The lines of its method that yield an outcome."""
        code = getattr(self.run, "__code__", None)
        if code is None:
            return ()
        found = {
            one.positions.lineno
            for one in dis.get_instructions(code)
            if one.opname == "YIELD_VALUE" and one.positions is not None
        }
        return tuple(sorted(line for line in found if line is not None))

    @property
    def is_local(self) -> bool:
        """Whether no step of anyone else can interfere with this one, nor see it."""
        return not self.live_reads and not self.writes


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelProperty:
    """A property as declared; ``reads`` may hold ``actor`` (each one) or ``actors`` (all)."""

    name: str
    kind: PropertyKind
    reads: tuple[str, ...]
    holds: Callable[..., Any] = field(repr=False)

    @property
    def variables(self) -> tuple[str, ...]:
        """The shared variables it reads."""
        return tuple(name for name in self.reads if name not in ("actor", "actors"))

    @property
    def sees_all_actors(self) -> bool:
        """Whether it looks at several local values at once."""
        return "actors" in self.reads


@dataclass(frozen=True, slots=True, kw_only=True)
class _ActionMark:
    role: str | None
    at: tuple[str, ...]
    writes: tuple[str, ...]
    frozen: Mapping[str, str]
    swap: CompareAndSwap | None
    fair: bool
    name: str | None


def action(
    *,
    at: str | Iterable[str],
    writes: Iterable[str] = (),
    frozen: Mapping[str, str] = NOTHING,  # type: ignore[assignment]
    swap: CompareAndSwap | None = None,
    fair: bool = True,
    role: str | None = None,
    name: str | None = None,
) -> Callable[[F], F]:
    """Mark a method as an action of the actors that are ``at`` one of these control states.

    Args:
        at: the values of the local attribute ``state`` in which the action may run.
        writes: the shared variables it may set.
        frozen: append-only variables of which it reads a part that no longer changes, each with
            the local attribute that holds the last index it may see; it is handed only that part.
        swap: makes it a compare-and-swap.
        fair: whether the action is weakly fair.
        role: the role whose actors take it; the first one by default.
        name: what a trace calls it; by default the method's name in camel case.
    """
    states = (at,) if isinstance(at, str) else tuple(at)
    mark = _ActionMark(
        role=role, at=states, writes=tuple(writes), frozen=frozen, swap=swap, fair=fair, name=name
    )

    def decorate(method: F) -> F:
        method.__verify_action__ = mark  # type: ignore[attr-defined]
        return method

    return decorate


def _property(kind: PropertyKind) -> Callable[[F], F]:
    def decorate(method: F) -> F:
        method.__verify_property__ = kind  # type: ignore[attr-defined]
        return method

    return decorate


def always(method: F) -> F:
    """Mark a safety property: it returns ``None`` where it holds, else a :class:`Failure`."""
    return _property(ALWAYS)(method)


def sometimes(method: F) -> F:
    """Mark a reachability property: it returns whether the wanted thing is the case."""
    return _property(SOMETIMES)(method)


def eventually_always(method: F) -> F:
    """Mark a liveness property: from some moment on it is true for good, in every fair run."""
    return _property(EVENTUALLY_ALWAYS)(method)


#: The same under the name by which people look for it.
eventually = eventually_always


class Model:
    """Base of every model; see the module's docstring for how one is written."""

    #: What reports call the model.
    title: ClassVar[str] = "model"
    #: Shared variables whose values are tuples that only ever grow at their end.
    append_only: ClassVar[tuple[str, ...]] = ()
    #: Shared variables whose values are tuples of numbers none of which ever falls.
    only_grows: ClassVar[tuple[str, ...]] = ()

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles, in the order of the actors in a state."""
        raise NotImplementedError

    def initial(self) -> Iterable[InitialState]:
        """The initial states."""
        raise NotImplementedError

    def variables(self) -> tuple[str, ...]:
        """The names of the shared variables."""
        return tuple(next(iter(self.initial())).shared)

    def parameters(self) -> Mapping[str, Any]:
        """What configures the model, for reports: its fields, where it is a dataclass."""
        if not is_dataclass(self):
            return {}
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def interchangeable(self) -> tuple[tuple[Hashable, ...], ...]:
        """Groups of data values that the model treats alike, such as colours."""
        return ()

    def show_change(self, variable: str, before: Any, after: Any) -> Any:
        """What a step changed in a variable, as a trace prints it: plain JSON data."""
        if variable in self.append_only:
            return {"appended": plain(after[len(before) :])}
        return {"from": plain(before), "to": plain(after)}

    def actions(self) -> tuple[Action, ...]:
        """Every method marked with :func:`action`, in the order of their definition."""
        first = self.roles[0].name
        return tuple(_declared(self, name, mark, first) for name, mark in _marks(self, "action"))

    def properties(self) -> tuple[ModelProperty, ...]:
        """Every method marked as a property, in the order of their definition."""
        return tuple(
            ModelProperty(
                name=camel(name),
                kind=kind,
                reads=tuple(inspect.signature(getattr(self, name)).parameters),
                holds=getattr(self, name),
            )
            for name, kind in _marks(self, "property")
        )


def _marks(model: Model, what: str) -> Iterator[tuple[str, Any]]:
    seen: dict[str, Any] = {}
    for owner in reversed(type(model).__mro__):
        for name, member in vars(owner).items():
            mark = getattr(member, f"__verify_{what}__", None)
            if mark is not None:
                seen[name] = mark
            elif name in seen:
                # Overridden without a mark: an extension took the action or property out.
                del seen[name]
    yield from seen.items()


def _declared(model: Model, name: str, mark: _ActionMark, first: str) -> Action:
    method = getattr(model, name)
    present = model.variables()
    mover, *parameters = inspect.signature(method).parameters.values()
    absent = {
        one.name
        for one in parameters
        if one.default is not inspect.Parameter.empty and one.name not in present
    }
    return Action(
        name=mark.name or camel(name),
        role=mark.role or first,
        at=mark.at,
        reads=tuple(one.name for one in parameters if one.name not in absent),
        writes=tuple(one for one in mark.writes if one not in absent),
        frozen=mark.frozen,
        swap=mark.swap,
        fair=mark.fair,
        # A swap and a frozen part are found through the local value.
        is_blind=mover.name.startswith("_") and mark.swap is None and not mark.frozen,
        run=method,
    )


def camel(name: str) -> str:
    """``start_insert`` as ``StartInsert``.

    >>> camel("no_dangling_delete_files")
    'NoDanglingDeleteFiles'
    """
    return "".join(part.capitalize() for part in name.strip("_").split("_"))


def plain(value: Any) -> Any:
    """A value as JSON data: named tuples as objects, sets sorted, the rest as it is."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {key: plain(part) for key, part in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, frozenset | set):
        return sorted((plain(part) for part in value), key=repr)
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    return value
