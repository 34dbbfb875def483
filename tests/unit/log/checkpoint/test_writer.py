"""Checkpoints are read back as the state they were made from, whatever their kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from tests.support.log_tables import (
    DAY,
    NOW,
    V1_PROTOCOL,
    V2_PROTOCOL,
    FixedClock,
    add,
    commit,
    info,
    metadata,
    sample_log,
    state_of,
)
from twinlake.actions import Protocol, SetTransaction
from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.log import CheckpointKind, Snapshot, commit_key, load_snapshot, write_checkpoint
from twinlake.log.checkpoint.last_checkpoint import hint_checksum
from twinlake.log.checkpoint.reader import read_checkpoint
from twinlake.log.listing import list_log, read_last_checkpoint
from twinlake.log.names import LAST_CHECKPOINT_KEY, SIDECAR_FOLDER, LogFileKind, multipart_key
from twinlake.runtime import RandomIds, Runtime
from twinlake.storage import Fault, LocalStore, MemoryStore, Store

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.storage import CreateOutcome

pytestmark = pytest.mark.slow

KINDS: dict[str, tuple[Protocol, dict[str, Any]]] = {
    "classic": (V1_PROTOCOL, {"kind": CheckpointKind.CLASSIC}),
    "classic-on-v2-table": (V2_PROTOCOL, {"kind": CheckpointKind.CLASSIC}),
    "multipart-1": (V1_PROTOCOL, {"kind": CheckpointKind.MULTIPART, "parts": 1}),
    "multipart-3": (V1_PROTOCOL, {"parts": 3}),
    "multipart-50": (V1_PROTOCOL, {"parts": 50}),
    "v2-parquet": (V2_PROTOCOL, {"kind": CheckpointKind.V2_PARQUET}),
    "v2-parquet-sidecar": (V2_PROTOCOL, {"kind": CheckpointKind.V2_PARQUET, "sidecars": 1}),
    "v2-parquet-sidecars": (V2_PROTOCOL, {"kind": CheckpointKind.V2_PARQUET, "sidecars": 4}),
    "v2-json": (V2_PROTOCOL, {"kind": CheckpointKind.V2_JSON}),
    "v2-json-sidecars": (V2_PROTOCOL, {"kind": CheckpointKind.V2_JSON, "sidecars": 2}),
    "v2-classic": (V2_PROTOCOL, {"kind": CheckpointKind.V2_CLASSIC}),
    "v2-classic-sidecars": (V2_PROTOCOL, {"kind": CheckpointKind.V2_CLASSIC, "sidecars": 2}),
}
STATS = {
    "json": {},
    "both": {"checkpoint.writeStatsAsStruct": "true"},
    "struct": {
        "checkpoint.writeStatsAsStruct": "true",
        "checkpoint.writeStatsAsJson": "false",
    },
}
RUNTIME = Runtime(clock=FixedClock(), ids=RandomIds(1))


def write(snapshot: Snapshot, **options: Any) -> Any:
    return write_checkpoint(snapshot, runtime=Runtime(clock=FixedClock()), **options)


def forget_commits(store: Store, upto: int) -> None:
    store.delete(commit_key(v) for v in range(upto + 1))


def expected_after(snapshot: Snapshot) -> dict[str, Any]:
    """The state without what a checkpoint drops: tombstones that are expired."""
    state = state_of(snapshot)
    state["removes"] = [
        r for r in state["removes"] if (r["deletion_timestamp"] or 0) > NOW - 7 * DAY
    ]
    return state


@pytest.mark.parametrize("local", [False, True], ids=["memory", "local"])
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_is_read_back_as_it_was(name: str, local: bool, tmp_path: Path) -> None:
    protocol, options = KINDS[name]
    store: Store = LocalStore(tmp_path, durable=False) if local else MemoryStore()
    version = sample_log(store, protocol)
    before = load_snapshot(store)

    written = write(before, **options)

    forget_commits(store, version)
    after = load_snapshot(store)
    assert after.checkpoint is not None
    assert after.checkpoint.version == written.version == version
    assert state_of(after) == expected_after(before)
    assert len(after.tombstones()) == 1
    assert after.num_files == 40
    assert after.files().num_rows == 40


def leaves(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The files with their statistics; no struct and one full of nulls mean the same."""
    flat = snapshot.files().flatten().flatten().sort_by("path")
    return [row for row in flat.to_pylist() if row["path"] != "later.parquet"]


