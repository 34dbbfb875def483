"""DEFAULT of columns: the feature that goes with it, and what the compat features make of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, V3, agree, opened, twin
from twinlake.errors import CompatViolation, UserError
from twinlake.log import CACHE
from twinlake.table import Table

FEATURE = "allowColumnDefaults"
V1 = {"delta.columnMapping.mode": "name", "delta.enableIcebergCompatV1": "true"}
WRITERS = {"delta.enableIcebergWriterCompatV1": "true"}


def defaults(table: Table) -> dict[str, object]:
    return {f.name: f.metadata.get("CURRENT_DEFAULT") for f in table.schema}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: Table.create(path, "id INT, x INT DEFAULT 5"), id="create"),
        pytest.param(
            lambda path: Table.create(path, "id INT").add_column("x INT DEFAULT 5"), id="add"
        ),
        pytest.param(
            lambda path: Table.create(path, "id INT, x INT").alter_column("x", default="5"),
            id="alter",
        ),
    ],
)
def test_a_default_brings_its_feature(tmp_path: Path, make: Callable[[Path], Table]) -> None:
    table = make(tmp_path)

    assert defaults(table) == {"id": None, "x": "5"}
    assert table.protocol.min_writer_version == 7
    assert table.protocol.is_supported(FEATURE)
    gone = table.alter_column("x", default="")
    assert defaults(gone) == {"id": None, "x": None}
    # As in Delta Spark it stays: writers may be about to use it.
    assert gone.protocol.is_supported(FEATURE)
    with pytest.raises(UserError) as refused:
        gone.drop_feature(FEATURE)
    assert refused.value.delta_class == "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE"


def test_a_table_without_defaults_has_no_such_feature(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT").add_column("x INT").alter_column("x", comment="c")
    assert not table.protocol.is_supported(FEATURE)


def test_restoring_brings_the_default_back_under_its_feature(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT, x INT DEFAULT 5").alter_column("x", default="")

    table = table.restore(0)

    assert defaults(table)["x"] == "5" and table.protocol.is_supported(FEATURE)


@pytest.mark.parametrize(
    ("change", "paths"),
    [
        pytest.param(lambda t: t.add_column("x INT DEFAULT 5"), ["x", FEATURE], id="add"),
        pytest.param(lambda t: t.alter_column("id", default="5"), ["id", FEATURE], id="alter"),
    ],
)
def test_writer_compat_v1_refuses_a_default(
    tmp_path: Path, change: Callable[[Table], Table], paths: list[str]
) -> None:
    table = Table.create(tmp_path, "id INT", properties=WRITERS)

    with pytest.raises(CompatViolation) as refused:
        change(table)

    found = refused.value.report["violations"]
    assert {v["rule"] for v in found} == {"IWC1-17"}
    assert [v["path"] for v in found] == paths
    assert "Leave DEFAULT out" in refused.value.fix
    assert Table.open(tmp_path).version == 0


def test_writer_compat_v1_refuses_to_be_created_with_a_default(tmp_path: Path) -> None:
    with pytest.raises(CompatViolation) as refused:
        Table.create(tmp_path, "id INT, x INT DEFAULT 5", properties=WRITERS)
    assert refused.value.rule == "IWC1-17"


def test_check_finds_a_default_whose_feature_is_missing(tmp_path: Path) -> None:
    Table.create(tmp_path, "id INT COMMENT 'c'", properties=WRITERS)
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    comment = '\\"comment\\":\\"c\\"'
    assert comment in log.read_text()
    log.write_text(log.read_text().replace(comment, '\\"CURRENT_DEFAULT\\":\\"5\\"'))
    for checksum in (tmp_path / "_delta_log").glob("*.crc"):
        checksum.unlink()
    CACHE.forget(Table.open(tmp_path).location)
    table = Table.open(tmp_path)

    report = table.check("icebergWriterCompatV1")

    assert [(v.rule, v.path) for v in report.violations] == [("IWC1-17", "id")]
    assert table.alter_column("id", default="").check("icebergWriterCompatV1").ok


@pytest.mark.parametrize("properties", [V1, V2, V3], ids=["V1", "V2", "V3"])
def test_a_table_with_defaults_converts(tmp_path: Path, properties: dict[str, str]) -> None:
    table = twin(tmp_path, "id INT", properties=properties)
    table = append(table, tmp_path, [{"id": 1}])
    # Files that are older than the column read as null on both sides.
    table = table.add_column("x INT DEFAULT 5")
    table = append(table, tmp_path, [{"id": 2, "x": 5}, {"id": 3, "x": None}])

    agree(table, tmp_path)

    field = opened(tmp_path).schema().find_field("x")
    assert field.initial_default is None
    assert field.write_default == (5 if properties is V3 else None)
    assert opened(tmp_path).scan().to_arrow().sort_by("id")["x"].to_pylist() == [None, 5, None]


@pytest.mark.parametrize(
    ("ddl", "delta_class"),
    [
        ("id BIGINT GENERATED ALWAYS AS IDENTITY DEFAULT 5", "IDENTITY_COLUMN_WITH_DEFAULT_VALUE"),
        ("id INT GENERATED ALWAYS AS (1) DEFAULT 5", "GENERATED_COLUMN_WITH_DEFAULT_VALUE"),
    ],
)
def test_a_default_beside_another_value_is_refused(
    tmp_path: Path, ddl: str, delta_class: str
) -> None:
    with pytest.raises(UserError) as refused:
        Table.create(tmp_path, f"a INT, {ddl}")
    assert refused.value.delta_class == delta_class
