"""What a model must keep to, found out before a search begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.verify.checker.model import Action, InitialState, Model, ModelError

if TYPE_CHECKING:
    from collections.abc import Collection

    from twinlake.verify.checker.model import ModelProperty

__all__ = ["require_contract"]


def require_contract(model: Model, starts: Collection[InitialState]) -> None:
    """Refuse a model whose declarations contradict each other.

    Raises:
        ModelError: with the first contradiction, and what would be right.
    """
    _require_starts(model, starts)
    variables = tuple(next(iter(starts)).shared)
    for act in model.actions():
        _require_action(model, act, variables)
    for one in model.properties():
        _require_property(one, variables)
    for name in (*model.append_only, *model.only_grows):
        for start in starts:
            value = start.shared.get(name, ())
            if not isinstance(value, tuple):
                raise ModelError(
                    f"{name!r} is {value!r} in an initial state: what only grows is a tuple"
                )


def _require_starts(model: Model, starts: Collection[InitialState]) -> None:
    if not starts:
        raise ModelError(f"{model.title} has no initial state")
    variables = tuple(next(iter(starts)).shared)
    actors = sum(role.count for role in model.roles)
    for start in starts:
        if tuple(start.shared) != variables:
            raise ModelError(
                f"the initial states must have the same variables in one order:"
                f" {', '.join(variables)}, and not {', '.join(start.shared)}"
            )
        if len(start.actors) != actors:
            raise ModelError(
                f"an initial state has {len(start.actors)} local values for {actors} actors"
            )
        for local in start.actors:
            if not hasattr(local, "state"):
                raise ModelError(
                    f"the local value {local!r} has no attribute 'state', its control state"
                )


def _require_action(model: Model, act: Action, variables: tuple[str, ...]) -> None:
    roles = [role.name for role in model.roles]
    if act.role not in roles:
        raise ModelError(f"{act.name} is of role {act.role!r}; the roles are {', '.join(roles)}")
    named = (*act.reads, *act.writes, *((act.swap.variable,) if act.swap else ()))
    unknown = [name for name in named if name not in variables]
    if unknown:
        raise ModelError(
            f"{act.name} names {unknown[0]!r}, which is no variable of the model:"
            f" {', '.join(variables)}"
        )
    for name in act.frozen:
        if name not in model.append_only:
            raise ModelError(f"{act.name} takes {name!r} as frozen; it is not append-only")
        if name not in act.reads:
            raise ModelError(f"{act.name} takes {name!r} as frozen but does not read it")
    swap = act.swap
    if swap is None:
        return
    if swap.variable not in model.append_only:
        raise ModelError(
            f"{act.name} compares {swap.variable!r}, which is not append-only: a variable that"
            f" shrinks and grows again looks unchanged. Name it in append_only, or compare"
            f" versions in an action of your own"
        )
    if not callable(getattr(model, swap.otherwise, None)):
        raise ModelError(
            f"{act.name} goes on with {swap.otherwise!r}, which is no method of the model"
        )


def _require_property(one: ModelProperty, variables: tuple[str, ...]) -> None:
    for name in one.variables:
        if name not in variables:
            raise ModelError(
                f"{one.name} reads {name!r}, which is no variable of the model:"
                f" {', '.join(variables)} (or 'actor', or 'actors')"
            )
    if "actor" in one.reads and one.reads != ("actor",):
        raise ModelError(f"{one.name} must read variables, one actor, or all actors")