@pytest.mark.parametrize("stats", STATS)
@pytest.mark.parametrize("name", ["classic", "multipart-3", "v2-parquet-sidecars"])
def test_statistics_survive_in_every_form(name: str, stats: str) -> None:
    protocol, options = KINDS[name]
    store = MemoryStore()
    version = sample_log(store, protocol, **STATS[stats])
    before = load_snapshot(store)
    view = leaves(before)
    write(before, **options)
    forget_commits(store, version)

    after = load_snapshot(store)

    assert leaves(after) == view
    # A second checkpoint, made from the first, loses nothing either.
    commit(store, version + 1, info(), add("later.parquet", 99))
    write(load_snapshot(store), **options)
    forget_commits(store, version + 1)
    assert leaves(load_snapshot(store)) == view


def test_struct_statistics_become_text_again_when_the_table_asks() -> None:
    store = MemoryStore()
    sample_log(store, V1_PROTOCOL, **STATS["struct"])
    before = load_snapshot(store)
    texts = {a.path: json.loads(a.stats) for a in before.adds() if a.stats}
    write(before)
    commit(store, 4, info(), metadata())
    forget_commits(store, 3)
    write(load_snapshot(store))
    forget_commits(store, 4)

    after = {a.path: json.loads(a.stats) for a in load_snapshot(store).adds() if a.stats}

    assert after == texts


def test_columns_are_those_the_protocol_names(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durable=False)
    sample_log(store, V1_PROTOCOL, **STATS["both"])
    written = write(load_snapshot(store))
    file = pq.ParquetFile(tmp_path / written.files[0].key)
    schema = file.schema_arrow
    assert set(schema.names) == {"txn", "metaData", "protocol", "domainMetadata", "add", "remove"}
    kinds = {f.name: str(f.type) for f in schema.field("protocol").type}
    assert kinds["minReaderVersion"] == kinds["minWriterVersion"] == "int32"
    adds = {f.name: str(f.type) for f in schema.field("add").type}
    assert adds["partitionValues_parsed"] == "struct<day: date32[day]>"
    assert adds["stats_parsed"].startswith("struct<numRecords: int64, minValues: struct<id: int64")
    assert "stats" not in {f.name for f in schema.field("remove").type}
    assert "tags" not in {f.name for f in schema.field("remove").type}
    assert file.metadata.row_group(0).column(0).compression == "SNAPPY"
    rows = [r for r in file.read(["add.dataChange"])["add"].to_pylist() if r]
    assert {r["dataChange"] for r in rows if r["dataChange"] is not None} == {False}


@pytest.mark.parametrize(
    ("protocol", "reader", "writer"),
    [
        (Protocol(1, 2), None, None),
        (
            Protocol(1, 7, writer_features=frozenset({"appendOnly"})),
            None,
            ["appendOnly"],
        ),
        (V1_PROTOCOL, ["deletionVectors"], ["deletionVectors", "domainMetadata"]),
    ],
    ids=["legacy", "writer-features", "both"],
)
def test_feature_lists_are_null_on_legacy_versions(
    protocol: Protocol, reader: list[str] | None, writer: list[str] | None, tmp_path: Path
) -> None:
    store = LocalStore(tmp_path, durable=False)
    commit(store, 0, protocol, metadata())
    written = write(load_snapshot(store))
    table = pq.read_table(tmp_path / written.files[0].key)
    (row,) = [r for r in table["protocol"].to_pylist() if r]
    assert (row["readerFeatures"], row["writerFeatures"]) == (reader, writer)


def test_expired_transactions_and_tombstones_are_left_out() -> None:
    store = MemoryStore()
    sample_log(
        store,
        V1_PROTOCOL,
        **{
            "setTransactionRetentionDuration": "interval 30 days",
            "deletedFileRetentionDuration": "interval 60 days",
        },
    )
    write(load_snapshot(store))
    forget_commits(store, 3)
    after = load_snapshot(store)
    assert set(after.set_transactions) == {"app", "timeless"}
    assert sorted(after.tombstones()["path"].to_pylist()) == ["f000.parquet", "f002.parquet"]
    assert set(after.domains) == {"delta.clustering", "mine"}


@pytest.mark.parametrize(
    ("policy", "protocol", "kind"),
    [
        ({}, V2_PROTOCOL, LogFileKind.CLASSIC),
        ({"checkpointPolicy": "v2"}, V2_PROTOCOL, LogFileKind.UUID),
        ({"checkpointPolicy": "v2"}, V1_PROTOCOL, LogFileKind.CLASSIC),
    ],
    ids=["default", "v2", "v2-unsupported"],
)
def test_the_table_chooses_the_kind(
    policy: dict[str, str], protocol: Protocol, kind: LogFileKind
) -> None:
    store = MemoryStore()
    sample_log(store, protocol, **policy)
    assert write(load_snapshot(store)).kind is kind


