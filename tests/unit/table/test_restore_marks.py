"""RESTORE: what goes back, what must not, and who may commit meanwhile."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.unit.table.making import create, data_file, write_files
from twinlake import Table
from twinlake.actions import DeletionVectorDescriptor, DomainMetadata
from twinlake.commit import DELTA_HOOKS, CommitOptions, Operation, Transaction
from twinlake.errors import Code, ConcurrentAppendException, UserError
from twinlake.log import load_snapshot
from twinlake.protocol import Metadata
from twinlake.runtime import Runtime
from twinlake.schema import Struct, parse_ddl, render_schema
from twinlake.table.operations.context import OperationContext
from twinlake.table.operations.restore import restore_snapshot, restored_metadata

T = TypeVar("T")
R = TypeVar("R")
MAX_ID = "delta.columnMapping.maxColumnId"
PROTECTION = "delta.requireCheckpointProtectionBeforeVersion"
MARK = "delta.identity.highWaterMark"
CLUSTERING = "delta.clustering"


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_ids_are_never_given_twice(tmp_path: Path, mode: str) -> None:
    table = create(tmp_path, "a INT, b INT", properties={"delta.columnMapping.mode": mode})
    table = table.add_column("c INT").add_column("d INT").restore(0)
    assert table.schema.names() == ("a", "b")
    assert table.properties[MAX_ID] == "4"
    ids = [f.metadata["delta.columnMapping.id"] for f in table.add_column("e INT").schema]
    assert ids == [1, 2, 5]


def test_column_ids_are_remembered_when_mapping_goes(tmp_path: Path) -> None:
    table = create(tmp_path, "a INT").set_properties({"delta.columnMapping.mode": "name"})
    table = table.add_column("b INT").restore(0)
    assert "delta.columnMapping.mode" not in table.properties
    table = table.set_properties({"delta.columnMapping.mode": "name"})
    assert table.schema.fields[0].metadata["delta.columnMapping.id"] == 3


def _identity(step: int, mark: int | None, **more: Any) -> Metadata:
    (column,) = parse_ddl("k BIGINT")
    settings: dict[str, Any] = {
        "delta.identity.start": 1,
        "delta.identity.step": step,
        "delta.identity.allowExplicitInsert": False,
        **more,
    }
    if mark is not None:
        settings[MARK] = mark
    schema = Struct((column.with_metadata(**settings),))
    return Metadata(id="t", schema_string=render_schema(schema))


@pytest.mark.parametrize(
    ("step", "current", "target", "expected"),
    [
        (1, 500, 10, 500),
        (1, 10, 500, 500),
        (-1, -500, -10, -500),
        (1, 500, None, 500),
        (1, None, 10, 10),
    ],
)
def test_identity_marks_never_go_back(
    step: int, current: int | None, target: int | None, expected: int
) -> None:
    merged = restored_metadata(_identity(step, current), _identity(step, target))
    assert merged.schema.fields[0].metadata[MARK] == expected


def test_identity_marks_follow_the_column_id() -> None:
    now, then = (_identity(1, mark, **{"delta.columnMapping.id": 7}) for mark in (500, 10))
    renamed = Metadata(id="t", schema_string=now.schema_string.replace('"k"', '"other"'))
    assert restored_metadata(renamed, then).schema.fields[0].metadata[MARK] == 500


def test_protected_history_stays_protected(tmp_path: Path) -> None:
    table = create(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    table = table.drop_feature("deletionVectors")
    protected = table.properties[PROTECTION]
    assert table.restore(0).properties[PROTECTION] == protected


def test_protection_that_was_dropped_stays_dropped() -> None:
    then = Metadata(id="t", configuration={PROTECTION: "5"})
    assert restored_metadata(Metadata(id="t"), then).configuration == {}


@pytest.mark.parametrize("key", [PROTECTION, PROTECTION.lower(), MAX_ID])
def test_what_the_table_keeps_cannot_be_set_or_unset(tmp_path: Path, key: str) -> None:
    table = create(tmp_path / "t")
    changes: list[Callable[[], Table]] = [
        lambda: table.set_properties({key: "0"}),
        lambda: table.unset_properties([key], if_exists=True),
        lambda: create(tmp_path / "new", properties={key: "0"}),
    ]
    for change in changes:
        with pytest.raises(UserError) as refused:
            change()
        assert refused.value.code is Code.PROPERTY_INVALID
        assert refused.value.delta_class == "DELTA_CANNOT_MODIFY_TABLE_PROPERTY"


def _cluster(table: Table, text: str, *, removed: bool = False) -> Table:
    options = CommitOptions(system_domains=frozenset({CLUSTERING}))
    change = Transaction(table.snapshot, Operation(name="CLUSTER BY"), options=options)
    change.add(DomainMetadata(domain=CLUSTERING, configuration=text, removed=removed)).commit()
    return table.refresh()


@pytest.mark.parametrize("removed", [False, True], ids=["changed", "removed"])
def test_clustering_goes_back(tmp_path: Path, removed: bool) -> None:
    table = create(tmp_path, "a INT, b INT", cluster_by=["a"])
    table = _cluster(table, '{"clusteringColumns":[["b"]]}', removed=removed)
    assert table.detail().clustering_columns == (() if removed else ("b",))
    assert table.restore(0).detail().clustering_columns == ("a",)


def test_clustering_that_came_later_goes(tmp_path: Path) -> None:
    table = create(tmp_path, "a INT", properties={"delta.feature.clustering": "supported"})
    table = _cluster(table, '{"clusteringColumns":[["a"]]}')
    restored = table.restore(0)
    assert CLUSTERING not in restored.snapshot.domains
    assert CLUSTERING not in load_snapshot(restored.snapshot.store).domains


def test_restored_vectors_bring_their_feature_back(tmp_path: Path) -> None:
    vector = DeletionVectorDescriptor(
        "i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 34, 6
    )
    table = create(tmp_path, properties={"delta.enableDeletionVectors": "true"})
    table = table.commit("WRITE", [data_file("1.parquet", vector=vector)])
    write_files(tmp_path, "1.parquet")
    # No property asks for the feature at the version that is restored, only the file does.
    table = table.unset_properties(["delta.enableDeletionVectors"])
    (live,) = table.snapshot.adds()
    table = table.commit("DELETE", [live.remove(deletion_timestamp=1)])
    table = table.drop_feature("deletionVectors").restore(2)
    assert table.protocol.is_supported("deletionVectors")
    assert table.snapshot.counters.num_deletion_vectors == 1


def test_a_file_appended_meanwhile_stops_the_restore(tmp_path: Path) -> None:
    table = create(tmp_path).commit("WRITE", [data_file("1.parquet")])
    stale = table.snapshot
    table.commit("WRITE", [data_file("2.parquet")])
    with pytest.raises(ConcurrentAppendException):
        context = OperationContext(hooks=DELTA_HOOKS)
        restore_snapshot(context, stale, load_snapshot(stale.store, 0))


class Shipping:
    """Sends every function through pickle, as an executor on other machines does."""

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return map(pickle.loads(pickle.dumps(fn)), items)


def test_the_search_for_missing_files_can_be_sent_away(tmp_path: Path) -> None:
    create(tmp_path).commit("WRITE", [data_file("1.parquet")])
    write_files(tmp_path, "1.parquet")
    table = Table.open(tmp_path, runtime=Runtime(executor=Shipping()), durable=False)
    (live,) = table.snapshot.adds()
    table = table.commit("DELETE", [live.remove(deletion_timestamp=1)]).restore(1)
    assert table.files()["path"].to_pylist() == ["1.parquet"]
