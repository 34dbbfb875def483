"""verify-twin: what the formats say of files whose rows every reader at hand returns alike."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.data_files import append, write_file
from tests.support.iceberg.both_sides import V2, V3, twin
from tests.support.log_tables import commit, info
from tests.unit.cli.running import run
from tests.unit.iceberg.sync.test_foreign_files import (
    legacy,
    rewritten,
    without_ids,
    without_top_ids,
)
from tests.unit.table.twin.test_verify_twin import in_metadata, kinds, metadata_files, rewrite_avro
from twinlake import Table
from twinlake.errors import UserError
from twinlake.iceberg import sync_table
from twinlake.log import CACHE
from twinlake.log.names import commit_key
from twinlake.schema import (
    CHAR_VARCHAR_KEY,
    ParquetNode,
    Repetition,
    Struct,
    field_id,
    nested_ids,
    physical_name,
)
from twinlake.table.twin.canonical_locations import canonical_location, locations_listed_twice
from twinlake.table.twin.column_projection import projection_mismatches
from twinlake.table.twin.report import DifferenceKind
from twinlake.table.twin.verify_twin import verify_twin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from twinlake.table.twin.report import TwinReport

SCHEMA = (
    "id INT, d DATE, t TIMESTAMP, n TIMESTAMP_NTZ, s STRUCT<x: INT, d: DATE>, l ARRAY<DATE>, "
    "m MAP<STRING, DATE>"
)
BY_NAME = {**V2, "delta.columnMapping.mode": "name"}
OLD = dt.date(1500, 3, 1)
NOON = dt.datetime(1500, 3, 1, 12)


def row(number: int, year: int = 1500) -> dict[str, Any]:
    day, moment = OLD.replace(year=year), NOON.replace(year=year)
    return {
        "id": number,
        "d": day,
        "t": moment.replace(tzinfo=dt.UTC),
        "n": moment,
        "s": {"x": number, "d": day},
        "l": [day],
        "m": {"k": day},
    }


def published(
    table: Table,
    folder: Path,
    rows: Sequence[dict[str, Any]],
    change: Callable[[pa.Table], pa.Table] = lambda data: data,
) -> Table:
    """A published version with a file that twinlake would have refused to commit."""
    add = rewritten(write_file(table, folder, rows), folder, change)
    # Written to the log by hand: a commit that says it is twinlake's is not judged by the sync.
    commit(table.snapshot.store, table.version + 1, info(engine_info="twinlake/0"), add)
    table = table.refresh()
    sync_table(table.snapshot)
    assert table.iceberg.version == table.version
    return table


def columns(report: TwinReport) -> set[tuple[DifferenceKind, str]]:
    return {(finding.what, finding.column) for finding in report.findings}


# Calendar


@pytest.mark.parametrize(
    ("schema", "year", "expected"),
    [
        pytest.param(SCHEMA, 1500, {"d", "t", "s.d", "l.element", "m.value"}, id="every level"),
        pytest.param(SCHEMA, 1900, set(), id="the calendars agree from 1900 on"),
        pytest.param("id INT, n TIMESTAMP_NTZ", 1500, set(), id="Spark moves no local times"),
    ],
)
def test_values_of_the_legacy_calendar(
    tmp_path: Path, schema: str, year: int, expected: set[str]
) -> None:
    table = append(twin(tmp_path, schema), tmp_path, [row(1)])
    sync_table(table.snapshot)
    assert verify_twin(table, rows=True).agrees
    table = published(table, tmp_path, [row(2, year)], legacy)
    report = verify_twin(table, rows=True)
    named = {(DifferenceKind.CALENDAR, column) for column in expected}
    assert columns(report) == named | ({(DifferenceKind.ROWS, "")} if expected else set())
    assert {finding.version for finding in report.findings} <= {2}
    assert len({finding.file for finding in report.findings}) == bool(expected)
    # Footers are read with the rows.
    assert verify_twin(table).agrees


def test_a_legacy_column_that_was_dropped_is_read_by_nobody(tmp_path: Path) -> None:
    table = published(twin(tmp_path, "id INT, d DATE"), tmp_path, [row(1)], legacy)
    found = columns(verify_twin(table, rows=True))
    assert found == {(DifferenceKind.CALENDAR, "d"), (DifferenceKind.ROWS, "")}
    table = table.drop_column("d")
    sync_table(table.snapshot)
    newest = [f for f in verify_twin(table, rows=True).findings if f.version == table.version]
    assert newest == []


# Field ids


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda data: data, set(), id="all ids"),
        pytest.param(without_ids, set(), id="no ids: by the name mapping"),
        pytest.param(without_top_ids, {"id", "s", "l"}, id="ids of elements alone"),
    ],
)
def test_columns_that_iceberg_readers_do_not_find(
    tmp_path: Path, change: Callable[[pa.Table], pa.Table], expected: set[str]
) -> None:
    table = twin(tmp_path, "id INT, s STRUCT<x: INT>, l ARRAY<INT>", properties=BY_NAME)
    rows = [{"id": 1, "s": {"x": 1}, "l": [1]}]
    table = published(table, tmp_path, rows, change)
    report = verify_twin(table, rows=True)
    # PyIceberg returns the rows all the same.
    assert columns(report) == {(DifferenceKind.FIELD_IDS, column) for column in expected}
    for finding in report.findings:
        assert finding.delta.endswith("with no field id")
        assert finding.iceberg.startswith("no column with field id")


def test_files_without_ids_need_a_name_mapping(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, l ARRAY<INT>", properties=BY_NAME)
    table = published(table, tmp_path, [{"id": 1, "l": [1]}], without_ids)
    in_metadata(lambda found: found["properties"].pop("schema.name-mapping.default"))(tmp_path)
    report = verify_twin(table, rows=True)
    assert (DifferenceKind.FIELD_IDS, "") in columns(report)


def nodes(kind: Struct, changes: Mapping[str, Any]) -> ParquetNode:
    """The footer's tree of a table ``a STRUCT<b>, l ARRAY, m MAP`` with other ids at some names."""
    a, items, m = kind.fields
    assert isinstance(a.type, Struct)

    def leaf(name: str, number: int | None, key: str) -> ParquetNode:
        return ParquetNode(name=name, physical_type="INT32", field_id=changes.get(key, number))

    def wrapped(name: str, number: int | None, key: str, *inner: ParquetNode) -> ParquetNode:
        wrapper = ParquetNode(name="list", repetition=Repetition.REPEATED, children=inner)
        found = changes.get(key, number)
        return ParquetNode(name=name, field_id=found, children=(wrapper,))

    b = leaf(physical_name(a.type.fields[0]), field_id(a.type.fields[0]), "a.b")
    return ParquetNode(
        name="root",
        children=(
            ParquetNode(
                name=physical_name(a), field_id=changes.get("a", field_id(a)), children=(b,)
            ),
            wrapped(
                physical_name(items),
                field_id(items),
                "l",
                leaf("element", nested_ids(items)[f"{physical_name(items)}.element"], "l.element"),
            ),
            wrapped(
                physical_name(m),
                field_id(m),
                "m",
                leaf("key", nested_ids(m)[f"{physical_name(m)}.key"], "m.key"),
                leaf("value", nested_ids(m)[f"{physical_name(m)}.value"], "m.value"),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, set(), id="right"),
        pytest.param({"a": None}, {"a"}, id="a struct without an id"),
        pytest.param({"a.b": None}, {"a.b"}, id="a field of a struct"),
        pytest.param({"a.b": 99}, {"a.b"}, id="the id of another"),
        pytest.param({"l.element": None}, {"l.element"}, id="an element"),
        pytest.param({"m.key": None}, {"m.key"}, id="a key"),
        pytest.param({"m.value": 99}, {"m.value"}, id="a value"),
    ],
)
def test_ids_at_every_level(
    tmp_path: Path, changes: dict[str, int | None], expected: set[str]
) -> None:
    table = twin(tmp_path, "a STRUCT<b: INT>, l ARRAY<INT>, m MAP<INT, INT>", properties=BY_NAME)
    found = projection_mismatches(nodes(table.schema, changes), table.metadata, None)
    assert {".".join(path) for path, _, _ in found} == expected


