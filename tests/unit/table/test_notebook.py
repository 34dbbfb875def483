"""What tables and their records show in a notebook and at a terminal."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, twin
from tests.support.notebook_page import HOSTILE, NotebookPage
from tests.unit.table.making import create, data_file, write_files
from twinlake import StorageError, Table
from twinlake._html import SHOWN

SECRETS = {"fs.s3a.secret.key": "hunter2", "team": "orders"}


def hostile_table(folder: Path) -> Table:
    ddl = f'id INT, `<b>` STRING COMMENT "{HOSTILE}", m MAP<STRING, STRUCT<n: INT>>'
    return create(folder, ddl, properties=SECRETS, description=HOSTILE)


def test_tables_and_details(tmp_path: Path) -> None:
    table = hostile_table(tmp_path).commit("WRITE", [data_file("a.parquet")])
    assert "version 1" in repr(table)
    assert repr(table.detail()).endswith("version 1, protocol 1,2, 1 file (100 B)>")
    for value in (table, table.detail()):
        found = NotebookPage(value)
        assert "hunter2" not in found.html + repr(value)
        assert ["team", "orders"] in found.rows
        assert ["about", HOSTILE] in found.rows
        assert ["data", "1 file (100 B)"] in found.rows
        assert "<b>" in found.text
        assert HOSTILE in found.text
    assert "hunter2" not in json.dumps(table.detail().to_dict())
    assert "details" in NotebookPage(table).tags  # the columns are a tree


def test_differences(tmp_path: Path) -> None:
    table = hostile_table(tmp_path)
    table = table.set_properties({"fs.s3a.secret.key": "hunter3", "team": "sales"})
    table = table.add_column("`<i>` INT")
    files = [data_file(f"{n}.parquet") for n in range(SHOWN + 5)]
    table = table.commit("WRITE", files)
    found = table.diff(0)
    assert repr(found) == (
        "<Diff of versions 0 and 3; columns: 1, properties: 2, files added: 25, rows: +250>"
    )
    page = NotebookPage(found)
    assert "hunter" not in page.html
    assert ["team", "orders", "sales"] in page.rows
    assert ["fs.s3a.secret.key", "********", "********"] in page.rows
    assert ["added", "`<i>`", "", "INT"] in page.rows
    assert "5 more" in page.text
    assert "SET TBLPROPERTIES" in page.text
    assert repr(table.diff(3)) == "<Diff of versions 3 and 3; no difference>"
    upgraded = table.upgrade_protocol(1, 3).diff(3)
    assert ["protocol", "1,2 → 1,3"] in NotebookPage(upgraded).rows
    assert ["features added", "checkConstraints"] in NotebookPage(upgraded).rows


def test_vacuum_results(tmp_path: Path) -> None:
    table = create(tmp_path)
    names = ["<script>.parquet", *(f"{n}.parquet" for n in range(SHOWN))]
    write_files(tmp_path, *names)
    for name in names:
        os.utime(tmp_path / name, (0, 0))
    preview = table.vacuum(0, dry_run=True, enforce_retention=False)
    assert repr(preview).endswith("21 files (84 B) would be deleted>")
    page = NotebookPage(preview)
    assert ["<script>.parquet"] in page.rows
    assert "1 more" in page.text
    done = table.vacuum(0, enforce_retention=False)
    assert repr(done).endswith("21 files (84 B) to delete, 21 deleted, recorded in version 2>")


def test_iceberg_side(tmp_path: Path) -> None:
    plain = create(tmp_path / "plain")
    assert "no Iceberg metadata, the table has no Iceberg compat feature" in repr(plain.iceberg)
    assert "no Iceberg metadata" in NotebookPage(plain.iceberg).text
    table = twin(tmp_path / "twin", "id LONG", properties=V2)
    table.iceberg.sync()
    assert repr(table.iceberg).endswith("version 0: Iceberg metadata at version 0>")
    later = append(table, tmp_path / "twin", [{"id": 1}])
    found = NotebookPage(later.iceberg)
    assert "Iceberg metadata at version 0, 1 behind: no sync has run for this version" in found.text
    assert ["metadata", later.iceberg.metadata_location] in found.rows


def test_an_iceberg_side_that_cannot_be_read_still_has_a_repr(tmp_path: Path) -> None:
    table = twin(tmp_path, "id LONG", properties=V2)
    hint = tmp_path / "_iceberg" / "metadata" / "version-hint.text"
    hint.parent.mkdir(parents=True)
    hint.symlink_to(hint)
    with pytest.raises(StorageError):
        _ = table.iceberg.lag
    assert ": cannot be read: " in repr(table.iceberg)
