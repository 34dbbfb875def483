"""Replay equals a plain fold over the actions, whatever stands between the log and the reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

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
    rows,
    state_of,
)
from twinlake.actions import (
    Action,
    AddFile,
    DomainMetadata,
    FileKey,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
)
from twinlake.log import (
    CheckpointKind,
    Snapshot,
    checksum_of,
    commit_key,
    load_snapshot,
    update_snapshot,
    verify_checksum,
    write_checkpoint,
    write_checksum,
    write_compaction,
)
from twinlake.log.columns import ADD_SCHEMA, REMOVE_SCHEMA, add_batch, remove_batch
from twinlake.runtime import Runtime
from twinlake.storage import MemoryStore

Commits = list[tuple[Action, ...]]


@dataclass
class Fold:
    """The state by the letter of the protocol: one action after the other, newest wins."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    txns: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)
    files: dict[FileKey, AddFile | RemoveFile] = field(default_factory=dict)

    def apply(self, actions: tuple[Action, ...]) -> None:
        for action in sorted(actions, key=lambda a: isinstance(a, AddFile)):
            match action:
                case Protocol():
                    self.protocol = action
                case Metadata():
                    self.metadata = action
                case SetTransaction():
                    self.txns[action.app_id] = action
                case DomainMetadata():
                    self.domains[action.domain] = action
                case AddFile() | RemoveFile():
                    self.files[action.key] = action
                case _:
                    pass

    def state(self, version: int) -> dict[str, Any]:
        adds = [f for f in self.files.values() if isinstance(f, AddFile)]
        removes = [f for f in self.files.values() if isinstance(f, RemoveFile)]
        return {
            "version": version,
            "protocol": self.protocol,
            "metadata": self.metadata,
            "txns": self.txns,
            "domains": {n: d for n, d in self.domains.items() if not d.removed},
            "adds": rows(pa.Table.from_batches([add_batch(adds)], ADD_SCHEMA)),
            "removes": rows(pa.Table.from_batches([remove_batch(removes)], REMOVE_SCHEMA)),
        }


PATHS = ["a.parquet", "b.parquet", "c%20d.parquet", "e.parquet", "x/f.parquet"]


@st.composite
def logs(draw: st.DrawFn, protocol: Protocol) -> Commits:
    """Legal commits over a few paths, so that they meet often."""
    commits: Commits = [(info("CREATE"), protocol, metadata())]
    live: dict[str, AddFile] = {}
    vector = 0
    for version in range(1, draw(st.integers(1, 7))):
        actions: list[Action] = [info(f"OP{version}")]
        for path in draw(st.lists(st.sampled_from(PATHS), unique=True, max_size=4)):
            what = draw(st.sampled_from(["add", "remove", "vector", "refresh"]))
            at = draw(st.sampled_from([None, NOW - 60 * DAY, NOW - DAY, NOW]))
            if what in ("remove", "vector") and path in live:
                gone = live.pop(path).remove(deletion_timestamp=NOW)
                actions.append(msgspec.structs.replace(gone, deletion_timestamp=at))
            added: AddFile | None = None
            if what == "vector":
                vector += 1
                added = add(path, version, dv=vector)
            elif what == "add" and path not in live:
                added = add(path, version, stats=draw(st.sampled_from([None, "{}", "x"])))
            elif what == "refresh" and path in live:
                # The same key again: statistics or tags were brought up to date.
                tags: dict[str, str | None] = {"v": str(version)}
                added = msgspec.structs.replace(live[path], tags=tags, data_change=False)
            if added is not None:
                live[path] = added
                actions.append(added)
        if draw(st.booleans()):
            app = draw(st.sampled_from(["p", "q"]))
            actions.append(SetTransaction(app_id=app, version=draw(st.integers(0, 9))))
        if draw(st.booleans()):
            name, removed = draw(st.sampled_from(["d", "e"])), draw(st.booleans())
            actions.append(DomainMetadata(domain=name, configuration=f"{version}", removed=removed))
        if draw(st.integers(0, 3)) == 0:
            actions.append(metadata(**{"appendOnly": str(version % 2 == 0).lower()}))
        commits.append(tuple(draw(st.permutations(actions))))
    return commits


