"""Laws of deletion vectors: what is written is read back; bad bytes give one kind of error."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap64

from twinlake.actions import DeletionVectorDescriptor
from twinlake.errors import TwinlakeError
from twinlake.log.deletion_vectors import (
    decode_payload,
    dv_path,
    encode_bitmap,
    inline_descriptor,
    write_dv_file,
)
from twinlake.log.z85 import decode_z85, encode_z85

if TYPE_CHECKING:
    import uuid

positions = st.sets(
    st.one_of(
        st.integers(0, 2**63 - 1),
        st.integers(0, 300),
        st.integers(65_500, 65_600),
        st.integers(2**32 - 5, 2**32 + 5),
    ),
    max_size=60,
)
stretches = st.lists(st.tuples(st.integers(0, 2**34), st.integers(1, 70_000)), max_size=4)


def _bitmap(values: set[int], runs: list[tuple[int, int]]) -> BitMap64:
    bitmap = BitMap64(values)
    for start, length in runs:
        bitmap.add_range(start, start + length)
    return bitmap


@settings(max_examples=60, deadline=None)
@given(values=positions, runs=stretches)
def test_payload_round_trip(values: set[int], runs: list[tuple[int, int]]) -> None:
    bitmap = _bitmap(values, runs)
    assert decode_payload(encode_bitmap(bitmap)) == bitmap
    # Without run containers, as other writers may leave it.
    assert decode_payload(struct.pack("<I", 1681511377) + bitmap.serialize()) == bitmap


@settings(max_examples=40, deadline=None)
@given(vectors=st.lists(positions, max_size=5), identifier=st.uuids())
def test_file_offsets_follow_each_other(vectors: list[set[int]], identifier: uuid.UUID) -> None:
    data, descriptors = write_dv_file([BitMap64(v) for v in vectors], identifier)
    expected = 1
    for descriptor, vector in zip(descriptors, vectors, strict=True):
        assert descriptor.offset == expected
        begin = expected + 4
        payload = data[begin : begin + descriptor.size_in_bytes]
        assert set(decode_payload(payload)) == vector
        expected = begin + descriptor.size_in_bytes + 4
    assert len(data) == expected


@given(data=st.binary(max_size=64))
def test_z85_round_trip(data: bytes) -> None:
    assert decode_z85(encode_z85(data), len(data)) == data


@settings(max_examples=150, deadline=None)
@given(
    data=st.binary(max_size=80),
    magic=st.sampled_from([b"", b"\xd1\xd39d", b"\xd0\xd39d", b"d9\xd3\xd0"]),
)
def test_random_bytes_never_surprise(data: bytes, magic: bytes) -> None:
    try:
        bitmap = decode_payload(magic + data)
    except TwinlakeError:
        return
    assert len(bitmap) >= 0


@settings(max_examples=150, deadline=None)
@given(
    values=positions,
    runs=stretches,
    edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=3),
    cut=st.integers(0, 8),
)
def test_mutated_payloads_never_surprise(
    values: set[int], runs: list[tuple[int, int]], edits: list[tuple[int, int]], cut: int
) -> None:
    payload = bytearray(encode_bitmap(_bitmap(values, runs)))
    for index, value in edits:
        payload[index % len(payload)] = value
    try:
        bitmap = decode_payload(bytes(payload[: len(payload) - cut]))
    except TwinlakeError:
        return
    # Whatever is accepted is a set of legal positions that survives its own encoding.
    assert decode_payload(encode_bitmap(bitmap)) == bitmap
    assert not bitmap or bitmap.max() < 2**63


@given(text=st.text(max_size=60), kind=st.sampled_from("uipx"))
def test_random_names_never_surprise(text: str, kind: str) -> None:
    try:
        path = dv_path(DeletionVectorDescriptor(kind, text, 4, 1, 1))
    except TwinlakeError:
        return
    assert path is None or ".." not in path.split("/") or kind == "p"


@given(values=positions)
def test_inline_text_is_padded_z85(values: set[int]) -> None:
    descriptor = inline_descriptor(values)
    assert (
        set(decode_payload(decode_z85(descriptor.path_or_inline_dv, descriptor.size_in_bytes)))
        == values
    )
