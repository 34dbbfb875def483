"""Random damage to commits, schemas, deletion vectors and checkpoints.

Whatever the bytes, reading gives an answer or a ``TwinlakeError``; nothing else ever comes out.
"""

from __future__ import annotations

import json
import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.log_tables import sample_log
from tests.support.scale import scale
from tests.support.schema_strategies import json_values
from twinlake.actions import (
    AddFile,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
    RemoveFile,
    decode_whole_commit,
)
from twinlake.errors import TwinlakeError
from twinlake.log import CheckpointKind, load_snapshot, update_snapshot, write_checkpoint
from twinlake.log.commit_decoder import decode_commit
from twinlake.log.deletion_vectors import decode_payload, encode_bitmap, read_dv, write_dv_file
from twinlake.schema import parse_schema
from twinlake.storage import MemoryStore
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from twinlake.storage import Store

pytestmark = pytest.mark.slow

EXAMPLES = scale(80, 2_000)


def _copy(store: Store) -> MemoryStore:
    copied = MemoryStore()
    for meta in store.list_from(""):
        copied.put(meta.key, store.read(meta.key))
    return copied


@cache
def _log() -> MemoryStore:
    store = MemoryStore()
    sample_log(store)
    return store


@cache
def _checkpointed(kind: CheckpointKind, sidecars: int) -> MemoryStore:
    """A log of which only the last commit and a checkpoint are left."""
    store = _copy(_log())
    snapshot = load_snapshot(store)
    write_checkpoint(snapshot, kind=kind, sidecars=sidecars)
    store.delete([f"_delta_log/{version:020}.json" for version in range(snapshot.version)])
    return store


def _look(store: Store, version: int | None = None) -> None:
    table = Table(load_snapshot(store, version))
    table.files().to_pylist(maps_as_pydicts="lossy")
    table.files("id > 3 AND name LIKE 'n%' AND day IS NOT NULL")
    list(table.snapshot.adds())
    table.snapshot.tombstones().to_pylist(maps_as_pydicts="lossy")
    table.history()
    table.detail().to_dict()
    repr(table)


def _survives(look: Callable[[], object]) -> None:
    """It works, or raises one of our errors that says something; any other exception fails."""
    try:
        look()
    except TwinlakeError as error:
        assert error.what
        assert error.fix


# Bytes


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with a few of them changed, cut out, doubled or put in."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(0, max(len(changed) - 1, 0)))
        length = draw(st.integers(0, 12))
        match draw(st.integers(0, 4)):
            case 0 if changed:
                changed[position] ^= 1 << draw(st.integers(0, 7))
            case 1:
                changed[position : position + length] = draw(st.binary(max_size=12))
            case 2:
                del changed[position : position + length]
            case 3:
                changed[position:position] = changed[position : position + length]
            case _:
                del changed[position:]
    return bytes(changed)


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_damaged_commits(data: st.DataObject) -> None:
    store = _copy(_log())
    key = f"_delta_log/{data.draw(st.integers(0, 3)):020}.json"
    older = load_snapshot(store, 2)
    body = data.draw(damaged(store.read(key)))
    store.put(key, body)
    _survives(lambda: _look(store))
    _survives(lambda: update_snapshot(older).files())


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_the_two_decoders_agree_on_damaged_commits(data: st.DataObject) -> None:
    """The fast decoder takes whatever the careful one takes, and sees the same files in it."""
    original = _log().read(f"_delta_log/{data.draw(st.integers(0, 3)):020}.json")
    body = data.draw(damaged(original))
    try:
        actions = decode_whole_commit(body, source="c")
    except TwinlakeError:
        # In text that it skips, such as that of commitInfo, the fast one may pass over damage.
        _survives(lambda: decode_commit(body, 7, "c"))
        return
    if max(len([a for a in actions if isinstance(a, kind)]) for kind in (Metadata, Protocol)) > 1:
        return
    columns = decode_commit(body, 7, "c")
    for batches, kind in ((columns.adds, AddFile), (columns.removes, RemoveFile)):
        paths = [path for batch in batches for path in batch.column("path").to_pylist()]
        assert paths == [a.path for a in actions if isinstance(a, kind)]


# Values


def _places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [here]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _places(inner, (*here, key))
    return found


