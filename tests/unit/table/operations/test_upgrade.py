"""Upgrades of real tables, with an engine that works in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.support.data_files import append, write_file
from tests.support.local_engine import LocalEngine, LocalRewriter, rows_of
from twinlake import Table
from twinlake.compat import Plan, StepKind, StepState
from twinlake.errors import Code, CompatViolation, ConflictError, UserError
from twinlake.log.deletion_vectors import dv_key, write_dv_file
from twinlake.runtime import Runtime, SystemClock
from twinlake.schema import ColumnMappingMode, Struct, physical_name, walk_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from twinlake.actions import AddFile
    from twinlake.runtime import RewriteRequest

Row = dict[str, Any]
HOUR = 3_600_000
STRICT = "icebergWriterCompatV1"
SCHEMA = (
    "id INT, b TINYINT, p STRING, s STRUCT<x: SMALLINT, y: STRING>, "
    "a ARRAY<STRUCT<v: TINYINT>>, m MAP<STRING, SMALLINT>"
)
VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
NO_WAIT = {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}
NAME_MODE = {"delta.columnMapping.mode": "name"}
MESSY = {**VECTORS, **FEED, **NO_WAIT}


class LaterClock(SystemClock):
    """The clock of the machine, so many milliseconds ahead."""

    def __init__(self, ahead_ms: int) -> None:
        self._ahead_ms = ahead_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._ahead_ms


def rows(*ids: int, p: str = "x") -> list[Row]:
    return [
        {
            "id": n,
            "b": n % 100,
            "p": p,
            "s": {"x": n, "y": f"y{n}"} if n % 3 else None,
            "a": [{"v": 1}, {"v": None}],
            "m": [("k", n)],
        }
        for n in ids
    ]


def hide(table: Table, folder: Path, *positions: int) -> Table:
    """Hide rows of the first file."""
    add = min(table.snapshot.adds(), key=lambda a: a.path)
    data, (vector,) = write_dv_file([positions], UUID(int=7))
    (folder / dv_key(UUID(int=7))).write_bytes(data)
    marked = msgspec.structs.replace(add, deletion_vector=vector)
    return table.commit("DELETE", [add.remove(deletion_timestamp=5), marked])


def make(
    folder: Path,
    properties: Mapping[str, str] | None = None,
    *,
    schema: str = SCHEMA,
    partition_by: Sequence[str] = (),
) -> Table:
    table = Table.create(
        folder, schema, properties=properties, partition_by=partition_by, durable=False
    )
    return append(table, folder, rows(1, 2, 3), rows(4, 5, p="y"))


def kinds(plan: Plan) -> list[str]:
    return [":".join(filter(None, (step.kind, step.subject))) for step in plan.steps]


def settled(table: Table, target: str = STRICT) -> Table:
    """The table as it is now, which keeps the promise down to its footers."""
    now = Table.open(table.location)
    report = now.check(target, files=True)
    assert report.ok, str(report)
    return now


# Strict


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["flat", "partitioned"])
@pytest.mark.parametrize("mode", [{}, NAME_MODE], ids=["unmapped", "by name"])
def test_messy_table_becomes_compliant(
    tmp_path: Path, mode: dict[str, str], partition_by: tuple[str, ...]
) -> None:
    table = make(tmp_path, {**MESSY, **mode}, partition_by=partition_by)
    table = hide(table, tmp_path, 0)
    before = rows_of(table.snapshot)
    plan = table.upgrade(STRICT, spark=LocalEngine())
    assert plan.done, str(plan)
    assert kinds(plan) == ["switch", "convert", "drop_feature:deletionVectors", "enable"]
    after = settled(table)
    assert rows_of(after.snapshot) == before
    assert after.properties["delta.enableIcebergWriterCompatV1"] == "true"
    assert not after.protocol.is_supported("deletionVectors")
    assert not after.protocol.is_supported("checkpointProtection")
    assert {physical_name(f) for _, f in walk_fields(after.schema)} == {
        f"col-{n}" for n in range(1, 10)
    }
    assert all((add.tags or {})["ICEBERG_COMPAT_VERSION"] == "2" for add in after.snapshot.adds())
    # Nothing is left to do.
    again = after.upgrade(STRICT)
    assert again.done
    assert again.steps == ()
    assert Table.open(table.location).version == after.version


def test_rows_do_not_count_as_changed(tmp_path: Path) -> None:
    table = make(tmp_path, FEED)
    table.upgrade(STRICT, spark=LocalEngine())
    for record in sorted(tmp_path.glob("_delta_log/*.json"))[2:]:
        actions = [json.loads(line) for line in record.read_text().splitlines()]
        files = [a[kind] for a in actions for kind in ("add", "remove") if kind in a]
        assert not any(file["dataChange"] for file in files)


def test_row_tracking_is_switched_off(tmp_path: Path) -> None:
    table = make(tmp_path, {"delta.enableRowTracking": "true"})
    before = rows_of(table.snapshot)
    plan = table.upgrade(STRICT, spark=LocalEngine())
    assert plan.done
    assert plan.steps[0].why == ("IWC1-16",)
    after = settled(table)
    assert rows_of(after.snapshot) == before
    assert after.protocol.is_supported("rowTracking")


def test_empty_table_needs_no_engine(tmp_path: Path) -> None:
    table = Table.create(tmp_path, SCHEMA, properties=MESSY, durable=False)
    assert table.upgrade(STRICT).done
    settled(table)


def test_engine_is_asked_for_before_anything_is_done(tmp_path: Path) -> None:
    table = make(tmp_path, MESSY)
    with pytest.raises(UserError) as refused:
        table.upgrade(STRICT)
    assert refused.value.code is Code.SPARK_REQUIRED
    assert refused.value.fields["files"] == 2
    assert table.refresh().version == table.version


def test_dry_run_does_nothing(tmp_path: Path) -> None:
    table = hide(make(tmp_path, MESSY), tmp_path, 0)
    plan = table.upgrade(STRICT, dry_run=True)
    assert not plan.done
    assert plan.files == 2
    assert plan.steps[1].cost.size == sum(add.size for add in table.snapshot.adds())
    assert len({violation.rule for violation in plan.report.violations}) >= 6
    assert table.refresh().version == table.version


def test_no_way_means_nothing_is_done(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, i INTERVAL YEAR", properties=FEED, durable=False)
    plan = table.upgrade(STRICT, dry_run=True)
    assert plan.refused
    with pytest.raises(CompatViolation) as refused:
        table.upgrade(STRICT)
    assert refused.value.rule == "IWC1-08"
    found = {violation["rule"] for violation in refused.value.report["violations"]}
    assert {"IWC1-05", "IWC1-08", "IWC1-12"} <= found
    assert table.refresh().version == table.version


def test_constraints_are_only_dropped_if_given_up(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT", durable=False).add_constraint("c", "id > 0")
    with pytest.raises(CompatViolation, match="constraint"):
        table.upgrade(STRICT)
    assert table.upgrade(STRICT, give_up=["constraints"]).done
    assert "delta.constraints.c" not in settled(table).properties


@pytest.mark.parametrize(
    "arguments",
    [{"mode": "loose"}, {"give_up": ["rows"]}, {"profile": "mine"}],
    ids=["mode", "give_up", "profile"],
)
def test_wrong_arguments_are_told(tmp_path: Path, arguments: dict[str, Any]) -> None:
    table = Table.create(tmp_path, "id INT", durable=False)
    with pytest.raises(UserError) as refused:
        table.upgrade(STRICT, **arguments)
    assert refused.value.code is Code.INVALID_ARGUMENT


def test_invariants_leave_the_schema_if_given_up(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT", durable=False)
    column = table.schema.fields[0].with_metadata(**{"delta.invariants": '{"expression": {}}'})
    metadata = table.metadata.with_schema(Struct((column,)))
    table = table.commit("CHANGE COLUMN", [metadata])
    assert table.upgrade(STRICT, give_up=["invariants"]).done
    settled(table)
    assert "CHANGE COLUMNS" in [record.operation for record in table.refresh().history()]


# Waiting for history


def test_history_is_waited_for_and_a_later_run_finishes(tmp_path: Path) -> None:
    table = hide(make(tmp_path, {**VECTORS, **FEED}), tmp_path, 0)
    before = rows_of(table.snapshot)
    plan = table.upgrade(STRICT, dry_run=True)
    drop = plan.steps[2]
    assert (drop.cost.wait_ms, drop.cost.until_ms) == (24 * HOUR, None)
    assert drop.cost.history == table.version + 1
    first = table.upgrade(STRICT, spark=LocalEngine())
    assert not first.done
    now = SystemClock().now_ms()
    assert first.waiting_until is not None
    assert now + 23 * HOUR < first.waiting_until <= now + 24 * HOUR + 60_000
    assert [step.state for step in first.steps] == [
        StepState.DONE,
        StepState.DONE,
        StepState.WAITING,
        StepState.PLANNED,
    ]
    assert "waiting until" in " ".join(str(first).split())
    # Too early: nothing is committed, nothing is lost.
    waiting = Table.open(table.location)
    early = waiting.upgrade(STRICT)
    assert early.waiting_until == first.waiting_until
    assert waiting.refresh().version == waiting.version
    assert waiting.at(1).version == 1
    late = Table.open(table.location, runtime=Runtime(clock=LaterClock(24 * HOUR + 120_000)))
    assert late.upgrade(STRICT).done
    assert rows_of(settled(table).snapshot) == before
    with pytest.raises(UserError):
        late.at(1)


@pytest.mark.parametrize("wider", ["BIGINT", "DOUBLE"])
@pytest.mark.parametrize("files", [True, False], ids=["files", "no files"])
def test_every_wait_has_an_end(tmp_path: Path, wider: str, *, files: bool) -> None:
    preview = {
        "delta.feature.typeWidening-preview": "supported",
        "delta.enableTypeWidening": "true",
    }
    table = Table.create(tmp_path, "id INT", properties=preview, durable=False)
    if files:
        table = append(table, tmp_path, [{"id": 1}])
    table = table.widen_column("id", wider)
    first = table.upgrade(STRICT, spark=LocalEngine())
    now = SystemClock().now_ms()
    assert first.waiting_until is not None
    assert now + 23 * HOUR < first.waiting_until <= now + 24 * HOUR + 60_000
    # It does not move, and nothing is committed while it waits.
    version = table.refresh().version
    assert table.refresh().upgrade(STRICT).waiting_until == first.waiting_until
    assert table.refresh().version == version
    late = Table.open(table.location, runtime=Runtime(clock=LaterClock(24 * HOUR + 120_000)))
    assert late.upgrade(STRICT).done


def test_an_upgrade_with_nothing_in_the_history_does_not_wait(tmp_path: Path) -> None:
    preview = {
        "delta.feature.typeWidening-preview": "supported",
        "delta.enableTypeWidening": "true",
    }
    table = Table.create(tmp_path, "id INT", properties=preview, durable=False)
    assert table.upgrade(STRICT).done


def test_reports_name_the_table_by_its_path(tmp_path: Path) -> None:
    table = Table.create(tmp_path / "a b", "id INT", durable=False)
    plan = table.upgrade(STRICT, dry_run=True)
    for told in (plan, plan.report, table.check(STRICT)):
        assert told.table == str(tmp_path / "a b")
        assert table.metadata.id not in str(told)
    named = Table.create(tmp_path / "n", "id INT", name="orders", durable=False)
    assert named.check(STRICT).table == "orders"


def test_history_that_must_stay_is_told_before(tmp_path: Path) -> None:
    kept = {**VECTORS, "delta.enableExpiredLogCleanup": "false"}
    table = make(tmp_path, kept)
    with pytest.raises(CompatViolation, match="cannot be upgraded") as refused:
        table.upgrade(STRICT, spark=LocalEngine())
    assert "enableExpiredLogCleanup" in refused.value.why
    assert table.refresh().version == table.version


# Shared, and the promises about readers


def test_shared_keeps_the_feed_and_the_features(tmp_path: Path) -> None:
    table = hide(make(tmp_path, {**VECTORS, **FEED}), tmp_path, 0)
    before = rows_of(table.snapshot)
    plan = table.upgrade(STRICT, mode="shared", spark=LocalEngine())
    assert plan.done
    after = settled(table, "icebergCompatV2")
    assert rows_of(after.snapshot) == before
    assert after.metadata.column_mapping_mode is ColumnMappingMode.ID
    assert after.metadata.flag("delta.enableChangeDataFeed")
    assert after.protocol.is_supported("deletionVectors")
    assert not after.protocol.is_supported(STRICT)
    assert after.upgrade(STRICT, mode="shared").steps == ()
    # From there to strict only what strict asks for is left.
    left = after.upgrade(STRICT, dry_run=True)
    assert kinds(left) == ["switch", "convert", "drop_feature:deletionVectors", "enable"]


@pytest.mark.parametrize("target", ["icebergCompatV2", "icebergCompatV3", "icebergWriterCompatV3"])
def test_other_promises(tmp_path: Path, target: str) -> None:
    table = make(tmp_path, FEED, partition_by=("p",))
    before = rows_of(table.snapshot)
    assert table.upgrade(target, spark=LocalEngine()).done
    assert rows_of(settled(table, target).snapshot) == before


def test_first_version_has_neither_arrays_nor_maps(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert "ICV1-07" in {v.rule for v in table.upgrade("icebergCompatV1", dry_run=True).blockers}
    flat = Table.create(tmp_path / "flat", "id INT, p STRING", durable=False)
    flat = append(flat, tmp_path / "flat", [{"id": 1, "p": "x"}])
    assert flat.upgrade("icebergCompatV1", spark=LocalEngine()).done
    settled(flat, "icebergCompatV1")


def test_only_unfit_files_are_written_again(tmp_path: Path) -> None:
    table = make(tmp_path)
    table.upgrade("icebergCompatV2", spark=LocalEngine())
    table = Table.open(table.location)
    # A file that somebody wrote without ids, past all checks.
    unmapped: Any = type("Plain", (), {})()
    unmapped.schema = table.schema
    unmapped.metadata = table.metadata.with_configuration({"delta.columnMapping.mode": "none"})
    add = write_file(unmapped, tmp_path, rows(9))
    stats = json.dumps({"numRecords": 1})
    body = msgspec.json.encode({"add": msgspec.structs.replace(add, stats=stats)})
    (tmp_path / f"_delta_log/{table.version + 1:020d}.json").write_bytes(body)
    table = Table.open(table.location)
    assert not table.check("icebergCompatV2", files=True).ok
    plan = table.upgrade("icebergCompatV2", dry_run=True)
    assert kinds(plan) == ["convert"]
    assert plan.steps[0].cost.files == 1
    assert plan.steps[0].why == ("ICV2-14",)


# Kernel


def test_kernel_drops_fast_and_keeps_history(tmp_path: Path) -> None:
    table = hide(make(tmp_path, VECTORS), tmp_path, 0)
    before = rows_of(table.snapshot)
    plan = table.upgrade(STRICT, profile="kernel", spark=LocalEngine())
    assert plan.done, str(plan)
    now = Table.open(table.location)
    assert now.properties["twinlake.compat.profile"] == "kernel"
    assert now.protocol.is_supported("checkpointProtection")
    assert now.check(STRICT, files=True).ok
    assert rows_of(now.snapshot) == before
    assert now.at(1).version == 1


# In place


FLAT = "id INT, b TINYINT, s STRUCT<x: SMALLINT, y: STRING>"


def test_in_place_keeps_the_files(tmp_path: Path) -> None:
    table = make(tmp_path, {**NAME_MODE, **FEED}, schema=FLAT)
    files = {add.path: add for add in table.snapshot.adds()}
    plan = table.upgrade(STRICT, in_place=True)
    assert plan.done
    assert "delta-rs" in " ".join(note for step in plan.steps for note in step.notes)
    after = settled(table)
    assert {add.path for add in after.snapshot.adds()} == files.keys()
    ids = {physical_name(f) for _, f in walk_fields(after.schema)}
    assert ids == {f"col-{n}" for n in range(1, 6)}
    for add in after.snapshot.adds():
        stats, old = json.loads(add.stats or ""), json.loads(files[add.path].stats or "")
        assert stats["minValues"]["col-1"] == old["minValues"][next(iter(old["minValues"]))]
        assert set(stats["nullCount"]) == {"col-1", "col-2", "col-3"}
        assert set(stats["nullCount"]["col-3"]) == {"col-4", "col-5"}
    assert after.metadata.flag("delta.enableTypeWidening")
    # Files are found by their statistics under the new names.
    assert after.files("id = 5").num_rows == 1


@pytest.mark.parametrize(
    ("schema", "mode", "partition_by"),
    [
        (SCHEMA, NAME_MODE, ()),
        (FLAT, {}, ()),
        (f"{FLAT}, p STRING", NAME_MODE, ("p",)),
    ],
    ids=["no ids on elements", "no ids at all", "partition columns not in files"],
)
def test_in_place_is_refused_where_files_do_not_tell(
    tmp_path: Path, schema: str, mode: dict[str, str], partition_by: tuple[str, ...]
) -> None:
    table = make(tmp_path, mode, schema=schema, partition_by=partition_by)
    with pytest.raises(CompatViolation) as refused:
        table.upgrade(STRICT, in_place=True, spark=LocalEngine())
    assert "cannot stay as it is" in refused.value.why
    assert table.refresh().version == table.version
    assert table.upgrade(STRICT, spark=LocalEngine()).done


def test_in_place_purges_hidden_rows_first(tmp_path: Path) -> None:
    table = hide(make(tmp_path, {**NAME_MODE, **MESSY}, schema=FLAT), tmp_path, 0)
    plan = table.upgrade(STRICT, in_place=True, spark=LocalEngine())
    assert plan.done
    assert [step.kind for step in plan.steps][1] is StepKind.PURGE
    assert not any(add.deletion_vector for add in settled(table).snapshot.adds())


def by_name(table: Table) -> list[Row]:
    """The rows as delta-rs reads them, which finds columns by their physical names."""
    theirs = QueryBuilder().register("t", DeltaTable(table.location)).execute("SELECT * FROM t")
    return sorted(pa.table(theirs.read_all()).to_pylist(), key=str)


def test_readers_by_name_see_nulls_only_in_files_that_stay(tmp_path: Path) -> None:
    tables = []
    for name in ("stays", "rewritten"):
        table = Table.create(tmp_path / name, "id INT", properties=NAME_MODE, durable=False)
        tables.append(append(table, tmp_path / name, [{"id": 1}, {"id": 2}]))
    stays, rewritten = tables
    assert by_name(stays) == [{"id": 1}, {"id": 2}]
    assert stays.upgrade(STRICT, in_place=True).done
    assert rewritten.upgrade(STRICT, spark=LocalEngine()).done
    assert by_name(rewritten) == [{"id": 1}, {"id": 2}]
    # What the plan warns of.
    assert by_name(stays) == [{"id": None}, {"id": None}]


# Others at work


@dataclass(frozen=True)
class Meddling(LocalRewriter):
    """Lets something happen to the table while files are written, once."""

    meddle: Callable[[], object] = lambda: None

    def rewrite(self, request: RewriteRequest) -> Sequence[Sequence[AddFile]]:
        first = not self.requests
        written = super().rewrite(request)
        if first:
            self.meddle()
        return written


def test_append_meanwhile_is_converted_too(tmp_path: Path) -> None:
    table = make(tmp_path, FEED)

    def meddle() -> None:
        append(Table.open(table.location), tmp_path, rows(77))

    plan = table.upgrade(STRICT, spark=LocalEngine(rewriter=Meddling(meddle=meddle)))
    assert plan.done
    found = rows_of(settled(table).snapshot)
    assert sorted(row["id"] for row in found) == [1, 2, 3, 4, 5, 77]
    # What the lost attempt had written is gone.
    live = {add.path for add in Table.open(table.location).snapshot.adds()}
    written = {path.name for path in tmp_path.glob("part-*.parquet")}
    removed = {r["path"] for r in Table.open(table.location).snapshot.tombstones().to_pylist()}
    assert written == live | removed


def test_writers_that_never_stop_end_the_upgrade(tmp_path: Path) -> None:
    table = make(tmp_path)
    numbers = iter(range(100, 200))

    @dataclass(frozen=True)
    class Always(LocalRewriter):
        def rewrite(self, request: RewriteRequest) -> Sequence[Sequence[AddFile]]:
            written = super().rewrite(request)
            append(Table.open(table.location), tmp_path, rows(next(numbers)))
            return written

    with pytest.raises(ConflictError):
        table.upgrade(STRICT, spark=LocalEngine(rewriter=Always()))
    # Every row is there, and a quiet run finishes.
    count = len(rows_of(Table.open(table.location).snapshot))
    assert table.upgrade(STRICT, spark=LocalEngine()).done
    assert len(rows_of(settled(table).snapshot)) == count > 5


# Clustering


def test_clustering_follows_the_names(tmp_path: Path) -> None:
    table = Table.create(
        tmp_path, SCHEMA, cluster_by=["id", "s.y"], properties=NAME_MODE, durable=False
    )
    table = append(table, tmp_path, rows(1, 2))
    clustered = table.detail().clustering_columns
    assert table.upgrade(STRICT, spark=LocalEngine()).done
    after = settled(table)
    assert after.detail().clustering_columns == clustered == ("id", "s.y")
    stored = json.loads(after.snapshot.domains["delta.clustering"].configuration)
    assert all(part.startswith("col-") for path in stored["clusteringColumns"] for part in path)


# REORG ... UPGRADE UNIFORM


def test_uniform_writes_again_and_turns_it_on(tmp_path: Path) -> None:
    table = hide(make(tmp_path, VECTORS, partition_by=("p",)), tmp_path, 0)
    before = rows_of(table.snapshot)
    plan = table.upgrade_uniform(2, LocalEngine())
    assert kinds(plan) == ["switch", "convert", "uniform"]
    after = settled(table, "icebergCompatV2")
    assert rows_of(after.snapshot) == before
    assert after.metadata.column_mapping_mode is ColumnMappingMode.NAME
    assert after.properties["delta.universalFormat.enabledFormats"] == "iceberg"
    assert after.properties["delta.enableDeletionVectors"] == "false"
    assert (after.protocol.min_reader_version, after.protocol.min_writer_version) == (3, 7)
    assert all((a.tags or {})["ICEBERG_COMPAT_VERSION"] == "2" for a in after.snapshot.adds())
    names = [record.operation for record in after.history(plan.version - table.version)]
    assert set(names) == {"REORG TABLE UPGRADE UNIFORM"}
    assert after.upgrade_uniform(2).steps == ()
    assert Table.open(table.location).version == after.version


def test_uniform_keeps_id_mode_and_tags_what_fits(tmp_path: Path) -> None:
    properties = {"delta.columnMapping.mode": "id", "delta.enableIcebergCompatV2": "true"}
    table = make(tmp_path, properties)
    files = {add.path for add in table.snapshot.adds()}
    assert not any(add.tags for add in table.snapshot.adds())
    plan = table.upgrade_uniform(2)
    assert plan.done
    after = settled(table, "icebergCompatV2")
    assert after.metadata.column_mapping_mode is ColumnMappingMode.ID
    assert {add.path for add in after.snapshot.adds()} == files
    assert all((a.tags or {})["ICEBERG_COMPAT_VERSION"] == "2" for a in after.snapshot.adds())


def test_uniform_changes_versions(tmp_path: Path) -> None:
    flat = Table.create(tmp_path, "id INT, p STRING", durable=False)
    flat = append(flat, tmp_path, [{"id": 1, "p": "x"}])
    assert flat.upgrade_uniform(1, LocalEngine()).done
    assert flat.upgrade_uniform(2, LocalEngine()).done
    after = settled(flat, "icebergCompatV2")
    assert not after.metadata.flag("delta.enableIcebergCompatV1")
    assert flat.upgrade_uniform(1, LocalEngine()).done
    settled(flat, "icebergCompatV1")


@pytest.mark.parametrize("version", [0, 3])
def test_uniform_knows_two_versions(tmp_path: Path, version: int) -> None:
    table = Table.create(tmp_path, "id INT", durable=False)
    with pytest.raises(UserError) as refused:
        table.upgrade_uniform(version)
    assert refused.value.fields["max"] == 2
    assert table.refresh().version == 0
