"""Symmetry of data values: states that differ only in which colour is which are one.

A model says which values it treats alike (:meth:`Model.interchangeable`). Every permutation of
them turns reachable states into reachable states; of all states that permutations turn into one
another, one is kept. Interned values make this cheap: a value is renamed once, then a renaming is
a look-up of numbers.
"""

from __future__ import annotations

import itertools
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from twinlake.verify.checker.model import ModelError
from twinlake.verify.checker.value_identity import is_same_value

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from twinlake.verify.checker.model import Model

__all__ = ["ValuePermutation", "permute_values", "renamings"]

ATOMS = (str, int, float, bytes, type(None), Enum)


class PermutableSpace(Protocol):
    """What a renaming needs of the space whose states it renames."""

    model: Model
    role_of: tuple[int, ...]
    layout: Any

    def permuted_shared(
        self, numbers: tuple[int, ...], mapping: dict[Hashable, Hashable]
    ) -> tuple[int, ...]:
        """The numbers of renamed shared values."""

    def permuted_actor(self, role: int, number: int, mapping: dict[Hashable, Hashable]) -> int:
        """The number of a renamed local value."""


def renamings(model: Model) -> tuple[dict[Hashable, Hashable], ...]:
    """Every permutation of interchangeable values but the one that changes nothing."""
    groups = [group for group in model.interchangeable() if len(group) > 1]
    found: list[dict[Hashable, Hashable]] = []
    for chosen in itertools.product(*(itertools.permutations(group) for group in groups)):
        mapping = {
            old: new
            for group, permuted in zip(groups, chosen, strict=True)
            for old, new in zip(group, permuted, strict=True)
            if old != new
        }
        if mapping:
            found.append(mapping)
    return tuple(found)


class ValuePermutation:
    """One permutation, and what it makes of the numbers of interned values."""

    def __init__(self, space: PermutableSpace, mapping: dict[Hashable, Hashable]) -> None:
        self._space = space
        self._mapping = mapping
        self._shared: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._actors: dict[tuple[int, int], int] = {}

    def apply(self, state: int) -> int:
        """The packed state with all values renamed."""
        space = self._space
        numbers = space.layout.shared(state)
        shared = self._shared.get(numbers)
        if shared is None:
            shared = self._shared[numbers] = space.permuted_shared(numbers, self._mapping)
        actors = [
            self._actor(role, number)
            for role, number in zip(space.role_of, space.layout.actors(state), strict=True)
        ]
        packed: int = space.layout.pack(shared, actors)
        return packed

    def _actor(self, role: int, number: int) -> int:
        found = self._actors.get((role, number))
        if found is None:
            found = self._space.permuted_actor(role, number, self._mapping)
            self._actors[role, number] = found
        return found


def permute_values(value: Any, mapping: dict[Hashable, Hashable]) -> Any:
    """A value with other values in the place of some it is made of.

    >>> permute_values((1, frozenset({"red"}), "blue"), {"red": "blue", "blue": "red"})
    (1, frozenset({'blue'}), 'red')
    """
    for old, new in mapping.items():
        if is_same_value(old, value):
            return new
    if isinstance(value, ATOMS):
        return value
    if isinstance(value, tuple):
        parts = _permuted(value, mapping)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, frozenset):
        return frozenset(_permuted(value, mapping))
    if is_dataclass(value) and not isinstance(value, type):
        renamed = {
            part.name: permute_values(getattr(value, part.name), mapping)
            for part in fields(value)
            if part.init
        }
        return replace(value, **renamed)
    if hasattr(value, "__dict__") or getattr(type(value), "__slots__", None):
        raise ModelError(
            f"values of type {type(value).__name__} cannot be looked into: make it a named tuple"
            f" or a frozen dataclass, or check without value_symmetry"
        )
    return value


def _permuted(values: Any, mapping: dict[Hashable, Hashable]) -> Iterator[Any]:
    for value in values:
        yield permute_values(value, mapping)
