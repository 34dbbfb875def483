from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest

from tests.unit.table.making import create, data_file, log_lines, write_files
from twinlake import Table
from twinlake.actions import DeletionVectorDescriptor, DomainMetadata
from twinlake.errors import Code, UserError
from twinlake.log.deletion_vectors import dv_key, inline_descriptor, write_dv_file

VECTOR = DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 34, 6)


@pytest.mark.parametrize(
    ("feature", "properties"),
    [
        ("vacuumProtocolCheck", {"delta.feature.vacuumProtocolCheck": "supported"}),
        ("inCommitTimestamp", {"delta.enableInCommitTimestamps": "true"}),
        ("v2Checkpoint", {"delta.checkpointPolicy": "v2"}),
        ("checkConstraints", {"delta.feature.checkConstraints": "supported"}),
        ("deletionVectors", {"delta.enableDeletionVectors": "true"}),
        ("rowTracking", {"delta.enableRowTracking": "true"}),
        ("domainMetadata", {"delta.feature.domainMetadata": "supported"}),
        ("typeWidening", {"delta.enableTypeWidening": "true"}),
        ("materializePartitionColumns", {"delta.feature.materializePartitionColumns": "supported"}),
    ],
)
def test_drop_what_needs_no_rewrite(
    tmp_path: Path, feature: str, properties: dict[str, str]
) -> None:
    t = create(tmp_path, properties=properties)
    assert t.protocol.is_supported(feature)
    t = t.commit("WRITE", [data_file("1.parquet")])
    t = t.drop_feature(feature)
    assert not t.protocol.is_supported(feature)
    fresh = Table.open(tmp_path, version=t.version)
    assert fresh.protocol == t.protocol
    assert fresh.metadata == t.metadata
    assert fresh.files()["path"].to_pylist() == ["1.parquet"]
    for key in properties:
        assert t.properties.get(key) in (None, "classic", "false")
    # The table goes on being writable.
    assert t.set_properties({"after": "1"}).properties["after"] == "1"


