"""Where the examples are: a folder of the wheel, or beside ``src`` in a checkout."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Final

import twinlake
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["load_example"]

_PACKAGE: Final = "twinlake.examples"


def load_example(name: str) -> ModuleType:
    """The module of an example.

    Raises:
        UserError: if twinlake was installed without its examples.
    """
    if _PACKAGE not in sys.modules and find_spec(_PACKAGE) is None:
        _load_package(Path(twinlake.__file__).parents[2] / "examples")
    return import_module(f"{_PACKAGE}.{name}")


def _load_package(folder: Path) -> None:
    """Import a folder under the name that the examples have in a wheel."""
    found = folder / "__init__.py"
    spec = spec_from_file_location(_PACKAGE, found, submodule_search_locations=[str(folder)])
    if not found.is_file() or spec is None or spec.loader is None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The examples that this command runs are not installed.",
            why=f"neither the package {_PACKAGE} nor the folder {folder} exists",
            fix="Install twinlake from its wheel, or run the command in a checkout.",
            fields={"folder": str(folder)},
        )
    package = module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)
