"""Delta's own metadata domains as values, and one answer to damage whoever reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, V3, opened, twin
from tests.support.log_tables import commit
from twinlake.actions import DomainMetadata, find_clustering, find_row_tracking
from twinlake.errors import Code, CorruptTable
from twinlake.iceberg import sync_table
from twinlake.protocol import (
    CLUSTERING_DOMAIN,
    NO_MARK,
    ROW_TRACKING_DOMAIN,
    Clustering,
    Metadata,
    RowTracking,
)
from twinlake.schema import assign_mapping, parse_ddl
from twinlake.table import Table
from twinlake.table.twin.vectors_and_lineage import compare_next_row_id

DEEP = "[" * 50_000
BAD_CLUSTERING = {
    "empty": "", "no-json": "nonsense", "list": "[]", "null": "null", "no-key": "{}",
    "number": '{"clusteringColumns":7}', "none": '{"clusteringColumns":null}',
    "of-numbers": '{"clusteringColumns":[7]}', "parts": '{"clusteringColumns":[["a",null]]}',
    "no-parts": '{"clusteringColumns":[[]]}', "empty-part": '{"clusteringColumns":[[""]]}',
    "empty-text": '{"clusteringColumns":[""]}', "deep": DEEP,
}  # fmt: skip
UNKNOWN_COLUMN = '{"clusteringColumns":[["id"],["nowhere"]]}'
BAD_MARKS = {
    "empty": "", "no-json": "nonsense", "list": "[]", "null": "null", "no-key": "{}",
    "none": '{"rowIdHighWaterMark":null}', "text": '{"rowIdHighWaterMark":"7"}',
    "flag": '{"rowIdHighWaterMark":true}', "fraction": '{"rowIdHighWaterMark":7.5}',
    "negative": '{"rowIdHighWaterMark":-2}', "wide": '{"rowIdHighWaterMark":9223372036854775808}',
    "deep": DEEP,
}  # fmt: skip


def stated(name: str, text: str, *, removed: bool = False) -> DomainMetadata:
    return DomainMetadata(domain=name, configuration=text, removed=removed)


def put(table: Table, *domains: DomainMetadata) -> Table:
    """The next version, as another engine would write it."""
    commit(table.snapshot.store, table.version + 1, *domains)
    return table.refresh()


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ('{"clusteringColumns":[["a"],["s","x"]]}', (("a",), ("s", "x"))),
        ('{"clusteringColumns":["a","s.x"],"domainName":"delta.clustering"}', (("a",), ("s.x",))),
        ('{"clusteringColumns":[]}', ()),
    ],
    ids=["spark", "flat", "none"],
)
def test_clustering_is_parsed(text: str, columns: tuple[tuple[str, ...], ...]) -> None:
    found = Clustering.parse(text)
    assert found.columns == columns
    assert Clustering.parse(found.render()) == found


def test_clustering_is_rendered_as_delta_spark_does_and_keeps_what_it_does_not_know() -> None:
    found = Clustering.parse('{"clusteringColumns":[["a"]],"more":{"b":[1]}}')
    assert json.loads(found.render()) == {
        "clusteringColumns": [["a"]],
        "domainName": "delta.clustering",
        "more": {"b": [1]},
    }


@pytest.mark.parametrize("mode", ["none", "name"])
def test_clustering_is_found_in_the_schema(mode: str) -> None:
    schema = parse_ddl("a INT, `d.e` INT, s STRUCT<x: INT>")
    if mode == "name":
        schema, _ = assign_mapping(schema, name_for="p-{}".format)
    metadata = Metadata(configuration={"delta.columnMapping.mode": mode}).with_schema(schema)
    parts = [["a"], "d.e", "s.x"] if mode == "none" else [["p-1"], "p-2", "p-3.p-4"]
    found = Clustering.parse(json.dumps({"clusteringColumns": parts}))
    assert found.logical_paths(metadata) == (("a",), ("d.e",), ("s", "x"))
    inside = ("s", "x") if mode == "none" else ("p-3", "p-4")
    assert found.physical_paths(metadata)[2] == inside


def test_columns_that_are_not_there_are_named() -> None:
    metadata = Metadata().with_schema(parse_ddl("id INT, s STRUCT<x: INT>"))
    found = Clustering.parse('{"clusteringColumns":[["id"],["nowhere"],["s","y"]]}')
    with pytest.raises(CorruptTable, match=r"the table has no column nowhere, s\.y"):
        found.physical_paths(metadata)


@pytest.mark.parametrize("mark", [NO_MARK, 0, 17, 2**63 - 1])
def test_a_mark_is_parsed(mark: int) -> None:
    assert RowTracking.parse(f'{{"rowIdHighWaterMark":{mark}}}') == RowTracking(mark)
    assert json.loads(RowTracking(mark).render()) == {"rowIdHighWaterMark": mark}


def test_what_was_removed_is_not_parsed() -> None:
    other = stated("mine", "nonsense")
    assert find_clustering([other]) is None
    assert find_row_tracking([other]) is None
    gone = [
        other,
        *(stated(n, "x", removed=True) for n in (CLUSTERING_DOMAIN, ROW_TRACKING_DOMAIN)),
    ]
    assert find_clustering(gone) == Clustering()
    assert find_row_tracking(gone) == RowTracking(NO_MARK)


def _raises(domain: str, call: Callable[[], object]) -> None:
    with pytest.raises(CorruptTable) as caught:
        call()
    error = caught.value
    assert error.code is Code.LOG_CORRUPT
    assert error.fields["domain"] == domain
    assert error.what == f"The {domain} domain cannot be read."
    assert error.why
    assert error.fix


def _of_the_data_plane(table: Table) -> object:
    from twinlake.files import clustering_columns

    return clustering_columns(table.snapshot)


CLUSTERING_READERS: dict[str, Callable[[Table], object]] = {
    "detail": lambda table: table.detail(),
    "drop-column": lambda table: table.drop_column("n"),
    "conversion": lambda table: sync_table(table.snapshot),
    "data-plane": _of_the_data_plane,
}


@pytest.mark.parametrize("read", CLUSTERING_READERS.values(), ids=CLUSTERING_READERS.keys())
def test_every_reader_of_the_clustering_tells_damage_alike(
    tmp_path: Path, read: Callable[[Table], object]
) -> None:
    table = append(twin(tmp_path, "id INT, n INT"), tmp_path, [{"id": 1, "n": 2}])
    for text in (*BAD_CLUSTERING.values(), UNKNOWN_COLUMN):
        table = put(table, stated(CLUSTERING_DOMAIN, text))
        _raises(CLUSTERING_DOMAIN, lambda: read(table))  # noqa: B023
        assert len(table.files()) == 1


def _appended(table: Table) -> object:
    (add,) = table.snapshot.adds()
    return table.commit("WRITE", [add])


MARK_READERS: dict[str, Callable[[Table], object]] = {
    "append": _appended,
    "conversion": lambda table: sync_table(table.snapshot),
    "verify-twin": lambda table: list(compare_next_row_id(table.snapshot, 1, 3)),
}


@pytest.mark.parametrize("read", MARK_READERS.values(), ids=MARK_READERS.keys())
def test_every_reader_of_the_mark_tells_damage_alike(
    tmp_path: Path, read: Callable[[Table], object]
) -> None:
    table = append(twin(tmp_path, "id INT", properties=V3), tmp_path, [{"id": 1}])
    for text in BAD_MARKS.values():
        table = put(table, stated(ROW_TRACKING_DOMAIN, text))
        _raises(ROW_TRACKING_DOMAIN, lambda: read(table))  # noqa: B023
        assert len(table.files()) == 1


def test_the_conversion_goes_on_once_the_damage_is_mended(tmp_path: Path) -> None:
    """A version in between that cannot be read is passed over, not tried for ever."""
    table = append(twin(tmp_path, "id INT, n INT"), tmp_path, [{"id": 1, "n": 2}])
    sync_table(table.snapshot)
    table = put(table, stated(CLUSTERING_DOMAIN, "nonsense"))
    table = put(table, stated(CLUSTERING_DOMAIN, Clustering(columns=()).render()))
    done = sync_table(table.snapshot)
    assert done.version == table.version
    assert CLUSTERING_DOMAIN in done.rebuilt
    assert opened(tmp_path).sort_order().fields == []


def test_restoring_mends_the_clustering(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT", cluster_by=["id"], properties=V2, durable=False)
    table = append(table, tmp_path, [{"id": 1}])
    good = table.version
    table = put(table, stated(CLUSTERING_DOMAIN, "nonsense"))
    assert table.restore(good).detail().clustering_columns == ("id",)
