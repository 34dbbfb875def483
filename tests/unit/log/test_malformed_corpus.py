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
import os
import shutil
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

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


def replace_file(path: Path, data: bytes) -> None:
    """Another file under the name, later: caches know a file by its time."""
    then = path.stat().st_mtime + 10 if path.exists() else time.time()
    path.write_bytes(data)
    os.utime(path, (then, then))


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
        wholes: list[Any] = [7, "x", [], True]
        for whole in wholes:
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
    # Nothing at all, where a commit holds at least one action
    Commit("empty", b"", says="holds no action"),
    Commit("only-line-breaks", b"\n\n\n", says="holds no action"),
    Commit("only-white-space", b" \n\t\n\r\n", says="holds no action"),
    Commit("only-empty-objects", b"{}\n{}\n", says="holds no action"),
    Commit("only-nulls", b'{"add":null}\n', says="holds no action"),
    # Text that is unusual and right
    Commit("only-commit-info", commit(), code=None, files=3),
    Commit("only-unknown-action", line("future", {"a": 1}), code=None, files=3),
    Commit("windows-line-ends", commit(_GOOD).replace(b"\n", b"\r\n"), code=None),
    Commit("blank-lines", b"\n\n  \n" + commit(_GOOD) + b"\n \n", code=None),
    Commit("no-last-line-break", commit(_GOOD).rstrip(), code=None),
    Commit("null-beside", commit(b'{"remove":null,' + _GOOD[1:]), code=None),
    Commit("unknown-action", commit(line("future", {"a": [1]}), _GOOD), code=None),
    Commit("unknown-field", _add(colour="red", nested={"a": [1]}), code=None),
    Commit("empty-object", commit(b"{}\n", _GOOD), code=None),
    Commit("duplicate-key-last-counts", commit(b'{"add":7,' + _GOOD[1:]), code=None),
    Commit(
        "duplicate-field-last-counts",
        commit(_GOOD.replace(b'"size": 10', b'"size": 1, "size": 10')),
        code=None,
    ),
    Commit("huge-line", _add(tags={"t": "x" * 20_000_000}), code=None),
    Commit("odd-commit-info", line("commitInfo", {"timestamp": "x", "a": 1}) + _GOOD, code=None),
    Commit("commit-info-is-text", line("commitInfo", "x") + _GOOD),
    Commit("no-commit-info", _GOOD, code=None),
    Commit("cdc-wrong", commit(line("cdc", {"path": 7}))),
    Commit("sidecar-wrong", commit(line("sidecar", {"path": 7}))),
    Commit("spread-over-lines", commit(_GOOD.replace(b", ", b",\n")), says="Line 2"),
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
    Commit(
        "remove-of-nothing-sized",
        commit(line("remove", {**REMOVE, "path": "x", "size": 10})),
        code=None,
        files=3,
    ),
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
        Code.SCHEMA_INVALID,
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
        "unknown-writer-feature",
        _protocol(writerFeatures=["deletionVectors", "v2Checkpoint", "new"]),
        code=None,
        files=3,
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
    Commit("reader-version-huge", _protocol(minReaderVersion=2**31 - 1), Code.PROTOCOL_VERSION),
    Commit("reader-version-beyond-int32", _protocol(minReaderVersion=2**31), says="Line 2"),
    Commit("writer-version-9", _protocol(minWriterVersion=9), code=None, files=3),
    # Domains; files can be read all the same, but the clustering is part of the detail
    *(
        Commit(
            f"clustering-{number}",
            commit(
                line(
                    "domainMetadata",
                    {"domain": "delta.clustering", "configuration": text, "removed": False},
                )
            ),
            Code.LOG_CORRUPT,
            "delta.clustering",
        )
        for number, text in enumerate(
            [
                "",
                "{}",
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
        assert (error and error.what) == (refreshed and refreshed.what)
    if case.code is None:
        assert len(Table.open(tmp_path).files()) == case.files
        assert len(older.refresh().files()) == case.files

    # The version before is as it was.
    for table in (Table.open(tmp_path, version=LAST), older, before):
        look(table)
        assert (table.version, len(table.files())) == (LAST, 3)
    # So is the table, once the damage is mended.
    replace_file(commit_path(tmp_path, LAST + 1), commit(_GOOD))
    mended = Table.open(tmp_path)
    look(mended)
    assert (mended.version, len(mended.files())) == (LAST + 1, 4)


# Damage to other files, and to whole logs


def _delete(*versions: int) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        for version in versions:
            commit_path(root, version).unlink()

    return damage


def _write(name: str, data: bytes) -> Callable[[Path], object]:
    return lambda root: log_path(root, name).write_bytes(data)


def _rewrite(version: int, *lines: bytes) -> Callable[[Path], object]:
    return lambda root: commit_path(root, version).write_bytes(commit(*lines))


def _folder(name: str) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        log_path(root, name).mkdir(parents=True)
        (log_path(root, name) / f"{7:020}.json").write_bytes(b"nonsense")

    return damage


def _checkpointed(
    damage: Callable[[Path], object],
    *,
    kind: CheckpointKind = CheckpointKind.CLASSIC,
    parts: int | None = None,
    sidecars: int = 0,
    bare: bool = True,
) -> Callable[[Path], None]:
    """Damage a table that has a checkpoint of its last version; ``bare`` deletes the commits."""

    def change(root: Path) -> None:
        if kind is CheckpointKind.MULTIPART:
            body = {
                name: [x for x in v if x != "v2Checkpoint"] if isinstance(v, list) else v
                for name, v in PROTOCOL.items()
            }
            commit_path(root, 0).write_bytes(
                commit(line("protocol", body), line("metaData", METADATA))
            )
        snapshot = load_snapshot(open_store(str(root)))
        write_checkpoint(snapshot, kind=kind, parts=parts, sidecars=sidecars)
        if bare:
            for version in range(LAST):
                commit_path(root, version).unlink()
        damage(root)

    return change


def _checkpoint_files(root: Path) -> list[Path]:
    return sorted(p for p in (root / "_delta_log").iterdir() if ".checkpoint" in p.name)


def _checkpoint_bytes(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        path = _checkpoint_files(root)[0]
        path.write_bytes(change(path.read_bytes()))

    return damage


def _checkpoint_table(change: Callable[[pa.Table], pa.Table]) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        path = _checkpoint_files(root)[0]
        pq.write_table(change(pq.read_table(path)), path)

    return damage


def _drop_part(root: Path) -> None:
    _checkpoint_files(root)[-1].unlink()


def _drop_sidecar(root: Path) -> None:
    sorted((root / "_delta_log" / "_sidecars").iterdir())[0].unlink()


def _cut_sidecar(root: Path) -> None:
    path = sorted((root / "_delta_log" / "_sidecars").iterdir())[0]
    path.write_bytes(path.read_bytes()[:-9])


def _sidecar_path(path: str) -> Callable[[Path], None]:
    def damage(root: Path) -> None:
        file = _checkpoint_files(root)[0]
        lines = [json.loads(text) for text in file.read_bytes().splitlines()]
        for item in lines:
            if "sidecar" in item:
                item["sidecar"]["path"] = path
        file.write_bytes(b"".join(json.dumps(item).encode() + b"\n" for item in lines))

    return damage


def _without_rows(column: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.filter(table[column].is_null())


def _replaced(column: str, values: pa.Array) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(column)
        return table.set_column(index, column, values.take(pa.array([0] * len(table))))

    return change


def _null_paths(table: pa.Table) -> pa.Table:
    return _with_paths(table, lambda _: None)


def _moved_up(table: pa.Table) -> pa.Table:
    return _with_paths(table, "../{}".format)


def _with_paths(table: pa.Table, change: Callable[[str], str | None]) -> pa.Table:
    rows = table["add"].to_pylist(maps_as_pydicts="lossy")
    rows = [row and {**row, "path": change(row["path"])} for row in rows]
    kind = table.schema.field("add").type
    index = table.schema.get_field_index("add")
    return table.set_column(index, "add", pa.array(rows, kind))


def _with_actions(name: str) -> Callable[[pa.Table], pa.Table]:
    """One more action for the first file of the checkpoint."""

    def change(table: pa.Table) -> pa.Table:
        path = min(row["path"] for row in table["add"].to_pylist() if row)
        row = {"path": path, "size": 1, "modificationTime": 1, "dataChange": False}
        more = pa.Table.from_pylist([{name: row}], schema=table.schema)
        return pa.concat_tables([table, more])

    return change


def _assert_files(count: int) -> Callable[[Table], None]:
    def check(table: Table) -> None:
        assert len(table.files()) == count

    return check


def _assert_bad_checksum(table: Table) -> None:
    checksum = read_checksum(table.snapshot.store, table.version)
    assert checksum is not None
    with pytest.raises(TwinlakeError) as caught:
        check_checksum(table.snapshot, checksum)
    assert caught.value.code == Code.CHECKSUM_MISMATCH


def _assert_no_checksum(table: Table) -> None:
    assert read_checksum(table.snapshot.store, table.version) is None


def _crc(**changes: Any) -> bytes:
    body = {
        "tableSizeBytes": 30,
        "numFiles": 3,
        "numMetadata": 1,
        "numProtocol": 1,
        "metadata": METADATA,
        "protocol": PROTOCOL,
    }
    return json.dumps({**body, **changes}).encode()


_CRC = f"{LAST:020}.crc"
_CHECKPOINT = Code.CHECKPOINT_CORRUPT
_LOST = "cannot be read"
_HINTS: dict[str, bytes] = {
    "empty": b"",
    "text": b"nonsense",
    "truncated": b'{"version":',
    "list": b"[]",
    "number": b"3",
    "null": b"null",
    "no-version": b"{}",
    "text-version": b'{"version":"3"}',
    "negative": b'{"version":-1}',
    "boolean": b'{"version":true}',
    "fraction": b'{"version":3.5}',
    "ahead": b'{"version":99,"size":1}',
    "far-ahead": b'{"version":99999999999999999999999,"size":1}',
    "no-such-checkpoint": b'{"version":2,"size":1}',
    "wrong-checksum": b'{"version":3,"size":1,"checksum":"00"}',
    "checksum-not-text": b'{"version":3,"size":1,"checksum":7}',
    "invalid-utf8": b'{"version":3,"x":"\xff"}',
    "deep": b'{"version":3,"checksum":"x","a":' + b"[" * 500 + b"]" * 500 + b"}",
    "deeper": b'{"version":3,"checksum":"x","a":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "parts": b'{"version":3,"size":1,"parts":10000000000}',
    "huge": b'{"version":3,"x":"' + b"x" * 5_000_000 + b'"}',
}

CASES = [
    # Whole logs
    Case("no-log", lambda root: shutil.rmtree(root / "_delta_log"), Code.TABLE_NOT_FOUND),
    Case("empty-log", _delete(0, 1, 2, 3), Code.TABLE_NOT_FOUND),
    Case("gap", _delete(2), Code.LOG_CORRUPT, "gap"),
    Case("no-version-0", _delete(0), Code.LOG_CORRUPT, "00000000000000000000.json"),
    Case("last-missing", _delete(3), None),
    Case("no-protocol", _rewrite(0, line("metaData", METADATA)), Code.LOG_CORRUPT, "protocol"),
    Case("no-metadata", _rewrite(0, line("protocol", PROTOCOL)), Code.LOG_CORRUPT, "metaData"),
    Case("neither", _rewrite(0), Code.LOG_CORRUPT, "no protocol and no metaData"),
    Case("empty-version-0", _write(f"{0:020}.json", b""), Code.LOG_CORRUPT, "holds no action"),
    # Names
    Case("version-far-ahead", _write(f"{10**18:020}.json", _GOOD), Code.LOG_CORRUPT, "gap"),
    Case("version-beyond-int64", _write(f"{10**19:020}.json", _GOOD), None, check=_assert_files(3)),
    Case("version-all-nines", _write(f"{10**20 - 1}.json", _GOOD), None, check=_assert_files(3)),
    Case("version-21-digits", _write(f"{10**20}.json", _GOOD), None, check=_assert_files(3)),
    Case("version-short", _write("4.json", _GOOD), None, check=_assert_files(3)),
    Case("version-negative", _write(f"-{4:019}.json", _GOOD), None, check=_assert_files(3)),
    Case("foreign-files", _write("notes.txt", b"hello"), None, check=_assert_files(3)),
    Case("temporary", _write(f".{4:020}.json.1.tmp", b"{"), None, check=_assert_files(3)),
    Case("spark-temporary", _write(f".{4:020}.json.crc", b"{"), None, check=_assert_files(3)),
    Case("commit-numbered", _write(f"{4:020}.json#1", b"{"), None, check=_assert_files(3)),
    Case("upper-case", _write(f"{4:020}.JSON", b"{"), None, check=_assert_files(3)),
    Case("arabic-digits", _write("\u0660" * 19 + "4.json", b"{"), None, check=_assert_files(3)),
    Case("folder-like-a-commit", _folder(f"{4:020}.json"), None, check=_assert_files(3)),
    Case(
        "folder-like-a-checkpoint",
        _folder(f"{3:020}.checkpoint.parquet"),
        None,
        check=_assert_files(3),
    ),
    Case("folder-like-the-hint", _folder("_last_checkpoint"), None, check=_assert_files(3)),
    Case("folder-like-a-checksum", _folder(_CRC), None, check=_assert_files(3)),
    Case("commit-in-a-folder", _folder("sub"), None, check=_assert_files(3)),
    Case(
        "a-hundred-billion-parts",
        _write(f"{3:020}.checkpoint.{1:010}.{10**10 - 1:010}.parquet", b""),
        None,
        check=_assert_files(3),
    ),
    Case(
        "no-parts-at-all",
        _write(f"{3:020}.checkpoint.{0:010}.{0:010}.parquet", b""),
        None,
        check=_assert_files(3),
    ),
    # Compactions are shortcuts: a bad one is not taken
    Case(
        "compaction-nonsense",
        _write(f"{1:020}.{2:020}.compacted.json", b"nonsense"),
        None,
        check=_assert_files(3),
    ),
    Case(
        "compaction-backwards",
        _write(f"{2:020}.{1:020}.compacted.json", _GOOD),
        None,
        check=_assert_files(3),
    ),
    Case(
        "compaction-too-long",
        _write(f"{1:020}.{10**18:020}.compacted.json", _GOOD),
        None,
        check=_assert_files(3),
    ),
    # The hint is only a hint
    *(
        Case(f"hint-{name}", _write("_last_checkpoint", text), None, check=_assert_files(3))
        for name, text in _HINTS.items()
    ),
    *(
        Case(
            f"hint-{name}-over-a-checkpoint",
            _checkpointed(_write("_last_checkpoint", text)),
            None,
            check=_assert_files(3),
        )
        for name, text in _HINTS.items()
    ),
    # Checkpoints whose commits are gone
    Case("checkpoint-fine", _checkpointed(lambda _: None), None, check=_assert_files(3)),
    Case("checkpoint-empty", _checkpointed(_checkpoint_bytes(lambda _: b"")), _CHECKPOINT, _LOST),
    Case(
        "checkpoint-text", _checkpointed(_checkpoint_bytes(lambda _: b"text")), _CHECKPOINT, _LOST
    ),
    Case(
        "checkpoint-truncated",
        _checkpointed(_checkpoint_bytes(lambda data: data[: len(data) // 2])),
        _CHECKPOINT,
        _LOST,
    ),
    Case(
        "checkpoint-headless",
        _checkpointed(_checkpoint_bytes(lambda data: data[100:])),
        _CHECKPOINT,
        _LOST,
    ),
    Case(
        "checkpoint-no-protocol",
        _checkpointed(_checkpoint_table(_without_rows("protocol"))),
        _CHECKPOINT,
        "no protocol",
    ),
    Case(
        "checkpoint-no-metadata",
        _checkpointed(_checkpoint_table(_without_rows("metaData"))),
        _CHECKPOINT,
        "no metaData",
    ),
    Case(
        "checkpoint-no-such-column",
        _checkpointed(_checkpoint_table(lambda table: table.drop_columns(["protocol"]))),
        _CHECKPOINT,
        "no protocol",
    ),
    Case(
        "checkpoint-other-table",
        _checkpointed(_checkpoint_table(lambda _: pa.table({"a": [1]}))),
        _CHECKPOINT,
        "no protocol",
    ),
    *(
        Case(
            f"checkpoint-{column}-is-{name}",
            _checkpointed(_checkpoint_table(_replaced(column, values))),
            _CHECKPOINT,
            _LOST,
        )
        for column in ("add", "remove", "protocol", "metaData", "txn", "domainMetadata")
        for name, values in {
            "number": pa.array([7]),
            "text": pa.array(["x"]),
            "list": pa.array([["x"]]),
            "other-struct": pa.array([{"minReaderVersion": "x", "schemaString": 7, "path": 7.5}]),
        }.items()
    ),
    Case(
        "checkpoint-sizes-are-text",
        _checkpointed(
            _checkpoint_table(
                _replaced(
                    "add", pa.array([{"path": "x", "size": "big", "modificationTime": "now"}])
                )
            )
        ),
        _CHECKPOINT,
        _LOST,
    ),
    Case("checkpoint-null-paths", _checkpointed(_checkpoint_table(_null_paths)), _CHECKPOINT),
    Case(
        "checkpoint-path-up",
        _checkpointed(_checkpoint_table(_moved_up)),
        Code.PATH_UNSAFE,
        "../",
    ),
    Case(
        "checkpoint-adds-twice",
        _checkpointed(_checkpoint_table(_with_actions("add"))),
        _CHECKPOINT,
        "more than one action: f1.parquet",
    ),
    Case(
        "checkpoint-adds-and-removes",
        _checkpointed(_checkpoint_table(_with_actions("remove"))),
        _CHECKPOINT,
        "more than one action: f1.parquet",
    ),
    Case(
        "checkpoint-adds-twice-beside-commits",
        _checkpointed(_checkpoint_table(_with_actions("add")), bare=False),
        None,
        check=_assert_files(3),
    ),
    Case(
        "checkpoint-adds-and-removes-beside-commits",
        _checkpointed(_checkpoint_table(_with_actions("remove")), bare=False),
        None,
        check=_assert_files(3),
    ),
    Case(
        "checkpoint-part-missing",
        _checkpointed(_drop_part, kind=CheckpointKind.MULTIPART, parts=2),
        Code.LOG_CORRUPT,
        "gap",
    ),
    Case(
        "checkpoint-sidecar-missing",
        _checkpointed(_drop_sidecar, kind=CheckpointKind.V2_PARQUET, sidecars=1),
        _CHECKPOINT,
        "sidecar",
    ),
    Case(
        "checkpoint-sidecar-truncated",
        _checkpointed(_cut_sidecar, kind=CheckpointKind.V2_PARQUET, sidecars=1),
        _CHECKPOINT,
        "_sidecars",
    ),
    Case(
        "checkpoint-json-nonsense",
        _checkpointed(_checkpoint_bytes(lambda _: b"nonsense"), kind=CheckpointKind.V2_JSON),
        _CHECKPOINT,
        _LOST,
    ),
    Case(
        "checkpoint-json-truncated",
        _checkpointed(
            _checkpoint_bytes(lambda data: data[: len(data) // 2]), kind=CheckpointKind.V2_JSON
        ),
        _CHECKPOINT,
        _LOST,
    ),
    *(
        Case(
            f"sidecar-path-{name}",
            _checkpointed(_sidecar_path(path), kind=CheckpointKind.V2_JSON, sidecars=1),
            code,
        )
        for name, path, code in (
            ("up", "../../x.parquet", Code.PATH_UNSAFE),
            ("up-encoded", "%2e%2e/x.parquet", Code.PATH_UNSAFE),
            ("absolute", "/etc/passwd", Code.PATH_UNSAFE),
            ("url", "s3://elsewhere/x.parquet", Code.PATH_UNSAFE),
            ("folder", "..", Code.PATH_UNSAFE),
            ("empty", "", Code.PATH_UNSAFE),
            ("nul", "a%00b", Code.PATH_UNSAFE),
            ("not-there", "x.parquet", _CHECKPOINT),
        )
    ),
    # The same with the commits still there: the table is read from them
    *(
        Case(
            f"{name}-with-commits", _checkpointed(damage, bare=False), None, check=_assert_files(3)
        )
        for name, damage in (
            ("checkpoint-empty", _checkpoint_bytes(lambda _: b"")),
            ("checkpoint-text", _checkpoint_bytes(lambda _: b"text")),
            ("checkpoint-truncated", _checkpoint_bytes(lambda data: data[:-9])),
            ("checkpoint-no-protocol", _checkpoint_table(_without_rows("protocol"))),
            ("checkpoint-add-is-text", _checkpoint_table(_replaced("add", pa.array(["x"])))),
            ("checkpoint-null-paths", _checkpoint_table(_null_paths)),
        )
    ),
    Case(
        "part-missing-with-commits",
        _checkpointed(_drop_part, kind=CheckpointKind.MULTIPART, parts=2, bare=False),
        None,
        check=_assert_files(3),
    ),
    Case(
        "sidecar-missing-with-commits",
        _checkpointed(_drop_sidecar, kind=CheckpointKind.V2_PARQUET, sidecars=1, bare=False),
        None,
        check=_assert_files(3),
    ),
    Case(
        "sidecar-truncated-with-commits",
        _checkpointed(_cut_sidecar, kind=CheckpointKind.V2_PARQUET, sidecars=1, bare=False),
        None,
        check=_assert_files(3),
    ),
    # Checksum files are optional: a bad one keeps nobody out
    *(
        Case(f"checksum-{name}", _write(_CRC, text), None, check=check)
        for name, text, check in (
            ("empty", b"", _assert_no_checksum),
            ("text", b"nonsense", _assert_no_checksum),
            ("list", b"[]", _assert_no_checksum),
            ("no-metadata", b'{"tableSizeBytes":1,"numFiles":1}', _assert_no_checksum),
            ("wrong-types", _crc(numFiles="many"), _assert_no_checksum),
            ("wrong-protocol", _crc(protocol={"minReaderVersion": "x"}), _assert_no_checksum),
            ("wrong-domains", _crc(domainMetadata=[7]), _assert_no_checksum),
            ("deep", b"[" * 50_000, _assert_no_checksum),
            ("invalid-utf8", b'{"\xff":1}', _assert_no_checksum),
            ("wrong-count", _crc(numFiles=4), _assert_bad_checksum),
            ("negative", _crc(numFiles=-4, tableSizeBytes=-1), _assert_bad_checksum),
            ("huge", _crc(tableSizeBytes=10**30), _assert_bad_checksum),
            ("other-table", _crc(metadata={**METADATA, "id": "x"}), _assert_bad_checksum),
        )
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_damaged_log(tmp_path: Path, case: Case) -> None:
    root, pristine = tmp_path / "table", tmp_path / "pristine"
    make_table(pristine)
    shutil.copytree(pristine, root)
    case.damage(root)
    error = outcome(lambda: Table.open(root))
    assert_says(error, case.code, case.says)
    if error is None:
        case.check(Table.open(root))

    # Mended, the table is there again, in the same process.
    shutil.rmtree(root)
    shutil.copytree(pristine, root)
    for path in (root / "_delta_log").iterdir():
        replace_file(path, path.read_bytes())
    mended = Table.open(root)
    look(mended)
    assert (mended.version, len(mended.files())) == (LAST, 3)


# Deletion vectors


def _stored_vector(root: Path) -> tuple[Path, DeletionVectorDescriptor]:
    import uuid

    content, (descriptor,) = write_dv_file([[1, 2, 9]], uuid.UUID(_ID))
    path = root / f"deletion_vector_{_ID}.bin"
    path.write_bytes(content)
    return path, descriptor


def _flip(position: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        changed[position] ^= 0x01
        return bytes(changed)

    return change


VECTOR_FILES: dict[str, Callable[[bytes], bytes]] = {
    "checksum": _flip(-1),
    "payload": _flip(-6),
    "size": _flip(4),
    "magic": _flip(5),
    "format": _flip(0),
    "truncated": lambda data: data[:-3],
    "empty": lambda _: b"",
    "one-byte": lambda data: data[:1],
}


@pytest.mark.parametrize("name", VECTOR_FILES)
def test_a_damaged_vector_file(tmp_path: Path, name: str) -> None:
    path, descriptor = _stored_vector(tmp_path)
    store = open_store(str(tmp_path))
    assert list(read_dv(store, descriptor)) == [1, 2, 9]
    path.write_bytes(VECTOR_FILES[name](path.read_bytes()))
    with bounded(), pytest.raises(TwinlakeError) as caught:
        read_dv(store, descriptor)
    assert caught.value.code == Code.DV_CORRUPT


def _vector(**changes: Any) -> DeletionVectorDescriptor:
    inline = inline_descriptor([1, 2, 9])
    values = {name: getattr(inline, name) for name in inline.__struct_fields__}
    return DeletionVectorDescriptor(**{**values, **changes})


@pytest.mark.parametrize(
    ("descriptor", "code"),
    [
        pytest.param(_vector(storage_type="x"), Code.DV_CORRUPT, id="unknown type"),
        pytest.param(_vector(storage_type=""), Code.DV_CORRUPT, id="no type"),
        pytest.param(_vector(path_or_inline_dv=""), Code.DV_CORRUPT, id="no text"),
        pytest.param(_vector(path_or_inline_dv="~~~~~"), Code.DV_CORRUPT, id="not z85"),
        pytest.param(_vector(path_or_inline_dv="\u2028" * 20), Code.DV_CORRUPT, id="not ascii"),
        pytest.param(_vector(size_in_bytes=0), Code.DV_CORRUPT, id="no size"),
        pytest.param(_vector(size_in_bytes=-5), Code.DV_CORRUPT, id="negative size"),
        pytest.param(_vector(size_in_bytes=2**31 - 1), Code.DV_CORRUPT, id="huge size"),
        pytest.param(_vector(cardinality=2), Code.DV_CORRUPT, id="wrong cardinality"),
        pytest.param(_vector(cardinality=-1), Code.DV_CORRUPT, id="negative cardinality"),
        pytest.param(
            _vector(storage_type="u", path_or_inline_dv="short"), Code.DV_CORRUPT, id="bad uuid"
        ),
        pytest.param(
            _vector(storage_type="u", path_or_inline_dv="../" + "0" * 20),
            Code.PATH_UNSAFE,
            id="prefix up",
        ),
        pytest.param(
            _vector(storage_type="u", path_or_inline_dv="0" * 20),
            Code.STORAGE_NOT_FOUND,
            id="file missing",
        ),
        pytest.param(
            _vector(storage_type="p", path_or_inline_dv="../x.bin"), Code.PATH_UNSAFE, id="path up"
        ),
        pytest.param(
            _vector(storage_type="p", path_or_inline_dv="file:///a/../x"),
            Code.PATH_UNSAFE,
            id="absolute path up",
        ),
        pytest.param(
            _vector(storage_type="p", path_or_inline_dv=""), Code.PATH_UNSAFE, id="no path"
        ),
        pytest.param(
            _vector(storage_type="p", path_or_inline_dv="gopher://x/y"),
            Code.PATH_UNSAFE,
            id="unknown scheme",
        ),
    ],
)
def test_a_damaged_vector_descriptor(
    tmp_path: Path, descriptor: DeletionVectorDescriptor, code: Code
) -> None:
    with bounded(), pytest.raises(TwinlakeError) as caught:
        read_dv(open_store(str(tmp_path)), descriptor)
    assert caught.value.code == code


# What we refuse to write


def test_a_property_of_10_mb_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    make_table(tmp_path)
    table = Table.open(tmp_path)
    with bounded(), pytest.raises(TwinlakeError) as caught:
        table.set_properties({"note": "x" * 10_000_000})
    assert caught.value.code == Code.PROPERTY_INVALID
    assert len(str(caught.value)) < 4_000
    assert Table.open(tmp_path).version == LAST


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({"path": "../x.parquet"}, Code.PATH_UNSAFE, id="path up"),
        pytest.param({"path": "%2e%2e/x.parquet"}, Code.PATH_UNSAFE, id="path up encoded"),
        pytest.param({"path": ""}, Code.PATH_UNSAFE, id="empty path"),
        pytest.param({"size": 2**63}, Code.COMMIT_INVALID, id="size beyond int64"),
    ],
)
def test_an_add_that_nobody_could_read_is_not_committed(
    tmp_path: Path, changes: dict[str, Any], code: Code
) -> None:
    from twinlake.actions import AddFile

    make_table(tmp_path)
    values: dict[str, Any] = {
        "path": "x.parquet",
        "partition_values": {"day": None},
        "size": 1,
        "modification_time": 1,
        "data_change": True,
    }
    with bounded(), pytest.raises(TwinlakeError) as caught:
        Table.open(tmp_path).commit("WRITE", [AddFile(**{**values, **changes})])
    assert caught.value.code == code
    assert Table.open(tmp_path).version == LAST


@pytest.mark.parametrize("text", ["nonsense", "[]", "{}", '{"rowIdHighWaterMark":"7"}'])
def test_row_ids_are_not_handed_out_from_a_mark_that_cannot_be_read(
    tmp_path: Path, text: str
) -> None:
    from twinlake.actions import AddFile

    make_table(tmp_path)
    features = {
        **PROTOCOL,
        "writerFeatures": [*PROTOCOL["writerFeatures"], "rowTracking"],
    }
    mark = {"domain": "delta.rowTracking", "configuration": text, "removed": False}
    commit_path(tmp_path, LAST + 1).write_bytes(
        commit(line("protocol", features), line("domainMetadata", mark))
    )
    table = Table.open(tmp_path)
    look(table)
    add = AddFile(
        path="x.parquet",
        partition_values={"day": None},
        size=1,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":5}',
    )
    with pytest.raises(TwinlakeError) as caught:
        table.commit("WRITE", [add])
    assert caught.value.code == Code.LOG_CORRUPT
    assert Table.open(tmp_path).version == LAST + 1


def test_restoring_gets_rid_of_a_path_that_must_not_be_followed(tmp_path: Path) -> None:
    make_table(tmp_path)
    for name in ("f1", "f2", "f3"):
        (tmp_path / f"{name}.parquet").touch()
    commit_path(tmp_path, LAST + 1).write_bytes(_add(path="../next.parquet"))
    restored = Table.open(tmp_path).restore(LAST)
    look(restored)
    assert len(restored.files()) == 3
