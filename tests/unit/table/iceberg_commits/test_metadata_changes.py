"""Schemas, properties, tags, statistics and replacements of Iceberg clients."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.iceberg.both_sides import iceberg_rows
from tests.support.iceberg.outside_writer import (
    OutsideWriter,
    column,
    evolved,
    hold_together,
    refused,
)
from twinlake import Table
from twinlake.errors import CompatViolation, UserError
from twinlake.table.iceberg_commits import IcebergCommits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ID, NAME = column(1, "id", "long", required=True), column(2, "s", "string")
KEY = {"type": "struct", "fields": [column(10, "k", "int")]}


def struct(*fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(number: int, kind: Any) -> dict[str, Any]:
    return {"type": "list", "element-id": number, "element": kind, "element-required": False}


def mapping(key: Any, value: Any = "int") -> dict[str, Any]:
    ids = {"key-id": 8, "value-id": 9}
    return {"type": "map", **ids, "key": key, "value": value, "value-required": False}


#: As ``create`` numbers them: the columns first, then what is in them.
COLUMNS = (
    ID,
    NAME,
    column(3, "a", struct(column(6, "x", "int"))),
    column(4, "l", array(7, "int")),
    column(5, "m", mapping(KEY)),
)


def instead(*changed: Any, without: int = 0) -> list[Any]:
    """The columns with some in place of those that have their ids, and others behind."""
    by_id = {one["id"]: one for one in changed}
    kept = [by_id.pop(one["id"], one) for one in COLUMNS if one["id"] != without]
    return evolved(*kept, *by_id.values())


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> OutsideWriter:
    """A table whose requests are all refused."""
    writer = OutsideWriter(tmp_path_factory.mktemp("schemas") / "t").create(*COLUMNS)
    writer.append([{"id": 1, "s": "a", "a": {"x": 2}, "l": [3], "m": [({"k": 4}, 5)]}])
    return writer


@pytest.fixture
def table(tmp_path: Path) -> OutsideWriter:
    return OutsideWriter(tmp_path / "t").create(ID, NAME)


REFUSED: dict[str, tuple[list[Any], str]] = {
    "required column": (instead(column(11, "n", "int", required=True)), "added as required"),
    "optional to required": (instead(column(2, "s", "string", required=True)), "becomes required"),
    "required element": (
        instead(column(4, "l", {**array(7, "int"), "element-required": True})),
        "required",
    ),
    "narrower": (instead(column(1, "id", "int", required=True)), "from BIGINT to INT"),
    "other type": (instead(column(2, "s", "binary")), "from STRING to BINARY"),
    "struct for a leaf": (instead(column(2, "s", struct(column(11, "x", "int")))), "type"),
    "list for a leaf": (instead(column(2, "s", array(11, "int"))), "type"),
    "leaf for a list": (instead(column(4, "l", "int")), "type"),
    "leaf for a struct": (instead(column(3, "a", "int")), "type"),
    "map for a list": (
        instead(column(4, "l", {**mapping("int"), "key-id": 11, "value-id": 12})),
        "type",
    ),
    "other element": (instead(column(4, "l", array(11, "int"))), ""),
    "one id twice": (instead(column(11, "n", struct(column(2, "x", "string")))), ""),
    "moved out": (
        evolved(ID, NAME, *COLUMNS[3:], column(3, "a", struct(NAME)), column(6, "x", "int")),
        "",
    ),
    "names but for case": (instead(column(11, "S", "int")), "in case only"),
    "one name twice": (instead(column(11, "s", "int")), "appears twice"),
    "no name": (instead(column(11, "", "int")), "empty name"),
    "id 0": (instead(column(0, "n", "int")), "id 0"),
    "id below 0": (instead(column(-1, "n", "int")), "id -1"),
    "reserved id": (instead(column(2147483540, "n", "int")), "2147483540"),
    "id of a key": (instead(column(8, "n", "int")), ""),
    "initial default": (instead({**column(11, "n", "int"), "initial-default": 1}), "a default"),
    "write default": (instead({**column(11, "n", "int"), "write-default": 1}), "a default"),
    "identifier": (evolved(*COLUMNS, **{"identifier-field-ids": [1]}), "identifier fields"),
    "nothing": (evolved(), "without columns"),
    "key of a map": (
        instead(column(5, "m", mapping(struct(column(10, "k", "int"), column(11, "j", "int"))))),
        "",
    ),
    "wider key": (instead(column(5, "m", mapping(struct(column(10, "k", "long"))))), ""),
    **{
        f"type {kind}": (instead(column(11, "n", kind)), "")
        for kind in (
            *("time", "uuid", "fixed[4]", "timestamp_ns", "unknown", "variant"),
            *("decimal(39, 2)", "decimal(5, 9)", "decimal(", "bogus", ""),
        )
    },
}


@pytest.mark.parametrize("name", REFUSED)
def test_schemas_that_a_table_does_not_take(kept: OutsideWriter, name: str) -> None:
    updates, why = REFUSED[name]
    refused(kept, updates, why)


def test_a_dropped_id_does_not_come_back(tmp_path: Path) -> None:
    table = OutsideWriter(tmp_path / "t").create(ID, NAME)
    old = table.metadata["current-schema-id"]
    table.append([{"id": 1, "s": "a"}])
    table.send(evolved(ID))
    refused(table, evolved(ID, column(2, "n", "string")), "given out before")
    refused(table, [{"action": "set-current-schema", "schema-id": old}], "given out before")


def test_schemas_that_a_table_takes(tmp_path: Path) -> None:
    """One after the other, and old rows stay what they are."""
    table = OutsideWriter(tmp_path / "t").create(*COLUMNS[:4])
    table.append([{"id": 1, "s": "a", "a": {"x": 2}, "l": [3]}])
    steps = [
        (ID, column(8, "n", "int"), *COLUMNS[1:4]),
        (ID, column(8, "renamed", "int"), *COLUMNS[1:4]),
        (COLUMNS[3], column(8, "renamed", "long"), COLUMNS[2], NAME, ID),
        (column(4, "l", array(5, "long")), COLUMNS[2], NAME, column(1, "id", "long", doc="key")),
    ]
    found = {one["name"]: one for one in table.schema["fields"]}
    inner, element = found["a"]["type"]["fields"][0]["id"], found["l"]["type"]["element-id"]
    for step in steps:
        fields = json.loads(json.dumps(step))
        for one in fields:
            if one["name"] == "a":
                one["type"]["fields"] = [column(inner, "x", "int"), column(9, "y", "string")]
            if one["name"] == "l":
                one["type"]["element-id"] = element
        table.send(evolved(*fields))
        (row,) = (row for row in hold_together(table.folder) if row["id"] == 1)
        assert (row["s"], row["a"], row["l"]) == ("a", {"x": 2, "y": None}, [3])
        assert list(row) == [one["name"] for one in fields]
    assert table.schema["fields"][-1]["doc"] == "key"
    assert not table.schema["fields"][-1]["required"]
    assert table.metadata["last-column-id"] == 9


def test_metadata_of_columns_that_stay_survives(table: OutsideWriter) -> None:
    shown = Table.open(table.folder)
    before = shown.schema.get("s")
    table.send(evolved(ID, column(2, "t", "string"), column(3, "n", "int")))
    after = Table.open(table.folder).schema.get("t")
    assert before is not None
    assert after is not None
    assert after.metadata == before.metadata


@pytest.mark.parametrize(
    ("updates", "why"),
    [
        ({"write.data.path": "/x"}, "write.data.path"),
        ({"write.metadata.path": "/x"}, "write.metadata.path"),
        ({"format-version": "3"}, "format-version"),
        ({"gc.enabled": "true"}, "gc.enabled"),
        ({"delta.appendOnly": "true"}, "delta.appendOnly"),
        ({"write.delete.isolation-level": "snapshot"}, "isolation-level"),
        ({"twinlake.iceberg.positionDeletes": "maybe"}, "apply or refuse"),
        ({"twinlake.iceberg.other": "1"}, "twinlake.iceberg.other"),
        ({"encryption.key-id": "k"}, "encryption.key-id"),
        ({"": "x"}, "names no property"),
    ],
    ids=str,
)
def test_properties_that_are_not_for_clients(
    kept: OutsideWriter, updates: Mapping[str, str], why: str
) -> None:
    refused(kept, [{"action": "set-properties", "updates": updates}], why)


def test_properties_come_and_go(table: OutsideWriter) -> None:
    table.send([{"action": "set-properties", "updates": {"owner": "ann", "a": "1"}}])
    table.send([{"action": "remove-properties", "removals": ["a", "never"]}])
    shown = table.metadata["properties"]
    assert (shown["owner"], "a" in shown) == ("ann", False)
    version = table.state.version
    table.send([{"action": "set-properties", "updates": {"gc.enabled": "false", "owner": "ann"}}])
    assert table.state.version == version


# Tags and statistics


def tag(writer: OutsideWriter, name: str, **rest: Any) -> list[Any]:
    ref = {"action": "set-snapshot-ref", "ref-name": name, "type": "tag"}
    return [{**ref, "snapshot-id": writer.main, **rest}]


def statistics(writer: OutsideWriter, name: str = "a.stats") -> list[Any]:
    document: dict[str, Any] = {
        "snapshot-id": writer.main,
        "statistics-path": f"file://{writer.folder}/_iceberg/metadata/{name}",
        "file-size-in-bytes": 4,
        "file-footer-size-in-bytes": 4,
        "blob-metadata": [],
    }
    return [{"action": "set-statistics", "snapshot-id": writer.main, "statistics": document}]


def test_tags_and_statistics_are_rebuilt_from_the_log(table: OutsideWriter) -> None:
    table.append([{"id": 1}])
    first = table.main
    table.send([*tag(table, "a"), *tag(table, "b", **{"max-ref-age-ms": 99}), *statistics(table)])
    table.append([{"id": 2}])
    table.send(tag(table, "b"))
    metadata = table.metadata
    assert metadata["refs"]["a"]["snapshot-id"] == first
    assert metadata["refs"]["b"]["snapshot-id"] == table.main
    assert [one["snapshot-id"] for one in metadata["statistics"]] == [first]
    assert [row["id"] for row in iceberg_rows(table.folder, first)] == [1]
    rows = hold_together(table.folder)
    shutil.rmtree(table.folder / "_iceberg")
    again = table.metadata
    for name in ("refs", "statistics", "current-snapshot-id"):
        assert again[name] == metadata[name], name
    ids = [[one["snapshot-id"] for one in found["snapshots"]] for found in (metadata, again)]
    assert ids[0] == ids[1]
    assert hold_together(table.folder) == rows
    table.send([{"action": "remove-snapshot-ref", "ref-name": "a"}])
    table.send([{"action": "remove-statistics", "snapshot-id": first}])
    assert set(table.metadata["refs"]) == {"main", "b"}
    assert not table.metadata.get("statistics")


def test_statistics_lie_with_the_metadata(kept: OutsideWriter) -> None:
    (update,) = statistics(kept)
    update["statistics"]["statistics-path"] = "/etc/passwd"
    refused(kept, [update], "not a place for files")


# Replacements

REMOVE_MAIN = {"action": "remove-snapshot-ref", "ref-name": "main"}


def replaced(*columns: Any, parts: list[Any] | None = None) -> list[Any]:
    """What Java's replace transaction sends, in its order."""
    spec = {"spec-id": 1, "fields": parts or []}
    return [
        REMOVE_MAIN,
        *evolved(*columns),
        {"action": "add-spec", "spec": spec},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-properties", "updates": {"owner": "ann"}},
    ]


