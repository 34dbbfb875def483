"""Where a table is: paths and options that name the same store, and those that do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.table.making import create
from twinlake import Table
from twinlake.table.stores import shared_store


def test_a_relative_path_follows_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    create(Path("t"))
    monkeypatch.chdir(tmp_path / "two")
    assert not Table.exists("t")
    assert create(Path("t")).location == (tmp_path / "two" / "t").as_uri()


def test_spellings_of_one_place_share_a_store(tmp_path: Path) -> None:
    create(tmp_path)
    one, other = Table.open(tmp_path), Table.open(tmp_path.as_uri() + "/")
    assert one.snapshot.store is other.snapshot.store


@pytest.mark.parametrize(
    ("options", "shared"),
    [
        ({"region": "eu-west-1"}, True),
        ({"client_options": {"allow_http": True}}, True),
        ({"credential_provider": lambda: None}, False),
    ],
    ids=["text", "mapping", "callable"],
)
def test_option_values_of_any_kind_have_a_store(options: dict[str, Any], shared: bool) -> None:
    first, second = (shared_store("s3://bucket/places", True, options) for _ in range(2))
    assert (first is second) is shared


def test_other_options_make_another_store() -> None:
    one, other = (
        shared_store("s3://bucket/places", True, {"client_options": {"allow_http": flag}})
        for flag in (True, False)
    )
    assert one is not other
