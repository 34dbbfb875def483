from __future__ import annotations

import json
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from tests.unit.table.making import create, data_file, log_lines
from twinlake import Table
from twinlake.errors import Code, TwinlakeError, UnsupportedFeature, UserError
from twinlake.protocol import keys
from twinlake.schema import field_id, physical_name


def test_create_writes_everything_once(tmp_path: Path) -> None:
    t = create(
        tmp_path,
        "id INT NOT NULL, d DATE, tags MAP<STRING, STRUCT<n: INT>>",
        partition_by=["D"],
        properties={"delta.appendOnly": True, "team": "orders"},
        name="orders",
        description="what was ordered",
    )
    kinds = [next(iter(line)) for line in log_lines(tmp_path, 0)]
    assert kinds[0] == "commitInfo"
    assert sorted(kinds) == ["commitInfo", "metaData", "protocol"]
    again = Table.open(tmp_path)
    assert again.version == 0
    assert again.metadata == t.metadata
    assert again.metadata.partition_columns == ("d",)
    assert dict(again.properties) == {"delta.appendOnly": "true", "team": "orders"}
    assert (again.metadata.name, again.metadata.description) == ("orders", "what was ordered")
    info = log_lines(tmp_path, 0)[0]["commitInfo"]
    assert info["operation"] == "CREATE TABLE"
    assert info["operationParameters"]["partitionBy"] == '["d"]'


def test_create_twice_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    create(tmp_path)
    before = sorted(p.name for p in (tmp_path / "_delta_log").iterdir())
    with pytest.raises(UserError) as refused:
        create(tmp_path, "other STRING")
    assert refused.value.code is Code.TABLE_EXISTS
    assert sorted(p.name for p in (tmp_path / "_delta_log").iterdir()) == before
    assert create(tmp_path, "other STRING", if_not_exists=True).schema.names() == ("id", "name")


@pytest.mark.parametrize(
    ("schema", "rest", "code"),
    [
        ("id INT, ID STRING", {}, Code.SCHEMA_INVALID),
        ("a b INT", {}, Code.SCHEMA_INVALID),
        ("`a b` INT", {}, Code.SCHEMA_INVALID),
        ("id INT", {"partition_by": ["id"]}, Code.SCHEMA_INVALID),
        ("id INT, d DATE", {"partition_by": ["x"]}, Code.COLUMN_NOT_FOUND),
        ("id INT, m MAP<INT, INT>", {"partition_by": ["m"]}, Code.SCHEMA_INVALID),
        ("id INT", {"properties": {"delta.nonsense": "1"}}, Code.PROPERTY_INVALID),
        ("id INT", {"properties": {"delta.appendOnly": "maybe"}}, Code.PROPERTY_INVALID),
        ("id INT, d DATE", {"partition_by": ["d"], "cluster_by": ["id"]}, Code.INVALID_ARGUMENT),
        (42, {}, Code.INVALID_ARGUMENT),
        ("id INT", {"properties": {"delta.feature.nonsense": "supported"}}, None),
    ],
)
def test_a_bad_table_is_refused_and_nothing_is_left(
    tmp_path: Path, schema: Any, rest: dict[str, Any], code: Code | None
) -> None:
    with pytest.raises(TwinlakeError) as refused:
        create(tmp_path / "t", schema, **rest)
    if code is Code.COLUMN_NOT_FOUND:
        assert refused.value.code in (Code.COLUMN_NOT_FOUND, Code.SCHEMA_INVALID)
    elif code is not None:
        assert refused.value.code is code
    assert refused.value.what
    assert refused.value.fix
    assert not Table.exists(tmp_path / "t")


@pytest.mark.parametrize("mode", ["name", "id"])
def test_column_mapping_from_the_start(tmp_path: Path, mode: str) -> None:
    t = create(
        tmp_path,
        "`odd name` INT, s STRUCT<a: INT>",
        properties={"delta.columnMapping.mode": mode},
    )
    ids = [field_id(f) for f in t.schema]
    assert ids == [1, 2]
    assert t.properties[keys.MAX_COLUMN_ID] == "3"
    assert all(physical_name(f).startswith("col-") for f in t.schema)


def test_clustering_is_a_system_domain(tmp_path: Path) -> None:
    t = create(tmp_path, "id INT, s STRUCT<a: INT>", cluster_by=["s.a"])
    assert t.protocol.is_supported("clustering")
    assert t.detail().clustering_columns == ("s.a",)
    stored = json.loads(t.snapshot.domains["delta.clustering"].configuration)
    assert stored["clusteringColumns"] == [["s", "a"]]


def test_open_by_version_and_timestamp(tmp_path: Path) -> None:
    t = create(tmp_path)
    for n in range(3):
        t = t.set_properties({"n": str(n)})
    assert Table.open(tmp_path, version=1).properties["n"] == "0"
    moment = t.history()[1].timestamp
    assert Table.open(tmp_path, timestamp=moment).version == 2
    with pytest.raises(UserError) as missing:
        Table.open(tmp_path, version=9)
    assert missing.value.code is Code.VERSION_NOT_FOUND
    with pytest.raises(UserError):
        Table.open(tmp_path, version=1, timestamp=moment)


def test_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(UserError) as missing:
        Table.open(tmp_path / "nowhere")
    assert missing.value.code is Code.TABLE_NOT_FOUND
    assert not (tmp_path / "nowhere").exists()


def test_a_table_is_a_view_of_one_version(tmp_path: Path) -> None:
    first = create(tmp_path)
    second = first.set_properties({"n": "1"})
    assert (first.version, second.version) == (0, 1)
    assert "n" not in first.properties
    assert first.refresh().version == 1
    assert first.refresh().refresh().metadata == second.metadata


def test_another_table_in_the_same_place_is_noticed(tmp_path: Path) -> None:
    t = create(tmp_path).set_properties({"n": "1"})
    rmtree(tmp_path / "_delta_log")
    other = Table.create(tmp_path, "x STRING", durable=False).set_properties({"m": "2"})
    assert t.refresh().schema.names() == ("x",)
    assert Table.open(tmp_path).metadata.id == other.metadata.id


def test_a_table_this_release_cannot_read_is_refused_by_name(tmp_path: Path) -> None:
    create(tmp_path)
    line = {
        "protocol": {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["futureThing"],
            "writerFeatures": ["futureThing"],
        }
    }
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(line) + "\n")
    with pytest.raises(UnsupportedFeature, match="futureThing"):
        Table.open(tmp_path)


def test_files_skip_by_statistics_and_partition(tmp_path: Path) -> None:
    t = create(tmp_path, "id INT, p STRING", partition_by=["p"])
    t = t.commit(
        "WRITE",
        [
            data_file("p=a/1.parquet", partition={"p": "a"}, low=0),
            data_file("p=a/2.parquet", partition={"p": "a"}, low=100),
            data_file("p=b/3.parquet", partition={"p": "b"}, low=0),
        ],
    )
    assert t.files().num_rows == 3
    assert t.files("p = 'a' AND id < 50")["path"].to_pylist() == ["p=a/1.parquet"]
    assert t.files("id = 105")["path"].to_pylist() == ["p=a/2.parquet"]
    assert t.files("id IS NULL").num_rows == 0
    assert t.files()["partition_values"].to_pylist()[0] == {"p": "a"}
    assert t.files()["stats"].to_pylist()[1]["min_values"]["id"] == 100
    with pytest.raises(UserError) as unknown:
        t.files("nme = 1")
    assert unknown.value.code is Code.COLUMN_NOT_FOUND
