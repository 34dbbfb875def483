"""``twinlake optimize``: a preview unless told to do it, and a clear word without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tests.unit.cli.conftest import file
from tests.unit.cli.running import document, lines, run
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _grown(orders: Path) -> Path:
    table = Table.open(orders, durable=False)
    physical = next(iter(table.snapshot.adds())).partition_values
    (name,) = physical
    more = [file(number, "2024-01-01", number) for number in (3, 4)]
    values = {name: "2024-01-01"}
    renamed = [msgspec.structs.replace(add, partition_values=values) for add in more]
    table.commit("WRITE", renamed, parameters={"mode": "Append"})
    return orders


def test_optimize_previews_unless_told_to_do_it(orders: Path) -> None:
    before = Table.open(_grown(orders)).version
    found = document("optimize", orders)
    # Three files of one day; the one of another day is left alone.
    assert (found["files"], found["new_files"], found["dry_run"]) == (3, 1, True)
    assert (found["files_considered"], found["size_in_bytes"]) == (4, 8_000)
    assert found["version"] is None
    assert Table.open(orders).version == before
    assert "3 files would become 1 file. Nothing was changed" in lines("optimize", orders)[0]


def test_optimize_takes_the_partitions_and_the_size_it_is_told(orders: Path) -> None:
    _grown(orders)
    found = document("optimize", orders, "--where", "day = '2024-01-01'")
    assert (found["files"], found["files_considered"]) == (3, 3)
    assert document("optimize", orders, "--target-size", "1")["files"] == 0
    assert "nothing to compact" in lines("optimize", orders, "--where", "day > '2030-01-01'")[0]


def test_optimize_refuses_other_columns(orders: Path) -> None:
    result = run("optimize", orders, "--where", "id = 1")
    assert result.exit_code == 1
    assert "not partition columns" in result.stderr


def test_optimize_says_what_to_install(orders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = run("optimize", _grown(orders), "--yes")
    assert result.exit_code == 1
    assert "TWIN-SPARK-REQUIRED" in result.stderr
    assert "Install Java 17 or 21" in result.stderr
