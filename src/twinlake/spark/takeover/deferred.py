"""Calls of a builder of the JVM that are made once it is known that the builder is used.

They are made in the order in which they came and with the same arguments, so that Spark cannot
tell. Only calls that cannot fail are put off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Deferred"]


class Deferred:
    """A builder that is made when it is first used."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._steps: list[Callable[[Any], Any]] = []
        self._made: Any = None

    def then(self, step: Callable[[Any], Any]) -> None:
        """Make a call, now or when the builder is made."""
        if self._made is None:
            self._steps.append(step)
        else:
            self._made = step(self._made)

    def get(self) -> Any:
        """The builder, with all calls made."""
        if self._made is None:
            made = self._make()
            for step in self._steps:
                made = step(made)
            self._made = made
            self._steps = []
        return self._made

    def set(self, made: Any) -> None:
        """What a call made of the builder."""
        self._made = made
