"""``twinlake schema``: a tree, with ids where column mapping has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.running import check_golden, document, lines, run
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path

DDL = (
    "id BIGINT NOT NULL COMMENT 'the key', day DATE, "
    "lines ARRAY<STRUCT<sku: STRING NOT NULL, prices: MAP<STRING, DECIMAL(10,2)>>>"
)


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    path = tmp_path / "nested"
    properties = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
    Table.create(path, DDL, ["day"], properties, name="orders", durable=False)
    return path


def test_tree(nested: Path) -> None:
    check_golden("schema_tree", run("schema", nested).stdout)


def test_tree_with_ids(nested: Path) -> None:
    text = re.sub(r"col-[0-9a-f-]{36}", "PHYSICAL", run("schema", nested, "--ids").stdout)
    check_golden("schema_tree_with_ids", text)


def test_a_table_without_column_mapping_has_no_ids(empty: Path) -> None:
    assert lines("schema", empty, "--ids")[1:] == [" |-- id: INT"]
    (column,) = document("schema", empty)["columns"]
    assert (column["id"], column["physical_name"]) == (None, None)


def test_json_has_the_tree_with_ids(nested: Path) -> None:
    found = document("schema", nested)
    assert set(found) == {"location", "version", "column_mapping", "columns"}
    assert found["column_mapping"] == "name"
    assert [column["name"] for column in found["columns"]] == ["id", "day", "lines"]
    assert [column["partition"] for column in found["columns"]] == [False, True, False]
    (element,) = found["columns"][2]["children"]
    assert element["type"].startswith("STRUCT<")
    sku, prices = element["children"]
    assert (sku["name"], sku["nullable"], sku["children"]) == ("sku", False, [])
    assert [part["name"] for part in prices["children"]] == ["key", "value"]
    assert all(isinstance(part["id"], int) for part in prices["children"])


def test_older_versions(orders: Path) -> None:
    assert document("schema", orders, "--version", 0)["columns"][1]["name"] == "name"
    assert document("schema", orders)["columns"][1]["name"] == "title"


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    result = run("schema", tmp_path / "nowhere")
    assert result.exit_code == 1
    assert result.stderr.startswith("TWIN-TABLE-NOT-FOUND")
