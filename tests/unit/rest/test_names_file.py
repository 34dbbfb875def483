"""A server takes over the tables of the catalog of names when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.iceberg.both_sides import twin
from tests.support.rest_catalog import rest_caller
from twinlake import Catalog, Table

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_tables_that_may_be_served_are_and_the_file_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lake, names = tmp_path / "lake", Catalog(tmp_path / "names.db")
    one, two = twin(lake / "one x", "id LONG"), twin(tmp_path / "elsewhere", "id LONG")
    Table.create(lake / "plain", "id LONG")
    names.create_namespace("sales")
    names.create_namespace("sales.eu")
    names.register("sales.eu.orders".replace("sales.eu", "`sales`"), one.location)
    names.register("outside", two.location)
    names.register("plain", str(lake / "plain"))
    names.register("gone", str(lake / "gone"))
    for _ in range(2):
        with rest_caller(tmp_path, names_file=tmp_path / "names.db") as server:
            found = server.ok("GET", "/v1/lake/namespaces")["namespaces"]
            assert found == [["sales"]]
            table = server.ok("GET", "sales/tables/orders")
            assert table["metadata"]["table-uuid"] == one.metadata.id
    assert {str(n) for n in names.names()} == {
        f"twinlake.{name}"
        for name in ("sales.orders", "default.outside", "default.plain", "default.gone")
    }
    for name in ("outside", "plain", "gone"):
        assert f"twinlake.default.{name} of" in caplog.text


def test_a_server_without_the_file_makes_none(tmp_path: Path) -> None:
    with rest_caller(tmp_path, names_file=tmp_path / "names.db"):
        assert not (tmp_path / "names.db").exists()


def test_a_file_that_cannot_be_read_does_not_keep_a_server_from_starting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "names.db").write_bytes(b"x" * 5000)
    with rest_caller(tmp_path, names_file=tmp_path / "names.db") as server:
        assert server.ok("GET", "/v1/lake/namespaces")["namespaces"] == []
    assert "are not served" in caplog.text
