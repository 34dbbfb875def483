"""The side-by-side with TLC: both explore the same model, or it is said that TLC is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.cases import tlc
from benchmarks.harness import TINY, Plan
from benchmarks.jobs.tlc import configuration, counts

if TYPE_CHECKING:
    from pathlib import Path

PRINTED = """\
TLC2 Version 2.15 of Day Month 20?? (rev: d5b5a7f)
Model checking completed. No error has been found.
17001 states generated, 7982 distinct states found, 0 states left on queue.
The depth of the complete state graph search is 13.
"""


def test_what_tlc_prints_is_understood() -> None:
    facts, version = counts(PRINTED)
    assert facts == {"generated": 17_001, "distinct": 7_982, "depth": 13}
    assert version == "2.15"


@pytest.mark.parametrize(
    "text",
    [
        "",
        PRINTED.replace("0 states left", "7 states left"),
        PRINTED.replace("No error has been found.", "Error: Invariant ConsistentRead is violated."),
    ],
    ids=["nothing", "unfinished", "violated"],
)
def test_a_search_that_did_not_end_well_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="did not come to an end"):
        counts(text)


def test_parameters_become_constants() -> None:
    parameters = tlc.CONFIGURATIONS["two keys, a lock"]
    lines = [line.strip() for line in configuration(dict(parameters)).splitlines()]
    assert lines[3:] == [
        "Writers = {w0, w1}",
        "Keys = {a, b}",
        "Values = {x, y}",
        "MaxOps = 3",
        "PutIfAbsent = FALSE",
        "Coordination = TRUE",
        "Partitioned = TRUE",
        "None = None",
    ]


def test_without_tlc_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tlc, "JAR", tmp_path / "tla2tools.jar")
    (result,) = tlc.run_tlc(Plan(runs=1, sizes=TINY, data=tmp_path))
    assert result.rows == ()
    assert result.notes == ("not run: TLC is not there; fetch it once with: make tlc",)
    assert "not run" in capsys.readouterr().out


@pytest.mark.skipif(
    tlc.what_is_missing(tlc.JAR) is not None, reason="TLC is fetched by make tlc, and needs Java"
)
@pytest.mark.process
def test_tlc_finds_the_same_states(tmp_path: Path) -> None:
    (result,) = tlc.run_tlc(Plan(runs=1, sizes=TINY, data=tmp_path))
    assert [row.bar for row in result.rows] == [tlc.BAR, tlc.BAR]
    facts = [sample.facts for taken in result.samples.values() for sample in taken]
    known = {"generated": 17_001, "distinct": 7_982, "depth": 13}
    assert facts == [{"generated": 1, "distinct": 1, "depth": 1}, known, known]
