"""Tables written by real Delta Spark, opened here and compared with Delta Spark's own view."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from tests.support.engines.comparing import assert_same_state
from tests.support.engines.delta_tables import KINDS, expected, rows
from twinlake.actions import AddCDCFile, DeletionVectorDescriptor
from twinlake.log import read_checksum, read_commit, verify_checksum
from twinlake.log.deletion_vectors import read_dv
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from tests.support.engines.delta_tables import Expected, PeerTables

pytestmark = pytest.mark.spark

TRAVELLED = ["plain_25_commits", "in_commit_timestamps", "type_widening", "log_compaction"]


# --- what the log says, with nothing of ours ------------------------------------------------------


def _leaves(schema: dict[str, Any], mapped: bool) -> Iterator[Any]:
    """Logical path, physical path and type of every column outside arrays and maps."""
    for field in schema["fields"]:
        physical = field["metadata"].get("delta.columnMapping.physicalName", field["name"])
        name = physical if mapped else field["name"]
        kind = field["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            for logical, below, leaf in _leaves(kind, mapped):
                yield (field["name"], *logical), (name, *below), leaf
        else:
            yield (field["name"],), (name,), kind


def _typed(value: Any, kind: Any) -> Any:
    """A value of the log's statistics as a Python value of the column's type."""
    if value is None or not isinstance(kind, str):
        return value
    if kind == "date":
        return dt.date.fromisoformat(value)
    if kind == "timestamp":
        return dt.datetime.fromisoformat(value)
    return Decimal(str(value)) if kind.startswith("decimal") else value


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _statistics(stats: Mapping[str, Any] | None, theirs: Expected) -> dict[str, Any]:
    """What the log says of each column of a file that has any statistics."""
    mapped = theirs.properties.get("delta.columnMapping.mode", "none") != "none"
    found: dict[str, Any] = {}
    for logical, physical, kind in _leaves(theirs.schema, mapped):
        if logical[0] in theirs.partition_columns:
            continue
        ordered = isinstance(kind, str) and kind not in ("binary", "boolean")
        found[".".join(logical)] = (
            _typed(_at((stats or {}).get("minValues"), physical), kind) if ordered else None,
            _typed(_at((stats or {}).get("maxValues"), physical), kind) if ordered else None,
            _at((stats or {}).get("nullCount"), physical),
        )
    return found


def _our_statistics(stats: Mapping[str, Any] | None, columns: Mapping[str, Any]) -> dict[str, Any]:
    return {
        column: tuple(
            _at((stats or {}).get(name), tuple(column.split(".")))
            for name in ("min_values", "max_values", "null_count")
        )
        for column in columns
    }


def _partition(value: str | None, kind: str) -> Any:
    """A partition value of the log as a Python value of the column's type."""
    if value is None or value == "":
        return None
    if kind in ("long", "integer"):
        return int(value)
    if kind == "boolean":
        return value == "true"
    if kind == "timestamp":
        moment = dt.datetime.fromisoformat(value)
        return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return _typed(value, kind)


# --- the comparison -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_state_is_delta_sparks_own(kind: str, peer_tables: PeerTables) -> None:
    theirs = peer_tables.expected(kind)
    table = Table.open(peer_tables.path(kind))
    assert_same_state(table, theirs)
    assert table.snapshot.timestamp_ms == theirs.timestamp_ms


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_and_partition_values_are_typed_as_written(
    kind: str, peer_tables: PeerTables
) -> None:
    theirs = peer_tables.expected(kind)
    kinds = {field["name"]: field["type"] for field in theirs.schema["fields"]}
    for file in Table.open(peer_tables.path(kind)).files().to_pylist():
        recorded = theirs.files[file["path"]]
        stats = recorded.stats or {}
        assert file["num_records"] == stats.get("numRecords")
        columns = _statistics(stats, theirs)
        assert _our_statistics(file["stats"], columns) == columns
        assert (file["stats"] or {}).get("tight_bounds") == stats.get("tightBounds")
        assert (file["partition_values"] or {}) == {
            name: _partition(recorded.partition_values[name], kinds[name])
            for name in theirs.partition_columns
        }


@pytest.mark.parametrize("kind", KINDS)
def test_checksum_file_verifies_here(kind: str, peer_tables: PeerTables) -> None:
    snapshot = Table.open(peer_tables.path(kind)).snapshot
    checksum = read_checksum(snapshot.store, snapshot.version)
    assert checksum is not None
    assert verify_checksum(snapshot, checksum) == []


