"""Tables with Iceberg writer compatibility and real data files, made once and kept."""

from __future__ import annotations

import io
import json
import shutil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from twinlake.protocol import Metadata

COMPAT: Final = "icebergWriterCompatV1"
PROPERTIES: Final = {"delta.enableIcebergWriterCompatV1": "true"}
_VARIANTS: Final = 16
_COMMIT: Final = 1_000
_COLUMNS: Final = (
    "id BIGINT, day DATE, at TIMESTAMP, name STRING, price DECIMAL(10, 2), raw BINARY, ok BOOLEAN",
    "ratio DOUBLE, tags ARRAY<STRING>, props MAP<STRING, STRUCT<n: INT, at: TIMESTAMP>>",
    "place STRUCT<street: STRING, zip: INT, geo: STRUCT<lat: DOUBLE, lon: DOUBLE>>",
    ", ".join(f"c{number} INT" for number in range(20)),
)


def wide_ddl(columns: int) -> str:
    """A schema of ``columns`` top-level columns, one in ten of them nested."""
    kinds = ("INT", "BIGINT", "STRING", "DATE", "TIMESTAMP", "DOUBLE", "DECIMAL(10, 2)", "BINARY")
    nested = ("ARRAY<INT>", "MAP<STRING, STRUCT<n: INT>>", "STRUCT<x: INT, y: STRING>")
    return ", ".join(
        f"c{number} {nested[number // 10 % 3] if number % 10 == 0 else kinds[number % 8]}"
        for number in range(columns)
    )


def footer_table(data: Path, files: int) -> Path:
    """The folder of a table of that many small files that keep every rule."""
    folder = data / f"compat1-{files}"
    if not folder.exists():
        making = data / f"{folder.name}.making"
        shutil.rmtree(making, ignore_errors=True)
        _make(making, files)
        making.rename(folder)
    return folder


def _make(folder: Path, files: int) -> None:
    from twinlake import Table
    from twinlake.actions import AddFile

    table = Table.create(folder, ", ".join(_COLUMNS), properties=PROPERTIES, durable=False)
    variants = [_parquet(table.metadata, rows) for rows in range(1, _VARIANTS + 1)]
    adds = []
    for number in range(files):
        rows = number % _VARIANTS + 1
        body = variants[rows - 1]
        path = f"part-{number:06d}.parquet"
        (folder / path).write_bytes(body)
        adds.append(
            AddFile(
                path=path,
                partition_values={},
                size=len(body),
                modification_time=1_700_000_000_000,
                data_change=True,
                stats=json.dumps({"numRecords": rows}),
            )
        )
    for start in range(0, files, _COMMIT):
        table = table.commit("WRITE", adds[start : start + _COMMIT])


def _parquet(metadata: Metadata, rows: int) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from twinlake.schema import physical_schema, to_arrow

    schema = to_arrow(
        physical_schema(metadata.schema, metadata.column_mapping_mode), field_ids=True
    )
    place = io.BytesIO()
    pq.write_table(schema.empty_table().take(pa.nulls(rows, pa.int64())), place)
    return place.getvalue()
