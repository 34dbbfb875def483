"""Files of Spark's legacy calendar at every door: commit, check, upgrade, sync, REORG, import."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, NestedField, StructType, TimestamptzType

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import iceberg_rows
from tests.support.local_engine import LocalEngine
from tests.support.log_tables import commit, info
from tests.unit.cli.running import run
from tests.unit.table.twin.test_verify_twin import rewrite_avro
from twinlake import Table, import_iceberg
from twinlake.errors import CompatViolation, UserError

if TYPE_CHECKING:
    from twinlake.actions import AddFile

SPARK = "Apache-Spark/4.1.4 Delta-Lake/4.4.0"
NOW = {"org.apache.spark.version": "4.1.4"}
DATETIME = {**NOW, "org.apache.spark.legacyDateTime": ""}
INT96 = {**NOW, "org.apache.spark.legacyINT96": ""}
OLD, NEW = dt.datetime(1750, 3, 1, tzinfo=dt.UTC), dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
SCHEMA = "id INT, d DATE, t TIMESTAMP, s STRUCT<d: DATE>, l ARRAY<TIMESTAMP>, m MAP<DATE, INT>"


@dataclass(frozen=True)
class Kind:
    """How a file was written, and the rule it breaks."""

    keys: dict[str, str]
    columns: str = "d t s l m"
    value: dt.datetime = OLD
    options: dict[str, Any] = field(default_factory=dict)
    rule: str = "-26"

    def write(self, table: Table, folder: Path, number: int) -> AddFile:
        """The file; values that are not asked for are null."""
        day = self.value.date()
        row = {"d": day, "t": self.value, "s": {"d": day}, "l": [self.value], "m": {day: 1}}
        chosen = {name: row[name] for name in self.columns.split()}
        add = write_file(table, folder, [{"id": number, **chosen}])
        place = folder / add.path
        data = pq.read_table(place).replace_schema_metadata(self.keys)
        pq.write_table(data, place, **self.options)
        return msgspec.structs.replace(add, size=place.stat().st_size)


AS_INT96 = {"use_deprecated_int96_timestamps": True}
KINDS = {
    "dates": Kind(DATETIME, "d"),
    "timestamps": Kind(DATETIME, "t"),
    "a field of a struct": Kind(DATETIME, "s"),
    "elements": Kind(DATETIME, "l"),
    "keys of a map": Kind(DATETIME, "m"),
    "no minimum is known": Kind(DATETIME, "d", NEW, {"write_statistics": False}),
    "Spark 2.4": Kind({"org.apache.spark.version": "2.4.8"}, "d"),
    "legacy INT96": Kind(INT96, "t", NEW, AS_INT96),
    "INT96 of Spark 3.0": Kind({"org.apache.spark.version": "3.0.3"}, "t", NEW, AS_INT96),
    "INT96 of Hive": Kind({}, "t", NEW, AS_INT96, "-12"),
}
SOUND = {
    "from 1900 on": Kind(DATETIME, "d t s l m", NEW),
    "today's calendar": Kind(NOW, "d t s l m"),
    "no key": Kind({}, "d t s l m"),
    "nulls alone": Kind(DATETIME, ""),
}
FEATURES = {
    "icebergCompatV1": {"delta.enableIcebergCompatV1": "true"},
    "icebergCompatV2": {"delta.enableIcebergCompatV2": "true"},
    "icebergCompatV3": {"delta.enableIcebergCompatV3": "true", "delta.enableRowTracking": "true"},
    "icebergWriterCompatV1": {"delta.enableIcebergWriterCompatV1": "true"},
    "icebergWriterCompatV3": {"delta.enableIcebergWriterCompatV3": "true"},
}
BASE = "icebergCompatV2"


def twin(folder: Path, feature: str = BASE, schema: str = SCHEMA) -> Table:
    mode = "id" if "Writer" in feature else "name"
    properties = {"delta.columnMapping.mode": mode, **FEATURES[feature]}
    table = Table.create(folder, schema, properties=properties, durable=False)
    return append(table, folder, [{"id": 1}])


def by_another(table: Table, folder: Path, kind: Kind, number: int = 2) -> tuple[Table, AddFile]:
    """A commit of Delta Spark with such a file."""
    add = kind.write(table, folder, number)
    commit(table.snapshot.store, table.version + 1, info(engine_info=SPARK), add)
    return table.refresh(), add


kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
sound = pytest.mark.parametrize("kind", SOUND.values(), ids=SOUND)


@kinds
def test_a_commit_is_refused(tmp_path: Path, kind: Kind) -> None:
    table = twin(tmp_path)
    add = kind.write(table, tmp_path, 2)
    with pytest.raises(CompatViolation) as refused:
        table.commit("WRITE", [add])
    assert kind.rule in str(refused.value)
    assert add.path in str(refused.value)
    assert table.refresh().version == table.version


@pytest.mark.parametrize("feature", FEATURES)
def test_every_feature_refuses_it(tmp_path: Path, feature: str) -> None:
    # The first version knows no lists and no maps.
    table = twin(tmp_path, feature, "id INT, d DATE")
    add = KINDS["dates"].write(table, tmp_path, 2)
    with pytest.raises(CompatViolation) as refused:
        table.commit("WRITE", [add])
    assert "-26" in str(refused.value)


@kinds
def test_check_names_the_file(tmp_path: Path, kind: Kind) -> None:
    table, add = by_another(twin(tmp_path), tmp_path, kind)
    assert table.check(BASE).ok
    report = table.check(BASE, files=True)
    assert {violation.rule[-3:] for violation in report.violations} >= {kind.rule}
    assert all(add.path in violation.message for violation in report.violations)
    done = run("check", tmp_path, "--files", "--json")
    assert done.exit_code == 1
    assert add.path in done.stdout


@kinds
def test_sync_stops_before_it_and_an_upgrade_writes_it_again(tmp_path: Path, kind: Kind) -> None:
    table = twin(tmp_path)
    stays = {add.path for add in table.snapshot.adds()}
    table, bad = by_another(table, tmp_path, kind)
    with pytest.raises(CompatViolation) as stopped:
        table.iceberg.sync()
    assert stopped.value.fields["paths"] == [bad.path]
    assert table.iceberg.version == 1
    for in_place in (False, True):
        plan = table.upgrade(BASE, dry_run=True, in_place=in_place)
        assert [step.cost.files for step in plan.steps] == [1]
    assert table.upgrade(BASE, in_place=True, spark=LocalEngine()).done
    table = table.refresh()
    now = {add.path for add in table.snapshot.adds()}
    assert now > stays
    assert bad.path not in now
    assert table.check(BASE, files=True).ok
    table.iceberg.sync()
    assert table.iceberg.version == table.version
    assert sorted(row["id"] for row in iceberg_rows(tmp_path)) == [1, 2]


@sound
def test_what_both_sides_read_alike_is_let_through(tmp_path: Path, kind: Kind) -> None:
    table = twin(tmp_path)
    table = table.commit("WRITE", [kind.write(table, tmp_path, 2)])
    table, _ = by_another(table, tmp_path, kind, 3)
    assert table.check(BASE, files=True).ok
    assert table.upgrade(BASE, dry_run=True).steps == ()
    table.iceberg.sync()
    assert sorted(row["id"] for row in iceberg_rows(tmp_path)) == [1, 2, 3]


def plain(folder: Path, kind: Kind) -> tuple[Table, AddFile]:
    """A table without a compat feature, whose columns have ids in all files."""
    properties = {"delta.columnMapping.mode": "name"}
    table = Table.create(
        folder, "id INT, d DATE, t TIMESTAMP", properties=properties, durable=False
    )
    table = append(table, folder, [{"id": 1}])
    add = kind.write(table, folder, 2)
    return table.commit("WRITE", [add]), add


FLAT = {name: kind for name, kind in KINDS.items() if kind.columns in ("d", "t")}
flat = pytest.mark.parametrize("kind", FLAT.values(), ids=FLAT)


@flat
def test_uniform_writes_it_again(tmp_path: Path, kind: Kind) -> None:
    table, bad = plain(tmp_path, kind)
    assert table.upgrade_uniform(2, LocalEngine()).done
    table = table.refresh()
    assert bad.path not in {add.path for add in table.snapshot.adds()}
    assert table.check(BASE, files=True).ok


@flat
def test_a_plain_table_is_upgraded_in_place_without_it(tmp_path: Path, kind: Kind) -> None:
    """Files whose columns get other names stay, all but the one that cannot."""
    table, bad = plain(tmp_path, kind)
    stays = {add.path for add in table.snapshot.adds()} - {bad.path}
    plan = table.upgrade("icebergWriterCompatV1", in_place=True, spark=LocalEngine())
    assert plan.done, str(plan)
    table = table.refresh()
    now = {add.path for add in table.snapshot.adds()}
    assert now > stays
    assert bad.path not in now
    assert table.check("icebergWriterCompatV1", files=True).ok
    table.iceberg.sync()
    assert sorted(row["id"] for row in iceberg_rows(tmp_path)) == [1, 2]


def test_a_file_that_was_enabled_past_us_is_found(tmp_path: Path) -> None:
    table, bad = plain(tmp_path, KINDS["dates"])
    with pytest.raises(CompatViolation) as refused:
        table.set_properties({"delta.enableIcebergCompatV2": "true"})
    assert bad.path in json.dumps(refused.value.to_dict())


@pytest.mark.parametrize(
    ("keys", "options", "told"),
    [
        pytest.param(DATETIME, {}, "stores day, at, s.d in Spark's legacy calendar", id="legacy"),
        pytest.param(INT96, AS_INT96, "stores at in Spark's legacy calendar", id="legacy INT96"),
        pytest.param(NOW, {}, "", id="today's calendar"),
    ],
)
def test_an_iceberg_table_with_such_a_file_is_not_imported(
    tmp_path: Path, keys: dict[str, str], options: dict[str, Any], told: str
) -> None:
    schema = Schema(
        NestedField(1, "day", DateType()),
        NestedField(2, "at", TimestamptzType()),
        NestedField(3, "s", StructType(NestedField(4, "d", DateType()))),
    )
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("d")
    table = catalog.create_table("d.t", schema)
    row = {"day": OLD.date(), "at": OLD, "s": {"d": OLD.date()}}
    table.append(pa.Table.from_pylist([row], schema=table.schema().as_arrow()))
    (manifest,) = table.inspect.manifests()["path"].to_pylist()
    rewrite_avro(local(manifest), lambda entries: [_rewritten(entries[0], keys, options)])
    catalog.engine.dispose()
    if not told:
        assert import_iceberg(table.metadata_location, durable=False).is_twin
        return
    with pytest.raises(UserError) as refused:
        import_iceberg(table.metadata_location, durable=False)
    assert told in str(refused.value)


def _rewritten(entry: Any, keys: dict[str, str], options: dict[str, Any]) -> Any:
    """The entry of a manifest after its file was written again as Spark would have."""
    place = local(entry["data_file"]["file_path"])
    data = pq.ParquetFile(place).read().replace_schema_metadata(keys)
    pq.write_table(data, place, **options)
    entry["data_file"]["file_size_in_bytes"] = place.stat().st_size
    return entry


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))
