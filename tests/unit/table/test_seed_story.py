"""The story of table features, as its source document tells it, on a real table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.table.making import create, protocol_line
from twinlake.errors import UnsupportedFeature
from twinlake.protocol import Client

SIX = {
    "deletionVectors",
    "checkConstraints",
    "generatedColumns",
    "invariants",
    "changeDataFeed",
    "appendOnly",
}


def test_a_new_table_has_the_lowest_versions(tmp_path: Path) -> None:
    create(tmp_path, "id INT")
    assert protocol_line(tmp_path, 0) == '{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}'


def test_change_data_feed_then_deletion_vectors(tmp_path: Path) -> None:
    t = create(tmp_path, "id INT")
    t = t.set_properties({"delta.enableChangeDataFeed": "true"})
    assert protocol_line(tmp_path, 1) == '{"protocol":{"minReaderVersion":1,"minWriterVersion":4}}'
    t = t.set_properties({"delta.enableDeletionVectors": "true"})
    line = json.loads(protocol_line(tmp_path, 2) or "")["protocol"]
    assert (line["minReaderVersion"], line["minWriterVersion"]) == (3, 7)
    assert set(line["readerFeatures"]) == {"deletionVectors"}
    assert set(line["writerFeatures"]) == SIX
    assert len(line["writerFeatures"]) == 6
    assert t.protocol.reader_features == frozenset({"deletionVectors"})
    assert t.protocol.writer_features == frozenset(SIX)


def test_the_minimal_policy_names_only_what_is_used(tmp_path: Path) -> None:
    t = create(tmp_path, "id INT", policy="minimal")
    t = t.set_properties({"delta.enableChangeDataFeed": "true"})
    assert str(t.protocol) == "1,7,None,[appendOnly,changeDataFeed,invariants]"


def test_a_client_without_the_features_is_told_which(tmp_path: Path) -> None:
    newcomer = Client(readers=frozenset(), writers=frozenset({"appendOnly", "invariants"}))
    t = create(tmp_path, "id INT")
    t.protocol.check_read_write(newcomer)
    later = t.set_properties({"delta.enableChangeDataFeed": "true"})
    later.protocol.check_readable(newcomer)
    with pytest.raises(UnsupportedFeature) as refused:
        later.protocol.check_writable(newcomer, metadata=later.metadata)
    assert "changeDataFeed" in str(refused.value)
    last = later.set_properties({"delta.enableDeletionVectors": "true"})
    with pytest.raises(UnsupportedFeature, match="deletionVectors"):
        last.protocol.check_readable(newcomer)