@pytest.mark.parametrize(
    ("protocol", "options"),
    [
        (V1_PROTOCOL, {"kind": CheckpointKind.V2_PARQUET}),
        (V2_PROTOCOL, {"parts": 2}),
        (V1_PROTOCOL, {"parts": 0}),
        (V1_PROTOCOL, {"kind": CheckpointKind.CLASSIC, "parts": 2}),
        (V1_PROTOCOL, {"sidecars": 1}),
        (V2_PROTOCOL, {"kind": CheckpointKind.V2_JSON, "sidecars": -1}),
    ],
)
def test_kinds_that_do_not_fit_are_refused(protocol: Protocol, options: dict[str, Any]) -> None:
    store = MemoryStore()
    sample_log(store, protocol)
    with pytest.raises(UserError) as caught:
        write(load_snapshot(store), **options)
    assert caught.value.code == Code.INVALID_ARGUMENT


def test_unpublished_versions_are_refused() -> None:
    store = MemoryStore()
    sample_log(store)
    ahead = load_snapshot(store).advance(4, [add("x.parquet")])
    with pytest.raises(UserError, match="cannot be checkpointed"):
        write(ahead)


def test_a_table_this_release_cannot_write_is_refused() -> None:
    store = MemoryStore()
    features = frozenset({"fromTheFuture"})
    commit(store, 0, Protocol(1, 7, writer_features=features), metadata())
    with pytest.raises(TwinlakeError) as caught:
        write(load_snapshot(store))
    assert caught.value.code == Code.FEATURE_WRITE


def test_parts_do_not_depend_on_the_order_of_the_log() -> None:
    contents = []
    for order in (1, -1):
        store = MemoryStore()
        commit(store, 0, V1_PROTOCOL, metadata())
        commit(store, 1, *[add(f"f{n}.parquet", n) for n in range(30)][::order])
        checkpoint = write(load_snapshot(store), parts=4)
        contents.append([_paths(store, file.key) for file in checkpoint.files])
    assert contents[0] == contents[1]
    assert sum(len(part) for part in contents[0]) == 30
    assert all(contents[0])


def _paths(store: Store, key: str) -> set[str]:
    import pyarrow as pa

    table = pq.ParquetFile(pa.BufferReader(store.read(key))).read(columns=["add.path"])
    return {row["path"] for row in table["add"].to_pylist() if row and row["path"]}


# The hint


@pytest.mark.parametrize("name", KINDS)
def test_the_hint_describes_the_checkpoint(name: str) -> None:
    protocol, options = KINDS[name]
    store = MemoryStore()
    version = sample_log(store, protocol)
    written = write(load_snapshot(store), **options)
    hint = json.loads(store.read(LAST_CHECKPOINT_KEY))
    sidecars = list(store.list_from(SIDECAR_FOLDER))
    assert hint["version"] == version
    assert hint["numOfAddFiles"] == 40
    assert hint["sizeInBytes"] == sum(f.size for f in [*written.files, *sidecars])
    assert hint["checksum"] == hint_checksum(hint)
    assert hint.get("parts") == (len(written.files) if "multipart" in name else None)
    assert ("v2Checkpoint" in hint) == name.startswith("v2")
    state = read_checkpoint(store, written)
    v2 = 1 + len(state.sidecars) if state.checkpoint_metadata is not None else 0
    assert hint["size"] == 2 + 3 + 2 + 40 + 1 + v2


def test_known_checksum_of_the_canonical_form() -> None:
    hint = json.loads(
        """{"k0":"'v 0'","checksum":"x","k1":{"k2":2,"k3":["v3",[1,2],"""
        """{"k4":"v4","k5":["v5","v6","v7"]}]}}"""
    )
    assert hint_checksum(hint) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_the_hint_is_never_lowered() -> None:
    store = MemoryStore()
    sample_log(store)
    early, late = load_snapshot(store, 1), load_snapshot(store)
    write(late)
    write(early)
    hint = read_last_checkpoint(store)
    assert hint is not None
    assert hint["version"] == 3
    # Unless what it names is not there.
    store.delete(f.key for f in list_log(store) if f.kind is LogFileKind.CLASSIC and f.version == 3)
    write(early)
    hint = read_last_checkpoint(store)
    assert hint is not None
    assert hint["version"] == 1


