"""Explore models of commits: the published model's, and a large one with and without reduction."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from benchmarks.jobs.interface import Outcome
from benchmarks.worker import peak_mb

if TYPE_CHECKING:
    from twinlake.verify.checker import Result
    from twinlake.verify.models import IcebergV2

OUR_MODULES: Final = ("numpy", "twinlake.verify", "twinlake.verify.models")
_WITHOUT: Final = ("NoDanglingDeleteFiles",)
"""Compaction leaves such files behind, so that the search would end with the first."""


def _large(spec: dict[str, Any]) -> IcebergV2:
    from twinlake.verify.models import IcebergV2

    return IcebergV2(
        fix="A", identity="canonical", col1_values=("jack", "sarah"), **spec["parameters"]
    )


class Seed:
    """The configuration of the published model, with its fix or without."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.fix: str | None = spec["fix"]

    def setup(self) -> None:
        """Nothing: the model is made under the clock."""

    def run(self) -> Result:
        from twinlake.verify import check
        from twinlake.verify.models import IcebergV2

        return check(IcebergV2(fix=self.fix))

    def check(self, result: Result) -> Outcome:
        if result.ok != (self.fix is not None):
            raise ValueError(f"with fix {self.fix} the verdict is {result.violated}")
        steps = 0 if result.trace is None else len(result.trace)
        return Outcome(facts={}, notes={"states": result.states, "steps": steps})


class Large:
    """Every state, then only those that the derived reduction stores; the tables must be the same.

    Both in one process, so that the tables themselves are compared.
    """

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.metrics: dict[str, float] = {}

    def setup(self) -> None:
        """Nothing: the model is made under the clock."""

    def run(self) -> dict[str, Any]:
        before = peak_mb()
        states, tables = self._explore(reduction=False)
        self.metrics["bytes a state"] = (peak_mb() - before) * 1024 * 1024 / states
        stored, kept = self._explore(reduction=True)
        return {"states": states, "stored": stored, "tables": len(tables), "same": tables == kept}

    def _explore(self, *, reduction: bool) -> tuple[int, frozenset[Any]]:
        from twinlake.verify.checker import explore

        start = time.process_time()
        space, found = explore(
            _large(self.spec), symmetry=True, reduction=reduction, without=_WITHOUT
        )
        self.metrics["reduced" if reduction else "all"] = time.process_time() - start
        if found.violations or not found.complete:
            raise ValueError(f"with reduction={reduction} the search ends otherwise")
        # A value is interned when a reached state has it.
        tables = frozenset(space.shared[space.variables.index("table")].values)
        return found.states, tables

    def check(self, result: dict[str, Any]) -> Outcome:
        if not result["same"]:
            raise ValueError("the reduction reaches other tables")
        return Outcome(facts=result, metrics=self.metrics)


class Loop:
    """Every state, one at a time."""

    modules = OUR_MODULES

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec

    def setup(self) -> None:
        """Nothing: the model is made under the clock."""

    def run(self) -> Result:
        from twinlake.verify import check

        return check(_large(self.spec), symmetry=True, without=_WITHOUT, engine="loop")

    def check(self, result: Result) -> Outcome:
        if not result.ok or result.options["engine"] != "loop":
            raise ValueError(f"the search ends otherwise: {result.violated}, {result.options}")
        return Outcome(facts={"states": result.states}, metrics={"all": result.cpu_seconds})
