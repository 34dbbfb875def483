"""Every way we know to damage a log, and what the reader must say to it.

A case damages a copy of one small valid table. Looking at the table then either works, as the case
states, or raises one ``TwinlakeError`` with the stated code; never another exception, never a
hang, and mending the damage in the same process brings the table back. A damaged *commit* is
looked at three ways, which must agree: opened afresh, reached by refreshing an older table, and
asked for by number.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.actions import DeletionVectorDescriptor
from twinlake.errors import Code, TwinlakeError
from twinlake.log import (
    CheckpointKind,
    check_checksum,
    load_snapshot,
    read_checksum,
    write_checkpoint,
)
from twinlake.log.deletion_vectors import inline_descriptor, read_dv, write_dv_file
from twinlake.storage import open_store
from twinlake.table import Table

LAST = 3
_SECONDS = 10.0
_ID = "5b8f0c1e-0000-4000-8000-00000000000a"

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("name", "string"), ("day", "date"))
    ],
}
PROTOCOL: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors", "v2Checkpoint"],
    "writerFeatures": ["deletionVectors", "v2Checkpoint", "domainMetadata"],
}
METADATA: dict[str, Any] = {
    "id": _ID,
    "format": {"provider": "parquet", "options": {}},
    "schemaString": json.dumps(SCHEMA),
    "partitionColumns": ["day"],
    "configuration": {},
    "createdTime": 1_700_000_000_000,
}
ADD: dict[str, Any] = {
    "path": "next.parquet",
    "partitionValues": {"day": "2024-05-01"},
    "size": 10,
    "modificationTime": 1_700_000_000_000,
    "dataChange": True,
}
REMOVE: dict[str, Any] = {"path": "f1.parquet", "dataChange": True, "deletionTimestamp": 1}
TXN: dict[str, Any] = {"appId": "app", "version": 1}
DOMAIN: dict[str, Any] = {"domain": "mine", "configuration": "{}", "removed": False}
INFO: dict[str, Any] = {"timestamp": 1_700_000_000_000, "operation": "WRITE"}


def line(name: str, value: Any) -> bytes:
    return json.dumps({name: value}).encode() + b"\n"


def commit(*lines: bytes) -> bytes:
    return line("commitInfo", INFO) + b"".join(lines)


def log_path(root: Path, name: str) -> Path:
    return root / "_delta_log" / name


def commit_path(root: Path, version: int) -> Path:
    return log_path(root, f"{version:020}.json")


def make_table(root: Path) -> None:
    """Versions 0 to 3: three files, one of them with a deletion vector, a txn and a domain."""
    (root / "_delta_log").mkdir(parents=True)
    stats = json.dumps({"numRecords": 5, "minValues": {"id": 1}, "maxValues": {"id": 5}})
    vector = inline_descriptor([1, 3])
    files = [
        {**ADD, "path": "f1.parquet", "stats": stats},
        {**ADD, "path": "f2.parquet", "stats": stats},
        {
            **ADD,
            "path": "f3.parquet",
            "partitionValues": {"day": None},
            "deletionVector": {
                "storageType": vector.storage_type,
                "pathOrInlineDv": vector.path_or_inline_dv,
                "sizeInBytes": vector.size_in_bytes,
                "cardinality": vector.cardinality,
            },
        },
    ]
    commits = [
        [line("protocol", PROTOCOL), line("metaData", METADATA)],
        [line("add", files[0]), line("add", files[1])],
        [line("add", files[2]), line("txn", TXN)],
        [line("domainMetadata", DOMAIN)],
    ]
    for version, lines in enumerate(commits):
        commit_path(root, version).write_bytes(commit(*lines))


def look(table: Table) -> None:
    """Everything that reading a table can mean without its data files."""
    files = table.files()
    files.to_pylist(maps_as_pydicts="lossy")
    table.files("id > 3 AND day = DATE'2024-05-01'")
    table.history()
    table.detail().to_dict()
    repr(table)
    adds = list(table.snapshot.adds())
    assert len(adds) == len(files) == table.snapshot.num_files
    table.snapshot.tombstones()


@contextlib.contextmanager
def bounded(seconds: float = _SECONDS) -> Iterator[None]:
    """Fail instead of hanging."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"still at it after {seconds} s")

    if threading.current_thread() is not threading.main_thread():
        start = time.monotonic()
        yield
        assert time.monotonic() - start < seconds
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def outcome(reach: Callable[[], Table]) -> TwinlakeError | None:
    """The one error that looking gives, or None; any other exception ends the test."""
    with bounded():
        try:
            look(reach())
        except TwinlakeError as error:
            return error
    return None