HINTS = {
    "missing": None,
    "empty": b"",
    "not-json": b"{",
    "not-an-object": b"[1]",
    "no-version": b"{}",
    "negative": b'{"version":-1,"size":1}',
    "ahead": b'{"version":900,"size":1}',
    "behind": b'{"version":1,"size":1}',
    "wrong-checksum": b'{"version":900,"size":1,"checksum":"00"}',
    "wrong-parts": b'{"version":3,"size":1,"parts":7}',
}


@pytest.mark.parametrize("hint", HINTS)
def test_a_hint_is_only_a_hint(hint: str) -> None:
    store = MemoryStore()
    sample_log(store)
    before = load_snapshot(store)
    write(load_snapshot(store, 1))
    write(before)
    store.delete([LAST_CHECKPOINT_KEY])
    body = HINTS[hint]
    if body is not None:
        store.put(LAST_CHECKPOINT_KEY, body)
    forget_commits(store, 0)
    assert state_of(load_snapshot(store), tombstones=False) == state_of(before, tombstones=False)


# Damage


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty"])
def test_a_damaged_checkpoint_is_passed_over(name: str, damage: str) -> None:
    protocol, options = KINDS[name]
    store = MemoryStore()
    sample_log(store, protocol)
    before = state_of(load_snapshot(store))
    written = write(load_snapshot(store), **options)
    key = written.files[0].key
    data = store.read(key)
    store.put(key, {"cut": data[: len(data) // 2], "garbage": b"PAR1" * 40, "empty": b""}[damage])
    assert state_of(load_snapshot(store)) == before


@pytest.mark.parametrize("name", ["multipart-3", "v2-parquet-sidecars", "v2-json-sidecars"])
def test_a_missing_piece_makes_readers_go_back_to_the_commits(name: str) -> None:
    protocol, options = KINDS[name]
    store = MemoryStore()
    sample_log(store, protocol)
    before = state_of(load_snapshot(store))
    written = write(load_snapshot(store), **options)
    pieces = [m.key for m in store.list_from(SIDECAR_FOLDER)] or [f.key for f in written.files]
    store.delete([pieces[-1]])
    assert state_of(load_snapshot(store)) == before


def test_without_commits_a_damaged_checkpoint_is_named() -> None:
    store = MemoryStore()
    sample_log(store)
    written = write(load_snapshot(store))
    store.put(written.files[0].key, b"PAR1")
    forget_commits(store, 2)
    with pytest.raises(TwinlakeError) as caught:
        load_snapshot(store)
    assert caught.value.code == Code.CHECKPOINT_CORRUPT
    assert caught.value.fields["file"] == written.files[0].key


def test_a_damaged_checkpoint_is_replaced_and_a_sound_one_kept() -> None:
    store = MemoryStore()
    sample_log(store)
    key = write(load_snapshot(store)).files[0].key
    sound = store.read(key)
    store.put(key, b"junk")
    write(load_snapshot(store))
    assert store.read(key) == sound
    store.set_modified(key, 5)
    write(load_snapshot(store))
    meta = store.head(key)
    assert meta is not None
    assert meta.modified_ms == 5


@pytest.mark.parametrize("fault", [Fault.before(), Fault.after(), Fault.torn(10)], ids=str)
def test_a_lost_reply_still_leaves_a_whole_checkpoint(fault: Fault) -> None:
    store = MemoryStore()
    version = sample_log(store)
    before = load_snapshot(store)
    before.add_files()
    store.set_faults([("create", 1, fault)])
    write(before)
    forget_commits(store, version)
    assert state_of(load_snapshot(store)) == expected_after(before)


# Parts of several writers


def foreign_part(store: Store, key: str, paths: set[str]) -> None:
    """A part as another engine may have left it: whole, but with another share of the files."""
    import pyarrow as pa

    rows = pa.table({"add": pa.array([{"path": path} for path in sorted(paths)])})
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    store.put(key, sink.getvalue().to_pybytes())


@pytest.mark.parametrize("part", [1, 2, 3])
def test_a_part_of_another_writer_is_neither_used_nor_touched(part: int) -> None:
    store = MemoryStore()
    version = sample_log(store, V1_PROTOCOL)
    before = load_snapshot(store)
    theirs = multipart_key(version, part, 3)
    foreign_part(store, theirs, {"f001.parquet"})
    kept = store.read(theirs)

    written = write(before, parts=3)

    assert len(written.files) == 4
    assert store.read(theirs) == kept
    hint = read_last_checkpoint(store)
    assert hint is not None
    assert hint["parts"] == 4
    forget_commits(store, version)
    assert state_of(load_snapshot(store)) == expected_after(before)


class Rival(MemoryStore):
    """Somebody else writes a part while we are at it."""

    part = ""

    def create(self, key: str, data: bytes) -> CreateOutcome:
        if self.part and key.endswith("checkpoint.0000000001.0000000003.parquet"):
            name, self.part = self.part, ""
            foreign_part(self, name, {"f001.parquet"})
        return super().create(key, data)


@pytest.mark.parametrize("part", [1, 3])
def test_parts_of_a_rival_are_not_completed(part: int) -> None:
    store = Rival()
    version = sample_log(store, V1_PROTOCOL)
    before = load_snapshot(store)
    store.part = theirs = multipart_key(version, part, 3)
    written = write(before, parts=3)
    assert len(written.files) == 4
    left = [key for key, _ in store.snapshot() if key.endswith(".0000000003.parquet")]
    assert left == [theirs]
    forget_commits(store, version)
    assert state_of(load_snapshot(store)) == expected_after(before)


def test_our_own_parts_are_completed_and_damaged_ones_replaced() -> None:
    store = MemoryStore()
    version = sample_log(store, V1_PROTOCOL)
    before = load_snapshot(store)
    first = write(before, parts=3)
    bodies = [store.read(file.key) for file in first.files]
    store.delete([first.files[1].key])
    store.put(first.files[2].key, b"PAR1")
    again = write(before, parts=3)
    assert [file.key for file in again.files] == [file.key for file in first.files]
    assert [store.read(file.key) for file in again.files] == bodies
    forget_commits(store, version)
    assert state_of(load_snapshot(store)) == expected_after(before)


def test_when_every_split_is_taken_it_is_said() -> None:
    store = MemoryStore()
    version = sample_log(store, V1_PROTOCOL)
    before = load_snapshot(store)
    for parts in range(2, 30):
        foreign_part(store, multipart_key(version, 2, parts), {"f001.parquet"})
    with pytest.raises(UserError, match="checkpoint of 2 parts"):
        write(before, parts=2)


def test_files_written_again_keep_statistics_that_are_columns_only() -> None:
    store = MemoryStore()
    version = sample_log(store, V1_PROTOCOL, **STATS["struct"])
    before = load_snapshot(store)
    texts = {a.path: json.loads(a.stats) for a in before.adds() if a.stats}
    assert texts
    write(before)
    forget_commits(store, version)

    after = load_snapshot(store)

    assert {a.path: json.loads(a.stats) for a in after.adds() if a.stats} == texts
    live = after.live_files(texts)
    assert {path: json.loads(a.stats or "{}") for path, a in live.items()} == texts
    low = next(iter(after.adds("id >= 0 AND id < 1")))
    assert low.stats is not None


@pytest.mark.parametrize("stats", STATS)
def test_what_is_in_memory_is_not_read_again(stats: str) -> None:
    store = MemoryStore()
    version = sample_log(store, V1_PROTOCOL, **STATS[stats])
    view = leaves(load_snapshot(store))
    first = write(load_snapshot(store))
    commit(store, version + 1, info(), add("later.parquet", 99))
    snapshot = load_snapshot(store)
    # A writer that checkpoints has the files; then a cleanup deletes what they were read from.
    write(snapshot)
    forget_commits(store, version)
    store.delete(file.key for file in first.files)
    assert leaves(snapshot) == view
    later = snapshot.advance(version + 2, [add("latest.parquet", 100)])
    found = later.files("id = 105")["path"].to_pylist()
    assert [path for path in found if path.startswith("late")] == [
        "later.parquet",
        "latest.parquet",
    ]
    assert len(found) == 3


@pytest.mark.parametrize("word", ["sidecar", "checkpointMetadata"])
def test_an_application_named_as_an_action_is_no_damage_of_a_json_checkpoint(word: str) -> None:
    store = MemoryStore()
    version = sample_log(store) + 1
    commit(store, version, info(), SetTransaction(app_id=word, version=1, last_updated=NOW))
    before = load_snapshot(store)
    write(before, kind=CheckpointKind.V2_JSON)
    forget_commits(store, version)
    assert state_of(load_snapshot(store)) == expected_after(before)
