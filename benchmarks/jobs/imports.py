"""How long importing modules takes."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.jobs.interface import Outcome


class Import:
    """Imports the modules of the spec under the clock."""

    modules: tuple[str, ...] = ()

    def __init__(self, spec: dict[str, Any]) -> None:
        self.imported: list[str] = spec["modules"]

    def setup(self) -> None:
        """Nothing may be imported before."""

    def run(self) -> None:
        for name in self.imported:
            importlib.import_module(name)

    def check(self, result: None) -> Outcome:
        return Outcome(facts={}, notes={"result": result})
