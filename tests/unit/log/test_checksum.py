"""Checksum files: written once, read tolerantly, compared with all that differs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.log_tables import (
    NOW,
    V1_PROTOCOL,
    add,
    commit,
    info,
    metadata,
    remove,
    sample_log,
)
from twinlake.actions import Protocol
from twinlake.errors import Code, CorruptTable
from twinlake.log import (
    Counters,
    check_checksum,
    checksum_of,
    load_snapshot,
    read_checksum,
    verify_checksum,
    write_checksum,
)
from twinlake.log.names import checksum_key
from twinlake.storage import MemoryStore


def stored(store: MemoryStore, version: int) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(store.read(checksum_key(version)))
    return loaded


def test_a_checksum_states_totals_and_state() -> None:
    store = MemoryStore()
    version = sample_log(store)
    snapshot = load_snapshot(store)
    assert write_checksum(snapshot)
    body = stored(store, version)
    assert body["numFiles"] == 40
    assert body["tableSizeBytes"] == sum(snapshot.add_files()["size"].to_pylist())
    assert (body["numMetadata"], body["numProtocol"]) == (1, 1)
    assert body["metadata"]["id"] == snapshot.metadata.id
    assert body["protocol"]["minReaderVersion"] == 3
    assert (body["numDeletionVectorsOpt"], body["numDeletedRecordsOpt"]) == (2, 5)
    assert {t["appId"]: t["version"] for t in body["setTransactions"]} == {
        "old": 3,
        "app": 7,
        "timeless": 1,
    }
    assert [d["domain"] for d in body["domainMetadata"]] == ["delta.clustering", "mine"]
    assert "inCommitTimestampOpt" not in body


def test_optional_counts_only_where_the_table_has_the_feature() -> None:
    store = MemoryStore()
    settings = {"enableInCommitTimestamps": "true"}
    commit(
        store, 0, info(in_commit_timestamp=NOW, txn_id="t"), Protocol(1, 2), metadata(**settings)
    )
    write_checksum(load_snapshot(store))
    body = stored(store, 0)
    assert body["inCommitTimestampOpt"] == NOW
    assert body["txnId"] == "t"
    assert "numDeletionVectorsOpt" not in body


def test_a_checksum_is_never_overwritten() -> None:
    store = MemoryStore()
    version = sample_log(store)
    store.put(checksum_key(version), b"theirs")
    assert not write_checksum(load_snapshot(store))
    assert store.read(checksum_key(version)) == b"theirs"


def test_it_is_read_back_as_it_was() -> None:
    store = MemoryStore()
    version = sample_log(store)
    snapshot = load_snapshot(store)
    write_checksum(snapshot)
    found = read_checksum(store, version)
    assert found == checksum_of(snapshot)
    assert found is not None
    assert verify_checksum(snapshot, found) == []
    check_checksum(snapshot, found)


@pytest.mark.parametrize(
    "body",
    [None, b"", b"{", b"[]", b"{}", b'{"tableSizeBytes":"x","numFiles":1}', b"\xff"],
    ids=["missing", "empty", "cut", "list", "no-fields", "wrong-type", "not-text"],
)
def test_an_unreadable_checksum_is_as_good_as_none(body: bytes | None) -> None:
    store = MemoryStore()
    version = sample_log(store)
    if body is not None:
        store.put(checksum_key(version), body)
    assert read_checksum(store, version) is None
    assert load_snapshot(store).num_files == 40


@pytest.mark.parametrize("name", ["fileSizeHistogram", "histogramOpt"])
def test_histograms_are_read_under_both_names(name: str) -> None:
    store = MemoryStore()
    sample_log(store)
    body = checksum_of(load_snapshot(store)).to_dict()
    body[name] = {"sortedBinBoundaries": [0, 10], "fileCounts": [1, 2], "totalBytes": [3, 4]}
    body["deletedRecordCountsHistogramOpt"] = {"deletedRecordCounts": [0] * 10}
    store.put(
        checksum_key(3), json.dumps(body, default=lambda raw: json.loads(bytes(raw))).encode()
    )
    found = read_checksum(store, 3)
    assert found is not None
    assert found.file_size_histogram is not None
    assert found.file_size_histogram.file_counts == (1, 2)
    assert "deletedRecordCountsHistogramOpt" in found.extra


def test_every_difference_is_named() -> None:
    store = MemoryStore()
    version = sample_log(store)
    write_checksum(load_snapshot(store))
    body = stored(store, version)
    body |= {"numFiles": 1, "tableSizeBytes": 2, "setTransactions": [], "numProtocol": 3}
    store.put(checksum_key(version), json.dumps(body).encode())
    snapshot, found = load_snapshot(store), read_checksum(store, version)
    assert found is not None
    with pytest.raises(CorruptTable) as caught:
        check_checksum(snapshot, found)
    assert caught.value.code == Code.CHECKSUM_MISMATCH
    assert set(caught.value.fields["differences"]) == {
        "numFiles",
        "tableSizeBytes",
        "setTransactions",
        "numProtocol",
    }
    assert "numFiles is 40 in the log and 1 in the file" in caught.value.why


def test_counters_are_carried_along_without_looking_at_files() -> None:
    store = MemoryStore()
    version = sample_log(store)
    write_checksum(load_snapshot(store))
    snapshot = load_snapshot(store)
    assert snapshot.known_counters == Counters(40, snapshot.size_in_bytes, 2, 5)

    added = add("more.parquet", 7)
    commit(store, version + 1, info(), added, remove("f003.parquet"))
    after = snapshot.advance(version + 1, [added, remove("f003.parquet")])
    assert after.known_counters is not None
    assert after.known_counters.num_files == 40
    assert checksum_of(after).num_files == load_snapshot(store).num_files


def test_a_checksum_of_another_table_is_not_believed() -> None:
    store = MemoryStore()
    version = sample_log(store)
    write_checksum(load_snapshot(store))
    body = stored(store, version)
    body["metadata"]["id"] = "another"
    store.put(checksum_key(version), json.dumps(body | {"numFiles": 7}).encode())
    snapshot = load_snapshot(store)
    assert snapshot.known_counters is None
    assert snapshot.num_files == 40


def test_counts_of_vectors_that_are_not_stated_are_not_guessed() -> None:
    store = MemoryStore()
    version = sample_log(store, V1_PROTOCOL)
    write_checksum(load_snapshot(store))
    body = stored(store, version)
    del body["numDeletionVectorsOpt"]
    store.put(checksum_key(version), json.dumps(body).encode())
    assert load_snapshot(store).known_counters is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"numFiles": 1}, "numFiles is 40 in the log and 1 in the file"),
        ({"tableSizeBytes": 2}, "tableSizeBytes is"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 1}}, "protocol differs"),
        ({"setTransactions": [{"appId": "app", "version": 99}]}, "setTransactions is 3"),
    ],
    ids=["files", "bytes", "protocol", "application"],
)
def test_a_contradiction_is_logged_when_the_file_is_read_anyway(
    change: dict[str, Any], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    version = sample_log(store)
    write_checksum(load_snapshot(store))
    body = stored(store, version) | change
    if "setTransactions" in change:
        known = load_snapshot(store).set_transactions
        app, txn = next(iter(known.items()))
        body["setTransactions"] = [{"appId": app, "version": 99}]
        told = f"setTransactions is {txn.version} in the log and 99 in the file"
    store.put(checksum_key(version), json.dumps(body).encode())

    snapshot = load_snapshot(store)
    with caplog.at_level("WARNING", logger="twinlake.log"):
        _ = snapshot.known_counters
        assert len(snapshot.files()) == 40
    assert told in caplog.text
    assert "00000000000000000003.crc" in caplog.text
    assert snapshot.num_files == 40


def test_a_checksum_that_agrees_is_not_mentioned(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    sample_log(store)
    write_checksum(load_snapshot(store))
    snapshot = load_snapshot(store)
    with caplog.at_level("WARNING", logger="twinlake.log"):
        assert snapshot.known_counters is not None
        assert len(snapshot.files()) == 40
    assert not caplog.records
