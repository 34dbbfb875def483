"""Compaction files say what their commits say, and lose nothing they do not understand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.log_tables import (
    NOW,
    V1_PROTOCOL,
    V2_PROTOCOL,
    add,
    commit,
    info,
    metadata,
    remove,
    sample_log,
    state_of,
)
from twinlake.actions import encode_lines
from twinlake.errors import Code, CorruptTable, TwinlakeError
from twinlake.log import commit_key, load_snapshot, write_compaction
from twinlake.log.compaction import compact_lines
from twinlake.log.names import compaction_key
from twinlake.storage import Fault, MemoryStore

if TYPE_CHECKING:
    from twinlake.actions import Action


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
        ],
        "file:///lake/t",
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


def _reconciled_lines(store: MemoryStore, start: int, end: int) -> bytes:
    return compact_lines(
        [(str(v), store.read(commit_key(v))) for v in range(start, end + 1)], store.url
    )


CONTRADICTIONS = {
    "an add and a remove of one file": [add("f003.parquet", 3), remove("f003.parquet")],
    "two adds of one file": [add("f003.parquet", 3), add("f003.parquet", 4)],
    "two removes of one file": [remove("f003.parquet"), remove("f003.parquet", NOW)],
    "an add and a remove of one deletion vector": [
        add("f003.parquet", 3, dv=1),
        remove("f003.parquet", dv=1),
    ],
    "two protocols": [V1_PROTOCOL, V2_PROTOCOL],
    "two metadata actions": [metadata(), metadata()],
}


@pytest.mark.parametrize("actions", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_compaction_that_contradicts_itself_is_not_used(
    actions: list[Action], caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    sample_log(store)
    before = state_of(load_snapshot(store))
    key = compaction_key(2, 3)
    store.put(key, _reconciled_lines(store, 2, 3) + encode_lines(actions))
    assert state_of(load_snapshot(store)) == before
    assert key in caplog.text


def test_an_empty_compaction_is_not_used() -> None:
    store = MemoryStore()
    sample_log(store)
    before = state_of(load_snapshot(store))
    store.put(compaction_key(2, 3), b"")
    assert state_of(load_snapshot(store)) == before


def test_a_compaction_that_contradicts_itself_does_not_stand_for_damaged_commits() -> None:
    store = MemoryStore()
    sample_log(store)
    lines = _reconciled_lines(store, 2, 3)
    actions = encode_lines([add("f003.parquet", 3), remove("f003.parquet")])
    store.put(compaction_key(2, 3), lines + actions)
    store.put(commit_key(2), b"{")
    with pytest.raises(CorruptTable) as caught:
        load_snapshot(store)
    assert caught.value.code is Code.LOG_CORRUPT
    assert commit_key(2) in str(caught.value)


def test_a_compaction_does_not_stand_for_commits_that_are_gone() -> None:
    store = MemoryStore()
    sample_log(store)
    write_compaction(store, 2, 3)
    store.delete([commit_key(2)])
    with pytest.raises(CorruptTable) as caught:
        load_snapshot(store)
    assert caught.value.fields["missing"] == [2]
