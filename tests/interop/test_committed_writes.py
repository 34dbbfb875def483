"""What Spark wrote and committed stays, also if the store gives no answer any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from twinlake.errors import Code, StorageError
from twinlake.log import CACHE
from twinlake.spark import DeltaTable, scan, write
from twinlake.storage import Committed, LocalStore
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def silent_store(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Arms the store of this process: after the next commit it lists nothing any more."""
    create, list_from = LocalStore.create, LocalStore.list_from
    state = {"armed": False, "silent": False}

    def created(store: LocalStore, key: str, data: bytes) -> Any:
        outcome = create(store, key, data)
        is_commit = key.startswith("_delta_log/") and key.endswith(".json")
        if state["armed"] and is_commit and isinstance(outcome, Committed):
            state["silent"] = True
        return outcome

    def listed(store: LocalStore, folder: str, start_after: str = "") -> Any:
        if state["silent"]:
            raise StorageError(Code.STORAGE, f"Could not list {folder}.", why="no answer", fix="-")
        return list_from(store, folder, start_after)

    monkeypatch.setattr(LocalStore, "create", created)
    monkeypatch.setattr(LocalStore, "list_from", listed)

    def arm() -> None:
        state.update(armed=True)

    return arm


@pytest.mark.parametrize("name", ["create", "append", "overwrite", "replace_where", "dynamic"])
def test_a_write_is_not_failed_by_what_comes_after_its_commit(
    tmp_path: Path,
    delta_spark: SparkSession,
    silent_store: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    path = tmp_path / "t"
    frame = delta_spark.range(4).selectExpr("id", "id % 2 AS part")
    new = delta_spark.range(10, 12).selectExpr("id", "CAST(1 AS BIGINT) AS part")
    expected = [0, 1, 2, 3]
    if name != "create":
        write(frame, path, partition_by=["part"])
        frame = new
        kept = {"append": [0, 1, 2, 3], "overwrite": []}.get(name, [0, 2])
        expected = [*kept, 10, 11]
    options: dict[str, dict[str, Any]] = {
        "create": {"partition_by": ["part"]},
        "append": {"mode": "append"},
        "overwrite": {"mode": "overwrite"},
        "replace_where": {"mode": "overwrite", "replace_where": "part = 1"},
        "dynamic": {"mode": "overwrite", "partition_overwrite": "dynamic"},
    }
    silent_store()
    done = write(frame, path, **options[name])
    monkeypatch.undo()
    CACHE.forget(done.location)
    assert Table.open(path).version == done.version
    assert sorted(row.id for row in scan(delta_spark, path).collect()) == expected


def test_neither_is_a_compaction(
    tmp_path: Path,
    delta_spark: SparkSession,
    silent_store: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "t"
    for start in (0, 2):
        write(delta_spark.range(start, start + 2).coalesce(1), path, mode="append")
    table = DeltaTable.forPath(delta_spark, str(path))
    silent_store()
    assert table.optimize().executeCompaction().count() == 1
    monkeypatch.undo()
    CACHE.forget(Table.open(path).location)
    assert len(Table.open(path).files()) == 1
    assert sorted(row.id for row in scan(delta_spark, path).collect()) == [0, 1, 2, 3]