def test_a_replaced_table_keeps_its_past(table: OutsideWriter) -> None:
    """One name and id with another type, and other partitions; then time travel on both sides."""
    table.append([{"id": 1, "s": "a"}])
    before, version = table.main, table.state.version
    part = {"source-id": 2, "field-id": 1000, "name": "p", "transform": "identity"}
    columns = (column(1, "id", "string"), column(2, "p", "int"))
    location = {"action": "set-location", "location": table.metadata["location"]}
    table.send([*replaced(*columns, parts=[part]), location])
    assert hold_together(table.folder) == []
    table.append([{"id": "x", "p": 7}], partition={"p": 7})
    assert hold_together(table.folder) == [{"id": "x", "p": 7}]
    old = [{"id": 1, "s": "a"}]
    assert iceberg_rows(table.folder, before) == old
    assert Table.open(table.folder, version=version).to_arrow().to_pylist() == old
    assert Table.open(table.folder).history()[1].operation == "REPLACE TABLE"


def test_a_replacement_with_its_rows_is_one_entry(table: OutsideWriter) -> None:
    table.append([{"id": 1, "s": "a"}])
    version = table.state.version
    entries = [{"status": 1, "data_file": table.write([{"id": 2}])}]
    row = table.manifest(entries, partition_spec_id=1)
    added = table.snapshot(table.manifest_list([row]), parent_snapshot_id=None)
    table.send([*replaced(ID, NAME), *table.to_main(added)])
    assert table.state.version == version + 1
    assert hold_together(table.folder) == [{"id": 2, "s": None}]


