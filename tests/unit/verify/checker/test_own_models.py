"""Models of one's own: what the how-to shows, and a model that was written from it alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.naive_search import naive_search
from tests.unit.verify.checker.toys import At, Lamp
from tests.unit.verify.checker.two_phase_commit import TwoPhaseCommit
from twinlake.cli import main
from twinlake.verify import InitialState, Model, Next, Role, action, check

HERE = Path(__file__).parent
HOW_TO = Path(__file__).parents[4] / "docs/how-to/write-a-model.md"


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["verify", "run", *map(str, arguments)])


@pytest.mark.parametrize("crashes", [False, True])
@pytest.mark.parametrize("impatient", [False, True])
def test_two_phase_commit(crashes: bool, impatient: bool) -> None:
    model = TwoPhaseCommit(participants=3, crashes=crashes, impatient=impatient)
    states, verdicts = naive_search(model)
    for symmetry in (False, True):
        for reduction in (False, True):
            result = check(model, stop_at_first=False, symmetry=symmetry, reduction=reduction)
            known = {n: v for n, v in result.verdicts.items() if v != "not checked"}
            assert known.items() <= verdicts.items()
    assert check(model, stop_at_first=False).states == states
    assert verdicts["AllAgree"] == ("violated" if impatient else "holds")
    # The coordinator that crashes leaves those that are ready waiting for ever.
    assert verdicts["EverybodyKnows"] == ("violated" if crashes else "holds")


def test_the_command_says_how_it_ended() -> None:
    file = HERE / "two_phase_commit.py"
    assert run(file).exit_code == 0
    impatient = run(file, "--set", "impatient=yes")
    assert impatient.exit_code == 1
    assert "one has committed, another has aborted" in impatient.output
    assert run(file, "--max-states", 5).exit_code == 3
    assert "given up" not in run(file, "--symmetry").output


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--set", "sites=3"], "sets no parameter of TwoPhaseCommit"),
        (["--set", "participants=many"], "cannot be used"),
        (["--model", "ThreePhaseCommit"], "has no model 'ThreePhaseCommit'"),
        (["--set", "participants=0"], None),
    ],
)
def test_arguments_that_cannot_be_used(arguments: list[str], text: str | None) -> None:
    result = run(HERE / "two_phase_commit.py", *arguments)
    if text is None:
        assert result.exit_code in (0, 1, 2)
        assert "Traceback" not in result.output
        return
    assert result.exit_code == 2
    assert text in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("x = 1", "No class in it is a twinlake.verify.Model"),
        (
            "from twinlake.verify import Model\nclass One(Model): pass\nclass Two(Model): pass\n",
            "It has the models One, Two",
        ),
        (
            "from twinlake.verify import Model, Role\nclass One(Model):\n"
            "    roles = (Role(name='A'),)\n    def initial(self): return iter(())\n",
            "has no initial state",
        ),
    ],
)
def test_files_that_cannot_be_used(source: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(source)
    result = run(file)
    assert result.exit_code == 2, result.output
    assert text in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_a_lasso_is_a_path_and_a_cycle(tmp_path: Path) -> None:
    result = check(Lamp(fair_leaving=False))
    (violation,) = result.violations
    assert violation.trace.cycle_from == 2
    first, last = violation.trace.steps[1], violation.trace.steps[-1]
    assert (first.action, last.action) == ("Switch", "Switch")
    # Once round: the lamp is as it was.
    assert first.changes["lit"]["from"] == last.changes["lit"]["to"]
    file = tmp_path / "lamp.py"
    toys = (HERE / "toys.py").read_text()
    file.write_text(toys)
    shown = run(file, "--model", "Lamp", "--set", "fair_leaving=no")
    assert shown.exit_code == 1
    assert "Step 1 to 1" not in shown.output
    assert "Steps 2 to 3 repeat for ever" in shown.output
    data = json.loads(run(file, "--model", "Lamp", "--set", "fair_leaving=no", "--json").output)
    assert data["violations"][0]["cycle_from"] == 2


class Branching(Model):
    """An action with an outcome that never comes about."""

    @property
    def roles(self) -> tuple[Role, ...]:
        return (Role(name="Actor"),)

    def initial(self) -> Iterator[InitialState]:
        yield InitialState({"x": 0}, (At("GO"),))

    @action(at="GO")
    def go(self, _actor: At, x: int) -> Iterator[Next]:
        if x:
            yield Next(At("NEVER"))
        yield Next(At("DONE"))


def test_coverage_is_told_by_action_and_branch() -> None:
    result = check(Branching())
    assert result.unreached == ()
    ((name, lines),) = result.branches.items()
    assert name == "Go"
    never, taken = sorted(lines)
    assert lines == {never: False, taken: True}
    assert result.untaken_branches == (f"Go, line {never}",)


def test_the_how_to_shows_what_is_so(tmp_path: Path) -> None:
    text = HOW_TO.read_text(encoding="utf-8")
    file = tmp_path / "lock.py"
    file.write_text(text.split("```python\n")[1].split("```")[0])
    assert run(file).exit_code == 0
    broken = run(file, "--set", "locked=no")
    assert broken.exit_code == 1
    assert "NothingIsLost" in broken.output
    assert run(file, "--set", "writers=5", "--symmetry").exit_code == 0
