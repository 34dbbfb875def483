"""Transactions on real stores: what lands in the log, retries, refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.commit.making import (
    StillClock,
    add,
    begin,
    create_table,
    domain,
    dv,
    features,
    metadata,
    remove,
    runtime,
)
from twinlake.actions import AddFile, CommitInfo, Metadata, Protocol
from twinlake.commit import AlreadyCommitted, CommitOptions, Operation, Transaction
from twinlake.errors import (
    Code,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConcurrentWriteException,
    MetadataChangedException,
    UnsupportedFeature,
    UserError,
)
from twinlake.log import Snapshot, commit_key, load_snapshot, read_commit
from twinlake.storage import LocalStore, MemoryStore, Store

if TYPE_CHECKING:
    from pathlib import Path


MINIMAL_FEED = frozenset({"appendOnly", "changeDataFeed", "invariants"})


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else LocalStore(tmp_path, durable=False)


def lines(store: Store, version: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in store.read(commit_key(version)).splitlines()]


def paths(snapshot: Snapshot) -> set[str]:
    return set(snapshot.add_files()["path"].to_pylist())


def assert_same(advanced: Snapshot) -> None:
    """What a commit hands back is what anybody reads from the log."""
    fresh = load_snapshot(advanced.store)
    assert fresh.version == advanced.version
    assert fresh.protocol == advanced.protocol
    assert fresh.metadata == advanced.metadata
    assert dict(fresh.domains) == dict(advanced.domains)
    assert dict(fresh.set_transactions) == dict(advanced.set_transactions)
    assert sorted(fresh.add_files()["path"].to_pylist()) == sorted(
        advanced.add_files()["path"].to_pylist()
    )


def test_first_commit(store: Store) -> None:
    snapshot = create_table(store, {"delta.appendOnly": "true"}, parts=["p"])
    info, protocol, meta = lines(store, 0)
    assert snapshot.version == 0
    assert protocol == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    assert meta["metaData"]["partitionColumns"] == ["p"]
    assert info["commitInfo"]["operation"] == "CREATE TABLE"
    assert "readVersion" not in info["commitInfo"]
    assert_same(snapshot)


def test_commit_info_says_everything(store: Store) -> None:
    snapshot = create_table(store, clock=StillClock(77))
    operation = Operation(
        name="WRITE", parameters={"mode": "Append", "partitionBy": []}, metrics={"numFiles": 1}
    )
    txn = Transaction(
        snapshot,
        operation,
        runtime(StillClock(123)),
        (),
        options=CommitOptions(user_metadata="by hand", tags={"t": "1"}),
    )
    result = txn.add(add("f")).commit(metrics={"numOutputRows": 10})
    info, written = lines(store, 1)
    assert next(iter(info)) == "commitInfo"
    found = info["commitInfo"]
    assert found.pop("engineInfo").startswith("twinlake/")
    assert len(found.pop("txnId")) == 36
    assert found == {
        "timestamp": 123,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "readVersion": 0,
        "isolationLevel": "WriteSerializable",
        "isBlindAppend": True,
        "operationMetrics": {"numFiles": "1", "numOutputRows": "10"},
        "userMetadata": "by hand",
        "tags": {"t": "1"},
    }
    assert written["add"]["path"] == "f"
    assert result.actions == read_commit(store, 1)
    assert (result.version, result.attempts, result.warnings) == (1, 1, ())
    assert_same(result.snapshot)


def test_every_commit_has_its_own_id(store: Store) -> None:
    table = create_table(store)
    for number in range(3):
        table = begin(table, ports=runtime(seed=number)).add(add(f"f{number}")).commit().snapshot
    ids = {lines(store, v)[0]["commitInfo"]["txnId"] for v in range(4)}
    assert len(ids) == 4


def test_creating_twice_says_that_the_table_exists(store: Store) -> None:
    create_table(store)
    with pytest.raises(UserError) as caught:
        txn = Transaction.for_new_table(store, Operation(name="CREATE TABLE"), runtime(seed=9), ())
        txn.update_metadata(metadata()).commit()
    assert caught.value.code is Code.TABLE_EXISTS


def test_metadata_raises_the_protocol(store: Store) -> None:
    table = create_table(store)
    feed = table.metadata.with_configuration({"delta.enableChangeDataFeed": "true"})
    table = begin(table, "SET TBLPROPERTIES").update_metadata(feed).commit().snapshot
    assert table.protocol == Protocol(1, 4)
    vectors = feed.with_configuration({"delta.enableDeletionVectors": "true"})
    table = begin(table, "SET TBLPROPERTIES").update_metadata(vectors).commit().snapshot
    assert (table.protocol.min_reader_version, table.protocol.min_writer_version) == (3, 7)
    assert_same(table)


def test_policy_decides_the_form(store: Store) -> None:
    table = create_table(store)
    feed = table.metadata.with_configuration({"delta.enableChangeDataFeed": "true"})
    done = begin(table, "SET TBLPROPERTIES", policy="minimal").update_metadata(feed).commit()
    assert done.snapshot.protocol.feature_names == MINIMAL_FEED


def test_steering_properties_act_but_are_not_stored(store: Store) -> None:
    table = create_table(store)
    asked = table.metadata.with_configuration(
        {"delta.feature.deletionVectors": "supported", "mine": "1"}
    )
    table = begin(table, "SET TBLPROPERTIES").update_metadata(asked).commit().snapshot
    assert table.protocol.is_supported("deletionVectors")
    assert dict(table.metadata.configuration) == {"mine": "1"}


def test_property_commit_carries_protocol_only_when_it_changes(store: Store) -> None:
    table = create_table(store)
    changed = table.metadata.with_configuration({"k": "v"})
    begin(table, "SET TBLPROPERTIES").update_metadata(changed).commit()
    assert [next(iter(line)) for line in lines(store, 1)] == ["commitInfo", "metaData"]


def test_table_of_a_stranger_is_not_written(store: Store) -> None:
    table = create_table(store)
    strange = Protocol(1, 7, None, {"somethingNew"})
    store.create(
        commit_key(1),
        b'{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["somethingNew"]}}\n',
    )
    table = load_snapshot(store)
    assert table.protocol == strange
    with pytest.raises(UnsupportedFeature, match="somethingNew"):
        begin(table).add(add("f")).commit()


def test_protocol_the_client_cannot_write_is_refused(store: Store) -> None:
    table = create_table(store)
    with pytest.raises(UnsupportedFeature, match="catalogManaged"):
        begin(table, "UPGRADE PROTOCOL").update_protocol(
            Protocol(3, 7, {"catalogManaged"}, {"appendOnly", "invariants", "catalogManaged"})
        ).commit()
    assert load_snapshot(store).version == 0


def test_a_transaction_commits_once(store: Store) -> None:
    txn = begin(create_table(store)).add(add("f"))
    txn.commit()
    with pytest.raises(UserError, match="has ended"):
        txn.commit()


def test_a_refused_draft_writes_nothing(store: Store) -> None:
    table = create_table(store, {"delta.appendOnly": "true"})
    table = begin(table).add(add("f")).commit().snapshot
    with pytest.raises(UserError) as caught:
        begin(table, "DELETE").add(remove("f")).commit()
    assert caught.value.code is Code.APPEND_ONLY
    assert load_snapshot(store).version == 1


# Losing and following


def test_appends_follow_each_other(store: Store) -> None:
    table = create_table(store)
    for number in range(4):
        result = begin(table, ports=runtime(seed=number)).add(add(f"f{number}")).commit()
        assert (result.version, result.attempts) == (number + 1, 1 if number == 0 else 2)
        info = lines(store, number + 1)[0]["commitInfo"]
        assert info["readVersion"] == 0
    assert paths(result.snapshot) == {"f0", "f1", "f2", "f3"}
    assert_same(result.snapshot)


def test_backoff_uses_the_given_clock(store: Store) -> None:
    table = create_table(store)
    begin(table, ports=runtime(seed=1)).add(add("f")).commit()
    clock = StillClock()
    begin(table, ports=runtime(clock, seed=2)).add(add("g")).commit()
    assert len(clock.slept) == 1
    assert 0 <= clock.slept[0] <= 0.001


@pytest.mark.parametrize(
    ("record", "error"),
    [
        (lambda t: t.read_files("p = 'a'"), ConcurrentAppendException),
        (lambda t: t.read_files("x = 1"), ConcurrentAppendException),
        (lambda t: t.read_files(), ConcurrentAppendException),
        (lambda t: t.read_whole_table(), ConcurrentAppendException),
        (lambda t: t.read_files("p = 'b'"), None),
        (lambda t: t.read_paths(["f"]), None),
    ],
    ids=["partition", "data", "no-predicate", "whole-table", "other-partition", "single-file"],
)
def test_recorded_reads_meet_an_append(store: Store, record: Any, error: Any) -> None:
    table = create_table(store, {"delta.isolationLevel": "Serializable"}, parts=["p"])
    table = begin(table).add(add("f", "a"), add("g", "b")).commit().snapshot
    ours = begin(table, "UPDATE", ports=runtime(seed=5))
    record(ours)
    begin(table, ports=runtime(seed=6)).add(add("n", "a")).commit()
    ours.add(add("u", "b"))
    if error is None:
        assert ours.commit().version == 3
        return
    with pytest.raises(error) as caught:
        ours.commit()
    assert caught.value.winner == 2
    assert caught.value.fields["overlap"] == ["n"]


def test_files_found_by_a_predicate_count_as_read(store: Store) -> None:
    table = create_table(store, parts=["p"])
    table = begin(table).add(add("f", "a"), add("g", "b")).commit().snapshot
    ours = begin(table, "MERGE", ports=runtime(seed=5))
    assert ours.read_files("p = 'a'")["path"].to_pylist() == ["f"]
    begin(table, "DELETE", ports=runtime(seed=6)).add(remove("f")).commit()
    with pytest.raises(ConcurrentDeleteReadException):
        ours.add(add("n", "a")).commit()


def test_two_deletes_of_one_file(store: Store) -> None:
    table = create_table(store)
    table = begin(table).add(add("f")).commit().snapshot
    begin(table, "DELETE", ports=runtime(seed=5)).add(remove("f")).commit()
    with pytest.raises(ConcurrentDeleteDeleteException):
        begin(table, "DELETE", ports=runtime(seed=6)).add(remove("f")).commit()


def test_metadata_changes_do_not_follow_each_other(store: Store) -> None:
    table = create_table(store)
    for number in (1, 2):
        changed = table.metadata.with_configuration({"k": str(number)})
        txn = begin(table, "SET TBLPROPERTIES", ports=runtime(seed=number)).update_metadata(changed)
        if number == 1:
            txn.commit()
            continue
        with pytest.raises(MetadataChangedException):
            txn.commit()
    assert load_snapshot(store).metadata.configuration == {"k": "1"}


def test_committing_a_live_file_again_does_not_bring_it_back_from_the_dead(store: Store) -> None:
    table = create_table(store)
    table = begin(table).add(add("f")).commit().snapshot
    refresh = begin(table, "COMPUTE STATS", ports=runtime(seed=5))
    refresh.add(add("f", data_change=False, rows=11))
    begin(table, "DELETE", ports=runtime(seed=6)).add(remove("f")).commit()
    with pytest.raises(ConcurrentDeleteReadException):
        refresh.commit()
    assert paths(load_snapshot(store)) == set()


def test_attempts_are_limited(store: Store) -> None:
    table = create_table(store)
    begin(table, ports=runtime(seed=1)).add(add("f")).commit()
    with pytest.raises(ConcurrentWriteException) as caught:
        begin(table, ports=runtime(seed=2), max_attempts=1).add(add("g")).commit()
    assert caught.value.fields == {"winner": 1, "attempts": 1}


def test_a_path_added_by_both_under_two_vectors(store: Store) -> None:
    table = create_table(store, {"delta.enableDeletionVectors": "true"})
    begin(table, ports=runtime(seed=1)).add(add("f")).commit()
    with pytest.raises(ConcurrentAppendException):
        begin(table, ports=runtime(seed=2)).add(add("f", deletion_vector=dv("d"))).commit()


def test_a_live_path_cannot_be_added_under_another_vector(store: Store) -> None:
    table = create_table(store, {"delta.enableDeletionVectors": "true"})
    table = begin(table).add(add("f")).commit().snapshot
    with pytest.raises(UserError, match="cannot be committed") as caught:
        begin(table).add(add("f", deletion_vector=dv("d"))).commit()
    assert caught.value.rule == "CMT-04"
    done = begin(table, "DELETE").add(remove("f"), add("f", deletion_vector=dv("d"))).commit()
    assert done.snapshot.num_files == 1
    assert_same(done.snapshot)


# Applications and domains


def test_an_application_version_is_committed_once(store: Store) -> None:
    table = create_table(store)
    first = begin(table, "STREAMING UPDATE")
    assert first.set_transaction("stream", 4) is None
    table = first.add(add("f")).commit().snapshot
    again = begin(table, "STREAMING UPDATE")
    assert again.set_transaction("stream", 4) == AlreadyCommitted(
        app_id="stream", version=4, latest=4
    )
    with pytest.raises(UserError, match="has ended"):
        again.add(add("f2")).commit()
    later = begin(table, "STREAMING UPDATE")
    assert later.set_transaction("stream", 5) is None
    assert later.add(add("g")).commit().snapshot.set_transactions["stream"].version == 5


def test_two_writers_of_one_application(store: Store) -> None:
    table = create_table(store)
    for seed in (1, 2):
        txn = begin(table, "STREAMING UPDATE", ports=runtime(seed=seed))
        assert txn.set_transaction("stream", 1) is None
        txn.add(add(f"f{seed}"))
        if seed == 1:
            txn.commit()
            continue
        with pytest.raises(ConcurrentTransactionException):
            txn.commit()
    assert paths(load_snapshot(store)) == {"f1"}


def test_domains(store: Store) -> None:
    table = create_table(store, {"delta.feature.domainMetadata": "supported"})
    table = begin(table).add(domain("mine", "1")).commit().snapshot
    txn = begin(table, ports=runtime(seed=3))
    assert txn.read_domain("mine") == "1"
    assert txn.read_domain("other") is None
    begin(table, ports=runtime(seed=4)).add(domain("other", "2")).commit()
    with pytest.raises(ConcurrentTransactionException, match="domain"):
        txn.add(add("f")).commit()


# Row tracking and timestamps


def test_row_ids_from_the_first_file_on(store: Store) -> None:
    table = create_table(store, {"delta.enableRowTracking": "true"})
    assert {key for key in table.metadata.configuration if "materialized" in key} == {
        "delta.rowTracking.materializedRowIdColumnName",
        "delta.rowTracking.materializedRowCommitVersionColumnName",
    }
    first = begin(table, ports=runtime(seed=1)).add(add("f", rows=10), add("g", rows=5)).commit()
    second = begin(table, ports=runtime(seed=2)).add(add("h", rows=3)).commit()
    ids = {
        a.path: (a.base_row_id, a.default_row_commit_version)
        for result in (first, second)
        for a in result.actions
        if isinstance(a, AddFile)
    }
    assert ids == {"f": (0, 1), "g": (10, 1), "h": (15, 2)}
    text = second.snapshot.domains["delta.rowTracking"].configuration
    assert json.loads(text) == {"rowIdHighWaterMark": 17}
    assert lines(store, 1)[0]["commitInfo"]["tags"] == {"delta.rowTracking.preserved": "true"}
    assert_same(second.snapshot)


def test_enabling_row_tracking_needs_the_backfill_first(store: Store) -> None:
    table = create_table(store)
    table = begin(table).add(add("f"), add("g")).commit().snapshot
    supported = table.metadata.with_configuration({"delta.feature.rowTracking": "supported"})
    table = begin(table, "ADD FEATURE").update_metadata(supported).commit().snapshot
    enabled = table.metadata.with_configuration({"delta.enableRowTracking": "true"})
    with pytest.raises(UserError) as caught:
        begin(table, "SET TBLPROPERTIES").update_metadata(enabled).commit()
    assert caught.value.rule == "CMT-13"
    backfill = begin(table, "ROW TRACKING BACKFILL")
    backfill.add(*(add(path, data_change=False) for path in ("f", "g")))
    table = backfill.commit().snapshot
    table = begin(table, "SET TBLPROPERTIES").update_metadata(enabled).commit().snapshot
    assert table.add_files()["base_row_id"].null_count == 0


def test_timestamps_never_go_back(store: Store) -> None:
    table = create_table(store, {"delta.enableInCommitTimestamps": "true"}, clock=StillClock(1000))
    assert not [k for k in table.metadata.configuration if "Enablement" in k]
    for now, expected in ((1000, 1001), (500, 1002), (5000, 5000)):
        result = begin(table, ports=runtime(StillClock(now))).add(add(f"f{now}")).commit()
        assert isinstance(result.actions[0], CommitInfo)
        assert result.actions[0].in_commit_timestamp == expected
        table = result.snapshot
    assert table.timestamp_ms == 5000
    assert next(iter(lines(store, 1)[0]["commitInfo"])) == "inCommitTimestamp"


def test_switching_timestamps_on_records_when(store: Store) -> None:
    table = create_table(store)
    modified = table.modified_ms
    on = table.metadata.with_configuration({"delta.enableInCommitTimestamps": "true"})
    result = (
        begin(table, "SET TBLPROPERTIES", ports=runtime(StillClock(5))).update_metadata(on).commit()
    )
    info = result.actions[0]
    assert isinstance(info, CommitInfo)
    assert info.in_commit_timestamp == modified + 1
    configuration = result.snapshot.metadata.configuration
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "1"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == str(modified + 1)
    # A later change of metadata keeps the record even if its author dropped it.
    again = on.with_configuration({"k": "v"})
    kept = begin(result.snapshot, "SET TBLPROPERTIES").update_metadata(again).commit().snapshot
    assert kept.metadata.configuration["delta.inCommitTimestampEnablementVersion"] == "1"
    off = kept.metadata.with_configuration({"delta.enableInCommitTimestamps": "false"})
    after = begin(kept, "SET TBLPROPERTIES").update_metadata(off).commit().snapshot
    assert not [k for k in after.metadata.configuration if "Enablement" in k]


def test_a_new_table_needs_a_store() -> None:
    with pytest.raises(UserError):
        Transaction(None, Operation(name="WRITE"))
    txn = Transaction.for_new_table(MemoryStore(), Operation(name="CREATE TABLE"), runtime(), ())
    with pytest.raises(UserError):
        txn.read_files()
    with pytest.raises(UserError) as caught:
        txn.commit()
    assert caught.value.rule == "CMT-02"


def test_unknown_policy_is_refused(store: Store) -> None:
    table = create_table(store)
    with pytest.raises(UserError, match="policy"):
        begin(table, policy="loose").update_metadata(table.metadata).commit()


def test_explicit_protocol_on_creation(store: Store) -> None:
    table = create_table(store, protocol=features("appendOnly", "invariants", "domainMetadata"))
    assert table.protocol.is_supported("domainMetadata")
    assert isinstance(table.metadata, Metadata)
