from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.table.making import create, data_file, log_lines
from twinlake import Table
from twinlake.errors import Code, MetadataChangedException, TwinlakeError, UserError
from twinlake.schema import field_at, field_id, parse_path, physical_name, render_ddl, type_changes


def mapped(folder: Path, schema: str = "id INT, m MAP<STRING, STRUCT<n: INT>>") -> Table:
    return create(folder, schema, properties={"delta.columnMapping.mode": "name"})


def test_set_and_unset_properties(tmp_path: Path) -> None:
    t = create(tmp_path).set_properties({"a": "1", "DELTA.APPENDONLY": "TRUE"})
    assert t.properties["delta.appendOnly"].lower() == "true"
    t = t.unset_properties(["a"])
    assert "a" not in t.properties
    with pytest.raises(UserError) as missing:
        t.unset_properties(["a"])
    assert missing.value.code is Code.PROPERTY_INVALID
    assert t.unset_properties(["a"], if_exists=True).version == t.version + 1


def test_all_wrong_properties_are_reported_at_once(tmp_path: Path) -> None:
    t = create(tmp_path)
    with pytest.raises(UserError) as refused:
        t.set_properties({"delta.appendOnly": "maybe", "delta.nonsense": "1"})
    assert "delta.appendOnly" in str(refused.value)
    assert "delta.nonsense" in str(refused.value)
    assert t.refresh().version == 0


def test_a_huge_property_is_refused(tmp_path: Path) -> None:
    t = create(tmp_path)
    with pytest.raises(UserError) as refused:
        t.set_properties({"big": "x" * 10_000_000})
    assert refused.value.code is Code.PROPERTY_INVALID
    assert len(str(refused.value)) < 2000


def test_columns_come_and_go(tmp_path: Path) -> None:
    t = mapped(tmp_path)
    t = t.add_column("m.value.w INT COMMENT 'new'")
    assert field_id(field_at(t.schema, parse_path("m.value.w"))) == 4
    assert t.properties["delta.columnMapping.maxColumnId"] == "4"
    before = physical_name(field_at(t.schema, parse_path("id")))
    t = t.rename_column("id", "ident")
    assert physical_name(field_at(t.schema, parse_path("ident"))) == before
    t = t.drop_column("m.value.n")
    assert render_ddl(t.schema) == "ident INT, m MAP<STRING, STRUCT<w: INT COMMENT 'new'>>"
    t = t.add_column("first INT", first=True).alter_column("ident", comment="key", after="m")
    assert t.schema.names() == ("first", "m", "ident")
    assert [r.operation for r in t.history(5)] == [
        "CHANGE COLUMN",
        "ADD COLUMNS",
        "DROP COLUMNS",
        "RENAME COLUMN",
        "ADD COLUMNS",
    ]


def test_a_dropped_name_comes_back_as_another_column(tmp_path: Path) -> None:
    t = mapped(tmp_path, "id INT, a INT")
    old = field_at(t.schema, ("a",))
    new = field_at(t.drop_column("a").add_column("a INT").schema, ("a",))
    assert field_id(new) != field_id(old)
    assert physical_name(new) != physical_name(old)


def test_a_renamed_partition_column_stays_one(tmp_path: Path) -> None:
    t = create(
        tmp_path,
        "id INT, p STRING",
        partition_by=["p"],
        properties={"delta.columnMapping.mode": "name"},
    )
    key = physical_name(field_at(t.schema, ("p",)))
    t = t.commit("WRITE", [data_file("1.parquet", partition={key: "x"})])
    t = t.rename_column("p", "q")
    assert t.metadata.partition_columns == ("q",)
    assert t.files("q = 'x'").num_rows == 1
    assert t.files("q = 'y'").num_rows == 0


def test_mapping_switched_on_keeps_the_names(tmp_path: Path) -> None:
    t = create(tmp_path).set_properties({"delta.columnMapping.mode": "name"})
    assert [physical_name(f) for f in t.schema] == ["id", "name"]
    assert str(t.protocol) == "2,5"