def test_a_replacement_keeps_no_files_under_other_types(table: OutsideWriter) -> None:
    table.append([{"id": 1, "s": "a"}])
    kept = table.snapshot(table.manifest_list(table.listed()), parent_snapshot_id=None)
    refused(table, [*replaced(column(1, "id", "string")), *table.to_main(kept)], "type")


# Creation


def staged(*more: Any, **instead: Any) -> bytes:
    updates: dict[str, Any] = {
        "uuid": {"action": "assign-uuid", "uuid": "0a1b2c3d-0000-4000-8000-000000000001"},
        "format": {"action": "upgrade-format-version", "format-version": 2},
        "schema": evolved(column(7, "id", "long"), NAME)[0],
        "current": {"action": "set-current-schema", "schema-id": -1},
        "spec": {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
    }
    every = [*(updates | instead).values(), *more]
    return json.dumps({"requirements": [{"type": "assert-create"}], "updates": every}).encode()


BUCKET = {"source-id": 7, "transform": "bucket[4]", "name": "b", "field-id": 1000}


@pytest.mark.parametrize(
    ("request_body", "why"),
    [
        (staged(uuid={"action": "assign-uuid", "uuid": "../../x"}), "no UUID"),
        (staged({"action": "set-location", "location": "/elsewhere"}), "location /elsewhere"),
        (staged({"action": "add-encryption-key", "encryption-key": {}}), "add-encryption-key"),
        (staged({"action": "remove-snapshots", "snapshot-ids": [1]}), "remove-snapshots"),
        (
            staged(
                {
                    "action": "set-snapshot-ref",
                    "ref-name": "b",
                    "type": "branch",
                    "snapshot-id": 5,
                }
            ),
            "set-snapshot-ref",
        ),
        (staged(current={"action": "set-current-schema", "schema-id": 9}), "schema-id 9"),
        (staged({"action": "set-default-spec", "spec-id": 9}), "spec-id 9"),
        (staged(format={"action": "upgrade-format-version", "format-version": 4}), "2 or 3"),
        (staged(spec={"action": "add-spec", "spec": {"fields": [BUCKET]}}), "bucket"),
        (staged(schema=evolved()[0]), "without columns"),
        (staged(schema=evolved(column(0, "id", "long"))[0]), "id 0"),
        (staged(schema=evolved(ID, column(1, "s", "long"))[0]), "TWIN"),
        (staged(schema=evolved(ID, **{"identifier-field-ids": [1]})[0]), "identifier"),
        (b'{"requirements": [{"type": "assert-create"}]}', "with a schema"),
    ],
    ids=str,
)
def test_staged_tables_that_cannot_be(tmp_path: Path, request_body: bytes, why: str) -> None:
    writer = OutsideWriter(tmp_path / "t")
    with pytest.raises((UserError, CompatViolation), match=why):
        writer.commits.create_staged(writer.store, request_body)
    assert not list(tmp_path.rglob("*.json"))


def test_a_staged_table_keeps_its_ids(tmp_path: Path) -> None:
    writer = OutsideWriter(tmp_path / "t")
    writer.commits.create_staged(writer.store, staged())
    assert [one["id"] for one in writer.schema["fields"]] == [7, 2]
    assert writer.metadata["last-column-id"] == 7
    assert writer.metadata["table-uuid"] == "0a1b2c3d-0000-4000-8000-000000000001"
    writer.append([{"id": 1, "s": "a"}])
    assert hold_together(writer.folder) == [{"id": 1, "s": "a"}]


@pytest.mark.parametrize("version", [2, 3])
def test_creation_gives_fresh_ids(tmp_path: Path, version: int) -> None:
    nested = column(90, "a", struct(column(50, "x", "int")))
    writer = OutsideWriter(tmp_path / "t").create(nested, column(7, "p", "int"), version=version)
    first, second = writer.schema["fields"]
    assert (first["id"], second["id"], first["type"]["fields"][0]["id"]) == (1, 2, 3)
    assert writer.metadata["format-version"] == version


def test_staging_stores_nothing(tmp_path: Path) -> None:
    body = json.dumps({"name": "t", "schema": struct(ID)}).encode()
    found = json.loads(IcebergCommits().stage(OutsideWriter(tmp_path / "t").store, body))
    assert found["schemas"][0]["fields"][0]["name"] == "id"
    assert not list(tmp_path.iterdir())