def written(commits: Commits) -> MemoryStore:
    store = MemoryStore(clock=FixedClock())
    for version, actions in enumerate(commits):
        commit(store, version, *actions)
    return store


def folded(commits: Commits, *, checkpoint_at: int | None = None) -> dict[str, Any]:
    fold = Fold()
    for version, actions in enumerate(commits):
        fold.apply(actions)
        if version == checkpoint_at:
            fold.files = {
                k: f
                for k, f in fold.files.items()
                if isinstance(f, AddFile) or (f.deletion_timestamp or 0) > NOW - 7 * DAY
            }
    return fold.state(len(commits) - 1)


@settings(max_examples=60, deadline=None)
@given(logs(V1_PROTOCOL), st.data())
def test_replay_equals_a_fold(commits: Commits, data: st.DataObject) -> None:
    store = written(commits)
    assert state_of(load_snapshot(store)) == folded(commits)
    # Also at every earlier version, and brought up to date from there.
    version = data.draw(st.integers(0, len(commits) - 1))
    earlier = load_snapshot(store, version)
    assert state_of(earlier) == folded(commits[: version + 1])
    assert state_of(update_snapshot(earlier)) == folded(commits)


KINDS: list[tuple[Protocol, dict[str, Any]]] = [
    (V1_PROTOCOL, {"kind": CheckpointKind.CLASSIC}),
    (V1_PROTOCOL, {"parts": 3}),
    (V2_PROTOCOL, {"kind": CheckpointKind.V2_PARQUET}),
    (V2_PROTOCOL, {"kind": CheckpointKind.V2_PARQUET, "sidecars": 2}),
    (V2_PROTOCOL, {"kind": CheckpointKind.V2_JSON}),
    (V2_PROTOCOL, {"kind": CheckpointKind.V2_JSON, "sidecars": 1}),
    (V2_PROTOCOL, {"kind": CheckpointKind.V2_CLASSIC, "sidecars": 1}),
]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(KINDS), st.booleans())
def test_replay_through_a_checkpoint_equals_a_fold(
    data: st.DataObject, kind: tuple[Protocol, dict[str, Any]], incremental: bool
) -> None:
    protocol, options = kind
    commits = data.draw(logs(protocol))
    store = written(commits)
    version = data.draw(st.integers(0, len(commits) - 1))
    base: Snapshot = load_snapshot(store, 0 if incremental else version)
    for number in range(base.version + 1, version + 1):
        base = base.advance(number, commits[number])
    write_checkpoint(base, runtime=Runtime(clock=FixedClock()), **options)
    store.delete(commit_key(v) for v in range(version + 1))
    assert state_of(load_snapshot(store)) == folded(commits, checkpoint_at=version)


@settings(max_examples=60, deadline=None)
@given(logs(V1_PROTOCOL), st.data())
def test_replay_through_compactions_equals_a_fold(commits: Commits, data: st.DataObject) -> None:
    store = written(commits)
    if len(commits) < 2:
        return
    for _ in range(data.draw(st.integers(1, 2))):
        start = data.draw(st.integers(0, len(commits) - 2))
        end = data.draw(st.integers(start + 1, len(commits) - 1))
        write_compaction(store, start, end)
    assert state_of(load_snapshot(store)) == folded(commits)


@settings(max_examples=60, deadline=None)
@given(logs(V1_PROTOCOL))
def test_carried_counters_equal_counted_ones(commits: Commits) -> None:
    store = MemoryStore(clock=FixedClock())
    commit(store, 0, *commits[0])
    snapshot = load_snapshot(store)
    for version, actions in enumerate(commits[1:], start=1):
        write_checksum(snapshot)
        commit(store, version, *actions)
        snapshot = snapshot.advance(version, actions)
        assert verify_checksum(load_snapshot(store), checksum_of(snapshot)) == []
