"""Compaction files say what their commits say, and lose nothing they do not understand."""

from __future__ import annotations

import json

import pytest

from tests.support.log_tables import add, commit, info, remove, sample_log, state_of
from twinlake.errors import Code, TwinlakeError
from twinlake.log import commit_key, load_snapshot, write_compaction
from twinlake.log.compaction import compact_lines
from twinlake.log.names import compaction_key
from twinlake.storage import Fault, MemoryStore


@pytest.mark.parametrize(("start", "end"), [(0, 3), (0, 1), (1, 2), (2, 3), (1, 3)])
def test_a_log_reads_the_same_through_a_compaction(start: int, end: int) -> None:
    store = MemoryStore()
    sample_log(store)
    before = state_of(load_snapshot(store))
    file = write_compaction(store, start, end)
    assert (file.version, file.end_version) == (start, end)
    # Only the names of the commits are still needed; that they are not read is the proof.
    for version in range(start, end + 1):
        store.put(commit_key(version), b"{")
    assert state_of(load_snapshot(store)) == before


def test_repeated_deletion_vectors_of_one_path_are_no_contradiction() -> None:
    store = MemoryStore()
    sample_log(store)
    for n in range(3):
        commit(
            store,
            4 + n,
            info(),
            remove("f000.parquet", dv=n),
            add("f000.parquet", 0, dv=n + 1),
        )
    before = state_of(load_snapshot(store))
    write_compaction(store, 4, 6)
    assert state_of(load_snapshot(store)) == before


def test_unknown_actions_and_fields_are_kept_and_commit_info_is_not() -> None:
    text = compact_lines(
        [
            (
                "0",
                b'{"commitInfo":{"operation":"X"}}\n'
                b'{"add":{"path":"a","size":1,"fromTheFuture":{"x":[1]}}}\n'
                b'{"newAction":{"y":1}}\n{"cdc":{"path":"c"}}\n'
                b'{"domainMetadata":{"domain":"d","configuration":"","removed":false}}\n'
                b'{"txn":{"appId":"p","version":9}}\n',
            ),
            (
                "1",
                b'{"domainMetadata":{"domain":"d","configuration":"","removed":true}}\n'
                b'{"txn":{"appId":"p","version":2},"add":null}\n'
                b'{"protocol":{"minReaderVersion":1,"minWriterVersion":2,"odd":1}}\n',
            ),
        ]
    )
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines == [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2, "odd": 1}},
        {"txn": {"appId": "p", "version": 2}},
        {"domainMetadata": {"domain": "d", "configuration": "", "removed": True}},
        {"add": {"path": "a", "size": 1, "fromTheFuture": {"x": [1]}}},
        {"newAction": {"y": 1}},
    ]


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        (2, 2, Code.INVALID_ARGUMENT),
        (3, 1, Code.INVALID_ARGUMENT),
        (-1, 1, Code.INVALID_ARGUMENT),
        (2, 9, Code.VERSION_NOT_FOUND),
    ],
)
def test_ranges_that_make_no_sense_are_refused(start: int, end: int, code: Code) -> None:
    store = MemoryStore()
    sample_log(store)
    with pytest.raises(TwinlakeError) as caught:
        write_compaction(store, start, end)
    assert caught.value.code == code


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"add":{"size":1}}', b'{"txn":3}'])
def test_a_damaged_commit_is_named(line: bytes) -> None:
    store = MemoryStore()
    sample_log(store)
    store.put(commit_key(2), line)
    with pytest.raises(TwinlakeError) as caught:
        write_compaction(store, 1, 3)
    assert caught.value.code == Code.LOG_CORRUPT
    assert caught.value.fields["file"] == commit_key(2)


def test_an_existing_one_stays_and_a_lost_reply_is_settled() -> None:
    store = MemoryStore()
    sample_log(store)
    before = state_of(load_snapshot(store))
    store.set_faults([("create", 1, Fault.torn(5))])
    write_compaction(store, 0, 3)
    write_compaction(store, 0, 3)
    assert state_of(load_snapshot(store)) == before


def test_a_damaged_compaction_is_passed_over() -> None:
    store = MemoryStore()
    sample_log(store)
    before = state_of(load_snapshot(store))
    store.put(compaction_key(0, 3), b'{"add":')
    assert state_of(load_snapshot(store)) == before
