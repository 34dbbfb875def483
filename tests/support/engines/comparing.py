"""Our view of a table against the one another engine has of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.engines.delta_tables import Expected
    from twinlake.table import Table

__all__ = ["assert_same_state"]


def assert_same_state(table: Table, theirs: Expected) -> None:
    """Version, metadata, protocol, domains, applications, files and tombstones are theirs."""
    snapshot = table.snapshot
    assert table.version == theirs.version
    assert json.loads(table.metadata.schema_string) == theirs.schema
    assert table.metadata.id == theirs.table_id
    assert table.metadata.partition_columns == theirs.partition_columns
    assert dict(table.properties) == dict(theirs.properties)
    protocol = table.protocol
    assert (protocol.min_reader_version, protocol.min_writer_version) == (
        theirs.min_reader_version,
        theirs.min_writer_version,
    )
    assert protocol.reader_features == theirs.reader_features
    assert protocol.writer_features == theirs.writer_features
    assert {d.domain: d.configuration for d in snapshot.domains.values()} == theirs.domains
    assert {t.app_id: t.version for t in snapshot.set_transactions.values()} == (
        theirs.set_transactions
    )
    assert snapshot.in_commit_timestamp == theirs.in_commit_timestamp
    ours = {file["path"]: file for file in snapshot.add_files().to_pylist()}
    assert ours.keys() == theirs.files.keys()
    for path, file in theirs.files.items():
        found = ours[path]
        assert (found["size"], found["modification_time"]) == (file.size, file.modification_time)
        assert dict(found["partition_values"]) == file.partition_values
        assert found["deletion_vector"] == _vector(file.deletion_vector)
        assert (found["base_row_id"], found["default_row_commit_version"]) == (
            file.base_row_id,
            file.default_row_commit_version,
        )
        assert found["clustering_provider"] == file.clustering_provider
        assert dict(found["tags"] or ()) == (file.tags or {})
    assert set(snapshot.tombstones()["path"].to_pylist()) == theirs.tombstones
    assert snapshot.num_files == len(theirs.files)
    assert snapshot.size_in_bytes == sum(file.size for file in theirs.files.values())


def _vector(descriptor: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A deletion vector's descriptor with the names of our columns."""
    if descriptor is None:
        return None
    return {
        "storage_type": descriptor["storageType"],
        "path_or_inline_dv": descriptor["pathOrInlineDv"],
        "offset": descriptor["offset"],
        "size_in_bytes": descriptor["sizeInBytes"],
        "cardinality": descriptor["cardinality"],
    }
