"""The part of the demo on overlapping commits, and the statements it holds back."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.unit.cli.running import document, lines
from twinlake import Table
from twinlake.cli.verify.rows import delete_rows, insert_rows, read_rows, update_rows
from twinlake.errors import ConflictError

if TYPE_CHECKING:
    from pathlib import Path

TWIN = {"delta.enableIcebergWriterCompatV3": "true", "delta.enableDeletionVectors": "true"}
ROWS = [{"name": "jack", "colour": "red"}, {"name": "sarah", "colour": "green"}]


@pytest.fixture(scope="module")
def steps() -> dict[str, dict[str, Any]]:
    return {step["step"]: step for step in document("demo", "--no-spark")["steps"]}


def test_anomaly_is_found_with_its_trace(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["verify_anomaly"]
    assert step["violated"] == "ConsistentRead"
    assert len(step["trace"]) == 14


def test_fix_is_proved(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["verify_fix"]
    assert (step["ok"], step["states"]) == (True, 2741)


def test_same_history_is_refused_on_a_twin(steps: dict[str, dict[str, Any]]) -> None:
    step = steps["verify_twin_table"]
    assert step["masked"] is True
    assert step["error"]["type"] == "ConcurrentAppendException"
    assert step["error"]["fields"]["winner"] == 2
    assert step["after_update"] == [{"name": "jack", "colour": "blue"}, ROWS[1]]
    assert step["rows"] == [ROWS[1]]
    assert step["keeps_promise"] is True


def test_story_keeps_to_100_columns() -> None:
    text = lines("demo", "--no-spark")
    start = text.index("8. A row that comes back")
    assert [line for line in text[start:] if len(line) > 100] == []


@pytest.fixture
def twin(tmp_path: Path) -> Table:
    table = Table.create(tmp_path / "twin", "name STRING, colour STRING", properties=TWIN)
    return insert_rows(table, ROWS)


def test_held_update_loses_to_a_delete_as_well(twin: Table) -> None:
    held = update_rows(twin, "name", "jack", {"colour": "blue"})
    delete_rows(twin, "name", "jack").commit()
    with pytest.raises(ConflictError):
        held.commit()
    assert read_rows(twin.refresh()) == [ROWS[1]]


def test_updated_row_keeps_its_row_id(twin: Table) -> None:
    # The row ids of the first file are 0 and 1; the row of the new file says that it is still 1.
    update_rows(twin, "name", "sarah", {"colour": "blue"}).commit()
    table = twin.refresh()
    column = table.properties["delta.rowTracking.materializedRowIdColumnName"]
    kept = {}
    for add in table.snapshot.adds():
        found = pq.read_table(io.BytesIO(table.snapshot.store.read(add.path)))
        if column in found.column_names:
            kept[add.path] = found[column].to_pylist()
    assert list(kept.values()) == [[1]]
    assert table.check("icebergWriterCompatV3", files=True).ok
