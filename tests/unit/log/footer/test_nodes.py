"""Footers decoded by ourselves: what pyarrow finds in them, and no harm from damage."""

from __future__ import annotations

import io
import pickle
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.scale import scale
from twinlake.errors import StorageError
from twinlake.log import read_nodes
from twinlake.log.footer.nodes import FooterReader, decode_nodes
from twinlake.log.footer.thrift import footer_bytes
from twinlake.runtime import InProcess
from twinlake.schema import ParquetNode, Repetition, walk_nodes
from twinlake.storage import MemoryStore, open_store
from twinlake.storage.memory import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from twinlake.log import FooterNodes


def field(name: str, kind: pa.DataType, number: int | None, **rest: Any) -> pa.Field:
    metadata = None if number is None else {b"PARQUET:field_id": str(number).encode()}
    return pa.field(name, kind, metadata=metadata, **rest)


def parquet(schema: pa.Schema, rows: int = 3, **options: Any) -> bytes:
    place = io.BytesIO()
    pq.write_table(schema.empty_table().take(pa.nulls(rows, pa.int64())), place, **options)
    return place.getvalue()


def footer(data: bytes) -> bytes:
    return footer_bytes(len(data), lambda start, length: data[start : start + length])


def tree(data: bytes) -> ParquetNode:
    return decode_nodes(footer(data))[0]


KINDS = {
    "bool": (pa.bool_(), "BOOLEAN", None),
    "int8": (pa.int8(), "INT32", "INTEGER"),
    "int16": (pa.int16(), "INT32", "INTEGER"),
    "int32": (pa.int32(), "INT32", None),
    "int64": (pa.int64(), "INT64", None),
    "uint32": (pa.uint32(), "INT32", "INTEGER"),
    "float16": (pa.float16(), "FIXED_LEN_BYTE_ARRAY", "FLOAT16"),
    "float": (pa.float32(), "FLOAT", None),
    "double": (pa.float64(), "DOUBLE", None),
    "decimal": (pa.decimal128(20, 2), "FIXED_LEN_BYTE_ARRAY", "DECIMAL"),
    "string": (pa.string(), "BYTE_ARRAY", "STRING"),
    "binary": (pa.binary(), "BYTE_ARRAY", None),
    "fixed": (pa.binary(7), "FIXED_LEN_BYTE_ARRAY", None),
    "date": (pa.date32(), "INT32", "DATE"),
    "time": (pa.time64("us"), "INT64", "TIME"),
    "timestamp": (pa.timestamp("us", "UTC"), "INT64", "TIMESTAMP"),
    "timestamp_ntz": (pa.timestamp("us"), "INT64", "TIMESTAMP"),
    "nanos": (pa.timestamp("ns"), "INT64", "TIMESTAMP"),
    "void": (pa.null(), "INT32", "UNKNOWN"),
}


