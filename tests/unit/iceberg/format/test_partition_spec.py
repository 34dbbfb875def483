"""What a manifest list says of the partitions of a manifest: engines leave manifests out by it."""

from __future__ import annotations

import math
import struct
from typing import Any

import pytest

from twinlake.iceberg.format.partition_spec import (
    PartitionField,
    PartitionFieldSummary,
    PartitionSpec,
    summarize_partitions,
)
from twinlake.schema import BINARY, DOUBLE, FLOAT, STRING, DataType


def double(value: float) -> bytes:
    return struct.pack("<d", value)


def single(value: float) -> bytes:
    return struct.pack("<f", value)


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (STRING, [None], PartitionFieldSummary(contains_null=True)),
        (
            STRING,
            ["ü", "a", None],
            PartitionFieldSummary(contains_null=True, lower=b"a", upper="ü".encode()),
        ),
        (BINARY, ["ü".encode(), b"a"], PartitionFieldSummary(lower=b"a", upper="ü".encode())),
        (DOUBLE, [0.0, 0.5], PartitionFieldSummary(lower=double(-0.0), upper=double(0.5))),
        (DOUBLE, [-0.0], PartitionFieldSummary(lower=double(-0.0), upper=double(0.0))),
        (
            DOUBLE,
            [math.nan, None],
            PartitionFieldSummary(
                contains_null=True,
                contains_nan=True,
                lower=double(math.inf),
                upper=double(math.inf),
            ),
        ),
        (
            FLOAT,
            [math.nan, -1.5],
            PartitionFieldSummary(contains_nan=True, lower=single(-1.5), upper=single(math.inf)),
        ),
    ],
)
def test_summaries(kind: DataType, values: list[Any], expected: PartitionFieldSummary) -> None:
    spec = PartitionSpec((PartitionField(1, 1000, "p", "col-1", kind),))
    assert summarize_partitions([(value,) for value in values], spec) == (expected,)
