"""The side-by-side with Iceberg's reference server: run in a tiny size, or said to be not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks import rest_servers
from benchmarks.cases import CASES
from benchmarks.harness import TINY, Plan
from tests.unit.test_benchmarks import BARS

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [name for name in CASES if name.startswith("rest-")]


@pytest.mark.parametrize("name", NAMES)
def test_without_go_nothing_is_claimed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    (result,) = CASES[name].run(Plan(runs=1, sizes=TINY, data=tmp_path))

    assert result.rows == ()
    assert result.notes == ("not run: the load client is built from source: install Go",)
    assert "not run" in capsys.readouterr().out


@pytest.mark.process
@pytest.mark.skipif(
    rest_servers.what_is_missing(reference=True) is not None,
    reason="the reference server is fetched by make iceberg-rest; it needs a network namespace",
)
@pytest.mark.parametrize("name", ["rest-load", "rest-append"])
def test_both_servers_answer_the_same(name: str, tmp_path: Path) -> None:
    (result,) = CASES[name].run(Plan(runs=1, sizes=TINY, data=tmp_path))

    assert [row.bar for row in result.rows if row.bar is not None] == BARS[name]
    facts = [sample.facts for taken in result.samples.values() for sample in taken]
    assert facts == [facts[0]] * len(facts)
    assert facts[0]["snapshots"] >= 2


@pytest.mark.process
@pytest.mark.skipif(
    rest_servers.what_is_missing(reference=False) is not None,
    reason="the load client is built by Go; the server runs in a network namespace",
)
def test_appends_to_a_table_of_many_files(tmp_path: Path) -> None:
    (result,) = CASES["rest-large"].run(Plan(runs=1, sizes=TINY, data=tmp_path))

    assert [row.bar for row in result.rows if row.bar is not None] == BARS["rest-large"]
