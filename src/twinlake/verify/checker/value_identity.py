"""When two values are the same value: equal, and of the same types all the way down.

Python takes named tuples of two classes for equal if their fields are, and ``1`` for ``True``. A
model that reads the class of a value does not, so two such values must not become one state.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["is_same_value"]

ATOMS = frozenset({str, int, bool, float, bytes, type(None)})


def is_same_value(one: Any, other: Any) -> bool:
    """Whether nobody can tell these values apart.

    >>> is_same_value((1, "a"), (1, "a")), is_same_value((1, "a"), (True, "a"))
    (True, False)
    """
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind in ATOMS:
        return bool(one == other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(is_same_value, one, other))
    if isinstance(one, frozenset):
        # Elements of one set are never equal, so each has one possible partner.
        partners = {element: element for element in other}
        return len(one) == len(other) and all(
            element in partners and is_same_value(element, partners[element]) for element in one
        )
    if is_dataclass(one):
        return all(
            is_same_value(getattr(one, part.name), getattr(other, part.name))
            for part in fields(one)
        )
    return bool(one == other)
