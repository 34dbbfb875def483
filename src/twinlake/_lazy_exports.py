"""What is loaded when it is first used, so that start-up stays short: names and modules."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["lazy_exports", "lazy_module"]


def lazy_exports(
    package: str, modules: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` for a package that exports names of other modules.

    ``modules`` maps a module to the names it has. A package assigns the two under ``if not
    TYPE_CHECKING``: a type checker takes the imports beside them and so still notices names that do
    not exist.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name]), name)
        # The next look finds it without a call.
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names


class _LazyModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self.__name__), name)
        # The next look finds it without a call.
        setattr(self, name, found)
        return found


def lazy_module(name: str) -> ModuleType:
    """A stand-in for a module that takes long to load: it is loaded with the first use of a name.

    Assigned in the ``else`` of ``if TYPE_CHECKING``, whose branch has the import itself.
    """
    return _LazyModule(name)
