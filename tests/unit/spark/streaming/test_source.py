"""Tables on disk as sources of streams, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from twinlake.errors import UserError
from twinlake.spark.streaming.admission import UNLIMITED, ReadLimits
from twinlake.spark.streaming.checkpoint import StreamCheckpoint
from twinlake.spark.streaming.source import StreamSource
from twinlake.spark.streaming.source_options import SourceOptions
from twinlake.spark.streaming.table_log import event_order
from twinlake.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.spark.streaming.offset import StreamOffset


def source(path: Path, *, fixed: bool = False, **options: Any) -> StreamSource:
    return StreamSource(
        lambda: Table.open(path).snapshot, SourceOptions.parse(options), fixed=fixed
    )


def appended(path: Path, *batches: list[int], **properties: str) -> Table:
    table = Table.create(path, "id INT", properties=properties)
    for ids in batches:
        table = table.append({"id": ids})
    return table


def ids(stream: StreamSource, start: StreamOffset, end: StreamOffset) -> list[int]:
    """The rows of a batch; the tables of these tests have no deletion vectors."""
    store: Any = stream.log.store
    return [
        number
        for snapshot in stream.batch(start, end).snapshots()
        for path in snapshot.files()["path"].to_pylist()
        for number in pq.read_table(store.local_path(path))["id"].to_pylist()
    ]


def test_the_initial_snapshot_and_then_each_commit(tmp_path: Path) -> None:
    table = appended(tmp_path, [1], [2], [3])
    stream = source(tmp_path)
    begin = stream.beginning()
    first = stream.next_offset(begin, ReadLimits(max_files=2))
    assert ids(stream, begin, first) == [1, 2]
    table.append({"id": [4]})
    rest = stream.next_offset(first, UNLIMITED)
    assert ids(stream, first, rest) == [3, 4]
    assert stream.next_offset(rest, UNLIMITED) == rest
    assert (rest.version, rest.is_base, rest.is_initial) == (5, True, False)


@pytest.mark.parametrize(("version", "found"), [(0, [1, 2, 3]), (2, [2, 3]), ("latest", [])])
def test_a_stream_begins_at_a_version(tmp_path: Path, version: object, found: list[int]) -> None:
    appended(tmp_path, [1], [2], [3])
    stream = source(tmp_path, startingVersion=version)
    begin = stream.beginning()
    assert ids(stream, begin, stream.next_offset(begin, UNLIMITED)) == found


def test_a_stream_begins_at_a_time(tmp_path: Path) -> None:
    table = appended(tmp_path, [1], [2], [3])
    made = {record.version: record.timestamp for record in table.history()}
    assert source(tmp_path, startingTimestamp=made[2]).beginning().version == 2
    assert source(tmp_path, startingTimestamp=made[2] - 1).beginning().version <= 2
    assert source(tmp_path, startingTimestamp=1_000_000_000).beginning().version == 0
    with pytest.raises(UserError, match="made at the starting time or later"):
        source(tmp_path, startingTimestamp=made[3] + 1).beginning()


def test_a_version_that_is_not_there_is_refused(tmp_path: Path) -> None:
    appended(tmp_path, [1])
    with pytest.raises(UserError, match="cannot begin at version 7") as raised:
        source(tmp_path, startingVersion=7).beginning()
    assert "versions 0 to 1 are available" in raised.value.why


def test_a_table_that_was_replaced_ends_the_stream(tmp_path: Path) -> None:
    import shutil

    appended(tmp_path / "t", [1])
    stream = source(tmp_path / "t")
    begin = stream.beginning()
    shutil.rmtree(tmp_path / "t")
    new = appended(tmp_path / "t", [7])
    with pytest.raises(UserError, match="has read another table") as raised:
        stream.next_offset(begin, UNLIMITED)
    assert raised.value.fields == {"checkpoint": begin.table_id, "table": new.metadata.id}
    with pytest.raises(UserError, match="has read another table"):
        source(tmp_path / "t").parse(begin.to_dict())


def _clean(path: Path, *versions: int) -> None:
    Table.open(path).checkpoint()
    for version in versions:
        (path / f"_delta_log/{version:020}.json").unlink()


def test_history_that_was_cleaned_up_ends_the_stream(tmp_path: Path) -> None:
    table = appended(tmp_path, [1])
    stream = source(tmp_path)
    offset = stream.next_offset(stream.beginning(), UNLIMITED)
    for number in range(2, 6):
        table = table.append({"id": [number]})
    _clean(tmp_path, *range(4))
    with pytest.raises(UserError, match=r"has to read version 2 .* whose commit is gone") as raised:
        stream.next_offset(offset, UNLIMITED)
    assert raised.value.delta_class == "DELTA_MISSING_FILES_UNEXPECTED_VERSION"
    assert raised.value.fields["earliest"] == 4
    lenient = source(tmp_path, failOnDataLoss="false")
    end = lenient.next_offset(offset, UNLIMITED)
    assert ids(lenient, offset, end) == [4, 5]


def test_columns_that_are_added_come_with_the_next_batch(tmp_path: Path) -> None:
    table = appended(tmp_path, [1])
    stream = source(tmp_path)
    begin = stream.beginning()
    table.add_column("n INT").append({"id": [2], "n": [2]})
    first = stream.next_offset(begin, UNLIMITED)
    second = stream.next_offset(first, UNLIMITED)
    assert stream.batch(begin, first).metadata.schema.names() == ("id",)
    assert stream.batch(first, second).metadata.schema.names() == ("id", "n")
    assert ids(stream, first, second) == [2]


def test_columns_that_are_dropped_end_the_stream_unless_it_is_allowed(tmp_path: Path) -> None:
    table = appended(tmp_path, [1], **{"delta.columnMapping.mode": "name"}).add_column("n INT")
    stream = source(tmp_path)
    offset = stream.next_offset(stream.beginning(), UNLIMITED)
    table.drop_column("n")
    with pytest.raises(UserError, match="n is dropped"):
        stream.next_offset(offset, UNLIMITED)
    allowed = source(tmp_path, allowSourceColumnDrop="always")
    assert allowed.next_offset(offset, UNLIMITED).version == offset.version + 1


def test_a_stream_whose_columns_spark_knows_has_to_be_restarted(tmp_path: Path) -> None:
    table = appended(tmp_path, [1])
    stream = source(tmp_path, fixed=True)
    offset = stream.next_offset(stream.beginning(), UNLIMITED)
    table.add_column("n INT")
    with pytest.raises(UserError, match="has other columns than the stream"):
        stream.next_offset(offset, UNLIMITED)
    again = source(tmp_path, fixed=True)
    assert again.next_offset(offset, UNLIMITED).version == offset.version + 1


def test_a_file_read_twice_is_in_two_snapshots(tmp_path: Path) -> None:
    table = appended(tmp_path, [1, 2, 3], **{"delta.enableDeletionVectors": "true"})
    stream = source(tmp_path, ignoreChanges="true", startingVersion=0)
    begin = stream.beginning()
    table.delete("id = 2")
    parts = stream.batch(begin, stream.next_offset(begin, UNLIMITED)).snapshots()
    assert [part.files()["deletion_vector"].null_count for part in parts] == [1, 0]


def test_files_go_by_event_time(tmp_path: Path) -> None:
    appended(tmp_path, [7, 9], [1, 2], [2, 3], [5])
    stream = source(tmp_path, withEventTimeOrder="true", eventTimeColumn="id")
    offset, batches = stream.beginning(), []
    for _ in range(3):
        end = stream.next_offset(offset, ReadLimits(max_files=1))
        batches.append(ids(stream, offset, end))
        offset = end
    assert batches == [[1, 2, 2, 3], [5], [7, 9]]
    plain = source(tmp_path)
    middle = stream.next_offset(stream.beginning(), ReadLimits(max_files=1))
    with pytest.raises(UserError, match="order of the initial snapshot cannot be changed"):
        plain.parse(middle.to_dict())


@pytest.mark.parametrize(
    ("low", "high", "order"),
    [
        ([5, 1, 2], [9, 3, 4], [(1, False), (2, True), (0, False)]),
        ([1, 4], [4, 5], [(0, False), (1, True)]),
        ([1, 2, 3], [9, 2, 3], [(0, False), (1, True), (2, True)]),
        ([None, 1], [None, 2], [(0, False), (1, True)]),
    ],
)
def test_files_whose_times_overlap_go_together(
    low: list[Any], high: list[Any], order: list[tuple[int, bool]]
) -> None:
    assert event_order([f"f{n}" for n in range(len(low))], low, high) == order


OFFSET = (
    '{{"sourceVersion":1,"reservoirId":"{}","reservoirVersion":{},"index":-1,'
    '"isStartingVersion":false}}'
)


def _offsets(folder: Path, batch: int, *lines: str) -> None:
    (folder / "offsets").mkdir(parents=True, exist_ok=True)
    (folder / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *lines]))


def test_a_checkpoint_has_offsets_and_a_query(tmp_path: Path) -> None:
    _offsets(tmp_path, 9, OFFSET.format("a", 4))
    _offsets(tmp_path, 10, OFFSET.format("b", 1), "-", OFFSET.format("a", 5))
    (tmp_path / "metadata").write_text('{"id":"q-1"}')
    checkpoint = StreamCheckpoint.at(str(tmp_path))
    assert checkpoint.query_id() == "q-1"
    assert checkpoint.last_batch() == 10
    found = checkpoint.last_offset("a")
    assert found is not None
    assert found.version == 5
    assert checkpoint.offset(7) is None


def test_an_empty_folder_is_a_checkpoint_without_batches(tmp_path: Path) -> None:
    checkpoint = StreamCheckpoint.at(str(tmp_path))
    assert (checkpoint.last_batch(), checkpoint.start()) == (None, None)
    with pytest.raises(UserError, match="not the checkpoint of a stream"):
        checkpoint.query_id()


def test_where_a_stream_began_is_decided_once(tmp_path: Path) -> None:
    table = appended(tmp_path / "t", [1])
    checkpoint = StreamCheckpoint.at(str(tmp_path / "c"))
    made = checkpoint.start(source(tmp_path / "t", startingVersion="latest").beginning)
    table.append({"id": [2]})
    again = checkpoint.start(source(tmp_path / "t", startingVersion="latest").beginning)
    assert made == again
    assert made is not None
    assert made.version == 2
