"""Whether files are in Hive folders that match the log: then Spark prunes partitions itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from twinlake.errors import TwinlakeError
from twinlake.schema import (
    BOOLEAN,
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    char_type,
    parse_partition_path,
    partition_array,
)
from twinlake.spark.read.columns import ReadColumns
from twinlake.storage import decode_path, parse_location

if TYPE_CHECKING:
    from twinlake.log import Snapshot

__all__ = ["has_hive_paths"]

_SAME_TEXT: Final = frozenset({BOOLEAN, BYTE, DATE, INTEGER, LONG, SHORT, STRING})
"""Types whose text means the same to Spark's folder reader and to the log."""


def has_hive_paths(snapshot: Snapshot, files: pa.Table) -> bool:
    """Whether every file lies in ``a=1/b=x`` below the root, exactly as its values are encoded."""
    columns = ReadColumns(snapshot.metadata)
    if not columns.partitions or not len(files):
        return False
    # Spark does not pad what it reads from folders.
    if any(f.type not in _SAME_TEXT or char_type(f) for f in columns.partitions):
        return False
    # Spark reads folders up to the root of the file system: one like these would become a column.
    if "=" in parse_location(snapshot.store.url).path:
        return False
    return _all_match(files, columns)


def _all_match(files: pa.Table, columns: ReadColumns) -> bool:
    folders = pc.replace_substring_regex(files["path"], "/?[^/]*$", "").combine_chunks()
    encoded = folders.dictionary_encode()
    names = [columns.name_in_files(field) for field in columns.partitions]
    parsed = [_values(folder, names) for folder in encoded.dictionary.to_pylist()]
    if any(values is None for values in parsed):
        return False
    stored = files["partition_values"].combine_chunks().flatten()
    for position, (field, actual) in enumerate(zip(columns.partitions, stored, strict=True)):
        texts = pa.array([values[position] for values in parsed if values], pa.string())
        try:
            spelt = partition_array(texts, field.type).take(encoded.indices)
        except (TwinlakeError, pa.ArrowException):
            return False
        same = pc.equal(spelt, actual)
        both_null = pc.and_(pc.is_null(spelt), pc.is_null(actual))
        if not pc.all(pc.or_(pc.fill_null(same, False), both_null)).as_py():
            return False
    return True


def _values(folder: str, names: list[str]) -> list[str | None] | None:
    """The values that a folder spells for exactly these columns, in this order."""
    if folder.startswith("/") or ":" in folder.partition("/")[0]:
        return None
    decoded = decode_path(folder)
    found = parse_partition_path(decoded)
    if list(found) != names or decoded.count("/") != len(names) - 1:
        return None
    return list(found.values())
