"""A table whose types changed in a way nobody knows how to read is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.unit.table.making import create
from twinlake import Table
from twinlake.errors import Code, UnsupportedFeature

if TYPE_CHECKING:
    from pathlib import Path


def record_change(folder: Path, version: int, old: str, new: str) -> None:
    """A commit by an engine that widens more than the rules say."""
    log = folder / "_delta_log"
    lines = (log / f"{0:020d}.json").read_text().splitlines()
    (found,) = [json.loads(line) for line in lines if '"metaData"' in line]
    schema = json.loads(found["metaData"]["schemaString"])
    schema["fields"][0]["type"] = new
    schema["fields"][0]["metadata"]["delta.typeChanges"] = [{"fromType": old, "toType": new}]
    found["metaData"]["schemaString"] = json.dumps(schema)
    (log / f"{version:020d}.json").write_text(json.dumps(found) + "\n")


def test_an_unknown_change_is_named(tmp_path: Path) -> None:
    table = create(tmp_path, "id STRING", properties={"delta.enableTypeWidening": "true"})
    record_change(tmp_path, 1, "string", "integer")
    with pytest.raises(UnsupportedFeature, match="id from STRING to INT") as caught:
        Table.open(tmp_path, durable=False)
    assert caught.value.code is Code.FEATURE_READ
    assert caught.value.delta_class == "DELTA_UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA"
    assert caught.value.fields["changes"] == [
        {"path": "id", "fromType": "string", "toType": "integer"}
    ]
    with pytest.raises(UnsupportedFeature):
        table.refresh()
    # The version before is as good as ever.
    assert Table.open(tmp_path, version=0, durable=False).version == 0


def test_a_known_change_and_a_table_without_the_feature_are_read(tmp_path: Path) -> None:
    create(tmp_path / "known", "id INT", properties={"delta.enableTypeWidening": "true"})
    record_change(tmp_path / "known", 1, "integer", "long")
    assert Table.open(tmp_path / "known", durable=False).version == 1
    create(tmp_path / "plain", "id STRING")
    record_change(tmp_path / "plain", 1, "string", "integer")
    assert Table.open(tmp_path / "plain", durable=False).version == 1
