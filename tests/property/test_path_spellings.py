"""Replay of a log whose writers spell paths as they like equals a model that knows the files."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.log_tables import V1_PROTOCOL, add, commit, info, metadata, remove
from twinlake.log import load_snapshot, update_snapshot, write_checkpoint
from twinlake.log.paths.canonical import CanonicalPaths
from twinlake.storage import MemoryStore

FILES = ("a.parquet", "x/b.parquet", "x/y/c c.parquet", "at=1 00%3A00/d.parquet")


class Spelled(NamedTuple):
    """A path, the file it names, and what Delta readers take for one: relative or absolute."""

    path: str
    file: str
    absolute: bool


def _escape(char: str, *, lower: bool) -> str:
    text = f"%{ord(char):02x}"
    return text if lower else text.upper()


@st.composite
def spelled(draw: st.DrawFn, file: str) -> Spelled:
    absolute = draw(st.booleans())
    full = f"/lake/t/{file}" if absolute else file
    parts = []
    for segment in full.split("/"):
        text = ""
        for char in segment:
            # Of relative paths Delta Spark compares the escapes, so only what must be is escaped.
            needless = absolute and draw(st.integers(0, 20)) == 0
            must = char in " %"
            text += _escape(char, lower=draw(st.booleans())) if must or needless else char
        parts.append(text)
    path = ""
    for position, part in enumerate(parts):
        if position:
            # In a URL of an object store an empty segment is part of the name.
            path += "/" if absolute else draw(st.sampled_from(["/", "/", "/", "//", "/./"]))
        path += part
    if absolute:
        path = draw(st.sampled_from(["memory://", "MEMORY://", ""])) + path
    else:
        path = draw(st.sampled_from(["", "", "./", ".//"])) + path
    return Spelled(path, file, absolute)


@st.composite
def histories(draw: st.DrawFn) -> list[list[tuple[bool, Spelled]]]:
    commits = []
    for _ in range(draw(st.integers(1, 6))):
        files = draw(st.lists(st.sampled_from(FILES), unique=True, max_size=4))
        commits.append([(draw(st.booleans()), draw(spelled(file))) for file in files])
    return commits


@settings(max_examples=60, deadline=None)
@given(histories(), st.integers(0, 6))
def test_replay_equals_a_model_of_files(
    commits: list[list[tuple[bool, Spelled]]], checkpoint_at: int
) -> None:
    store = MemoryStore().reopen("memory:///lake/t")
    live: dict[tuple[str, bool], str] = {}
    commit(store, 0, info(), V1_PROTOCOL, metadata())
    first = load_snapshot(store)
    for version, actions in enumerate(commits, start=1):
        done = [add(s.path) if adds else remove(s.path) for adds, s in actions]
        commit(store, version, info(), *done)
        for adds, one in actions:
            live.pop((one.file, one.absolute), None)
            if adds:
                live[one.file, one.absolute] = one.path
        if version == checkpoint_at:
            write_checkpoint(load_snapshot(store))
    expected = sorted(live.values())
    for snapshot in (load_snapshot(store), update_snapshot(first)):
        assert sorted(snapshot.files()["path"].to_pylist()) == expected
        assert snapshot.num_files == len(expected)


@given(st.sampled_from(FILES).flatmap(spelled))
def test_every_spelling_names_its_file(one: Spelled) -> None:
    paths = CanonicalPaths.of("memory:///lake/t")
    assert paths.file(one.path) == one.file.replace("%", "%25").replace(" ", "%20")
    assert paths.key(paths.key(one.path)) == paths.key(one.path)
