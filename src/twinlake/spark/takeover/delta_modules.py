"""``delta``, ``delta.tables`` and ``delta.exceptions`` as modules of ours while a takeover lasts.

They come in the place of those of the package ``delta-spark`` too where that is installed: without
its jar, which a takeover refuses, it can do nothing. Its other modules stay importable.
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
_before: dict[str, object] = {}


def install() -> None:
    """Put the modules where ``import`` finds them first."""
    if _before:
        return
    for name, module in _modules().items():
        _before[name] = sys.modules.get(name, _ABSENT)
        sys.modules[name] = module


def restore() -> None:
    """Leave ``import`` what it had."""
    while _before:
        name, module = _before.popitem()
        if isinstance(module, ModuleType):
            sys.modules[name] = module
        else:
            sys.modules.pop(name, None)


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
