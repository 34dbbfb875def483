"""``twinlake reorg``: a preview unless told to do it, PURGE and UPGRADE UNIFORM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.cli.conftest import file
from tests.unit.cli.running import document, lines, run
from twinlake import Table

if TYPE_CHECKING:
    from pathlib import Path

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """Two days with a file each; the rows of one of them are partly deleted."""
    path = tmp_path / "days"
    table = Table.create(
        path, "id INT, name STRING, day DATE", ["day"], properties=VECTORS, durable=False
    )
    files = [file(1, "2024-01-01", 1), file(2, "2024-01-02", 11, vector=True)]
    table.commit("WRITE", files, parameters={"mode": "Append"})
    return path


def test_reorg_previews_unless_told_to_do_it(days: Path) -> None:
    found = document("reorg", days)
    assert (found["files"], found["deletion_vectors"], found["dry_run"]) == (1, 1, True)
    assert (found["files_considered"], found["size_in_bytes"]) == (2, 2_000)
    assert (found["version"], Table.open(days).version) == (None, 1)
    assert "Rewrites 1 file. Nothing was changed" in lines("reorg", days, "--purge")[0]


def test_reorg_takes_the_partitions_it_is_told(days: Path) -> None:
    assert document("reorg", days, "--where", "day = '2024-01-02'")["files_considered"] == 1
    said = lines("reorg", days, "--where", "day = '2024-01-01'", "--yes")
    assert "No file has deleted rows or dropped columns." in said[0]
    refused = run("reorg", days, "--where", "id = 1")
    assert (refused.exit_code, "not partition columns" in refused.stderr) == (1, True)


def test_reorg_finds_dropped_columns(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = Table.create(
        path, "id INT, old STRING", properties={"delta.columnMapping.mode": "name"}, durable=False
    )
    names = [field.metadata["delta.columnMapping.physicalName"] for field in table.schema]
    written = pa.table({names[0]: pa.array([1], pa.int32()), names[1]: ["x"]})
    pq.write_table(written, path / "day=2024-01-01-part-1.parquet")
    add = file(1, "2024-01-01", 1)
    plain: dict[str, Any] = {
        "path": "day=2024-01-01-part-1.parquet",
        "partition_values": {},
        "stats": None,
    }
    import msgspec

    table = table.commit("WRITE", [msgspec.structs.replace(add, **plain)])
    assert document("reorg", path)["files"] == 0
    table.drop_column("old")
    assert document("reorg", path)["files"] == 1


def test_upgrade_uniform_previews_and_is_done(tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, "id INT, tags ARRAY<STRING>", durable=False)
    found = document("reorg", path, "--upgrade-uniform", 2)
    assert (found["dry_run"], found["done"], found["target"]) == (True, False, "icebergCompatV2")
    assert Table.open(path).version == 0
    assert any("--yes" in line for line in lines("reorg", path, "--upgrade-uniform", 2))
    assert document("reorg", path, "--upgrade-uniform", 2, "--yes")["done"] is True
    table = Table.open(path)
    assert table.check("icebergCompatV2").ok
    assert table.properties["delta.universalFormat.enabledFormats"] == "iceberg"
    assert {r.operation for r in table.history(1)} == {"REORG TABLE UPGRADE UNIFORM"}


def test_upgrade_uniform_that_cannot_be_fails(tmp_path: Path) -> None:
    path = tmp_path / "t"
    Table.create(path, "id INT, v VOID", durable=False)
    for words in ((), ("--yes",)):
        result = run("reorg", path, "--upgrade-uniform", 2, *words)
        assert (result.exit_code, result.stderr) == (1, "")
        assert "ICV2" in result.stdout
    assert Table.open(path).version == 0
    unknown = run("reorg", path, "--upgrade-uniform", 3)
    assert (unknown.exit_code, len(unknown.stderr.splitlines())) == (1, 3)


@pytest.mark.parametrize("words", [("--purge",), ("--where", "day = '2024-01-01'")])
def test_purge_and_upgrade_do_not_go_together(days: Path, words: tuple[str, ...]) -> None:
    result = run("reorg", days, "--upgrade-uniform", 2, *words)
    assert (result.exit_code, "--upgrade-uniform" in result.stderr) == (2, True)


def test_reorg_says_what_to_install(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = run("reorg", days, "--yes")
    assert (result.exit_code, "TWIN-SPARK-REQUIRED" in result.stderr) == (1, True)
