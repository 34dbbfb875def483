"""What an added file says of itself: statistics and partition values that a reader can parse.

Readers drop statistics that they cannot parse, or fail on them, each in its own way; a partition
value that is none of its column's type makes the file unreadable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.errors import CorruptTable, UserError
from twinlake.schema import ColumnMappingMode, parse_partition_value, physical_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.actions import AddCDCFile, AddFile, Metadata
    from twinlake.schema import DataType

__all__ = ["unparsable_partition_values", "unparsable_statistics"]


class _Object(msgspec.Struct):
    """Any object: its members are skipped."""


class _Stats(msgspec.Struct, rename="camel"):
    num_records: int | None = None
    tight_bounds: bool | None = None
    min_values: _Object | None = None
    max_values: _Object | None = None
    null_count: _Object | None = None


_STATS: Final = msgspec.json.Decoder(_Stats)


def unparsable_statistics(adds: Iterable[AddFile]) -> Iterator[tuple[str, str]]:
    """Files with statistics that are no JSON object of Delta's shape, each with the reason."""
    for add in adds:
        if not add.stats:
            continue
        try:
            count = _STATS.decode(add.stats).num_records
        except (msgspec.DecodeError, RecursionError) as error:
            yield add.path, str(error) or type(error).__name__
        else:
            if count is not None and count < 0:
                yield add.path, "numRecords is negative"


def unparsable_partition_values(
    files: Iterable[AddFile | AddCDCFile], metadata: Metadata
) -> Iterator[tuple[str, DataType, str, str]]:
    """Column, its type, value and file, where the value is none of the type.

    Files share values, so each value is parsed once and named with the first file that has it.
    """
    columns = _partition_columns(metadata)
    known: set[tuple[str, str | None]] = set()
    for file in files if columns else ():
        for name, kind in columns.items():
            value = file.partition_values.get(name)
            if value is None or (name, value) in known:
                continue
            known.add((name, value))
            try:
                parse_partition_value(value, kind)
            except CorruptTable:
                yield name, kind, value, file.path
            except UserError:
                # No type to partition by, which is said of the schema.
                break


def _partition_columns(metadata: Metadata) -> dict[str, DataType]:
    """The partition columns by the names that partition values have."""
    if not metadata.partition_columns:
        return {}
    mapped = metadata.column_mapping_mode is not ColumnMappingMode.NONE
    fields = (metadata.schema.get(name) for name in metadata.partition_columns)
    return {
        physical_name(field) if mapped else field.name: field.type
        for field in fields
        if field is not None
    }
