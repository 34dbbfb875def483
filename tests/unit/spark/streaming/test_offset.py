"""Offsets as checkpoints of Delta Spark have them."""

from __future__ import annotations

import json

import pytest

from twinlake.errors import UserError
from twinlake.spark.streaming.offset import BASE_INDEX, StreamOffset

TABLE = "3c0d1a52-0000-4000-8000-000000000001"


def written(**fields: object) -> str:
    """An offset as Delta Spark 4.4.0 writes it."""
    known = {
        "sourceVersion": 1,
        "reservoirId": TABLE,
        "reservoirVersion": 4,
        "index": -1,
        "isStartingVersion": False,
    }
    return json.dumps({**known, **fields}, separators=(",", ":"))


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        (written(), StreamOffset(table_id=TABLE, version=4, index=BASE_INDEX)),
        (written(index=0), StreamOffset(table_id=TABLE, version=4, index=0)),
        (
            written(index=7, isStartingVersion=True),
            StreamOffset(table_id=TABLE, version=4, index=7, is_initial=True),
        ),
        (written(sourceVersion=3, index=-20), StreamOffset(table_id=TABLE, version=4, index=-20)),
        (written(sourceVersion=3, index=-19), StreamOffset(table_id=TABLE, version=4, index=-19)),
    ],
)
def test_offsets_of_delta_spark_come_back_as_they_were(text: str, offset: StreamOffset) -> None:
    assert StreamOffset.parse(text) == offset
    assert StreamOffset.parse(json.loads(text)) == offset
    assert offset.to_dict() == json.loads(text)


def test_the_base_of_source_version_3_is_read() -> None:
    found = StreamOffset.parse(written(sourceVersion=3, index=-100))
    assert found.is_base
    assert found.to_dict()["index"] == -1


def test_an_order_by_event_time_is_kept() -> None:
    offset = StreamOffset(table_id=TABLE, version=1, index=3, is_initial=True, event_time="at")
    assert StreamOffset.parse(offset.to_dict()) == offset


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "{}",
        '{"partition-1":{"index":3}}',
        written(index="one"),
        written(sourceVersion=2),
        written(sourceVersion=4),
        written(sourceVersion=0),
        written(reservoirId=None),
    ],
)
def test_other_offsets_are_refused(text: str) -> None:
    with pytest.raises(UserError) as raised:
        StreamOffset.parse(text)
    assert raised.value.delta_class == "DELTA_INVALID_SOURCE_OFFSET_FORMAT"
    assert raised.value.why
