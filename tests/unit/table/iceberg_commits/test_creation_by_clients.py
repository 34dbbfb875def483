"""Tables as clients other than PyIceberg ask for them: what DuckDB names, numbers and needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from twinlake.storage import LocalStore
from twinlake.table.iceberg_commits import IcebergCommits

if TYPE_CHECKING:
    from pathlib import Path


def asked(**more: Any) -> bytes:
    """A ``CreateTableRequest``."""
    columns = [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "p", "type": "string", "required": False},
    ]
    schema = {"type": "struct", "schema-id": 0, "fields": columns}
    return json.dumps({"name": "t", "schema": schema, **more}).encode()


def test_the_schema_of_a_staged_table_is_number_0(tmp_path: Path) -> None:
    staged = json.loads(IcebergCommits().stage(LocalStore(tmp_path / "t"), asked()))

    assert staged["current-schema-id"] == 0
    assert [schema["schema-id"] for schema in staged["schemas"]] == [0]
    assert not (tmp_path / "t").exists()


def test_a_partition_field_may_have_any_name(tmp_path: Path) -> None:
    """DuckDB calls it ``identity_p_2``; the answer says what it is called from now on."""
    field = {"source-id": 2, "field-id": 1000, "transform": "identity", "name": "identity_p_2"}
    body = asked(**{"partition-spec": {"spec-id": 0, "fields": [field]}})

    state = IcebergCommits().create(LocalStore(tmp_path / "t"), body)

    assert state.snapshot.metadata.partition_columns == ("p",)
    (spec,) = json.loads(state.metadata())["partition-specs"]
    assert [part["name"] for part in spec["fields"]] == ["p"]


def test_rows_of_a_table_of_format_3_can_be_deleted_by_vectors(tmp_path: Path) -> None:
    body = asked(properties={"format-version": "3"})

    state = IcebergCommits().create(LocalStore(tmp_path / "t"), body)

    assert state.snapshot.metadata.configuration["delta.enableDeletionVectors"] == "true"
    assert "deletionVectors" in (state.snapshot.protocol.writer_features or ())
