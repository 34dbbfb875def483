from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from twinlake.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    UnknownAction,
    action_name,
    decode_lines,
    encode_action,
    encode_lines,
)
from twinlake.errors import Code, CorruptTable

ADD = {
    "path": "a%20b.parquet",
    "partitionValues": {"p": None, "q": ""},
    "size": 7,
    "modificationTime": 9007199254740993,
    "dataChange": True,
}


def one(line: dict[str, Any]) -> Any:
    (action,) = decode_lines(json.dumps(line).encode(), source="x.json")
    return action


@pytest.mark.parametrize(
    "line",
    [
        {"add": ADD},
        {"add": {**ADD, "stats": '{"numRecords":1}', "tags": {"k": None}, "baseRowId": 3}},
        {"add": {**ADD, "fromTheFuture": {"deep": [1, {"x": None}]}}},
        {"remove": {"path": "a", "dataChange": False, "deletionTimestamp": 5, "odd": 1}},
        {"cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}},
        {"txn": {"appId": "a", "version": -3, "lastUpdated": 4, "odd": []}},
        {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
        {"commitInfo": {"operation": "WRITE", "timestamp": 1, "job": {"id": 1}, "clusterId": "c"}},
        {"commitInfo": {"operationMetrics": {"n": "1"}, "operationParameters": {"p": "[]"}}},
        {"sidecar": {"path": "s.parquet", "sizeInBytes": 1, "modificationTime": 2}},
        {"checkpointMetadata": {"version": 4, "tags": {"a": "b"}}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["unknownThing"],
                "writerFeatures": ["appendOnly", "unknownThing"],
            }
        },
        {
            "metaData": {
                "id": "m",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": '{"type":"struct","fields":[]}',
                "partitionColumns": [],
                "configuration": {"k": "v"},
                "createdTime": 1,
                "odd": {"x": 1},
            }
        },
        {"notKnownYet": {"anything": [1, 2.5, None]}},
    ],
    ids=lambda line: next(iter(line)),
)
def test_nothing_is_lost(line: dict[str, Any]) -> None:
    action = one(line)
    assert action_name(action) == next(iter(line))
    assert json.loads(encode_action(action)) == line


def test_known_and_unknown_fields_stay_apart() -> None:
    action = one({"add": {**ADD, "odd": 1}})
    assert isinstance(action, AddFile)
    assert action.extra == {"odd": 1}
    changed = msgspec.structs.replace(action, size=8)
    assert json.loads(encode_action(changed))["add"] == {**ADD, "size": 8, "odd": 1}
    assert "extra" not in encode_action(one({"add": ADD})).decode()


def test_a_field_with_our_own_name_is_only_one_more_unknown_field() -> None:
    hostile = {"add": {**ADD, "\x7fextra": {"path": "elsewhere"}}}
    action = one(hostile)
    assert action.path == ADD["path"]
    assert json.loads(encode_action(action)) == hostile


def test_what_commit_info_says_in_other_types_is_kept() -> None:
    line = {"commitInfo": {"operation": 7, "timestamp": "yesterday", "engineInfo": "x"}}
    action = one(line)
    assert isinstance(action, CommitInfo)
    assert (action.operation, action.timestamp, action.engine_info) == (None, None, "x")
    assert json.loads(encode_action(action)) == line


def test_a_removed_domain_says_so() -> None:
    domain = DomainMetadata(domain="d", configuration="{}", removed=True)
    assert json.loads(encode_action(domain)) == {
        "domainMetadata": {"domain": "d", "configuration": "{}", "removed": True}
    }


def test_keys_hold_the_deletion_vector() -> None:
    vector = DeletionVectorDescriptor("u", "abc", 10, 2, 1)
    action = AddFile(
        path="p",
        partition_values={},
        size=1,
        modification_time=1,
        data_change=True,
        deletion_vector=vector,
    )
    assert action.key == ("p", "uabc@1")
    gone = action.remove(deletion_timestamp=5)
    assert gone.key == action.key
    assert (gone.size, gone.extended_file_metadata, gone.data_change) == (1, True, True)


def test_null_actions_and_blank_lines_are_nothing() -> None:
    text = b'{"add":null,"txn":{"appId":"a","version":1}}\n\n  \n'
    (action,) = decode_lines(text, source="x.json")
    assert action_name(action) == "txn"


def test_lines_of_a_commit() -> None:
    actions: list[Action] = [Protocol(1, 2), Metadata(id="m"), UnknownAction("x", {"y": 1})]
    lines = encode_lines(actions)
    assert lines.count(b"\n") == 3
    assert list(decode_lines(lines, source="x.json")) == actions


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "1",
        '{"add":',
        '{"add":1}',
        '{"add":{"path":"p"}}',
        '{"add":{"path":1,"partitionValues":{},"size":1,"modificationTime":1,"dataChange":true}}',
        '{"protocol":{"minReaderVersion":"1","minWriterVersion":2}}',
        '{"metaData":[]}',
        "[" * 100_000,
    ],
)
def test_a_bad_line_is_named(line: str) -> None:
    text = ('{"txn":{"appId":"a","version":1}}\n' + line).encode()
    with pytest.raises(CorruptTable) as refused:
        list(decode_lines(text, source="x.json"))
    assert refused.value.code is Code.LOG_CORRUPT
    assert refused.value.fields["line"] == 2
    assert "x.json" in refused.value.what
