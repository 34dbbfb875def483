"""Which files have another partition after a change of the table's metadata alone."""

from __future__ import annotations

import datetime as dt
import io
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import msgspec
import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import V2, V3, hide, opened, twin
from tests.support.log_tables import vector
from twinlake.actions import AddFile, Metadata
from twinlake.iceberg import sync_table
from twinlake.iceberg.derive.operation import FileChanges
from twinlake.iceberg.derive.partition_change import moves_files, with_moved_files
from twinlake.iceberg.derive.table_layout import TableLayout, layout_of
from twinlake.schema import assign_mapping, parse_ddl, physical_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.table import Table

ZONE = "twinlake.partitionTimeZone"
_DELETED = 2


def layout(kind: str, zone: str = "UTC") -> TableLayout:
    schema, _ = assign_mapping(parse_ddl(f"p {kind}, v {kind}"), name_for="col-{}".format)
    mapping = {"delta.columnMapping.mode": "id", "delta.enableIcebergCompatV3": "true", ZONE: zone}
    table = Metadata(id="t", configuration=mapping, partition_columns=("p",)).with_schema(schema)
    return layout_of(table, "file:///t")


def add(text: str | None, dv: int | None = None) -> AddFile:
    return AddFile(
        path=f"{text}.parquet",
        partition_values={"col-1": text},
        size=1,
        modification_time=0,
        data_change=True,
        deletion_vector=vector(dv),
    )


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (layout("FLOAT"), layout("DOUBLE"), True),
        (layout("DATE"), layout("TIMESTAMP_NTZ"), True),
        (layout("INT"), layout("LONG"), False),
        (layout("DECIMAL(5,2)"), layout("DECIMAL(9,2)"), False),
        (layout("DOUBLE"), layout("DOUBLE"), False),
        (layout("TIMESTAMP"), layout("TIMESTAMP", "+01:00"), True),
        (layout("STRING"), layout("STRING", "+01:00"), False),
    ],
)
def test_changes_after_which_texts_mean_something_else(
    before: TableLayout, after: TableLayout, expected: bool
) -> None:
    assert moves_files(before, after) is expected


def moved(
    before: TableLayout, after: TableLayout, texts: Sequence[str | None], named: FileChanges
) -> list[str]:
    live = [add(text) for text in texts]
    told = with_moved_files(named, live, before=before, after=after, timestamp_ms=7)
    return [file.path.removesuffix(".parquet") for file in told.added]


def test_only_files_of_another_partition_are_told_of() -> None:
    nothing = FileChanges()
    floats = layout("FLOAT"), layout("DOUBLE")
    assert moved(*floats, ["0.1", "0.5", None, "NaN", "-0.0", "1e39"], nothing) == ["0.1", "1e39"]
    zones = layout("TIMESTAMP"), layout("TIMESTAMP", "+01:00")
    texts = ["2024-01-31 12:00:00", "2024-01-31T12:00:00Z"]
    assert moved(*zones, texts, nothing) == texts[:1]


def test_what_the_commit_names_is_told_of_once() -> None:
    named = FileChanges(added=[add("0.1")], data_changes=frozenset({True}))
    floats = layout("FLOAT"), layout("DOUBLE")
    assert moved(*floats, ["0.1", "0.3"], named) == ["0.1", "0.3"]
    told = with_moved_files(named, [add("0.1")], before=floats[0], after=floats[1], timestamp_ms=7)
    assert told is named


def test_vectors_move_with_their_files() -> None:
    live = [add("0.1", dv=3), add("0.5", dv=4)]
    told = with_moved_files(
        FileChanges(), live, before=layout("FLOAT"), after=layout("DOUBLE"), timestamp_ms=7
    )
    assert list(told.added) == live[:1]
    ((new, old),) = told.remasked
    assert new is live[0]
    assert (old.path, old.deletion_vector) == (new.path, new.deletion_vector)
    # VACUUM may not be thought to have deleted a file that is still there.
    assert old.deletion_timestamp == 7
    assert told.data_changes == {False}


