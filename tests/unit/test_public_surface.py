"""What users may import: the list is pinned, loads lazily and has nothing that is not there."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import twinlake

PACKAGES = (
    "twinlake",
    "twinlake.protocol",
    "twinlake.spark",
    "twinlake.spark.exceptions",
    "twinlake.verify",
)
GOLDEN = Path(__file__).parent / "golden_public_names.txt"
EXPORTS = ("twinlake", "twinlake.log", "twinlake.schema", "twinlake.spark")


def _names() -> str:
    found = [f"{package}.{n}" for package in PACKAGES for n in _exported(package)]
    return "\n".join(found) + "\n"


def _exported(package: str) -> list[str]:
    return sorted(importlib.import_module(package).__all__)


def test_public_names_are_those_that_were_agreed_on() -> None:
    assert _names() == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("package", EXPORTS)
def test_every_exported_name_loads(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None, name
    assert set(module.__all__) <= set(dir(module))


def test_public_classes_and_functions_have_a_docstring() -> None:
    bare = [
        f"{package}.{name}"
        for package in PACKAGES
        for name in _exported(package)
        if callable(value := getattr(importlib.import_module(package), name)) and not value.__doc__
    ]
    assert bare == []


@pytest.mark.process
def test_checker_loads_no_other_package() -> None:
    code = "import sys, twinlake.verify; print(*sorted(m for m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    ours = {name.split(".")[1] for name in done.stdout.split() if name.startswith("twinlake.")}
    assert ours == {"_lazy_exports", "verify"}


def test_errors_can_be_caught_by_their_public_names() -> None:
    with pytest.raises(twinlake.UserError):
        twinlake.Table.open("no-such-table-here")
    assert issubclass(twinlake.ConcurrentAppendException, twinlake.ConflictError)