def assert_says(error: TwinlakeError | None, code: Code | None, says: str) -> None:
    if code is None:
        assert error is None, f"should work, but: {error}"
        return
    assert error is not None, f"should fail with {code}"
    assert error.code == code, str(error)
    assert says in str(error), str(error)
    assert error.what
    assert error.fix
    assert len(str(error)) < 4_000, "an error is for people to read"


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    damage: Callable[[Path], object]
    code: Code | None
    says: str = ""
    check: Callable[[Table], object] = lambda _: None


# Damaged commits: what the next commit, version 4, holds


@dataclass(frozen=True, slots=True)
class Commit:
    name: str
    body: bytes
    code: Code | None = Code.LOG_CORRUPT
    says: str = ""
    files: int = 4


def _wrong_types() -> Iterator[Commit]:
    required: dict[str, tuple[dict[str, Any], dict[str, list[Any]]]] = {
        "add": (
            ADD,
            {
                "path": [None, 7, ["x"]],
                "partitionValues": [None, "x", ["day"], {"day": 7}],
                "size": [None, "10", 1.5, True, 2**63, -(2**63) - 1, 10**30],
                "modificationTime": [None, "now", 2**64],
                "dataChange": [None, "true", 1],
                "stats": [{"numRecords": 1}, 7],
                "tags": ["x", {"a": 1}],
                "deletionVector": ["x", {}, {"storageType": "u"}],
                "baseRowId": ["1", 2**63],
            },
        ),
        "remove": (
            REMOVE,
            {
                "path": [None, 7],
                "dataChange": [None, "x"],
                "deletionTimestamp": ["x", 2**63],
                "size": ["x", 2**63],
                "partitionValues": [7],
                "deletionVector": [[]],
            },
        ),
        "metaData": (
            METADATA,
            {
                "id": [7],
                "schemaString": [{"type": "struct"}, 7],
                "partitionColumns": ["day", [7]],
                "configuration": ["x", {"a": 1}, {"a": {}}],
                "format": ["parquet"],
                "createdTime": ["x", 2**63],
            },
        ),
        "protocol": (
            PROTOCOL,
            {
                "minReaderVersion": [None, "3", 1.5, 0, -1],
                "minWriterVersion": [None, "7"],
                "readerFeatures": ["x", [1], None],
                "writerFeatures": [{}, None],
            },
        ),
        "txn": (TXN, {"appId": [None, 7], "version": [None, "1", 2**63], "lastUpdated": ["x"]}),
        "domainMetadata": (
            DOMAIN,
            {"domain": [None, 7], "configuration": [None, {}], "removed": [None, "x"]},
        ),
    }
    for action, (valid, fields) in required.items():
        for field, values in fields.items():
            for number, value in enumerate(values):
                body = line(action, {**valid, field: value})
                yield Commit(f"{action}-{field}-wrong-{number}", commit(body))
        for whole in (7, "x", [], True):
            yield Commit(f"{action}-is-{type(whole).__name__}", commit(line(action, whole)))
        if action != "metaData":
            yield Commit(f"{action}-empty", commit(line(action, {})))


def _dv(**changes: Any) -> bytes:
    vector = {
        "storageType": "i",
        "pathOrInlineDv": inline_descriptor([0]).path_or_inline_dv,
        "sizeInBytes": inline_descriptor([0]).size_in_bytes,
        "cardinality": 1,
    }
    return commit(line("add", {**ADD, "deletionVector": {**vector, **changes}}))


def _nested(depth: int) -> str:
    head = '{"type":"struct","fields":[{"name":"a","nullable":true,"metadata":{},"type":'
    return head * depth + '"long"' + "}]}" * depth


def _metadata(**changes: Any) -> bytes:
    return commit(line("metaData", {**METADATA, **changes}))


def _protocol(**changes: Any) -> bytes:
    return commit(line("protocol", {**PROTOCOL, **changes}))


def _add(**changes: Any) -> bytes:
    return commit(line("add", {**ADD, **changes}))


_GOOD = line("add", ADD)