#: Of those whose logical type has any.
PARAMETERS = {
    "int8": (8, 1),
    "int16": (16, 1),
    "uint32": (32, 0),
    "decimal": (20, 2),
    "timestamp": (1, 6),
    "timestamp_ntz": (0, 6),
    "nanos": (0, 9),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_type(name: str) -> None:
    kind, physical, annotation = KINDS[name]
    root = tree(parquet(pa.schema([field("c", kind, 7)])))
    assert root.is_group
    assert root.children == (
        ParquetNode(
            name="c",
            repetition=Repetition.OPTIONAL,
            physical_type=physical,
            annotation=annotation,
            parameters=PARAMETERS.get(name, ()),
            field_id=7,
        ),
    )


def test_int96_and_no_ids() -> None:
    schema = pa.schema([pa.field("t", pa.timestamp("us"), nullable=False)])
    place = io.BytesIO()
    pq.write_table(schema.empty_table(), place, use_deprecated_int96_timestamps=True)
    (node,) = tree(place.getvalue()).children
    assert (node.physical_type, node.annotation, node.field_id) == ("INT96", None, None)
    assert node.repetition is Repetition.REQUIRED


NESTED = pa.schema(
    [
        field("s", pa.struct([field("x", pa.int32(), 2), field("y", pa.string(), None)]), 1),
        field("l", pa.list_(field("element", pa.list_(field("element", pa.int64(), 5)), 4)), 3),
        field(
            "m",
            pa.map_(
                field("key", pa.struct([field("k", pa.date32(), 8)]), 7, nullable=False),
                field("value", pa.struct([field("ümlaut", pa.binary(), 10)]), 9),
            ),
            6,
        ),
    ]
)


def test_nested_nodes_have_wrappers_annotations_and_ids() -> None:
    found = {
        ".".join(path): (node.annotation, node.field_id)
        for path, node in walk_nodes(tree(parquet(NESTED)))
    }
    assert found == {
        "s": (None, 1),
        "s.x": (None, 2),
        "s.y": ("STRING", None),
        "l": ("LIST", 3),
        "l.list": (None, None),
        "l.list.element": ("LIST", 4),
        "l.list.element.list": (None, None),
        "l.list.element.list.element": (None, 5),
        "m": ("MAP", 6),
        "m.key_value": (None, None),
        "m.key_value.key": (None, 7),
        "m.key_value.key.k": ("DATE", 8),
        "m.key_value.value": (None, 9),
        "m.key_value.value.ümlaut": (None, 10),
    }


def leaves(root: ParquetNode) -> list[tuple[str, str | None]]:
    return [(".".join(p), n.physical_type) for p, n in walk_nodes(root) if not n.is_group]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"version": "1.0"},
        {"compression": "zstd", "write_page_index": True},
        {"row_group_size": 1},
        {"store_schema": False, "write_statistics": False},
    ],
    ids=str,
)
def test_leaves_and_rows_are_those_of_pyarrow(options: dict[str, Any]) -> None:
    wide = pa.schema([*NESTED, *(field(f"c{n}", k, n) for n, (k, *_) in enumerate(KINDS.values()))])
    data = parquet(wide.remove(wide.get_field_index("c6")), rows=5, **options)
    root, rows = decode_nodes(footer(data))
    theirs = pq.read_metadata(io.BytesIO(data))
    assert rows == theirs.num_rows == 5
    columns = [theirs.schema.column(n) for n in range(len(theirs.schema))]
    assert leaves(root) == [(column.path, column.physical_type) for column in columns]


def test_files_of_one_schema_share_one_tree() -> None:
    once, again = tree(parquet(NESTED)), tree(parquet(NESTED, rows=9))
    assert once is again
    other = NESTED.append(field("z", pa.int32(), 99))
    assert tree(parquet(other)) != once
    # Schemas that begin alike, in either order: known sections never stand in for longer ones.
    assert tree(parquet(NESTED)) is once


def test_a_footer_longer_than_the_first_read_is_read_again() -> None:
    wide = pa.schema([field(f"column_{n}", pa.string(), n) for n in range(2_000)])
    data = parquet(wide)
    assert len(footer(data)) > 1 << 16
    assert len(tree(data).children) == 2_000


def rooted(files: dict[str, bytes], at: Path | None = None) -> Any:
    if at is None:
        store = MemoryStore()
        for name, data in files.items():
            store.put(name, data)
        return store
    for name, data in files.items():
        (at / name).write_bytes(data)
    return open_store(at)


def read(store: Any, files: Iterable[tuple[str, int]]) -> list[FooterNodes]:
    return list(read_nodes(store, files, InProcess()))


@pytest.mark.parametrize("on_disk", [True, False], ids=["disk", "service"])
def test_batches_keep_the_order(tmp_path: Path, on_disk: bool) -> None:
    made = {f"part {n}.parquet": parquet(NESTED, rows=n) for n in range(20)}
    store = rooted(made, tmp_path if on_disk else None)
    files = [(name.replace(" ", "%20"), len(data)) for name, data in made.items()] * 30
    found = read(store, files)
    assert [nodes.num_rows for nodes in found] == list(range(20)) * 30
    assert len({id(nodes.root) for nodes in found}) == 1