# CHAR


def with_char(table: Table, folder: Path, spelled: str) -> Table:
    """The table with a CHAR type on its last column from its first version on.

    The log is changed after it was published: no commit and no conversion would take such a column.
    """
    first = folder / commit_key(0)
    actions = [json.loads(line) for line in first.read_text().splitlines()]
    (metadata,) = (action["metaData"] for action in actions if "metaData" in action)
    schema = json.loads(metadata["schemaString"])
    schema["fields"][-1]["metadata"][CHAR_VARCHAR_KEY] = spelled
    metadata["schemaString"] = json.dumps(schema)
    first.write_text("".join(json.dumps(action) + "\n" for action in actions))
    for checksum in first.parent.glob("*.crc"):
        checksum.unlink()
    CACHE.forget(table.snapshot.store.url)
    return Table.open(folder, durable=False)


@pytest.mark.parametrize(
    ("kind", "spelled", "short", "padded", "column"),
    [
        pytest.param("STRING", "char(5)", "ab", "ab   ", "c", id="char"),
        pytest.param("STRING", "char(2)", "ü", "ü ", "c", id="characters, not bytes"),
        pytest.param(
            "STRUCT<x: STRING>", "struct<x:char(3)>", {"x": "a"}, {"x": "a  "}, "c.x", id="struct"
        ),
        pytest.param(
            "ARRAY<STRING>", "array<char(3)>", ["abc", "a"], ["abc"], "c.element", id="array"
        ),
        pytest.param(
            "MAP<STRING, STRING>",
            "map<char(1),char(2)>",
            {"a": "b"},
            {"a": "bc"},
            "c.value",
            id="map",
        ),
        pytest.param("STRING", "varchar(5)", None, "ab", "", id="varchar is not padded"),
        pytest.param("STRING", "char(5)", None, None, "", id="null"),
    ],
)
def test_char_values_that_are_not_padded(
    tmp_path: Path, kind: str, spelled: str, short: Any, padded: Any, column: str
) -> None:
    table = published(twin(tmp_path, f"id INT, c {kind}"), tmp_path, [{"id": 1, "c": padded}])
    if column:
        table = published(table, tmp_path, [{"id": 2, "c": short}, {"id": 3, "c": padded}])
    report = verify_twin(with_char(table, tmp_path, spelled), rows=True)
    assert columns(report) == ({(DifferenceKind.PADDING, column)} if column else set())
    assert {finding.version for finding in report.findings} <= {2}