def _with(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    head, *rest = place
    return {**value, head: _with(value[head], tuple(rest), new)}


_odd_values = (
    json_values
    | st.integers(-(2**70), 2**70)
    | st.sampled_from(["", "\x00", "../x", "%2e%2e/x", "%ff", "NaN", "9" * 400, "\ud7ff"])
)


@settings(max_examples=EXAMPLES)
@given(st.data(), _odd_values)
def test_wrong_values_in_commits(data: st.DataObject, value: Any) -> None:
    store = _copy(_log())
    key = f"_delta_log/{data.draw(st.integers(0, 3)):020}.json"
    lines = [json.loads(text) for text in store.read(key).splitlines()]
    index = data.draw(st.integers(0, len(lines) - 1))
    places = _places(lines[index])
    lines[index] = _with(lines[index], data.draw(st.sampled_from(places)), value)
    store.put(key, b"".join(json.dumps(item).encode() + b"\n" for item in lines))
    _survives(lambda: _look(store))


@settings(max_examples=EXAMPLES)
@given(st.data(), _odd_values)
def test_wrong_values_in_statistics(data: st.DataObject, value: Any) -> None:
    store = _copy(_log())
    key = f"_delta_log/{1:020}.json"
    lines = [json.loads(text) for text in store.read(key).splitlines()]
    stats = json.loads(lines[5]["add"]["stats"])
    stats = _with(stats, data.draw(st.sampled_from(_places(stats))), value)
    lines[5]["add"]["stats"] = json.dumps(stats)
    store.put(key, b"".join(json.dumps(item).encode() + b"\n" for item in lines))
    # Statistics are hints: whatever they say, the table can be listed.
    table = Table(load_snapshot(store))
    assert len(table.files()) == len(list(table.snapshot.adds())) == table.snapshot.num_files
    table.files("id > 3 AND name LIKE 'n%'").to_pylist(maps_as_pydicts="lossy")


_SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "a", "type": "decimal(10,2)", "nullable": True, "metadata": {"k": 1}},
            {
                "name": "m",
                "type": {
                    "type": "map",
                    "keyType": "string",
                    "valueType": {"type": "array", "elementType": "date", "containsNull": True},
                    "valueContainsNull": True,
                },
                "nullable": False,
                "metadata": {"delta.columnMapping.id": 3},
            },
        ],
    }
)


@settings(max_examples=EXAMPLES)
@given(damaged(_SCHEMA.encode()))
def test_damaged_schemas(body: bytes) -> None:
    _survives(lambda: parse_schema(body.decode("utf-8", "surrogateescape")))
    _survives(lambda: parse_schema(body.decode("latin-1")))


@settings(max_examples=EXAMPLES)
@given(json_values)
def test_any_json_as_a_schema(value: Any) -> None:
    _survives(lambda: parse_schema(json.dumps(value)))
    wrapped = {"type": "struct", "fields": [{"name": "a", "type": value, "nullable": True}]}
    _survives(lambda: parse_schema(json.dumps(wrapped)))


# Deletion vectors

_PAYLOAD = encode_bitmap([1, 5, 70_000, *range(200_000, 206_000), 2**33, 2**40 + 3])


@settings(max_examples=2 * EXAMPLES)
@given(damaged(_PAYLOAD))
@example(b"")
def test_damaged_vector_payloads(body: bytes) -> None:
    _survives(lambda: list(decode_payload(body)))


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_damaged_vector_files(data: st.DataObject) -> None:
    content, descriptors = write_dv_file([[1, 2], range(5_000)], uuid.UUID(int=7))
    store = MemoryStore()
    store.put(f"deletion_vector_{uuid.UUID(int=7)}.bin", data.draw(damaged(content)))
    for descriptor in descriptors:
        _survives(lambda d=descriptor: read_dv(store, d))  # type: ignore[misc]


@settings(max_examples=EXAMPLES)
@given(
    st.builds(
        DeletionVectorDescriptor,
        storage_type=st.sampled_from(["u", "i", "p", "", "x"]) | st.text(max_size=2),
        path_or_inline_dv=st.text(max_size=40),
        size_in_bytes=st.integers(-(2**31), 2**31 - 1),
        cardinality=st.integers(-(2**63), 2**63 - 1),
        offset=st.none() | st.integers(-(2**31), 2**31 - 1),
    )
)
def test_any_vector_descriptor(descriptor: DeletionVectorDescriptor) -> None:
    _survives(lambda: read_dv(MemoryStore(), descriptor))


# Checkpoints


@settings(max_examples=EXAMPLES // 2)
@given(st.data())
@pytest.mark.parametrize(
    ("kind", "sidecars"),
    [
        (CheckpointKind.V2_CLASSIC, 0),
        (CheckpointKind.V2_PARQUET, 1),
        (CheckpointKind.V2_JSON, 1),
        (CheckpointKind.V2_JSON, 0),
    ],
    ids=lambda value: getattr(value, "value", value),
)
def test_damaged_checkpoints(kind: CheckpointKind, sidecars: int, data: st.DataObject) -> None:
    store = _copy(_checkpointed(kind, sidecars))
    keys = [
        meta.key
        for meta in store.list_from("_delta_log")
        if "checkpoint" in meta.key or "_sidecars" in meta.key
    ]
    key = data.draw(st.sampled_from(sorted(keys)))
    store.put(key, data.draw(damaged(store.read(key))))
    _survives(lambda: _look(store))


@settings(max_examples=EXAMPLES)
@given(st.data())
def test_damaged_parquet_footers(data: st.DataObject) -> None:
    """Damage that gets as far as possible: the footer is found, and wrong."""
    store = _copy(_checkpointed(CheckpointKind.V2_CLASSIC, 0))
    (key,) = [m.key for m in store.list_from("_delta_log") if m.key.endswith(".parquet")]
    body = store.read(key)
    start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    footer = data.draw(damaged(body[start:-8]))
    store.put(key, body[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    _survives(lambda: _look(store))


@settings(max_examples=EXAMPLES // 2)
@given(st.data())
def test_damaged_checkpoints_beside_all_commits(data: st.DataObject) -> None:
    """With the commits still there a damaged checkpoint hides nothing that breaks its reading."""
    store = _copy(_log())
    checkpoint = write_checkpoint(load_snapshot(store), kind=CheckpointKind.V2_PARQUET)
    key = checkpoint.files[0].key
    store.put(key, store.read(key)[: data.draw(st.integers(0, 200))])
    _look(store)
    assert len(Table(load_snapshot(store)).files()) == 40