@pytest.mark.parametrize("kind", ["plain_25_commits", "column_mapping_name", "clustering"])
def test_history_says_the_same(
    kind: str, peer_tables: PeerTables, delta_spark: SparkSession
) -> None:
    path = peer_tables.path(kind)
    theirs = delta_spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
    ours = Table.open(path).history()
    assert [(r.version, r.operation, r.read_version, r.is_blind_append) for r in ours] == [
        (r["version"], r["operation"], r["readVersion"], r["isBlindAppend"]) for r in theirs
    ]
    # Delta Spark's history shows every parameter as text, whatever the commit holds.
    assert [_as_text(r.operation_parameters) for r in ours] == [
        r["operationParameters"] for r in theirs
    ]
    assert [r.operation_metrics for r in ours] == [r["operationMetrics"] for r in theirs]
    assert [r.timestamp for r in ours] == [_millis(r["timestamp"]) for r in theirs]


def _as_text(parameters: Mapping[str, Any]) -> dict[str, str | None]:
    return {
        k: v if v is None or isinstance(v, str) else json.dumps(v) for k, v in parameters.items()
    }


def _millis(moment: dt.datetime) -> int:
    """Spark hands out timestamps in the zone of this process, without saying so."""
    return round(moment.timestamp() * 1000)


@pytest.mark.parametrize("kind", TRAVELLED)
def test_every_version_in_the_middle_is_the_same(
    kind: str, peer_tables: PeerTables, delta_spark: SparkSession
) -> None:
    path = peer_tables.path(kind)
    last = peer_tables.expected(kind).version
    for version in sorted({1, last // 2, last - 1}):
        table = Table.open(path, version)
        assert_same_state(table, expected(delta_spark, path, version))


@pytest.mark.parametrize("kind", ["plain_25_commits", "in_commit_timestamps"])
def test_time_travel_by_timestamp_finds_the_same_version(
    kind: str, peer_tables: PeerTables, delta_spark: SparkSession
) -> None:
    path = peer_tables.path(kind)
    history = Table.open(path).history()
    for record in (history[0], history[len(history) // 2]):
        for moment in (record.timestamp, record.timestamp - 1):
            text = dt.datetime.fromtimestamp(moment / 1000, dt.UTC).strftime("%F %T.%f")
            reader = delta_spark.read.format("delta").option("timestampAsOf", text)
            theirs = reader.load(str(path)).count()
            files = Table.open(path, timestamp=moment).files()
            assert sum(files["num_records"].to_pylist()) == theirs


def test_deletion_vectors_mark_the_rows_delta_spark_leaves_out(
    peer_tables: PeerTables, delta_spark: SparkSession
) -> None:
    path = peer_tables.path("deletion_vectors")
    live = {row["id"] for row in rows(delta_spark, path)}
    table = Table.open(path)
    marked = 0
    for file in table.files().to_pylist():
        raw = delta_spark.read.parquet(str(path / unquote(file["path"])))
        written = raw.select("id", "_metadata.row_index").collect()
        deleted = {row["row_index"] for row in written if row["id"] not in live}
        vector = file["deletion_vector"]
        descriptor = vector and DeletionVectorDescriptor(**vector)
        ours = set(read_dv(table.snapshot.store, descriptor)) if descriptor else set()
        assert ours == deleted
        marked += len(ours)
    assert marked > 0
    assert table.snapshot.counters.num_deleted_records == marked


def test_change_data_files_are_in_the_commits(peer_tables: PeerTables) -> None:
    path = peer_tables.path("change_data_feed")
    store = Table.open(path).snapshot.store
    changes = {
        version: [a for a in read_commit(store, version) if isinstance(a, AddCDCFile)]
        for version in range(4)
    }
    assert [version for version, files in changes.items() if files] == [2, 3]
    for file in (file for files in changes.values() for file in files):
        assert (path / unquote(file.path)).stat().st_size == file.size
        assert not file.data_change


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("s = 'a b'", {1}),
        ("s = 'ü☃'", {5}),
        ("s = 'tab\\tnl\\n'", {8}),
        ("d < DATE'2000-01-01'", {91}),
        ("d IS NULL", {90}),
        ("s = 'plain' AND n = 12.5 AND b", {0}),
        ("ts < TIMESTAMP'2000-01-01 00:00:00' OR s IS NULL", {90, 91}),
    ],
)
def test_partition_predicates_find_the_files_of_the_rows(
    where: str, ids: set[int], peer_tables: PeerTables, delta_spark: SparkSession
) -> None:
    path = peer_tables.path("partitioned")
    frame = delta_spark.read.format("delta").load(str(path)).where(where)
    assert {row["id"] for row in frame.select("id").collect()} == ids
    found = Table.open(path).files(where).to_pylist()
    assert {file["stats"]["min_values"]["id"] for file in found} == ids
