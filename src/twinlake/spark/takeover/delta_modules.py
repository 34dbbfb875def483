"""``delta``, ``delta.tables`` and ``delta.exceptions`` as modules of ours while a takeover lasts.

They come in the place of those of the package ``delta-spark`` too where that is installed: without
its jar, which a takeover refuses, it can do nothing. Its other modules stay importable. Code that
has imported its ``DeltaTable`` before gets tables of ours from it.
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["install", "restore"]

_ABSENT: Final = object()
_OPENING: Final = (
    "forPath",
    "forName",
    "isDeltaTable",
    "convertToDelta",
    "create",
    "createIfNotExists",
    "replace",
    "createOrReplace",
)
"""The class methods of ``DeltaTable``, by which code comes to a table."""
_before: dict[str, object] = {}
_methods: dict[tuple[type, str], object] = {}


def install() -> None:
    """Put the modules where ``import`` finds them first."""
    if _before:
        return
    _hand_over_imported()
    for name, module in _modules().items():
        _before[name] = sys.modules.get(name, _ABSENT)
        sys.modules[name] = module


def restore() -> None:
    """Leave ``import`` what it had."""
    while _methods:
        (owner, method), original = _methods.popitem()
        setattr(owner, method, original)
    while _before:
        name, module = _before.popitem()
        if isinstance(module, ModuleType):
            sys.modules[name] = module
        else:
            sys.modules.pop(name, None)


def _hand_over_imported() -> None:
    """Let the ``DeltaTable`` that was imported before open tables of ours."""
    from twinlake.spark import DeltaTable

    imported = getattr(sys.modules.get("delta.tables"), "DeltaTable", None)
    if not isinstance(imported, type):
        return
    for name in _OPENING:
        if name in vars(imported):
            _methods[imported, name] = vars(imported)[name]
            setattr(imported, name, staticmethod(getattr(DeltaTable, name)))


def _modules() -> Mapping[str, ModuleType]:
    from twinlake import spark
    from twinlake.spark import exceptions

    found = sys.modules.get("delta")
    path = list(getattr(found, "__path__", ())) if found is not None else _installed_path()
    tables = _module(
        "delta.tables",
        {
            name: getattr(spark, name)
            for name in spark.__all__
            if name.startswith("Delta") or name == "IdentityGenerator"
        },
    )
    errors = _module("delta.exceptions", {n: getattr(exceptions, n) for n in exceptions.__all__})
    package = _module("delta", {"DeltaTable": spark.DeltaTable})
    package.__path__ = path
    vars(package).update(tables=tables, exceptions=errors)
    return {"delta": package, "delta.tables": tables, "delta.exceptions": errors}


def _installed_path() -> list[str]:
    found = importlib.util.find_spec("delta")
    return list(found.submodule_search_locations or ()) if found is not None else []


def _module(name: str, members: Mapping[str, object]) -> ModuleType:
    module = ModuleType(name, f"{name} as twinlake has it.")
    vars(module).update(members, __all__=sorted(members))
    return module
