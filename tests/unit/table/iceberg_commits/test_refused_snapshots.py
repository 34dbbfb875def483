"""Snapshots, manifest lists and manifests that contradict the table or themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.iceberg.outside_writer import (
    ADDED,
    DELETED,
    EXISTING,
    OutsideWriter,
    column,
    entry,
    hold_together,
    refused,
)
from tests.unit.iceberg.requests.test_avro_safety import container, of_field
from twinlake import Table
from twinlake.iceberg.derive import snapshot_id
from twinlake.table.iceberg_commits import CommitLimits, IcebergCommits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

COLUMNS = (column(1, "id", "long", required=True), column(2, "s", "string"))
Record = dict[str, Any]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> OutsideWriter:
    writer = OutsideWriter(tmp_path_factory.mktemp("snapshots") / "t").create(*COLUMNS)
    writer.append([{"id": 1}, {"id": 2}])
    return writer


def with_rows(writer: OutsideWriter, rows: Iterable[Record]) -> list[Record]:
    return writer.to_main(writer.snapshot(writer.manifest_list(rows), "overwrite"))


def with_entry(
    make: Callable[[OutsideWriter, Record], list[Record]], *, carried: bool = True
) -> Callable[[OutsideWriter], list[Record]]:
    """A request with a manifest of its own, made from the one file of the table."""

    def made(writer: OutsideWriter) -> list[Record]:
        file = writer.live()[0]["data_file"]
        rows = writer.listed() if carried else []
        return with_rows(writer, [*rows, writer.manifest(make(writer, file))])

    return made


def fresh(writer: OutsideWriter) -> Record:
    return writer.write([{"id": 7}])


_REMOVE_MAIN = {"action": "remove-snapshot-ref", "ref-name": "main"}


CASES: dict[str, tuple[Callable[[OutsideWriter], list[Record]], str]] = {
    "no manifests": (lambda w: with_rows(w, []), "neither listed nor deleted"),
    "manifest dropped": (
        with_entry(lambda w, _: [entry(fresh(w))], carried=False),
        "neither listed nor deleted",
    ),
    "existing, never there": (
        with_entry(lambda w, _: [entry(fresh(w), EXISTING)]),
        "the table does not have it",
    ),
    "added by another": (
        with_entry(lambda w, _: [entry(fresh(w), ADDED, snapshot_id=5)]),
        "added by another snapshot",
    ),
    "live already": (with_entry(lambda _, file: [entry(file)]), "the table has it"),
    "live already, other spelling": (
        with_entry(
            lambda _, file: [
                entry({**file, "file_path": file["file_path"].removeprefix("file://")})
            ]
        ),
        "the table has it",
    ),
    "carried and existing": (
        with_entry(lambda _, file: [entry(file, EXISTING, snapshot_id=3)]),
        "the table does not have it",
    ),
    "deleted and carried": (
        with_entry(lambda _, file: [entry(file, DELETED)]),
        "stays in a manifest",
    ),
    "deleted, never there": (
        with_entry(lambda w, _: [entry(fresh(w), DELETED)]),
        "or was in none",
    ),
    "deleted by another": (
        with_entry(lambda _, f: [entry(f, DELETED, snapshot_id=77)], carried=False),
        "neither listed nor deleted",
    ),
    "deleted and added": (
        with_entry(lambda _, file: [entry(file, DELETED), entry(file)], carried=False),
        "deleted and listed",
    ),
    "one file twice": (
        with_entry(lambda w, _: [entry(one) for one in [fresh(w)] * 2]),
        "listed twice",
    ),
    "one file, two spellings": (
        with_entry(
            lambda w, _: [
                entry({**one, "file_path": path})
                for one in [fresh(w)]
                for path in (one["file_path"], one["file_path"].replace("file://", "file:"))
            ]
        ),
        "added twice",
    ),
    "no such status": (with_entry(lambda _, file: [entry(file, 7)]), "no"),
    "data in a delete manifest": (
        lambda w: with_rows(w, [*w.listed(), w.manifest([entry(fresh(w))], content=1)]),
        "by equality",
    ),
    "no such content": (
        lambda w: with_rows(w, [*w.listed(), w.manifest([entry(fresh(w))], content=3)]),
        "ManifestContent",
    ),
    "manifest twice": (lambda w: with_rows(w, [*w.listed(), *w.listed()]), "twice"),
    "a list as a manifest": (
        lambda w: with_rows(
            w, [*w.listed(), {**w.manifest([]), "manifest_path": w.manifest_list(w.listed())}]
        ),
        "status",
    ),
    "a manifest as a list": (
        lambda w: w.to_main(w.snapshot(w.manifest([])["manifest_path"])),
        "neither listed",
    ),
    "codec": (
        lambda w: with_rows(w, [*w.listed(), w.manifest([entry(fresh(w))], codec="bzip2")]),
        "codec is bzip2",
    ),
    "other parent": (
        lambda w: w.change(added=[fresh(w)], parent_snapshot_id=5),
        "the new snapshot follows 5",
    ),
    "no parent": (lambda w: w.change(added=[fresh(w)], parent_snapshot_id=None), "follows None"),
    "staged": (lambda w: w.change(added=[fresh(w)])[:1], "staged snapshots"),
    "main set and removed": (
        lambda w: [*w.change(added=[fresh(w)]), _REMOVE_MAIN],
        "removing main where the request has set it before",
    ),
    "main removed and set back": (
        lambda w: [_REMOVE_MAIN, *w.to_main(w.snapshot("", snapshot_id=w.main))[1:]],
        "main at its old snapshot",
    ),
    "append that removes": (
        lambda w: w.change(removed=[w.live()[0]["data_file"]]),
        "an append removes",
    ),
    "replace that removes": (
        lambda w: w.change(removed=[w.live()[0]["data_file"]], operation="replace"),
        "a replace of 2 rows by 0",
    ),
    "replace that adds": (
        lambda w: w.change(added=[fresh(w)], operation="replace"),
        "a replace of 0 rows by 1",
    ),
    "scanned long ago": (
        lambda w: w.change(
            removed=[w.live()[0]["data_file"]],
            summary={"operation": "delete", "twinlake.scanned-snapshot-id": "5"},
        ),
        "changed after they were scanned",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_contradictions(table: OutsideWriter, name: str) -> None:
    make, why = CASES[name]
    refused(table, make(table), why)


@pytest.mark.parametrize("number", [-5, 0, 1 << 63, 1 << 70, True, "5", None, 1.5], ids=repr)
def test_ids_that_are_none(table: OutsideWriter, number: Any) -> None:
    refused(table, table.change(added=[fresh(table)], snapshot_id=number), "")


def test_ids_that_the_table_gives(table: OutsideWriter, tmp_path: Path) -> None:
    for version in (0, 1, 5):
        number = snapshot_id(table.state.snapshot.metadata.id, version)
        refused(table, table.change(added=[fresh(table)], snapshot_id=number), "has by itself")
    # One that is in the metadata is no sign of an earlier commit of this request.
    other = OutsideWriter(tmp_path / "t").create(*COLUMNS)
    other.append([{"id": 1}])
    shown = Table.open(other.folder)
    shown.append(shown.to_arrow())
    refused(other, other.change(added=[fresh(other)], snapshot_id=other.main), "has by itself")


PLACES = [
    "file:///etc/passwd",
    "file://{t}/data/x.avro",
    "file://{t}/metadata/x.avro",
    "file://{t}/_delta_log/00000000000000000000.json",
    "file://{t}/_iceberg/metadata/../../../x",
    "file://{t}/_iceberg/metadata/",
    "file://{t}/_iceberg/metadata/none.avro",
    "file://{t}/_iceberg/metadata/\0",
    "file://{t}/_iceberg/metadata/" + "l" * 400,
    "s3://bucket/x",
    "",
]


@pytest.mark.parametrize("place", PLACES, ids=lambda one: one[:45])
def test_places_of_metadata(table: OutsideWriter, place: str) -> None:
    path = place.replace("{t}", str(table.folder))
    refused(table, table.to_main(table.snapshot(path)), "")
    row = {**table.manifest([]), "manifest_path": path}
    refused(table, with_rows(table, [*table.listed(), row]), "")


def test_metadata_of_another_table(table: OutsideWriter, tmp_path: Path) -> None:
    other = OutsideWriter(tmp_path / "other").create(*COLUMNS)
    file = other.append([{"id": 9}])
    listed = other.metadata["snapshots"][-1]["manifest-list"]
    refused(table, table.to_main(table.snapshot(listed)), "not a place for files")
    refused(table, with_rows(table, [*table.listed(), *other.listed()]), "not a place for files")
    refused(table, table.change(added=[file]), "not a place for files")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Obj\x01",
        b"x" * 100,
        container(of_field("r")),
        container(of_field({"type": "array", "items": "null"})),
        container(of_field("int"), b"\0" * (2 << 20)),
        container(of_field("int").replace(b'"name"', b'"oame"', 1)),
        container(of_field("int").replace(b'"name": "a"', b'"oame": "a"')),
        container(of_field({"type": "fixed", "name": "9 x", "size": 4})),
        container(of_field({"type": "enum", "name": "e", "symbols": ["1 2", "1 2"]})),
    ],
    ids=[
        *("empty", "cut", "no Avro", "endless record", "items of nothing", "bomb"),
        *("record without name", "field without name", "odd name", "odd symbols"),
    ],
)
def test_forged_avro(table: OutsideWriter, data: bytes) -> None:
    path = table.folder / "_iceberg/metadata/forged.avro"
    path.write_bytes(data)
    strict = OutsideWriter(
        table.folder, IcebergCommits(limits=CommitLimits(unpacked_bytes=1 << 20))
    )
    refused(strict, strict.to_main(strict.snapshot(f"file://{path}")), "cannot be read")
    row = {**strict.manifest([]), "manifest_path": f"file://{path}"}
    refused(strict, with_rows(strict, [*strict.listed(), row]), "cannot be read")


@pytest.mark.parametrize("limits", [{"manifests": 1}, {"entries": 1}], ids=str)
def test_limits(table: OutsideWriter, limits: dict[str, int]) -> None:
    strict = OutsideWriter(table.folder, IcebergCommits(limits=CommitLimits(**limits)))
    updates = strict.change(added=[fresh(strict), fresh(strict)])
    refused(strict, updates, "reads 1 at most")


def test_several_snapshots_are_one_entry(tmp_path: Path) -> None:
    """What is added and deleted again within a request was never there."""
    table = OutsideWriter(tmp_path / "t").create(*COLUMNS)
    first = table.append([{"id": 1}])
    version = table.state.version
    a, b = table.write([{"id": 2}]), table.write([{"id": 3}])
    rows = [*table.rewritten(first), table.manifest([entry(a), entry(b)])]
    one = table.snapshot(table.manifest_list(rows), "overwrite")
    number = one["snapshot"]["snapshot-id"]
    last = table.manifest([entry(a, EXISTING, snapshot_id=number), entry(b, DELETED)])
    two = table.snapshot(table.manifest_list([last]), "delete", parent_snapshot_id=number)
    table.send(table.to_main(one, two))
    assert table.state.version == version + 1
    assert table.main == two["snapshot"]["snapshot-id"]
    assert [row["id"] for row in hold_together(table.folder)] == [2]


def test_a_snapshot_without_files_commits_nothing(table: OutsideWriter) -> None:
    version = table.state.version
    table.send(table.to_main(table.snapshot(table.manifest_list(table.listed()))))
    assert table.state.version == version


def test_a_compaction_changes_no_data(tmp_path: Path) -> None:
    table = OutsideWriter(tmp_path / "t").create(*COLUMNS)
    files = [table.append([{"id": number}]) for number in (1, 2)]
    together = table.write([{"id": 1}, {"id": 2}])
    table.send(table.change(added=[together], removed=files, operation="replace"))
    log = (table.folder / f"_delta_log/{table.state.version:020}.json").read_text()
    assert '"dataChange":false' in log
    assert '"dataChange":true' not in log
    assert len(hold_together(table.folder)) == 2
