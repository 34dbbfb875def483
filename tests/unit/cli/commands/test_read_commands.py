"""The commands that only look: show, history, files, features, diff, log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.conftest import SECRET
from tests.unit.cli.running import document, grid, lines, run
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path

SHOW_KEYS = {
    "location", "id", "name", "description", "version", "created_at", "last_modified", "columns",
    "partition_columns", "clustering_columns", "num_files", "size_in_bytes",
    "num_deletion_vectors", "min_reader_version", "min_writer_version", "features", "properties",
    "reader_features", "writer_features", "active_features", "read_blocked_by",
    "write_blocked_by", "schema", "last_commits", "iceberg",
}  # fmt: skip


def test_show_tells_all_on_one_screen(orders: Path) -> None:
    text = lines("show", orders)
    facts = dict(line.split("  ", 1) for line in text[3:14] if "  " in line)
    assert facts["version"].strip() == "4"
    assert facts["protocol"].strip() == "reader 3, writer 7"
    assert facts["in use"].strip() == "columnMapping, deletionVectors"
    assert facts["partitioned by"].strip() == "day"
    assert facts["data"].strip() == "2 files, 2.9 KiB, 1 with a deletion vector"
    assert grid(text, "column")[1] == ["title", "STRING", "yes", "-", "-"]
    assert grid(text, "property")[-2] == ["fs.s3a.secret.key", "********"]
    assert len(text) < 50


def test_show_as_json_has_stable_keys(orders: Path) -> None:
    found = document("show", orders)
    assert set(found) == SHOW_KEYS
    assert found["reader_features"] == ["columnMapping", "deletionVectors"]
    assert found["schema"][2] == {
        "name": "day", "type": "DATE", "nullable": True, "partition": True, "comment": None,
    }  # fmt: skip
    assert [commit["version"] for commit in found["last_commits"]] == [4, 3, 2, 1, 0]


def test_show_of_a_legacy_table_lists_no_features(empty: Path) -> None:
    found = document("show", empty)
    assert (found["reader_features"], found["writer_features"]) == (None, None)
    assert found["features"] == ["appendOnly", "invariants"]


@pytest.mark.parametrize(
    "command", ["show", "schema", "stats", "history", "log", "diff", "files", "features"]
)
def test_no_command_prints_a_secret(orders: Path, command: str) -> None:
    extra = {"diff": ["4", "0"], "log": ["0"]}.get(command, [])
    for json_flag in ([], ["--json"]):
        result = run(command, orders, *extra, *json_flag)
        assert result.exit_code == 0
        assert SECRET not in result.output


def test_raw_log_is_verbatim(orders: Path) -> None:
    stored = (orders / "_delta_log" / f"{0:020d}.json").read_text()
    assert run("log", orders, 0, "--raw").stdout == stored
    assert document("log", orders, 0, "--raw")["lines"] == stored.splitlines()


@pytest.mark.parametrize(
    ("arguments", "version"), [(["--version", "1"], 1), ([], 4)], ids=["version", "latest"]
)
def test_time_travel(orders: Path, arguments: list[str], version: int) -> None:
    for command in ("show", "history", "files", "features"):
        assert document(command, orders, *arguments)["version"] == version


def test_time_travel_by_timestamp(orders: Path) -> None:
    moment = document("history", orders)["commits"][2]["timestamp"]
    assert document("show", orders, "--timestamp", moment)["version"] == 2


def test_history_is_newest_first_and_limited(orders: Path) -> None:
    rows = grid(lines("history", orders, "--limit", 2), "version")
    assert [row[0] for row in rows] == ["4", "3"]
    assert rows[1][2:] == [
        "RENAME COLUMN",
        "twinlake/0.1.0",
        "oldColumnPath=name; newColumnPath=title",
    ]
    found = document("history", orders)
    assert set(found) == {"location", "version", "commits"}
    assert [c["operation"] for c in found["commits"]][-2:] == ["WRITE", "CREATE TABLE"]


def test_files_lists_size_rows_partition_and_statistics(orders: Path) -> None:
    rows = grid(lines("files", orders), "path")
    assert rows[1] == [
        "day=2024-01-02/part-2.parquet", "2000", "10", "6", "2023-11-14T22:13:20.000Z",
        "day=2024-01-02", "id=11..20 title=a..z",
    ]  # fmt: skip
    found = document("files", orders)
    assert set(found) == {"location", "version", "where", "total", "files"}
    first = found["files"][0]
    assert first["partition_values"] == {"day": "2024-01-01"}
    assert first["stats"]["min_values"] == {"id": 1, "title": "a", "price": None}


@pytest.mark.parametrize(
    ("where", "names"),
    [
        ("id > 12", ["part-2"]),
        ("day = DATE '2024-01-01'", ["part-1"]),
        ("id > 100", []),
        ("title IS NULL", ["part-1", "part-2"]),
    ],
)
def test_files_skips_by_predicate(orders: Path, where: str, names: list[str]) -> None:
    found = document("files", orders, "--where", where)
    assert found["total"] == len(names)
    assert [f["path"].rpartition("/")[2].removesuffix(".parquet") for f in found["files"]] == names


def test_files_limit_says_how_many_there_are(orders: Path) -> None:
    assert lines("files", orders, "--limit", 1)[-1] == "1 of 2 files"
    assert document("files", orders, "--limit", 1)["total"] == 2


def test_features_lists_the_registry_without_a_table() -> None:
    from twinlake.protocol import FEATURES

    rows = grid(lines("features"), "feature")
    assert [row[0] for row in rows] == list(FEATURES)
    found = document("features")["features"]
    assert [f["name"] for f in found] == list(FEATURES)
    assert set(found[0]) == {
        "name", "kind", "min_reader_version", "min_writer_version", "legacy", "requires",
        "switched_on_by", "droppable", "twinlake_reads", "twinlake_writes", "status",
        "description",
    }  # fmt: skip


def test_features_of_a_table_tell_why(empty: Path) -> None:
    Table.open(empty).set_properties({"delta.enableChangeDataFeed": "true"})
    states = {state["name"]: state for state in document("features", empty)["features"]}
    assert set(states) == {
        "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns",
    }  # fmt: skip
    feed, idle = states["changeDataFeed"], states["generatedColumns"]
    assert (feed["active"], feed["support"]) == (True, "implied by reader 1, writer 4")
    assert feed["use"] == "delta.enableChangeDataFeed=true"
    assert (idle["active"], idle["supported"]) == (False, True)
    assert idle["use"].startswith("not in use: it requires")


def test_features_explain(orders: Path) -> None:
    text = "\n".join(lines("features", "--explain", "icebergwritercompatv1"))
    assert "icebergCompatV2" in text
    found = document("features", orders, "--explain", "deletionVectors")
    assert found["table"]["active"] is True
    assert found["table"]["support"] == "listed in readerFeatures and writerFeatures"


def test_metadata_of_a_table_with_an_unknown_reader_feature_can_be_looked_at(empty: Path) -> None:
    protocol = {
        "minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["fromTheFuture"], "writerFeatures": ["fromTheFuture"],
    }  # fmt: skip
    commit = empty / "_delta_log" / f"{1:020d}.json"
    commit.write_text(json.dumps({"protocol": protocol}) + "\n")
    shown = document("show", empty)
    assert shown["read_blocked_by"] == ["fromTheFuture"]
    assert shown["num_files"] is None
    (state,) = document("features", empty)["features"]
    assert (state["known"], state["blocks_reading"]) == (False, True)
    assert document("history", empty)["version"] == 1
    assert run("files", empty).exit_code == 1


def test_diff_tells_what_changed(orders: Path) -> None:
    found = document("diff", orders, 0, 4)
    assert found["features_added"] == ["columnMapping"]
    assert found["rows_added"] == 14
    assert {c["path"]: c["change"] for c in found["columns"]} == {
        "title": "added", "price": "added", "name": "dropped",
    }  # fmt: skip
    text = lines("diff", orders, 0)
    assert "2 files added, 0 removed, +14 rows" in text
    assert ["delta.columnMapping.mode", "-", "name"] in grid(text, "property")


def test_diff_of_a_version_with_itself_is_nothing(orders: Path) -> None:
    assert lines("diff", orders, 2, 2)[-1] == "The versions do not differ."


def test_log_lists_the_folder(orders: Path) -> None:
    rows = grid(lines("log", orders), "file")
    assert [row[0] for row in rows if row[1] == "commit"] == [f"{v:020d}.json" for v in range(5)]
    assert {f["kind"] for f in document("log", orders)["files"]} == {"commit", "checksum"}


def test_log_of_a_version_shows_its_actions(orders: Path) -> None:
    text = lines("log", orders, 1)
    assert ["stats.numRecords", "10"] in grid(text, "add")
    actions = document("log", orders, 1)["actions"]
    assert [next(iter(action)) for action in actions] == ["commitInfo", "add", "add"]
    created = lines("log", orders, 0)
    assert ["schemaString", "id INT COMMENT 'the key', name STRING, day DATE"] in grid(
        created, "metaData"
    )


def test_control_characters_of_a_table_do_not_reach_the_terminal(empty: Path) -> None:
    Table.open(empty).set_properties({"owner": "\x1b[31mred\nblue"})
    assert ["owner", "\\x1b[31mred\\nblue"] in grid(lines("show", empty), "property")
