"""History and time travel by timestamp."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from tests.support.log_tables import DAY, NOW, V1_PROTOCOL, add, commit, info, metadata
from tests.support.notebook_page import HOSTILE, NotebookPage
from twinlake._html import SHOWN
from twinlake.actions import CommitInfo, Protocol
from twinlake.errors import Code, CorruptTable, UserError
from twinlake.log import (
    CommitHistory,
    CommitRecord,
    commit_key,
    history,
    load_snapshot,
    parse_timestamp,
    version_at,
    write_checkpoint,
)
from twinlake.storage import MemoryStore


def log_with_times(
    modified: list[int], stated: dict[int, int] | None = None, **settings: str
) -> MemoryStore:
    """Commits with these modification times; ``stated`` gives some their own."""
    store = MemoryStore()
    for version, at in enumerate(modified):
        own = CommitInfo(
            operation="WRITE",
            timestamp=at,
            in_commit_timestamp=(stated or {}).get(version),
        )
        first = (V1_PROTOCOL, metadata(**settings)) if version == 0 else ()
        commit(store, version, own, *first, add(f"f{version}.parquet", version))
        store.set_modified(commit_key(version), at)
    return store


def test_history_is_newest_first_and_typed() -> None:
    store = MemoryStore()
    commit(
        store,
        0,
        CommitInfo(
            operation="CREATE TABLE",
            operation_parameters={"mode": "x"},
            user_name="me",
            engine_info="e",
            extra={"clusterId": "c"},
        ),
        Protocol(1, 2),
        metadata(),
    )
    commit(
        store,
        1,
        CommitInfo(
            operation="WRITE",
            operation_metrics={"numFiles": "1"},
            is_blind_append=True,
            isolation_level="Serializable",
            read_version=0,
            user_metadata="note",
        ),
        add("a.parquet"),
    )
    commit(store, 2, add("b.parquet"))
    records = history(store, load_snapshot(store))
    assert [r.version for r in records] == [2, 1, 0]
    assert records[0].operation is None
    assert records[1].operation_metrics == {"numFiles": "1"}
    assert (records[1].is_blind_append, records[1].read_version) == (True, 0)
    assert records[2].extra == {"clusterId": "c"}
    plain = records[1].to_dict()
    assert plain["operation"] == "WRITE"
    assert plain["user_metadata"] == "note"
    assert len(history(store, load_snapshot(store), 2)) == 2
    assert history(store, load_snapshot(store), 0) == []
    assert [r.version for r in history(store, load_snapshot(store, 1))] == [1, 0]


def test_a_negative_limit_is_refused() -> None:
    store = log_with_times([1])
    with pytest.raises(UserError):
        history(store, load_snapshot(store), -1)


def test_foreign_types_in_commit_info_do_no_harm() -> None:
    store = MemoryStore()
    commit(store, 0, V1_PROTOCOL, metadata())
    body = (
        b'{"commitInfo":{"operation":{"a":1},"operationParameters":"none","timestamp":"2024",'
        b'"userMetadata":{"k":1},"readVersion":"0","engineInfo":"x"}}'
    )
    store.create(commit_key(1), body)
    (record, _) = history(store, load_snapshot(store))
    assert record.engine_info == "x"
    assert record.operation is None
    assert record.extra["operation"] == {"a": 1}


def test_the_head_of_a_large_commit_is_enough() -> None:
    store = MemoryStore()
    commit(store, 0, info("FIRST"), V1_PROTOCOL, metadata())
    commit(store, 1, info("BIG"), *(add(f"f{n}.parquet", n) for n in range(400)))
    # Wherever another writer put it, it is found.
    commit(store, 2, *(add(f"g{n}.parquet", n) for n in range(400)), info("LAST LINE"))
    records = history(store, load_snapshot(store))
    assert [r.operation for r in records] == ["LAST LINE", "BIG", "FIRST"]


def test_modification_times_are_made_to_rise() -> None:
    store = log_with_times([100, 50, 50, 300, 299])
    records = history(store, load_snapshot(store))
    assert [r.timestamp for r in records] == [301, 300, 102, 101, 100]


@pytest.mark.parametrize(
    ("at", "version"),
    [(100, 0), (101, 1), (102, 2), (150, 2), (299, 2), (300, 3), (301, 4)],
)
def test_version_at_by_modification_time(at: int, version: int) -> None:
    store = log_with_times([100, 50, 50, 300, 299])
    assert version_at(store, load_snapshot(store), at) == version


def test_times_outside_are_refused_with_what_there_is() -> None:
    store = log_with_times([100, 200])
    snapshot = load_snapshot(store)
    with pytest.raises(UserError) as early:
        version_at(store, snapshot, 99)
    assert early.value.code == Code.VERSION_NOT_FOUND
    assert early.value.delta_class == "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION"
    assert early.value.fields["earliest"] == 0
    with pytest.raises(UserError) as late:
        version_at(store, snapshot, 201)
    assert late.value.delta_class == "DELTA_TIMESTAMP_GREATER_THAN_COMMIT"
    assert late.value.fields["latest"] == 1
    assert version_at(store, snapshot, 201, can_return_last=True) == 1


ICT = {"enableInCommitTimestamps": "true"}


def test_in_commit_timestamps_from_the_start() -> None:
    stated = {0: 1000, 1: 1010, 2: 1030}
    store = log_with_times([5, 4, 3], stated, **ICT)
    snapshot = load_snapshot(store)
    assert [r.timestamp for r in history(store, snapshot)] == [1030, 1010, 1000]
    assert [version_at(store, snapshot, t) for t in (1000, 1009, 1010, 1030)] == [0, 0, 1, 2]
    with pytest.raises(UserError):
        version_at(store, snapshot, 999)


def test_in_commit_timestamps_enabled_later() -> None:
    settings = ICT | {
        "inCommitTimestampEnablementVersion": "2",
        "inCommitTimestampEnablementTimestamp": "500",
    }
    # The file times of the later ones are nonsense, as after a copy.
    store = log_with_times([100, 90, 7, 7], {2: 500, 3: 600}, **settings)
    snapshot = load_snapshot(store)
    assert [r.timestamp for r in history(store, snapshot)] == [600, 500, 101, 100]
    expected = {100: 0, 101: 1, 499: 1, 500: 2, 599: 2, 600: 3}
    assert {t: version_at(store, snapshot, t) for t in expected} == expected
    assert [r.in_commit_timestamp for r in history(store, snapshot)] == [600, 500, None, None]


def test_binary_search_reads_few_commits() -> None:
    count = 64
    stated = {v: 1000 + 10 * v for v in range(count)}
    store = log_with_times([1] * count, stated, **ICT)
    snapshot = load_snapshot(store)
    reads: list[str] = []
    store.set_faults(lambda op, key, _: reads.append(key) if op == "read" else None)
    assert version_at(store, snapshot, 1000 + 10 * 37 + 5) == 37
    assert len(set(reads)) <= 8


def test_a_commit_that_should_state_its_time_and_does_not_is_named() -> None:
    store = log_with_times([5, 6], {0: 10}, **ICT)
    with pytest.raises(CorruptTable) as caught:
        history(store, load_snapshot(store))
    assert caught.value.fields == {"version": 1}


def test_after_a_cleanup_the_earliest_version_is_the_checkpoint() -> None:
    store = log_with_times([100, 200, 300, 400])
    write_checkpoint(load_snapshot(store, 2))
    store.delete([commit_key(0), commit_key(1)])
    snapshot = load_snapshot(store)
    assert [r.version for r in history(store, snapshot)] == [3, 2]
    assert version_at(store, snapshot, 350) == 2
    with pytest.raises(UserError) as caught:
        version_at(store, snapshot, 250)
    assert caught.value.fields["earliest"] == 2
    # Without the commit of the checkpoint its time is not known any more.
    store.delete([commit_key(2)])
    assert version_at(store, load_snapshot(store), 400) == 3


def test_commits_without_a_base_cannot_be_travelled_to() -> None:
    store = log_with_times([100, 200, 300, 400])
    write_checkpoint(load_snapshot(store, 3))
    store.delete([commit_key(0)])
    snapshot = load_snapshot(store)
    with pytest.raises(UserError) as caught:
        version_at(store, snapshot, 250)
    assert caught.value.fields["earliest"] == 3


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        (NOW, NOW),
        (1.9, 1),
        (str(NOW), NOW),
        ("1970-01-02", DAY),
        ("1970-01-01 00:00:01", 1000),
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01T00:00:00.000999", 0),
        ("1969-12-31", -DAY),
        (dt.date(1970, 1, 2), DAY),
        (dt.datetime(1970, 1, 1, 1), 3_600_000),
        (dt.datetime(1970, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=-1))), 3_600_000),
    ],
    ids=str,
)
def test_points_in_time(value: Any, ms: int) -> None:
    assert parse_timestamp(value) == ms


def test_a_time_without_zone_is_in_the_given_one() -> None:
    east = dt.timezone(dt.timedelta(hours=2))
    assert parse_timestamp("1970-01-01T02:00:00", zone=east) == 0


@pytest.mark.parametrize("value", ["", "yesterday", "2024-13-01", True, None, [], float("nan")])
def test_what_is_no_point_in_time_is_refused(value: Any) -> None:
    with pytest.raises(UserError) as caught:
        parse_timestamp(value)
    assert caught.value.code == Code.INVALID_ARGUMENT


# For people


def record(version: int = 3, **values: Any) -> CommitRecord:
    return CommitRecord(
        version=version, timestamp=NOW, **{"operation": "SET TBLPROPERTIES", **values}
    )


def test_a_history_is_a_list_that_shows_as_a_table() -> None:
    store = log_with_times([NOW, NOW + DAY])
    found = history(store, load_snapshot(store))
    assert isinstance(found, list)
    assert found == list(found)
    assert repr(found).splitlines()[0] == "<CommitHistory of 2 commits>"
    shown = NotebookPage(found)
    assert shown.rows[0] == ["version", "time", "commit", "engine", "details"]
    assert [(row[0], row[2]) for row in shown.rows[1:]] == [("1", "WRITE"), ("0", "WRITE")]


def test_long_histories_are_folded() -> None:
    found = CommitHistory(record(n) for n in range(SHOWN + 30))
    assert len(repr(found).splitlines()) == SHOWN + 2
    assert repr(found).endswith("… and 30 more")
    assert "30 more" in NotebookPage(found).text


def test_commits_show_no_credentials() -> None:
    secret = {"properties": '{"fs.s3a.secret.key":"hunter2","team":"orders"}'}
    one = record(operation_parameters=secret, operation_metrics={"numFiles": "3"})
    for text in (repr(one), repr(CommitHistory([one])), NotebookPage(one).text):
        assert "hunter2" not in text
        assert "team=orders" in text
        assert "numFiles=3" in text
    assert "hunter2" not in NotebookPage(CommitHistory([one])).html


def test_commits_cannot_play_with_the_terminal_or_the_page() -> None:
    one = record(operation=f"{HOSTILE}\x1b[2J\n", user_metadata=HOSTILE, engine_info=HOSTILE)
    assert repr(one).isprintable()
    assert HOSTILE in NotebookPage(one).text
    assert HOSTILE in NotebookPage(CommitHistory([one])).text
