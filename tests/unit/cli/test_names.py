"""A command takes a path or a registered name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.running import document, run
from twinlake import Table
from twinlake.table import Catalog


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """A catalog that the environment names; the working folder is empty."""
    monkeypatch.setenv("TWINLAKE_CATALOG", str(tmp_path / "catalog.db"))
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    return Catalog(tmp_path / "catalog.db")


@pytest.mark.parametrize("word", ["orders", "Default.Orders", "twinlake.default.`ORDERS`"])
@pytest.mark.parametrize(
    "command", ["show", "schema", "head", "stats", "history", "files", "features", "log"]
)
def test_every_command_takes_a_name(names: Catalog, empty: Path, command: str, word: str) -> None:
    names.register("orders", empty)
    assert document(command, word) == document(command, empty)


def test_a_path_identifier_is_a_name(names: Catalog, empty: Path) -> None:
    assert document("show", f"delta.`{empty}`") == document("show", empty)


def test_a_name_is_changed_as_a_path_is(names: Catalog, empty: Path) -> None:
    names.register("orders", empty)
    assert run("alter", "orders", "--set", "a=b").exit_code == 0
    assert Table.open(empty).properties["a"] == "b"


def test_a_path_that_is_there_wins(names: Catalog, empty: Path) -> None:
    names.register("orders", empty)
    Table.create("orders", "other INT", durable=False)
    assert Table.open("orders").metadata.id in run("show", "orders", "--json").stdout


@pytest.mark.parametrize("word", ["nope", "two words"])
def test_an_unknown_word_is_a_path(names: Catalog, word: str) -> None:
    result = run("show", word)
    assert result.exit_code == 1
    assert "There is no Delta table at file://" in result.stderr


def test_an_unknown_dotted_name_tells_both_places(names: Catalog) -> None:
    result = run("show", "sales.nope")
    assert result.exit_code == 1
    assert "TWIN-TABLE-NOT-FOUND  There is no table named twinlake.sales.nope." in result.stderr
    assert "catalog.db" in result.stderr
    assert "the folder 'sales.nope' does not exist either" in result.stderr