# Spellings


@pytest.mark.parametrize(
    "spelled",
    ["/t/a b.parquet", "file:/t/a b.parquet", "file:///t/a b.parquet", "/t/./x/../a b.parquet"],
)
def test_spellings_of_one_file(spelled: str) -> None:
    assert canonical_location(spelled) == "file:///t/a b.parquet"
    assert locations_listed_twice([spelled, "file:///t/a b.parquet", "file:///t/c"]) == {
        "file:///t/a b.parquet": 2
    }


def test_a_file_that_iceberg_lists_under_two_spellings(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    sync_table(table.snapshot)

    def twice(records: list[Any]) -> list[Any]:
        file = records[0]["data_file"]
        spelled = file["file_path"].replace("file:///", "file:/")
        return [*records, {**records[0], "data_file": {**file, "file_path": spelled}}]

    for path in metadata_files(tmp_path, "m-*.avro"):
        rewrite_avro(path, twice)
    report = verify_twin(table)
    assert DifferenceKind.FILE_TWICE in kinds(report)
    (found,) = (f for f in report.findings if f.what is DifferenceKind.FILE_TWICE)
    assert (found.delta, found.iceberg) == ("", "2 times")


# Who read


def test_report_says_by_whom_each_side_was_read(tmp_path: Path) -> None:
    table = append(twin(tmp_path, "id INT"), tmp_path, [{"id": 1}])
    sync_table(table.snapshot)
    for rows in (False, True):
        report = verify_twin(table, rows=rows)
        assert report.delta_reader.startswith("twinlake")
        assert report.iceberg_reader.startswith("PyIceberg 0.")
    found = json.loads(run("verify-twin", tmp_path, "--rows", "--json").stdout)
    assert (found["delta_reader"], found["iceberg_reader"]) == (
        report.delta_reader,
        report.iceberg_reader,
    )
    text = run("verify-twin", tmp_path, "--rows").stdout
    assert f"read by {report.delta_reader}" in text
    assert f"read by {report.iceberg_reader}" in text


def test_a_type_that_pyiceberg_does_not_know_is_no_damage(tmp_path: Path) -> None:
    table = twin(tmp_path, "id INT, v VARIANT", properties=V3)
    sync_table(table.snapshot)
    with pytest.raises(UserError) as refused:
        verify_twin(table)
    assert "variant" in refused.value.why
    assert "Delete" not in refused.value.fix
