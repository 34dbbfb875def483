"""DROP FEATURE when others write meanwhile, and when checkpoints or hooks fail."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from tests.unit.table.making import create, data_file, write_files
from twinlake import Table
from twinlake.actions import AddFile, DeletionVectorDescriptor
from twinlake.commit import DELTA_HOOKS, HookContext, PostCommitHook
from twinlake.errors import Code, ConcurrentAppendException, ConflictError, StorageError, UserError
from twinlake.log import CheckpointKind, load_snapshot, write_checkpoint
from twinlake.storage import Committed, CreateOutcome, MemoryStore
from twinlake.table.operations.context import OperationContext
from twinlake.table.operations.create import create_table
from twinlake.table.operations.drop_feature import FeatureDrop

VECTOR = DeletionVectorDescriptor("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 34, 6)
VECTORS = {"delta.enableDeletionVectors": "true"}
NO_RETENTION = {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}


def _drop(table: Table, feature: str, *hooks: PostCommitHook) -> FeatureDrop:
    context = OperationContext(hooks=(*DELTA_HOOKS, *hooks))
    return FeatureDrop(context, table.snapshot, feature)


@dataclass(frozen=True)
class Meanwhile:
    """After version ``after`` somebody else commits a file."""

    folder: Path
    after: int
    file: AddFile

    def __call__(self, context: HookContext) -> None:
        if context.version == self.after:
            Table.open(self.folder, durable=False).commit("WRITE", [self.file])


def test_a_stale_handle_sees_the_vectors_that_came_since(tmp_path: Path) -> None:
    held = create(tmp_path, properties=VECTORS).commit("WRITE", [data_file("1.parquet")])
    (live,) = held.snapshot.adds()
    marked = msgspec.structs.replace(live, deletion_vector=VECTOR)
    latest = held.commit("DELETE", [live.remove(deletion_timestamp=5), marked])
    with pytest.raises(UserError) as refused:
        held.drop_feature("deletionVectors")
    assert refused.value.code is Code.SPARK_REQUIRED
    assert Table.open(tmp_path).version == latest.version


def test_a_stale_handle_sees_the_mapped_files_that_came_since(tmp_path: Path) -> None:
    held = create(tmp_path, properties={"delta.columnMapping.mode": "name"})
    held.commit("WRITE", [data_file("1.parquet")])
    with pytest.raises(UserError) as refused:
        held.drop_feature("columnMapping")
    assert refused.value.code is Code.SPARK_REQUIRED


def test_mapping_is_not_switched_off_under_a_file_that_comes_in(tmp_path: Path) -> None:
    stale = create(tmp_path, properties={"delta.columnMapping.mode": "name"})
    stale.commit("WRITE", [data_file("1.parquet")])
    with pytest.raises(ConcurrentAppendException):
        _drop(stale, "columnMapping").run()
    assert Table.open(tmp_path).properties["delta.columnMapping.mode"] == "name"


def test_mapping_that_was_never_on_goes_without_a_rewrite(tmp_path: Path) -> None:
    table = create(tmp_path, properties={"delta.feature.columnMapping": "supported"})
    table = table.commit("WRITE", [data_file("1.parquet")]).drop_feature("columnMapping")
    assert not table.protocol.is_supported("columnMapping")


@pytest.mark.parametrize("after", [3, 4], ids=["before-the-last-barrier", "before-the-downgrade"])
def test_a_vector_that_comes_in_meanwhile_stops_the_drop(tmp_path: Path, after: int) -> None:
    table = create(tmp_path, properties=VECTORS)
    late = Meanwhile(tmp_path, after, data_file("late.parquet", vector=VECTOR))
    with pytest.raises((ConflictError, UserError)):
        _drop(table, "deletionVectors", PostCommitHook(name="late", run=late)).run()
    now = Table.open(tmp_path)
    assert now.protocol.is_supported("deletionVectors")
    assert now.files()["path"].to_pylist() == ["late.parquet"]


def test_a_file_of_a_widened_table_that_comes_in_meanwhile_stops_the_drop(tmp_path: Path) -> None:
    table = create(tmp_path, properties={"delta.enableTypeWidening": "true"})
    table = table.widen_column("id", "BIGINT")
    late = Meanwhile(tmp_path, 5, data_file("late.parquet"))
    with pytest.raises(ConflictError) as lost:
        _drop(table, "typeWidening", PostCommitHook(name="late", run=late)).run()
    assert lost.value.fields["winner"] == 6
    assert Table.open(tmp_path).protocol.is_supported("typeWidening")


def test_a_drop_follows_a_plain_append(tmp_path: Path) -> None:
    table = create(tmp_path, properties=VECTORS)
    late = Meanwhile(tmp_path, 4, data_file("late.parquet"))
    after = _drop(table, "deletionVectors", PostCommitHook(name="late", run=late)).run().snapshot
    assert not after.protocol.is_supported("deletionVectors")
    key = "delta.requireCheckpointProtectionBeforeVersion"
    assert (after.version, after.metadata.configuration[key]) == (6, "6")
    assert [add.path for add in load_snapshot(after.store).adds()] == ["late.parquet"]


def test_truncation_does_not_overlook_v2_checkpoints(tmp_path: Path) -> None:
    table = create(tmp_path, properties={"delta.checkpointPolicy": "v2"})
    table = table.set_properties({"x": "1"}).checkpoint()
    for delta_class in ("WAIT_FOR_RETENTION_PERIOD", "HISTORICAL_VERSIONS_EXIST"):
        with pytest.raises(UserError) as refused:
            table.drop_feature("v2Checkpoint", truncate_history=True)
        assert refused.value.delta_class == f"DELTA_FEATURE_DROP_{delta_class}"
    assert "1" in refused.value.why
    assert table.refresh().protocol.is_supported("v2Checkpoint")


def test_truncation_finds_v2_checkpoints_under_classic_names(tmp_path: Path) -> None:
    table = create(tmp_path, properties={"delta.feature.v2Checkpoint": "supported"})
    write_checkpoint(table.snapshot, kind=CheckpointKind.V2_CLASSIC)
    table = table.set_properties({"x": "1"}).checkpoint()
    with pytest.raises(UserError) as refused:
        table.drop_feature("v2Checkpoint", truncate_history=True)
    assert refused.value.delta_class == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"


def test_truncation_ends_once_the_v2_checkpoints_are_gone(tmp_path: Path) -> None:
    table = create(tmp_path, properties={"delta.checkpointPolicy": "v2", **NO_RETENTION})
    table = table.set_properties({"x": "1"}).checkpoint()
    table = table.drop_feature("v2Checkpoint", truncate_history=True)
    assert str(table.protocol) == "1,2"
    assert load_snapshot(table.snapshot.store).protocol == table.protocol


class Damaging(MemoryStore):
    """Cuts the first checkpoints it is given, and refuses checksums when told so."""

    damaged = 0
    refuses_checksums = False

    def create(self, key: str, data: bytes) -> CreateOutcome:
        if self.refuses_checksums and key.endswith(".crc"):
            raise StorageError(Code.STORAGE, "no room for checksums", why="full", fix="wait")
        if key.endswith(".checkpoint.parquet") and self.damaged:
            self.damaged -= 1
            outcome = super().create(key, data[: len(data) // 2])
            assert isinstance(outcome, Committed)
            return outcome
        return super().create(key, data)


def _in_memory(name: str) -> tuple[Damaging, Table]:
    store = Damaging(name)
    context = OperationContext(hooks=DELTA_HOOKS)
    result = create_table(context, store, "id INT", properties=VECTORS)
    return store, Table(result.snapshot)


def test_a_damaged_barrier_is_built_again() -> None:
    store, table = _in_memory("damaged-once")
    store.damaged = 2
    after = table.drop_feature("deletionVectors")
    # One commit to stop the feature, three barriers, two of them tried again, the downgrade.
    assert after.version == 1 + 3 + 2 + 1
    assert not after.protocol.is_supported("deletionVectors")


def test_without_a_barrier_the_feature_stays() -> None:
    store, table = _in_memory("damaged-always")
    store.damaged = 100
    with pytest.raises(UserError) as refused:
        table.drop_feature("deletionVectors")
    assert refused.value.delta_class == "DELTA_FEATURE_DROP_CHECKPOINT_FAILED"
    assert table.refresh().protocol.is_supported("deletionVectors")


def test_warnings_of_every_commit_are_passed_on() -> None:
    store, table = _in_memory("warned")
    store.refuses_checksums = True
    after = table.drop_feature("deletionVectors")
    assert [w.version for w in after.warnings if w.hook == "checksum"] == [1, 2, 3, 4, 5]


def test_the_policy_of_the_table_is_asked(tmp_path: Path) -> None:
    create(tmp_path, properties=VECTORS)
    with pytest.raises(UserError, match="nobody"):
        Table.open(tmp_path, policy="nobody").drop_feature("deletionVectors")


def test_restore_from_a_stale_handle_is_exact(tmp_path: Path) -> None:
    held = create(tmp_path).commit("WRITE", [data_file("1.parquet")])
    write_files(tmp_path, "1.parquet")
    held.commit("WRITE", [data_file("2.parquet")]).commit("WRITE", [data_file("3.parquet")])
    restored = held.restore(1)
    assert restored.version == 4
    assert restored.files()["path"].to_pylist() == ["1.parquet"]