COMMITS = [
    # Text that is not lines of JSON objects
    Commit("truncated-line", commit(_GOOD[:-20]), says="Line 2"),
    Commit("truncated-in-the-middle", commit(_GOOD[:-20] + b"\n" + _GOOD), says="Line 2"),
    Commit("not-an-object", commit(b"[1]\n"), says="object"),
    Commit("a-number", commit(b"7\n"), says="object"),
    Commit("text", b"this is not a commit\n", says="Line 1"),
    Commit("two-objects-on-a-line", commit(_GOOD.strip() + _GOOD), says="Line 2"),
    Commit("invalid-utf8", commit(_GOOD.replace(b"next", b"ne\xff\xfet"))),
    Commit("utf16", commit(_GOOD).decode().encode("utf-16")),
    Commit("byte-order-mark", b"\xef\xbb\xbf" + commit(_GOOD), says="Line 1"),
    Commit("nul-bytes", commit(b"\x00" * 64 + b"\n")),
    Commit("nan", commit(b'{"add":{"path":"x","size":NaN}}\n')),
    Commit("infinity", commit(b'{"txn":{"appId":"a","version":Infinity}}\n')),
    Commit("lone-surrogate", commit(_GOOD.replace(b"next", b"\\ud800"))),
    Commit("single-quotes", commit(b"{'add':{}}\n")),
    Commit("deep-in-known", commit(b'{"add":' + b"[" * 10_000 + b"]" * 10_000 + b"}\n")),
    Commit("deep-in-unknown", commit(b'{"new":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")),
    Commit("deep-not-closed", commit(b'{"txn":' + b'{"a":' * 100_000)),
    # Text that is unusual and right
    Commit("windows-line-ends", commit(_GOOD).replace(b"\n", b"\r\n"), code=None),
    Commit("blank-lines", b"\n\n  \n" + commit(_GOOD) + b"\n \n", code=None),
    Commit("no-last-line-break", commit(_GOOD).rstrip(), code=None),
    Commit("empty", b"", code=None, files=3),
    Commit("only-line-breaks", b"\n\n\n", code=None, files=3),
    Commit("null-beside", commit(b'{"remove":null,' + _GOOD[1:]), code=None),
    Commit("unknown-action", commit(line("future", {"a": [1]}), _GOOD), code=None),
    Commit("unknown-field", _add(colour="red", nested={"a": [1]}), code=None),
    Commit("empty-object", commit(b"{}\n", _GOOD), code=None),
    Commit("duplicate-key-last-counts", commit(b'{"add":7,' + _GOOD[1:]), says="Line 2"),
    Commit(
        "duplicate-field-last-counts",
        commit(_GOOD.replace(b'"size": 10', b'"size": 1, "size": 10')),
        code=None,
    ),
    Commit("huge-line", _add(tags={"t": "x" * 20_000_000}), code=None),
    Commit("odd-commit-info", line("commitInfo", {"timestamp": "x", "a": 1}) + _GOOD, code=None),
    Commit("commit-info-is-text", line("commitInfo", "x") + _GOOD),
    Commit("no-commit-info", _GOOD, code=None),
    Commit("commit-info-big-number", line("commitInfo", {"timestamp": 10**30}), None, files=3),
    # A line with two actions is read as Delta reads it: the file counts, the rest does not
    Commit(
        "add-and-metadata-on-a-line",
        commit(
            json.dumps({"metaData": {**METADATA, "id": "other"}, "add": ADD}).encode() + b"\n"
        ),
        code=None,
    ),
    Commit(
        "add-and-remove-on-a-line",
        commit(json.dumps({"remove": REMOVE, "add": ADD}).encode() + b"\n"),
        code=None,
    ),
    # Actions that contradict each other
    Commit("metadata-twice", commit(2 * line("metaData", METADATA)), says="metaData"),
    Commit("protocol-twice", commit(2 * line("protocol", PROTOCOL)), says="protocol"),
    Commit("add-twice", commit(2 * _GOOD), says="next.parquet"),
    Commit("remove-twice", commit(2 * line("remove", REMOVE)), says="f1.parquet"),
    Commit(
        "add-twice-with-other-vector",
        commit(_GOOD, _dv().split(b"\n")[1] + b"\n"),
        says="next.parquet",
    ),
    Commit("remove-of-nothing", commit(line("remove", {**REMOVE, "path": "x"})), None, files=3),
    Commit("add-of-a-live-file", _add(path="f1.parquet"), None, files=3),
    # Numbers at the edge
    Commit("largest-size", _add(size=2**63 - 1), code=None),
    Commit("negative-size", _add(size=-1), code=None),
    Commit("vector-offset-beyond-int32", _dv(offset=2**31)),
    Commit("vector-size-beyond-int32", _dv(sizeInBytes=2**31)),
    Commit("vector-cardinality-beyond-int64", _dv(cardinality=2**63)),
    # Statistics are hints: what makes no sense is left out
    Commit("stats-not-json", _add(stats="{nonsense"), code=None),
    Commit("stats-not-an-object", _add(stats="[1]"), code=None),
    Commit("stats-empty", _add(stats=""), code=None),
    Commit("stats-line-break", _add(stats='{"numRecords":\n1}'), code=None),
    Commit("stats-many", _add(stats='{"numRecords":1}\n{"numRecords":2}'), code=None),
    Commit("stats-deep", _add(stats='{"minValues":' + "[" * 5_000 + "]" * 5_000 + "}"), code=None),
    Commit("stats-wrong-types", _add(stats='{"numRecords":"x","minValues":{"id":"y"}}'), None),
    Commit("stats-huge-number", _add(stats=f'{{"minValues":{{"id":{10**40}}}}}'), code=None),
    Commit("stats-nan", _add(stats='{"minValues":{"id":"NaN"}}'), code=None),
    Commit("stats-surrogate", _add(stats='{"minValues":{"name":"\\ud800"}}'), code=None),
    Commit("stats-records-huge", _add(stats=f'{{"numRecords":{10**30}}}'), code=None),
    Commit("stats-values-not-object", _add(stats='{"minValues":[1]}'), code=None),
    # Schema and partitioning
    Commit("schema-not-json", _metadata(schemaString="{nonsense"), Code.SCHEMA_INVALID, "JSON"),
    Commit("schema-empty-text", _metadata(schemaString=""), Code.SCHEMA_INVALID),
    Commit("schema-not-an-object", _metadata(schemaString="[]"), Code.SCHEMA_INVALID),
    Commit("schema-not-a-struct", _metadata(schemaString='"long"'), Code.SCHEMA_INVALID),
    Commit(
        "schema-unknown-type",
        _metadata(schemaString=json.dumps(SCHEMA).replace('"long"', '"longish"')),
        Code.SCHEMA_INVALID,
        "longish",
    ),
    Commit(
        "schema-no-fields", _metadata(schemaString='{"type":"struct"}'), Code.SCHEMA_INVALID
    ),
    Commit("schema-deep", _metadata(schemaString=_nested(10_000)), Code.SCHEMA_INVALID, "deep"),
    Commit("schema-somewhat-deep", _metadata(schemaString=_nested(200)), Code.SCHEMA_INVALID),
    Commit(
        "partition-column-missing",
        _metadata(partitionColumns=["day", "nowhere"]),
        Code.LOG_CORRUPT,
        "nowhere",
    ),
    Commit(
        "partition-value-nonsense",
        _add(partitionValues={"day": "the first of May"}),
        Code.LOG_CORRUPT,
        "the first of May",
    ),
    Commit("partition-value-missing", _add(partitionValues={}), code=None),
    Commit("partition-value-of-nothing", _add(partitionValues={"x": "y"}), code=None),
    # Properties that are already there
    Commit("property-of-10-mb", _metadata(configuration={"k": "x" * 10_000_000}), None, files=3),
    Commit(
        "property-wrong-values",
        _metadata(
            configuration={
                "delta.checkpointInterval": "often",
                "delta.logRetentionDuration": "a while",
                "delta.appendOnly": "perhaps",
                "delta.inCommitTimestampEnablementVersion": "x",
                "delta.enableDeletionVectors": "",
                "delta.columnMapping.maxColumnId": "many",
            }
        ),
        code=None,
        files=3,
    ),
    Commit(
        "property-unknown-mapping",
        _metadata(configuration={"delta.columnMapping.mode": "magic"}),
        Code.PROPERTY_INVALID,
        "magic",
    ),
    Commit(
        "timestamps-without-timestamps",
        _metadata(
            configuration={
                "delta.enableInCommitTimestamps": "true",
                "delta.inCommitTimestampEnablementVersion": "4",
                "delta.inCommitTimestampEnablementTimestamp": "5",
            }
        ),
        Code.LOG_CORRUPT,
        "in-commit timestamp",
    ),
    Commit("configuration-null-value", _metadata(configuration={"a": None}), None, files=3),
    # Paths
    Commit("path-up", _add(path="../next.parquet"), Code.PATH_UNSAFE, "../next.parquet"),
    Commit("path-up-encoded", _add(path="%2e%2E/next.parquet"), Code.PATH_UNSAFE, "%2e%2E"),
    Commit("path-up-half-encoded", _add(path="a/.%2e/../x"), Code.PATH_UNSAFE, "leave"),
    Commit("path-up-slash-encoded", _add(path="a%2F..%2f..%2fx"), Code.PATH_UNSAFE, "leave"),
    Commit("path-up-and-back", _add(path="a/../../t/x.parquet"), Code.PATH_UNSAFE, "leave"),
    Commit("path-only-up", _add(path=".."), Code.PATH_UNSAFE),
    Commit("path-absolute-up", _add(path="file:///data/../etc/passwd"), Code.PATH_UNSAFE),
    Commit("path-empty", _add(path=""), Code.PATH_UNSAFE, "empty"),
    Commit("path-nul", _add(path="a\x00b"), Code.PATH_UNSAFE, "NUL"),
    Commit("path-nul-encoded", _add(path="a%00b"), Code.PATH_UNSAFE, "NUL"),
    Commit("path-inside-with-dots", _add(path="a/../x..y/%2e%2e%2e.parquet"), code=None),
    Commit("path-encoded-twice", _add(path="%252e%252e/x.parquet"), code=None),
    Commit("path-absolute-file", _add(path="file:///elsewhere/x.parquet"), code=None),
    Commit("path-absolute-s3", _add(path="s3://bucket/x.parquet"), code=None),
    Commit("path-absolute-bare", _add(path="/elsewhere/x.parquet"), code=None),
    Commit("path-odd", _add(path="day=1%20May/ü 100%25#?.parquet"), code=None),
    Commit(
        "removed-path-up", commit(line("remove", {**REMOVE, "path": "../x"})), None, files=3
    ),
    # Protocols
    Commit(
        "unknown-reader-feature",
        _protocol(
            readerFeatures=["timeTravelBackwards"], writerFeatures=["timeTravelBackwards"]
        ),
        Code.FEATURE_READ,
        "timeTravelBackwards",
    ),
    Commit(
        "unknown-writer-feature", _protocol(writerFeatures=["deletionVectors", "v2Checkpoint", "new"]),
        None, files=3,
    ),
    Commit(
        "catalog-managed",
        _protocol(
            readerFeatures=["catalogManaged"],
            writerFeatures=["catalogManaged", "inCommitTimestamp"],
        ),
        Code.FEATURE_READ,
        "catalogManaged",
    ),
    Commit("reader-version-4", _protocol(minReaderVersion=4), Code.PROTOCOL_VERSION, "4"),
    Commit("reader-version-huge", _protocol(minReaderVersion=2**40), Code.PROTOCOL_VERSION),
    Commit("writer-version-9", _protocol(minWriterVersion=9), code=None, files=3),
    # Domains
    Commit(
        "clustering-not-json",
        commit(line("domainMetadata", {**DOMAIN, "domain": "delta.clustering"})),
        None,
        files=3,
    ),
    *(
        Commit(
            f"clustering-{number}",
            commit(
                line(
                    "domainMetadata",
                    {"domain": "delta.clustering", "configuration": text, "removed": False},
                )
            ),
            code=None,
            files=3,
        )
        for number, text in enumerate(
            [
                "nonsense",
                "[]",
                '{"clusteringColumns":7}',
                '{"clusteringColumns":[7]}',
                '{"clusteringColumns":[[7,null]]}',
                '{"clusteringColumns":[[]]}',
                '{"clusteringColumns":["nowhere"]}',
                "[" * 5_000,
            ]
        )
    ),
    *_wrong_types(),
]  # fmt: skip


@pytest.mark.parametrize("case", COMMITS, ids=lambda case: case.name)
def test_a_damaged_commit(tmp_path: Path, case: Commit) -> None:
    make_table(tmp_path)
    before = Table.open(tmp_path)
    warm = tmp_path.with_name(f"{tmp_path.name}-warm")
    shutil.copytree(tmp_path, warm)
    older = Table.open(warm)
    look(older)
    for root in (tmp_path, warm):
        commit_path(root, LAST + 1).write_bytes(case.body)

    refreshed = outcome(older.refresh)
    assert_says(refreshed, case.code, case.says)
    for reach in (
        lambda: Table.open(warm, version=LAST + 1),
        lambda: Table.open(tmp_path),
        lambda: before.at(LAST + 1),
    ):
        error = outcome(reach)
        assert_says(error, case.code, case.says)
        # However a version is reached, the answer is the same.
        assert (error and error.what) == (refreshed and refreshed.what).replace(  # type: ignore[union-attr]
            str(warm), str(tmp_path)
        ) if error and refreshed else error is refreshed
    if case.code is None:
        assert len(Table.open(tmp_path).files()) == case.files
        assert len(older.refresh().files()) == case.files

    # The version before is as it was.
    for table in (Table.open(tmp_path, version=LAST), older, before):
        look(table)
        assert (table.version, len(table.files())) == (LAST, 3)
    # So is the table, once the damage is mended.
    commit_path(tmp_path, LAST + 1).write_bytes(commit(_GOOD))
    mended = Table.open(tmp_path)
    look(mended)
    assert (mended.version, len(mended.files())) == (LAST + 1, 4)