def test_a_history_protected_drop_asks_cleanup_to_keep_the_barrier(tmp_path: Path) -> None:
    t = create(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    t = t.drop_feature("deletionVectors")
    assert t.protocol.is_supported("checkpointProtection")
    assert t.properties["delta.requireCheckpointProtectionBeforeVersion"] == str(t.version)
    checkpoints = list((tmp_path / "_delta_log").glob("*.checkpoint.parquet"))
    assert len(checkpoints) >= 3


def test_row_tracking_leaves_no_ids_behind(tmp_path: Path) -> None:
    t = create(tmp_path, properties={"delta.enableRowTracking": "true"})
    t = t.commit("WRITE", [data_file("1.parquet"), data_file("2.parquet")])
    assert t.files()["base_row_id"].to_pylist() == [0, 10]
    t = t.drop_feature("rowTracking")
    assert t.files()["base_row_id"].to_pylist() == [None, None]
    assert "delta.rowTracking" not in t.snapshot.domains
    assert not any("rowTracking" in key for key in t.properties)


def test_domains_go_with_their_feature(tmp_path: Path) -> None:
    t = create(tmp_path, properties={"delta.feature.domainMetadata": "supported"})
    t = t.commit("WRITE", [DomainMetadata(domain="mine", configuration="{}", removed=False)])
    assert "mine" in t.snapshot.domains
    assert not t.drop_feature("domainMetadata").snapshot.domains


def test_dropped_vectors_that_history_needs_get_tombstones(tmp_path: Path) -> None:
    """A client without deletion vectors would vacuum files that no action names."""
    table = create(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    _, (first, second) = write_dv_file([[1], [2]], UUID(int=1))
    kept = data_file("a.parquet", vector=inline_descriptor([3]))
    marked = [kept, *(data_file(f"{n}.parquet", vector=v) for n, v in enumerate((first, second)))]
    table = table.commit("WRITE", marked)
    now = table.snapshot.timestamp_ms
    table = table.commit("DELETE", [add.remove(deletion_timestamp=now) for add in marked])
    table = table.drop_feature("deletionVectors")

    [at] = [r.version for r in table.history() if r.operation == "Deletion Vector Tombstones"]
    removes = [line["remove"] for line in log_lines(tmp_path, at) if "remove" in line]
    assert [(r["path"], r["dataChange"]) for r in removes] == [(dv_key(UUID(int=1)), False)]
    assert dv_key(UUID(int=1)) in table.snapshot.tombstones()["path"].to_pylist()


@pytest.mark.parametrize(
    ("feature", "truncate", "delta_class"),
    [
        ("delta.enableDeletionVectors", False, "FEATURE_IS_DELTA_PROPERTY"),
        ("rowTracking", False, "FEATURE_NOT_PRESENT"),
        ("appendOnly", False, "NONREMOVABLE_FEATURE"),
        ("nonsense", False, "UNSUPPORTED_CLIENT_FEATURE"),
        ("inCommitTimestamp", True, "HISTORY_TRUNCATION_NOT_ALLOWED"),
    ],
)
def test_drops_that_are_refused(
    tmp_path: Path, feature: str, truncate: bool, delta_class: str
) -> None:
    t = create(tmp_path, properties={"delta.enableInCommitTimestamps": "true"})
    with pytest.raises(UserError) as refused:
        t.drop_feature(feature, truncate_history=truncate)
    assert refused.value.delta_class == f"DELTA_FEATURE_DROP_{delta_class}"
    assert t.refresh().version == t.version


def test_a_drop_that_must_move_rows_is_refused_before_anything_happens(tmp_path: Path) -> None:
    t = create(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    t = t.commit("WRITE", [data_file("1.parquet", vector=VECTOR)])
    with pytest.raises(UserError) as refused:
        t.drop_feature("deletionVectors")
    assert refused.value.code is Code.SPARK_REQUIRED
    assert refused.value.fields["files"] == 1
    assert t.refresh().version == t.version


def test_truncation_waits_for_the_retention(tmp_path: Path) -> None:
    t = create(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    with pytest.raises(UserError) as waiting:
        t.drop_feature("deletionVectors", truncate_history=True)
    assert waiting.value.delta_class == "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD"
    t = t.refresh()
    assert "delta.enableDeletionVectors" not in t.properties
    assert t.protocol.is_supported("deletionVectors")


def test_truncation_with_no_retention_finishes_at_once(tmp_path: Path) -> None:
    t = create(
        tmp_path,
        properties={
            "delta.enableDeletionVectors": "true",
            "delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours",
        },
    )
    t = t.commit("WRITE", [data_file("1.parquet", vector=VECTOR)])
    live = next(iter(t.snapshot.adds()))
    t = t.commit("DELETE", [live.remove(deletion_timestamp=1)])
    t = t.drop_feature("deletionVectors", truncate_history=True)
    assert str(t.protocol) == "1,2"
    assert not (tmp_path / "_delta_log" / f"{0:020d}.json").exists()
    assert Table.open(tmp_path).version == t.version


def test_dropping_protection_needs_truncation(tmp_path: Path) -> None:
    t = create(
        tmp_path,
        properties={
            "delta.enableDeletionVectors": "true",
            "delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours",
        },
    ).drop_feature("deletionVectors")
    with pytest.raises(UserError):
        t.drop_feature("checkpointProtection")
    t = t.drop_feature("checkpointProtection", truncate_history=True)
    assert str(t.protocol) == "1,2"
    assert "delta.requireCheckpointProtectionBeforeVersion" not in t.properties


def test_restore_brings_back_files_and_metadata(tmp_path: Path) -> None:
    t = create(tmp_path).commit("WRITE", [data_file("1.parquet"), data_file("2.parquet")])
    write_files(tmp_path, "1.parquet", "2.parquet")
    gone = [a.remove(deletion_timestamp=1) for a in t.snapshot.adds() if a.path == "1.parquet"]
    t = t.commit("DELETE", [*gone, data_file("3.parquet")])
    t = t.set_properties({"n": "1"})
    t = t.restore(1)
    assert sorted(t.files()["path"].to_pylist()) == ["1.parquet", "2.parquet"]
    assert "n" not in t.properties
    info = log_lines(tmp_path, t.version)[0]["commitInfo"]
    assert info["operation"] == "RESTORE"
    assert info["operationMetrics"]["numRestoredFiles"] == "1"
    assert info["operationMetrics"]["numRemovedFiles"] == "1"


def test_restore_refuses_when_files_are_gone(tmp_path: Path) -> None:
    t = create(tmp_path).commit("WRITE", [data_file("1.parquet")])
    gone = [a.remove(deletion_timestamp=1) for a in t.snapshot.adds()]
    t = t.commit("DELETE", gone)
    with pytest.raises(UserError) as refused:
        t.restore(1)
    assert refused.value.fields["missing"] == ["1.parquet"]
    assert t.refresh().version == t.version


def test_restore_never_lowers_the_protocol(tmp_path: Path) -> None:
    t = create(tmp_path).set_properties({"delta.enableDeletionVectors": "true"})
    t = t.restore(0)
    assert t.protocol.is_supported("deletionVectors")
    assert "delta.enableDeletionVectors" not in t.properties


def test_diff_says_what_changed(tmp_path: Path) -> None:
    t = create(tmp_path, "id INT, s STRUCT<a: INT>")
    t = t.commit("WRITE", [data_file("1.parquet", rows=5)])
    t = t.set_properties({"delta.columnMapping.mode": "name"})
    t = t.add_column("s.b STRING").drop_column("id").alter_column("s", comment="both")
    gone = [a.remove(deletion_timestamp=1) for a in t.snapshot.adds()]
    t = t.commit("WRITE", [*gone, data_file("2.parquet", rows=7)])
    found = t.diff(1)
    assert {(c.change, c.path) for c in found.columns} == {
        ("added", "s.b"),
        ("dropped", "id"),
        ("changed", "s"),
    }
    assert {(f.change, f.path) for f in found.files} == {
        ("removed", "1.parquet"),
        ("added", "2.parquet"),
    }
    assert found.rows_added == 2
    assert "columnMapping" in found.features_added
    assert [c.version for c in found.commits] == [6, 5, 4, 3, 2]
    assert json.loads(json.dumps(found.to_dict()))["rows_added"] == 2
    back = t.diff(t.version, 1)
    assert {(f.change, f.path) for f in back.files} == {
        ("removed", "2.parquet"),
        ("added", "1.parquet"),
    }


def test_a_rename_is_not_a_drop_and_an_add(tmp_path: Path) -> None:
    t = create(
        tmp_path, "id INT, s STRUCT<a: INT>", properties={"delta.columnMapping.mode": "name"}
    )
    t = t.rename_column("s", "t").rename_column("t.a", "b").alter_column("t.b", comment="x")
    found = [(c.change, c.path, c.before) for c in t.diff(0).columns]
    assert found == [
        ("renamed", "t", "s"),
        ("renamed", "t.b", "s.a"),
        ("changed", "t.b", "INT"),
    ]
