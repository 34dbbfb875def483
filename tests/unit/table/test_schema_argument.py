"""A table from the schemas of other libraries."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import types as t

from twinlake import Table, UserError
from twinlake.schema import parse_ddl

if TYPE_CHECKING:
    from pathlib import Path

ROW = {"id": [1], "name": ["a"], "day": [dt.date(2024, 5, 1)]}
GIVEN: dict[str, Any] = {
    "DDL": "id BIGINT, name STRING, day DATE",
    "ours": parse_ddl("id BIGINT, name STRING, day DATE"),
    "Arrow": pa.table(ROW).schema,
    "Arrow table": pa.table(ROW),
    "PySpark": t.StructType().add("id", "long").add("name", "string").add("day", "date"),
    "pandas": pd.DataFrame(ROW, index=[5]),
    "polars": pl.DataFrame(ROW),
    "polars schema": pl.DataFrame(ROW).schema,
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_create(tmp_path: Path, given: Any) -> None:
    table = Table.create(tmp_path, given)
    assert str(table.schema) == "struct<id: long, name: string, day: date>"
    assert table.append(ROW).to_arrow().to_pydict() == ROW


def test_what_is_no_schema_is_refused(tmp_path: Path) -> None:
    for rubbish in (1, None, object(), [("id", "int")]):
        with pytest.raises(UserError, match="no schema"):
            Table.create(tmp_path, rubbish)
    with pytest.raises(UserError, match=r"time \(time64"):
        Table.create(tmp_path, pa.schema([("id", pa.int32()), ("time", pa.time64("us"))]))
    assert list(tmp_path.iterdir()) == []
