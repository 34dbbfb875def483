"""How a state is packed into one integer: interned values, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twinlake.verify.checker.model import ModelError
from twinlake.verify.checker.value_identity import is_same_value

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

__all__ = ["InternedValues", "LayoutWidened", "StateLayout"]

#: How many bits a field has before anything is known of its variable.
SHARED_BITS, ACTOR_BITS, MORE_BITS, WORD_BITS = 3, 12, 1, 62


class LayoutWidened(Exception):
    """A field had to be widened: packed states must be translated by ``translate``."""

    def __init__(self, old: StateLayout, new: StateLayout) -> None:
        super().__init__("a field was widened")
        self.old = old
        self.new = new

    def translate(self, states: Iterable[int]) -> Iterator[int]:
        """The same states under the new layout."""
        return self.old.translate(self.new, states)


class InternedValues:
    """The values of one variable, each with its number."""

    __slots__ = ("_equals", "bits", "ids", "name", "values")

    def __init__(self, name: str, bits: int) -> None:
        self.name = name
        self.ids: dict[Hashable, int] = {}
        #: Of a number, those of values that are equal and yet of other types.
        self._equals: dict[int, list[int]] = {}
        self.values: list[Any] = []
        self.bits = bits

    def put(self, value: Hashable) -> int:
        """The number of a value, a new one if it was never seen."""
        try:
            number = self.ids.get(value)
        except TypeError as error:
            raise ModelError(f"{self.name} has the value {value!r}: {error}") from error
        if number is None:
            number = self.ids[value] = self._new(value)
        elif not is_same_value(self.values[number], value):
            return self._equal_of(number, value)
        return number

    def _equal_of(self, number: int, value: Hashable) -> int:
        equals = self._equals.setdefault(number, [])
        for other in equals:
            if is_same_value(self.values[other], value):
                return other
        equals.append(self._new(value))
        return equals[-1]

    def _new(self, value: Hashable) -> int:
        self.values.append(value)
        return len(self.values) - 1


class StateLayout:
    """Where each field lies in a packed state: actors lowest, the last actor at bit 0.

    One shared variable, ``top``, lies above all others and has what is left of a machine word,
    so that it can take more and more values while no field has to move.
    """

    __slots__ = ("actor_masks", "actor_shifts", "shared_masks", "shared_shift", "shared_shifts")

    def __init__(self, actor_bits: tuple[int, ...], shared_bits: tuple[int, ...], top: int) -> None:
        shift = 0
        shifts: list[int] = []
        for bits in reversed(actor_bits):
            shifts.append(shift)
            shift += bits
        self.actor_shifts = tuple(reversed(shifts))
        self.actor_masks = tuple((1 << bits) - 1 for bits in actor_bits)
        self.shared_shift = shift
        shared = dict.fromkeys(range(len(shared_bits)), 0)
        masks = [(1 << bits) - 1 for bits in shared_bits]
        for index in sorted(shared, key=lambda index: index == top):
            shared[index] = shift
            shift += shared_bits[index]
        if shared:
            masks[top] = max(masks[top], (1 << max(WORD_BITS - shared[top], 0)) - 1)
        self.shared_shifts = tuple(shared.values())
        self.shared_masks = tuple(masks)

    def pack(self, shared: Iterable[int], actors: Iterable[int]) -> int:
        """One integer for these numbers."""
        state = 0
        for number, shift in zip(shared, self.shared_shifts, strict=True):
            state |= number << shift
        for number, shift in zip(actors, self.actor_shifts, strict=True):
            state |= number << shift
        return state

    def shared(self, state: int) -> tuple[int, ...]:
        """The numbers of the shared values."""
        return tuple(
            (state >> shift) & mask
            for shift, mask in zip(self.shared_shifts, self.shared_masks, strict=True)
        )

    def actors(self, state: int) -> tuple[int, ...]:
        """The numbers of the local values."""
        return tuple(
            (state >> shift) & mask
            for shift, mask in zip(self.actor_shifts, self.actor_masks, strict=True)
        )

    def fields_in(self, new: StateLayout) -> tuple[tuple[int, int, int], ...]:
        """Every field as its shift and mask, and its shift in another layout."""
        return (
            *zip(self.shared_shifts, self.shared_masks, new.shared_shifts, strict=True),
            *zip(self.actor_shifts, self.actor_masks, new.actor_shifts, strict=True),
        )

    def translate(self, new: StateLayout, states: Iterable[int]) -> Iterator[int]:
        """States of this layout in another one."""
        fields = self.fields_in(new)
        for state in states:
            packed = 0
            for shift, mask, to in fields:
                packed |= ((state >> shift) & mask) << to
            yield packed
