"""Avro files of strangers: what would end the process or fill the memory is found out before."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any

import fastavro
import pytest

from twinlake.iceberg.requests.avro_safety import check_avro

LIMIT = 1 << 20
RECORD = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}


def number(value: int) -> bytes:
    value, out = value << 1, bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def text(data: bytes) -> bytes:
    return number(len(data)) + data


def container(schema: bytes, payload: bytes = b"\x02", codec: bytes = b"deflate") -> bytes:
    """A file of one record, with a schema of any kind."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(payload) + packer.flush() if codec == b"deflate" else payload
    header = text(b"avro.schema") + text(schema) + text(b"avro.codec") + text(codec)
    return b"Obj\x01\x04" + header + b"\0" + b"S" * 16 + number(1) + text(block) + b"S" * 16


def of_field(kind: Any) -> bytes:
    return json.dumps({**RECORD, "fields": [{"name": "a", "type": kind}]}).encode()


def nested(levels: int) -> bytes:
    kind: Any = "int"
    for _ in range(levels):
        kind = {"type": "array", "items": kind}
    return of_field(kind)


NOTHING = {"type": "record", "name": "nothing", "fields": []}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        pytest.param(container(of_field("r")), "holds itself", id="record in itself"),
        pytest.param(container(of_field(["null", "r"])), "holds itself", id="by a union"),
        pytest.param(
            container(of_field({"type": "array", "items": "r"})), "holds itself", id="by an array"
        ),
        pytest.param(
            container(of_field({"type": "map", "values": "ns.r"})), "holds itself", id="by a map"
        ),
        pytest.param(
            container(of_field({"type": "array", "items": "null"})), "no bytes", id="nulls"
        ),
        pytest.param(
            container(of_field({"type": "array", "items": NOTHING})), "no bytes", id="no fields"
        ),
        pytest.param(
            container(
                of_field({"type": "array", "items": {"type": "fixed", "name": "f", "size": 0}})
            ),
            "no bytes",
            id="fixed of nothing",
        ),
        pytest.param(container(nested(100)), "too deep", id="deep"),
        pytest.param(container(b"[" * 100_000), "is none", id="deep JSON"),
        pytest.param(container(b""), "is none", id="no schema"),
        pytest.param(container(b'{"type": "record"}'), "does not define", id="no fields key"),
        pytest.param(container(of_field(5)), "a type that is none", id="a number as a type"),
        pytest.param(container(of_field("int"), codec=b"snappy"), "codec is snappy", id="codec"),
        pytest.param(container(of_field("int"), b"\0" * (LIMIT + 1)), "unpacks to", id="bomb"),
        pytest.param(
            container(of_field("int"), b"\0" * (LIMIT + 1), b"null"), "unpacks to", id="stored"
        ),
        pytest.param(b"", "no Avro file", id="empty"),
        pytest.param(b"Obj\x01", "than the file", id="magic alone"),
        pytest.param(b"Obj\x01" + b"\xff" * 30, "longer than any", id="endless number"),
        pytest.param(b"Obj\x01\x02" + number(1 << 40), "ends after the file", id="long text"),
    ],
)
def test_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_avro(data, LIMIT)


def test_a_block_that_ends_after_the_file_is_refused() -> None:
    data = container(of_field("int"))
    for cut in range(1, 18):
        with pytest.raises(ValueError, match="ends after"):
            check_avro(data[:-cut], LIMIT)


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_what_libraries_write_passes(codec: str) -> None:
    item = {"type": "record", "name": "k1", "fields": [{"name": "k", "type": "int"}]}
    schema = {
        **RECORD,
        "fields": [
            {"name": "a", "type": ["null", "long"]},
            {"name": "b", "type": ["null", {"type": "array", "items": item}]},
            {"name": "c", "type": {"type": "map", "values": "k1"}},
            {"name": "d", "type": {"type": "fixed", "name": "f", "size": 3}},
            {"name": "e", "type": {"type": "record", "name": "r102", "fields": []}},
        ],
    }
    record = {"a": 1, "b": [{"k": 2}], "c": {"x": {"k": 3}}, "d": b"abc", "e": {}}
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), [record] * 100, codec=codec)
    check_avro(buffer.getvalue(), LIMIT)