def listed(folder: Path) -> list[Any]:
    """What each snapshot is, and the partitions of the files and vectors that it lists."""
    iceberg_table = opened(folder)
    found = []
    for snapshot in iceberg_table.metadata.snapshots:
        assert snapshot.summary is not None
        # Not by PyIceberg, which reads the doubles of manifests through 32 bits.
        paths = [
            one.manifest_path.removeprefix("file://")
            for one in snapshot.manifests(iceberg_table.io)
        ]
        entries = [
            (entry["data_file"]["content"], entry["data_file"]["partition"]["p"])
            for path in paths
            for entry in _entries(path)
            if entry["status"] != _DELETED
        ]
        found.append((snapshot.summary.operation.value, sorted(entries, key=str)))
    return found


def _entries(path: str) -> Iterator[Any]:
    yield from fastavro.reader(io.BytesIO(Path(path).read_bytes()))


def went_on_and_made_anew(table: Table, folder: Path) -> list[Any]:
    sync_table(table.snapshot)
    went_on = listed(folder)
    shutil.rmtree(folder / "_iceberg")
    sync_table(table.refresh().snapshot)
    assert listed(folder) == went_on
    return went_on


@pytest.mark.parametrize("compat", [V2, V3], ids=["v2", "v3"])
def test_a_widened_column_has_the_values_of_its_texts(
    tmp_path: Path, compat: dict[str, str]
) -> None:
    table = twin(
        tmp_path,
        "id INT, p FLOAT",
        "p",
        properties={**compat, "delta.enableTypeWidening": "true"},
    )
    files = [[{"id": at, "p": value} for at in range(2)] for value in (0.1, 0.5)]
    table = append(table, tmp_path, *files)
    if compat is V3:
        table = hide(table, tmp_path, {file.path: [0] for file in table.snapshot.adds()})
    sync_table(table.snapshot)
    assert listed(tmp_path)[0] == ("append", [(0, 0.10000000149011612), (0, 0.5)])
    table = table.widen_column("p", "DOUBLE")
    table = table.set_properties({"owner": "me"})

    *_, (operation, entries) = went_on_and_made_anew(table, tmp_path)

    assert operation == "replace"
    vectors = [(1, 0.1), (1, 0.5)] if compat is V3 else []
    assert entries == [(0, 0.1), (0, 0.5), *vectors]


def test_another_zone_moves_files(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, p TIMESTAMP", "p", properties={**V2, ZONE: "UTC"})
    _, column = table.schema
    one = dt.datetime(1970, 1, 1, 1, tzinfo=dt.UTC)
    files = [
        msgspec.structs.replace(
            write_file(table, tmp_path, [{"id": 1, "p": None if text is None else one}]),
            partition_values={physical_name(column): text},
        )
        for text in ("1970-01-01 01:00:00", "1970-01-01T01:00:00Z", None)
    ]
    table = table.commit("WRITE", files)
    sync_table(table.snapshot)
    table = table.set_properties({ZONE: "+01:00"})

    def at(hour: int) -> dt.datetime:
        return dt.datetime(1970, 1, 1, hour, tzinfo=dt.UTC)

    assert went_on_and_made_anew(table, tmp_path) == [
        ("append", [(0, None), (0, at(1)), (0, at(1))]),
        ("replace", [(0, None), (0, at(0)), (0, at(1))]),
    ]


def test_widening_that_moves_no_file_makes_no_snapshot(tmp_path: Path) -> None:
    widening = {**V2, "delta.enableTypeWidening": "true"}
    table = twin(tmp_path, "id INT, p FLOAT, q INT", "p", "q", properties=widening)
    table = append(table, tmp_path, [{"id": 1, "p": 0.5, "q": 7}], [{"id": 2}])
    sync_table(table.snapshot)
    table = table.widen_column("p", "DOUBLE").widen_column("q", "LONG")

    assert [operation for operation, _ in went_on_and_made_anew(table, tmp_path)] == ["append"]
