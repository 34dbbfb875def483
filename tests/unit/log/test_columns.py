"""File actions as Arrow columns, and back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from twinlake.actions import AddFile, DeletionVectorDescriptor
from twinlake.log.columns import add_batch, adds_from

VECTOR = DeletionVectorDescriptor(
    storage_type="u", path_or_inline_dv="x", size_in_bytes=9, cardinality=2, offset=1
)
Values = dict[str, str | None]
MAPS: list[tuple[Values, Values | None]] = [
    ({"p": "1"}, None),
    ({}, {}),
    ({"p": None, "q": "x"}, {"a": "b", "c": None}),
    ({"q": ""}, None),
    ({"p": "2"}, {"a": "b"}),
]
ADDS = [
    AddFile(
        path=f"{number}.parquet",
        partition_values=values,
        size=number,
        modification_time=number,
        data_change=number % 2 == 0,
        stats=None if number == 2 else f'{{"numRecords":{number}}}',
        tags=tags,
        deletion_vector=VECTOR if number == 3 else None,
        base_row_id=number if number > 3 else None,
    )
    for number, (values, tags) in enumerate(MAPS)
]


@pytest.mark.parametrize("start", range(len(ADDS)))
@pytest.mark.parametrize("length", range(1, len(ADDS) + 1))
def test_actions_come_back_from_any_part_of_a_batch(start: int, length: int) -> None:
    part = pa.Table.from_batches([add_batch(ADDS)]).slice(start, length)

    assert list(adds_from(part)) == ADDS[start : start + length]


def test_data_change_may_be_told_anew() -> None:
    table = pa.Table.from_batches([add_batch(ADDS)])

    assert {add.data_change for add in adds_from(table, data_change=False)} == {False}