class Elsewhere:
    """An executor whose items and answers travel as bytes."""

    def map(self, fn: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        sent = pickle.dumps(fn)
        for item in items:
            yield pickle.loads(pickle.dumps(pickle.loads(sent)(item)))


def test_an_executor_may_work_in_another_process(tmp_path: Path) -> None:
    store = rooted({"a.parquet": parquet(NESTED)}, tmp_path)
    files = [("a.parquet", (tmp_path / "a.parquet").stat().st_size)] * 600
    found = list(read_nodes(store, files, Elsewhere()))
    assert len(found) == 600
    # What came from three batches is one tree again.
    assert len({id(nodes.root) for nodes in found}) == 1


def test_what_is_wrong_with_a_file_is_told(tmp_path: Path) -> None:
    good = parquet(NESTED)
    made = {
        "good.parquet": good,
        "text.parquet": b"not a parquet file at all",
        "tiny.parquet": b"PAR1",
        "empty.parquet": b"",
        "encrypted.parquet": good[:-4] + b"PARE",
        "far.parquet": good[:-8] + (1 << 31).to_bytes(4, "little") + b"PAR1",
        "cut.parquet": good[: len(good) // 2],
    }
    sizes = {name: len(data) for name, data in made.items()} | {"cut.parquet": len(good)}
    store = rooted(made, tmp_path)
    files = [*sizes.items(), ("gone.parquet", 99)]
    problems = {
        name: nodes.problem for (name, _), nodes in zip(files, read(store, files), strict=True)
    }
    assert problems == {
        "good.parquet": "",
        "text.parquet": "it has no Parquet footer",
        "tiny.parquet": "it has no Parquet footer",
        "empty.parquet": "it has no Parquet footer",
        "encrypted.parquet": "its footer is encrypted",
        "far.parquet": "it has no Parquet footer",
        "cut.parquet": f"the file has {len(good) // 2} bytes, the log says {len(good)}",
        "gone.parquet": "the file is not there",
    }


def test_a_store_that_fails_is_no_damage() -> None:
    store = MemoryStore(faults=[("read_range", 1, Fault.before())])
    store.put("a.parquet", parquet(NESTED))
    with pytest.raises(StorageError):
        FooterReader(store)([("a.parquet", 1_000)])


def thrift(*body: int) -> bytes:
    return bytes(body) + len(body).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize(
    "data",
    [
        thrift(),
        thrift(0),
        # Lists in lists without end; a list of two thousand million; a number without end.
        thrift(0x29, *[0x19] * 5_000),
        thrift(0x29, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x07),
        thrift(0x15, *[0xFF] * 300),
        # Structs in structs.
        thrift(*[0x1C] * 5_000),
        # A group that claims more children than there are elements.
        thrift(0x29, 0x1C, 0x48, 0x01, 0x61, 0x15, 0x7E, 0x00, 0x16, 0x00, 0x00),
        # Two elements that are no tree, an element without a name, a name that is a number.
        thrift(0x29, 0x2C, 0x48, 0x01, 0x61, 0x00, 0x48, 0x01, 0x61, 0x00, 0x16, 0x00, 0x00),
        thrift(0x29, 0x1C, 0x00, 0x16, 0x00, 0x00),
        thrift(0x29, 0x1C, 0x45, 0x02, 0x00, 0x16, 0x00, 0x00),
        # The schema is a list of numbers.
        thrift(0x29, 0x15, 0x02, 0x16, 0x00, 0x00),
        # Rows below nought.
        thrift(0x29, 0x1C, 0x48, 0x01, 0x61, 0x00, 0x16, 0x01, 0x00),
    ],
    ids=range(12),
)
def test_footers_that_make_no_sense(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"footer|schema"):
        decode_nodes(data)


def chain(depth: int) -> bytes:
    """A schema of groups in groups."""
    link = [0x48, 0x01, 0x61, 0x15, 0x02, 0x00]
    last = [0x15, 0x02, 0x38, 0x01, 0x61, 0x00]
    count = depth + 1
    varint = [count & 0x7F | 0x80, count >> 7] if count > 127 else [count]
    return thrift(0x29, 0xFC, *varint, *(link * depth), *last, 0x16, 0x00, 0x00)


def test_deep_schemas_are_read_up_to_a_limit() -> None:
    root, rows = decode_nodes(chain(150))
    assert (len(list(walk_nodes(root))), rows) == (150, 0)
    assert pickle.loads(pickle.dumps(root)) == root
    with pytest.raises(ValueError, match="nests too deep"):
        decode_nodes(chain(5_000))


def test_damage_is_told_and_never_crashes() -> None:
    chance = random.Random(20)
    good = footer(parquet(NESTED, rows=50))
    rounds = scale(3_000, 100_000)
    refused = 0
    for _ in range(rounds):
        data = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data) - 8)] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        try:
            root, rows = decode_nodes(bytes(data))
        except ValueError:
            refused += 1
        else:
            assert rows >= 0
            assert all(isinstance(node.name, str) for _, node in walk_nodes(root))
    assert refused > rounds // 10
