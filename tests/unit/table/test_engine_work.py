"""Changes that need a data engine, with one that works in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.support.data_files import append
from tests.support.local_engine import LocalEngine, LocalRewriter, rows_of
from tests.unit.table.making import create
from twinlake import Table
from twinlake.actions import AddFile
from twinlake.errors import Code, ConcurrentAppendException, UserError
from twinlake.log.deletion_vectors import dv_key, write_dv_file
from twinlake.runtime import ENGINE_GROUP, Engine, RewriteRequest, engine_for

Row = dict[str, Any]
VECTORS = {"delta.enableDeletionVectors": "true"}
NO_WAIT = {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}


def rows(*ids: int) -> list[Row]:
    return [{"id": n, "name": f"n{n}"} for n in ids]


def hide(table: Table, folder: Path, *positions: int) -> Table:
    """Hide rows of the first file."""
    add = min(table.snapshot.adds(), key=lambda a: a.path)
    data, (vector,) = write_dv_file([positions], UUID(int=7))
    (folder / dv_key(UUID(int=7))).write_bytes(data)
    marked = msgspec.structs.replace(add, deletion_vector=vector)
    return table.commit("DELETE", [add.remove(deletion_timestamp=5), marked])


def operations(table: Table) -> list[str | None]:
    return [record.operation for record in reversed(table.history())]


# Finding an engine


def test_no_session_means_no_engine() -> None:
    assert engine_for(None) is None


def test_an_engine_is_its_own_engine() -> None:
    engine = LocalEngine()
    assert isinstance(engine, Engine)
    assert engine_for(engine) is engine


def test_what_no_engine_takes_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        engine_for(object())
    assert refused.value.code is Code.SPARK_REQUIRED
    assert refused.value.fields["type"] == "builtins.object"
    assert "spark" in refused.value.why


def test_spark_is_registered() -> None:
    from importlib.metadata import entry_points

    assert [entry.value for entry in entry_points(group=ENGINE_GROUP, name="spark")] == [
        "twinlake.spark.engine:spark_engine"
    ]


# Constraints


def test_a_constraint_that_all_rows_satisfy_is_added(tmp_path: Path) -> None:
    table = append(create(tmp_path), tmp_path, rows(1, 2))
    engine = LocalEngine({"id > 0": lambda row: row["id"] > 0})
    table = table.add_constraint("positive", "id > 0", spark=engine)
    assert table.properties["delta.constraints.positive"] == "id > 0"


@pytest.mark.parametrize(
    ("shows_values", "shown"), [(False, []), (True, ["{'id': 1, 'name': 'n1'}"])]
)
def test_a_constraint_that_rows_violate_counts_them(
    tmp_path: Path, shows_values: bool, shown: list[str]
) -> None:
    table = append(create(tmp_path), tmp_path, rows(1, 2))
    engine = LocalEngine({"id > 1": lambda row: row["id"] > 1}, shows_values=shows_values)
    with pytest.raises(UserError) as refused:
        table.add_constraint("large", "id > 1", spark=engine)
    assert refused.value.code is Code.CONSTRAINT
    assert refused.value.delta_class == "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"
    assert (refused.value.fields["count"], refused.value.fields["rows"]) == (1, shown)
    assert ("n1" in str(refused.value)) is shows_values
    assert table.refresh().version == table.version


def test_rows_that_come_in_during_the_check_are_a_conflict(tmp_path: Path) -> None:
    table = append(create(tmp_path), tmp_path, rows(1))

    def slow(_: Row) -> bool:
        append(table.refresh(), tmp_path, rows(-1))
        return True

    with pytest.raises(ConcurrentAppendException):
        table.add_constraint("positive", "id > 0", spark=LocalEngine({"id > 0": slow}))


# Dropping features that show in the files


@pytest.mark.parametrize("truncate", [False, True], ids=["fast", "truncating"])
def test_dropping_deletion_vectors_purges_first(tmp_path: Path, truncate: bool) -> None:
    table = create(tmp_path, properties=VECTORS | NO_WAIT)
    table = append(table, tmp_path, rows(1, 2, 3), rows(4, 5))
    table = hide(table, tmp_path, 0)
    before = rows_of(table.snapshot)
    assert len(before) == 4
    engine = LocalEngine()
    after = table.drop_feature("deletionVectors", truncate_history=truncate, spark=engine)
    assert not after.protocol.is_supported("deletionVectors")
    assert after.snapshot.counters.num_deletion_vectors == 0
    assert rows_of(after.snapshot) == before
    assert isinstance(engine.rewriter, LocalRewriter)
    assert [len(r.bins) for r in engine.rewriter.requests] == [1]
    if not truncate:
        assert operations(after)[3:6] == [
            "UNSET TBLPROPERTIES",
            "REORG",
            "Deletion Vector Tombstones",
        ]
        [info] = [r for r in after.history() if r.operation == "REORG"]
        assert info.operation_metrics["numDeletionVectorsRemoved"] == "1"
        assert info.operation_parameters == {"predicate": "[]", "applyPurge": True}


def test_dropping_column_mapping_renames_in_the_files(tmp_path: Path) -> None:
    table = create(
        tmp_path,
        "id INT, s STRUCT<a: INT, b: STRING>, d STRING",
        partition_by=["d"],
        properties={"delta.columnMapping.mode": "id"},
    )
    data: list[Row] = [{"id": 1, "s": {"a": 1, "b": "x"}, "d": "p"}, {"id": 2, "s": None, "d": "p"}]
    table = append(table, tmp_path, data, [{"id": 3, "s": None, "d": None}])
    table = table.rename_column("s.a", "z")
    before = rows_of(table.snapshot)
    after = table.drop_feature("columnMapping", spark=LocalEngine())
    assert not after.protocol.is_supported("columnMapping")
    assert "columnMapping" not in after.metadata.schema_string
    assert not any("columnMapping" in key for key in after.properties)
    assert rows_of(after.snapshot) == before
    values = [add.partition_values for add in after.snapshot.adds()]
    assert sorted(values, key=str) == [{"d": "p"}, {"d": None}]
    assert "REMOVE COLUMN MAPPING" in operations(after)


def test_names_that_files_cannot_have_stop_the_drop(tmp_path: Path) -> None:
    table = create(tmp_path, "`a b` INT", properties={"delta.columnMapping.mode": "name"})
    table = append(table, tmp_path, [{"a b": 1}])
    with pytest.raises(UserError) as refused:
        table.drop_feature("columnMapping", spark=LocalEngine())
    assert refused.value.code is Code.SCHEMA_INVALID
    assert table.refresh().version == table.version


def widened(folder: Path, properties: dict[str, str] | None = None) -> Table:
    """Two files of INT, then the column is widened, then a file of BIGINT."""
    table = create(folder, properties={"delta.enableTypeWidening": "true", **(properties or {})})
    table = append(table, folder, rows(1), rows(2)).widen_column("id", "BIGINT")
    return append(table, folder, rows(1 << 40))


def test_dropping_type_widening_rewrites_the_narrow_files_only(tmp_path: Path) -> None:
    table = widened(tmp_path)
    before, engine = rows_of(table.snapshot), LocalEngine()
    after = table.drop_feature("typeWidening", spark=engine)
    assert not after.protocol.is_supported("typeWidening")
    assert "typeChanges" not in after.metadata.schema_string
    assert rows_of(after.snapshot) == before
    assert isinstance(engine.rewriter, LocalRewriter)
    assert [sum(map(len, r.bins)) for r in engine.rewriter.requests] == [2]


def test_a_truncating_drop_does_not_rewrite_again_when_it_is_repeated(tmp_path: Path) -> None:
    table, engine = widened(tmp_path), LocalEngine()
    for _ in range(2):
        with pytest.raises(UserError) as waiting:
            table.drop_feature("typeWidening", truncate_history=True, spark=engine)
        assert waiting.value.code is Code.FEATURE_DROP
    assert isinstance(engine.rewriter, LocalRewriter)
    assert len(engine.rewriter.requests) == 1
    assert waiting.value.delta_class == "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST"


class Loses(LocalRewriter):
    """Forgets a row."""

    def rewrite(self, request: RewriteRequest) -> list[list[AddFile]]:
        written = [list(files) for files in super().rewrite(request)]
        return [
            [msgspec.structs.replace(add, stats='{"numRecords":1}') for add in files]
            for files in written
        ]


def test_a_rewrite_that_loses_rows_is_not_committed(tmp_path: Path) -> None:
    table = append(create(tmp_path, properties=VECTORS), tmp_path, rows(1, 2, 3))
    table = hide(table, tmp_path, 0)
    files = sorted(tmp_path.glob("*.parquet"))
    with pytest.raises(UserError) as refused:
        table.drop_feature("deletionVectors", spark=LocalEngine(rewriter=Loses()))
    assert refused.value.code is Code.COMMIT_INVALID
    assert sorted(tmp_path.glob("*.parquet")) == files
    live = list(table.refresh().snapshot.adds())
    assert [add.num_records for add in live] == [3]
