"""What ``twinlake.spark`` offers is what it says, in whatever order its modules are loaded."""

from __future__ import annotations

import pkgutil
from types import ModuleType

import pytest

import twinlake.spark


def test_no_module_takes_the_place_of_a_public_name() -> None:
    # Loading a module puts it into its package under its own name, over anything of that name.
    modules = {module.name for module in pkgutil.iter_modules(twinlake.spark.__path__)}
    assert modules.isdisjoint(twinlake.spark.__all__)


@pytest.mark.parametrize("name", twinlake.spark.__all__)
def test_names_lead_to_what_they_name(name: str) -> None:
    found = getattr(twinlake.spark, name)
    assert callable(found)
    assert not isinstance(found, ModuleType)
    assert found.__name__ == name
    assert name in dir(twinlake.spark)