@pytest.mark.parametrize(("first", "then"), [("none", "id"), ("name", "id"), ("id", "none")])
def test_other_mode_changes_are_refused(tmp_path: Path, first: str, then: str) -> None:
    t = create(tmp_path, properties={"delta.columnMapping.mode": first})
    with pytest.raises(UserError) as refused:
        t.set_properties({"delta.columnMapping.mode": then})
    assert refused.value.code is Code.PROPERTY_INVALID
    assert t.refresh().version == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.rename_column("id", "x"),
        lambda t: t.drop_column("name"),
        lambda t: t.add_column("ID STRING"),
        lambda t: t.add_column("x INT NOT NULL"),
        lambda t: t.add_column("nope.x INT"),
        lambda t: t.add_column("x"),
        lambda t: t.widen_column("id", "BIGINT"),
        lambda t: t.alter_column("id", nullable=False),
        lambda t: t.alter_column("nope", comment="x"),
        lambda t: t.set_properties({"delta.columnMapping.maxColumnId": "9"}),
        lambda t: t.set_properties({"delta.constraints.c": "id > 0"}),
        lambda t: t.drop_constraint("nope"),
        lambda t: t.add_constraint("c", "idd > 0"),
        lambda t: t.add_constraint("c", "id >"),
        lambda t: t.upgrade_protocol(1, 1),
        lambda t: t.upgrade_protocol(1, 99),
        lambda t: t.add_feature("nonsense"),
        lambda t: t.drop_feature("nonsense"),
        lambda t: t.restore(7),
        lambda t: t.diff(0, 7),
    ],
)
def test_what_cannot_be_done_is_refused_and_commits_nothing(
    tmp_path: Path, change: Callable[[Table], object]
) -> None:
    t = create(tmp_path)
    with pytest.raises(TwinlakeError) as refused:
        change(t)
    assert refused.value.fix
    assert t.refresh().version == 0


def test_widening_keeps_its_history(tmp_path: Path) -> None:
    t = create(tmp_path, "a INT, b ARRAY<INT>", properties={"delta.enableTypeWidening": "true"})
    assert t.protocol.is_supported("typeWidening")
    t = t.widen_column("a", "BIGINT").widen_column("b.element", "BIGINT")
    assert render_ddl(t.schema) == "a BIGINT, b ARRAY<BIGINT>"
    assert type_changes(field_at(t.schema, ("b",)))[0].field_path == ("element",)
    with pytest.raises(UserError):
        t.widen_column("a", "INT")


def test_constraints_are_recorded_and_guard_their_columns(tmp_path: Path) -> None:
    t = mapped(tmp_path).add_constraint("positive", "id > 0")
    assert t.properties["delta.constraints.positive"] == "id > 0"
    assert t.protocol.is_supported("checkConstraints")
    with pytest.raises(UserError, match="POSITIVE"):
        t.add_constraint("POSITIVE", "id > 1")
    with pytest.raises(UserError) as used:
        t.drop_column("id")
    assert "positive" in used.value.why
    t = t.drop_constraint("Positive")
    assert "delta.constraints.positive" not in t.properties


def test_a_constraint_on_rows_needs_an_engine(tmp_path: Path) -> None:
    t = create(tmp_path).commit("WRITE", [data_file("1.parquet")])
    with pytest.raises(UserError) as refused:
        t.add_constraint("c", "id >= 0")
    assert refused.value.code is Code.SPARK_REQUIRED


def test_two_changes_of_metadata_conflict(tmp_path: Path) -> None:
    t = create(tmp_path)
    t.set_properties({"a": "1"})
    with pytest.raises(MetadataChangedException) as lost:
        t.set_properties({"b": "2"})
    assert lost.value.winner == 1
    assert "SET TBLPROPERTIES" in str(lost.value)


def test_upgrade_protocol(tmp_path: Path) -> None:
    t = create(tmp_path).upgrade_protocol(2, 5)
    assert str(t.protocol) == "2,5"
    assert t.upgrade_protocol(2, 5).version == t.version
    t = t.upgrade_protocol(3, 7)
    assert t.protocol.reader_features is not None
    assert {"columnMapping", "changeDataFeed"} <= (t.protocol.writer_features or set())
    assert log_lines(tmp_path, t.version)[0]["commitInfo"]["operation"] == "UPGRADE PROTOCOL"


def test_a_feature_brings_what_it_requires(tmp_path: Path) -> None:
    t = create(tmp_path).add_feature("rowTracking")
    assert {"rowTracking", "domainMetadata"} <= (t.protocol.writer_features or set())
    assert t.add_feature("rowTracking").version == t.version
    assert not any(key.startswith("delta.feature.") for key in t.properties)


def test_timestamp_ntz_is_not_slipped_into_an_old_table(tmp_path: Path) -> None:
    t = create(tmp_path)
    with pytest.raises(TwinlakeError, match="timestampNtz"):
        t.add_column("t TIMESTAMP_NTZ")
    t = t.add_feature("timestampNtz").add_column("t TIMESTAMP_NTZ")
    assert t.protocol.is_supported("timestampNtz")
