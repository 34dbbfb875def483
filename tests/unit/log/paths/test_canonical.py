"""Two spellings of one path are one file, wherever actions are reconciled."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pytest

from tests.support.log_tables import V1_PROTOCOL, add, commit, info, metadata, remove
from tests.support.path_spellings import SAME_IN_DELTA_SPARK, spellings
from twinlake.actions import DeletionVectorDescriptor
from twinlake.errors import CorruptTable
from twinlake.log import commit_key, load_snapshot, update_snapshot, write_compaction
from twinlake.log.paths.canonical import CanonicalPaths
from twinlake.log.paths.columns import are_keys
from twinlake.storage import LocalStore, MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "/lake/t"
NAMES = spellings(ROOT)
PAIRS = list(product(NAMES, NAMES))
PATHS = CanonicalPaths.of(f"file://{ROOT}")
PLAIN = ["part-0.parquet", "day=1/part-0.c000.snappy.parquet", "at=1%2000%253A00/x", "ü/x", "a b"]


def is_same(one: str, other: str) -> bool:
    return any({one, other} <= group for group in SAME_IN_DELTA_SPARK)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_keys_meet_as_in_delta_spark(one: str, other: str) -> None:
    same = PATHS.key(NAMES[one]) == PATHS.key(NAMES[other])
    assert same == is_same(one, other)


def test_all_spellings_name_one_file() -> None:
    assert {PATHS.file(path) for path in NAMES.values()} == {"d/aü%20b.parquet"}


@pytest.mark.parametrize("path", PLAIN)
def test_usual_paths_are_their_own_key_and_need_no_look(path: str) -> None:
    assert PATHS.key(path) == path
    assert are_keys(pa.chunked_array([[path]]))


@pytest.mark.parametrize(
    ("root", "one", "other"),
    [
        ("s3://lake/t", "s3a://lake/t/x", "s3n://lake//t/x"),
        ("s3://lake/t", "/t/x", "s3://lake/t/x"),
        ("file:///lake/t", "file:/other/%61", "/other/a"),
        ("file:///lake/t", "hdfs://n/x", "hdfs://n/x"),
        ("file:///lake/t", "a%", "a%"),
        ("file:///lake/t", "../x", "../x"),
        ("file:///lake/t", "%FF", "%ff"),
    ],
)
def test_keys_of_other_places(root: str, one: str, other: str) -> None:
    paths = CanonicalPaths.of(root)
    assert paths.key(one) == paths.key(other)
    assert paths.file(one)


def test_columns_say_what_single_paths_say() -> None:
    texts = [*NAMES.values(), *PLAIN, "s3://b/x", "../x", "%zz", "", "a:b/c", "x/.", "."]
    for column in (
        pa.chunked_array([texts[:5], [], texts[5:]], pa.string()),
        pa.chunked_array([pa.array(["", *texts]).slice(1)]),
    ):
        assert PATHS.keys(column).to_pylist() == [PATHS.key(path) for path in texts]
        assert PATHS.files(column).to_pylist() == [PATHS.file(path) for path in texts]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_remove_in_another_spelling_takes_the_file_out(
    tmp_path: Path, one: str, other: str
) -> None:
    names = spellings(str(tmp_path))
    store = LocalStore(tmp_path, durable=False)
    commit(store, 0, info(), V1_PROTOCOL, metadata(), add(names[one]), add("other"))
    first = load_snapshot(store)
    assert first.num_files == 2
    commit(store, 1, info(), remove(names[other]))

    live = 1 if is_same(one, other) else 2
    for snapshot in (load_snapshot(store), update_snapshot(first)):
        assert snapshot.counters.num_files == live
        assert len(snapshot.files()) == live
    if not is_same(one, other):
        return
    # The log keeps what was written, and a compaction file is reconciled by the same keys.
    write_compaction(store, 0, 1)
    store.delete([commit_key(0), commit_key(1)])
    text = store.read("_delta_log/00000000000000000000.00000000000000000001.compacted.json")
    assert text.count(b'"add"') == 1
    assert names[other].encode() in text


def test_a_checkpoint_keeps_the_spelling_and_compares_the_key() -> None:
    from twinlake.log import write_checkpoint

    store = MemoryStore("t")
    commit(store, 0, info(), V1_PROTOCOL, metadata(), add("./x/a"), add("b"))
    write_checkpoint(load_snapshot(store))
    store.delete([commit_key(0)])
    commit(store, 1, info(), remove("x//a"))
    commit(store, 2, info(), add("x/./c"))

    assert {a.path for a in load_snapshot(store, None).adds()} == {"b", "x/./c"}


def vector(path: str) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(
        storage_type="p", path_or_inline_dv=path, size_in_bytes=36, cardinality=2, offset=1
    )


def test_a_deletion_vector_in_another_spelling_is_the_same_one(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durable=False)
    file = add("x", deletion_vector=vector(f"{tmp_path}/dv.bin"))
    gone = msgspec.structs.replace(
        remove("x"), deletion_vector=vector(f"file://{tmp_path}/%64v.bin")
    )
    commit(store, 0, info(), V1_PROTOCOL, metadata(), file)
    first = load_snapshot(store)
    assert first.num_files == 1
    commit(store, 1, info(), gone)
    assert load_snapshot(store).num_files == 0
    assert update_snapshot(first).counters.num_files == 0


def test_one_commit_that_adds_a_file_in_two_spellings_is_refused() -> None:
    store = MemoryStore("t")
    commit(store, 0, info(), V1_PROTOCOL, metadata(), add("x/a"), add("x//a"))
    with pytest.raises(CorruptTable, match="more than one add"):
        load_snapshot(store).files()


def test_differences_of_versions_go_by_the_key(tmp_path: Path) -> None:
    from twinlake import Table

    store = LocalStore(tmp_path, durable=False)
    file: Any = add("x/a")
    commit(store, 0, info(), V1_PROTOCOL, metadata(), file)
    commit(store, 1, info(), msgspec.structs.replace(file, path="./x/a", data_change=False))
    assert Table.open(tmp_path).diff(0, 1).files == ()


@pytest.mark.parametrize(
    "path", [*NAMES.values(), *PLAIN, "s3://b/x", "../x", "%zz", "", "x\x00/y"]
)
def test_usual_paths_among_many_are_their_own_file(path: str) -> None:
    usual = CanonicalPaths.are_usual(["a.parquet", path, "day=1/b%20c"])
    assert not usual or PATHS.file(path) == path
    assert CanonicalPaths.are_usual(["a.parquet", "day=1/b%20c.parquet"])
