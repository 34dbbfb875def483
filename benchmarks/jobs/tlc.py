"""One configuration of the Delta log, explored by our checker or by TLC, process and all."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.jobs.interface import Outcome

if TYPE_CHECKING:
    from twinlake.verify.checker import Result

MODULE: Final = Path(__file__).resolve().parent.parent / "tla" / "DeltaLog.tla"

_COUNTS: Final = re.compile(r"^(\d+) states generated, (\d+) distinct states found, 0 states left")
_DEPTH: Final = re.compile(r"^The depth of the complete state graph search is (\d+)\.")
_VERSION: Final = re.compile(r"^TLC2 Version (\S+)")


class Ours:
    """Our checker, state by state and without any reduction, as TLC goes."""

    modules = ("twinlake.verify", "twinlake.verify.models")

    def __init__(self, spec: dict[str, Any]) -> None:
        self.parameters: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in spec["parameters"].items()
        }

    def setup(self) -> None:
        """Nothing: the model is made under the clock."""

    def run(self) -> Result:
        from twinlake.verify import check
        from twinlake.verify.models import DeltaLog

        # TLC is not asked for what lasts in the end either.
        return check(DeltaLog(**self.parameters), without=("EventuallyCompletes",))

    def check(self, result: Result) -> Outcome:
        if not result.ok:
            raise ValueError(f"the search ends otherwise: {result.violated}")
        return Outcome(
            facts={"generated": result.generated, "distinct": result.states, "depth": result.depth},
            metrics={"process": _cpu_seconds(resource.RUSAGE_SELF), "search": result.cpu_seconds},
        )


class Tlc:
    """TLC with one worker on our own specification of the same model."""

    modules: tuple[str, ...] = ()

    def __init__(self, spec: dict[str, Any]) -> None:
        self.jar: str = spec["jar"]
        self.java: str = spec["java"]
        self.parameters: dict[str, Any] = spec["parameters"]
        self.folder = Path(spec["scratch"])

    def setup(self) -> None:
        shutil.copy(MODULE, self.folder)
        (self.folder / "DeltaLog.cfg").write_text(configuration(self.parameters), encoding="ascii")

    def run(self) -> str:
        command = [
            self.java,
            # The collector that TLC asks for.
            "-XX:+UseParallelGC",
            f"-Djava.io.tmpdir={self.folder}",
            *("-cp", self.jar, "tlc2.TLC"),
            *("-workers", "1", "-deadlock", "-metadir", str(self.folder / "states")),
            *("-config", "DeltaLog.cfg", "DeltaLog.tla"),
        ]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(f"TLC failed:\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}")
        return done.stdout

    def check(self, result: str) -> Outcome:
        facts, version = counts(result)
        return Outcome(
            facts=facts,
            notes={"version": version},
            metrics={"process": _cpu_seconds(resource.RUSAGE_CHILDREN)},
        )


def configuration(parameters: dict[str, Any]) -> str:
    """The parameters of our model as a configuration of TLC.

    >>> print(configuration({"max_ops": 2}).splitlines()[6])
      MaxOps = 2
    """
    wanted = {
        "writers": 2,
        "col1_values": ("a",),
        "col2_values": ("x", "y"),
        "max_ops": 3,
        "put_if_absent": True,
        "coordination": False,
        "partitioned": True,
        **parameters,
    }
    constants = {
        "Writers": _names(f"w{number}" for number in range(wanted["writers"])),
        "Keys": _names(wanted["col1_values"]),
        "Values": _names(wanted["col2_values"]),
        "MaxOps": str(wanted["max_ops"]),
        "PutIfAbsent": str(wanted["put_if_absent"]).upper(),
        "Coordination": str(wanted["coordination"]).upper(),
        "Partitioned": str(wanted["partitioned"]).upper(),
        "None": "None",
    }
    lines = [f"  {name} = {value}" for name, value in constants.items()]
    head = ["SPECIFICATION Spec", "INVARIANTS ValidDeltaLog ConsistentRead", "CONSTANTS"]
    return "\n".join([*head, *lines]) + "\n"


def counts(text: str) -> tuple[dict[str, int], str]:
    """What TLC printed: states generated and distinct, depth; and its version."""
    facts: dict[str, int] = {}
    version = "unknown"
    for line in text.splitlines():
        if found := _COUNTS.match(line):
            facts |= {"generated": int(found[1]), "distinct": int(found[2])}
        elif found := _DEPTH.match(line):
            facts["depth"] = int(found[1])
        elif found := _VERSION.match(line):
            version = found[1]
    if len(facts) < 3 or "No error has been found." not in text:
        raise ValueError(f"TLC did not come to an end:\n{text[-2_000:]}")
    return facts, version


def _names(values: Any) -> str:
    return "{" + ", ".join(values) + "}"


def _cpu_seconds(whose: int) -> float:
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime
