"""Sizes of unpacked pages, beside those that pyarrow writes into the footer."""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from twinlake.log.footer.page_sizes import PageSizes, page_sizes

ROWS = pa.table(
    {
        "n": pa.array([*range(5_000)] * 4, pa.int64()),
        "s": [f"file:///a/b/{number % 700:05}.parquet" for number in range(20_000)],
        "l": [[number, None] if number % 3 else None for number in range(20_000)],
    }
)
WRITERS: dict[str, dict[str, Any]] = {
    "plain": {"use_dictionary": False, "compression": "none"},
    "dictionary": {"compression": "snappy"},
    "small pages": {"data_page_size": 1_000, "compression": "zstd", "row_group_size": 7_000},
    "version 2": {"data_page_version": "2.0", "compression": "gzip", "data_page_size": 1_000},
    "index": {"write_page_index": True, "write_page_checksum": True},
    "no rows": {},
}


def written(name: str, rows: pa.Table = ROWS) -> bytes:
    out = io.BytesIO()
    pq.write_table(rows.slice(0, 0) if name == "no rows" else rows, out, **WRITERS[name])
    return out.getvalue()


@pytest.mark.parametrize("name", WRITERS)
def test_pages_are_what_the_footer_says_without_their_headers(name: str) -> None:
    data = written(name)
    footer = pq.read_metadata(io.BytesIO(data))
    chunks = [
        footer.row_group(group).column(column)
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    ]
    most = sum(chunk.total_uncompressed_size for chunk in chunks)
    found = page_sizes(data)
    assert found.longest_value == 0
    assert 0.8 * most - 1_000 <= found.total <= most


def test_values_that_share_beginnings_may_be_as_long_as_their_page() -> None:
    out = io.BytesIO()
    encoding = {"s": "DELTA_BYTE_ARRAY"}
    pq.write_table(ROWS.select(["s"]), out, use_dictionary=False, column_encoding=encoding)
    found = page_sizes(out.getvalue())
    assert 0 < found.longest_value <= found.total


def test_the_header_of_a_page_counts_and_not_the_footer() -> None:
    """A page of zeros: its header says how large it is, in three bytes after its kind."""
    out = io.BytesIO()
    rows = pa.table({"n": pa.array([0] * 10_000, pa.int64())})
    pq.write_table(rows, out, use_dictionary=False, compression="zstd", write_statistics=False)
    data = bytearray(out.getvalue())
    honest = page_sizes(bytes(data)).total
    # Magic number, header of field 1, kind, header of field 2: then the size as a zigzag varint.
    assert honest == 80_008 and data[4:7] == b"\x15\x00\x15"
    data[7:10] = b"\xfe\xff\x7f"
    assert page_sizes(bytes(data)) == PageSizes(total=(1 << 20) - 1, longest_value=0)


@pytest.mark.parametrize("name", ["plain", "small pages", "version 2"])
def test_damage_is_an_error_or_a_number(name: str) -> None:
    data = written(name, ROWS.slice(0, 300))
    for at in range(4, len(data), max(len(data) // 400, 1)):
        for value in (0, 0x7F, 0xFF):
            damaged = data[:at] + bytes([value]) + data[at + 1 :]
            try:
                assert page_sizes(damaged).total >= 0
            except ValueError:
                continue
    for end in range(0, len(data), 97):
        with pytest.raises(ValueError, match="footer"):
            page_sizes(data[:end])
