"""Clustering columns as the sort order that Iceberg writers are offered."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, agree, opened
from tests.support.log_tables import commit
from twinlake.iceberg import sync_table
from twinlake.iceberg.format.sort_order import UNSORTED, sort_order
from twinlake.schema import Struct, assign_mapping, parse_ddl
from twinlake.table import Table
from twinlake.table.operations.create import clustering_domain


def schema() -> Struct:
    parsed = parse_ddl("a INT, s STRUCT<x: DATE, l: ARRAY<INT>>, v VARIANT")
    assert isinstance(parsed, Struct)
    found, _ = assign_mapping(parsed, name_for=lambda number: f"col-{number}", nested_ids=True)
    return found


def test_columns_become_fields_by_their_ids() -> None:
    order = sort_order((("col-2", "col-3"), ("col-1",)), schema())

    assert [field["source-id"] for field in order["fields"]] == [3, 1]
    assert order["fields"][0] == {
        "transform": "identity",
        "source-id": 3,
        "direction": "asc",
        "null-order": "nulls-first",
    }
    assert 0 < order["order-id"] < 2**31
    assert order["order-id"] != sort_order((("col-1",),), schema())["order-id"]


@pytest.mark.parametrize(
    "paths",
    [
        (),
        (("nowhere",),),
        (("col-1",), ("nowhere",)),
        (("col-2",),),
        (("col-2", "col-4"),),
        (("col-6",),),
        (("col-1", "deeper"),),
        ((),),
    ],
    ids=str,
)
def test_what_has_no_order_is_unsorted(paths: tuple[tuple[str, ...], ...]) -> None:
    assert sort_order(paths, schema()) == UNSORTED


def order_of(folder: Path) -> list[str]:
    """The names of the columns that the table is sorted by, as PyIceberg tells."""
    table = opened(folder)
    order = table.sort_order()
    assert order.order_id == table.metadata.default_sort_order_id
    assert table.sort_orders()[0].fields == []
    return [str(table.schema().find_column_name(field.source_id)) for field in order.fields]


def cluster(table: Table, *columns: str) -> Table:
    """``ALTER TABLE ... CLUSTER BY``."""
    found = clustering_domain(table.metadata, columns)
    commit(table.snapshot.store, table.version + 1, found)
    return table.refresh()


def test_a_clustered_table_is_offered_as_sorted(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path,
        "id INT, s STRUCT<x: INT>",
        cluster_by=["s.x", "id"],
        properties=V2,
        durable=False,
    )
    table = append(table, tmp_path, [{"id": 1, "s": {"x": 2}}])
    agree(table, tmp_path)
    assert order_of(tmp_path) == ["s.x", "id"]
    files = opened(tmp_path).inspect.files().to_pylist()
    assert [file["sort_order_id"] for file in files] == [None]

    first = opened(tmp_path).metadata
    table = table.rename_column("id", "number")
    agree(table, tmp_path)
    assert opened(tmp_path).metadata.default_sort_order_id == first.default_sort_order_id
    assert order_of(tmp_path) == ["s.x", "number"]


def test_a_change_of_the_clustering_makes_metadata_and_no_snapshot(tmp_path: Path) -> None:
    properties = {**V2, "delta.feature.clustering": "supported"}
    table = Table.create(tmp_path, "id INT, n INT", properties=properties, durable=False)
    table = append(table, tmp_path, [{"id": 1, "n": 2}])
    sync_table(table.snapshot)
    assert order_of(tmp_path) == []

    table = cluster(table, "n")
    assert not sync_table(table.snapshot).rebuilt
    assert order_of(tmp_path) == ["n"]
    table = cluster(append(table, tmp_path, [{"id": 2, "n": 1}]), "id", "n")
    agree(table, tmp_path)
    assert order_of(tmp_path) == ["id", "n"]
    assert len(opened(tmp_path).sort_orders()) == 3
    assert len(opened(tmp_path).metadata.snapshots) == 2

    table = cluster(table)
    agree(table, tmp_path)
    assert order_of(tmp_path) == []
    table = cluster(table, "n")
    agree(table, tmp_path)
    assert order_of(tmp_path) == ["n"]
    assert len(opened(tmp_path).sort_orders()) == 3


def test_the_order_does_not_hang_on_how_much_history_is_known(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT", cluster_by=["id"], properties=V2, durable=False)
    table = append(table, tmp_path, [{"id": 1}])
    sync_table(table.snapshot)
    carried = opened(tmp_path).metadata.default_sort_order_id

    table = append(table, tmp_path, [{"id": 2}])
    table.checkpoint()
    for version in range(table.version):
        (tmp_path / "_delta_log" / f"{version:020}.json").unlink()
    shutil.rmtree(tmp_path / "_iceberg")
    agree(Table.open(tmp_path), tmp_path)

    assert opened(tmp_path).metadata.default_sort_order_id == carried
    assert order_of(tmp_path) == ["id"]
