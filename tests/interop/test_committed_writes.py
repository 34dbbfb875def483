"""What Spark wrote and committed stays, also if the store gives no answer any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from twinlake.errors import Code, StorageError
from twinlake.log import CACHE
from twinlake.spark import scan, write
from twinlake.storage import Committed, LocalStore
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def silent_store(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Arms the store of this process: after the next commit nothing can be looked up any more."""
    create = LocalStore.create
    state = {"armed": False, "silent": False}

    def created(store: LocalStore, key: str, data: bytes) -> Any:
        outcome = create(store, key, data)
        is_commit = key.startswith("_delta_log/") and key.endswith(".json")
        if state["armed"] and is_commit and isinstance(outcome, Committed):
            state["silent"] = True
        return outcome

    def failing(name: str) -> Callable[..., Any]:
        method = getattr(LocalStore, name)

        def call(store: LocalStore, *given: Any, **named: Any) -> Any:
            if state["silent"]:
                raise StorageError(Code.STORAGE, f"{name} has no answer.", why="silent", fix="-")
            return method(store, *given, **named)

        return call

    for name in ("read", "read_range", "head", "list_from"):
        monkeypatch.setattr(LocalStore, name, failing(name))
    monkeypatch.setattr(LocalStore, "create", created)

    def arm() -> None:
        state.update(armed=True)

    return arm


@pytest.mark.parametrize("name", ["append"])
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
