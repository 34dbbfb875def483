"""The statistics of a data file, as Delta's log states them, from its Parquet footer.

A statistic the footer does not surely give is left out: a missing one costs a skipped file, a
wrong one costs rows. The file is one that was just written; footers of unknown files may end the
process (see ``parquet_footer``).
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.log.footer.thrift import footer_bytes, level_histograms
from twinlake.log.stats.batch import BatchStats, Bounds
from twinlake.log.stats.bound import BoundKind, kind_of, lower, upper
from twinlake.log.stats.columns import StatsColumn, StatsColumns
from twinlake.schema import DATE, DOUBLE, FLOAT, STRING, TIMESTAMP, TIMESTAMP_NTZ, VOID
from twinlake.storage import OS_ERRORS, OnDisk, os_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.schema import ColumnPath
    from twinlake.storage import Store

__all__ = ["BatchStats", "Footer", "StatsColumns", "footer_stats", "read_footer", "stats_json"]

_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
_PARQUET_JAVA: Final = re.compile(r"parquet-mr version 1\.(\d+)\.")
_PARQUET_CPP: Final = "parquet-cpp"
# Dates and times of such files follow another calendar before 1900.
_LEGACY_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The footer of a data file and the file's size in bytes."""

    metadata: pq.FileMetaData
    size: int


def read_footer(store: Store, key: str) -> Footer:
    """The footer of one file: two small reads at most, whatever the file's size."""
    meta = store.head(key)
    if meta is None:
        raise StorageError(
            Code.STORAGE_NOT_FOUND,
            f"The data file {key} is not there.",
            why=f"{store.url} has no such object.",
            fix="Write the file again.",
            fields={"key": key},
        )
    try:
        source: Any = (
            store.local_path(key)
            if isinstance(store, OnDisk)
            else pa.BufferReader(_footer(store, key, meta.size))
        )
        return Footer(metadata=pq.read_metadata(source), size=meta.size)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in OS_ERRORS:
            # The file may be sound: this process may not read it.
            what = f"Could not read {key!r} in {store.url}."
            raise os_error(error, what, {"key": key, "store": store.url}) from error
        raise CorruptTable(
            Code.STORAGE,
            f"The data file {key} cannot be read.",
            why=str(error).splitlines()[0] if str(error) else "It is not a Parquet file.",
            fix="Write the file again.",
            fields={"key": key},
        ) from error


def _footer(store: Store, key: str, size: int) -> bytes:
    return footer_bytes(size, lambda start, length: store.read_range(key, start, length))


def stats_json(
    footer: pq.FileMetaData,
    columns: StatsColumns,
    extra: BatchStats | None = None,
    *,
    tight: bool = True,
) -> str:
    """The statistics as the text of an add action."""
    return _ENCODER.encode(footer_stats(footer, columns, extra, tight=tight)).decode()


def footer_stats(
    footer: pq.FileMetaData,
    columns: StatsColumns,
    extra: BatchStats | None = None,
    *,
    tight: bool = True,
) -> dict[str, Any]:
    """numRecords, minValues, maxValues and nullCount; decimals are ``decimal.Decimal``.

    ``extra`` supplies what footers cannot say, from the batches the file was written from.
    """
    if extra is not None and extra.rows != footer.num_rows:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The batches are not those of the file.",
            why=f"They have {extra.rows} rows and the file has {footer.num_rows}.",
            fix="Give every batch that was written to the file, once.",
            fields={"batches": extra.rows, "file": footer.num_rows},
        )
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    reading = _Reading(footer, columns)
    for column in columns.columns:
        found = reading.leaf(column, None if extra is None else extra.get(column.path))
        if found.nulls is not None:
            _place(nulls, column.path, found.nulls)
        if column.ordered and found.present:
            _place(lows, column.path, found.low)
            _place(highs, column.path, found.high)
    stats: dict[str, Any] = {"numRecords": footer.num_rows}
    for name, values in (("minValues", lows), ("maxValues", highs), ("nullCount", nulls)):
        if values:
            stats[name] = _without_blanks(values)
    if columns.states_tightness or not tight:
        stats["tightBounds"] = tight
    return stats


@dataclass(frozen=True, slots=True)
class _Leaf:
    nulls: int | None = None
    low: Any = None
    high: Any = None
    present: bool = True
    """Whether the file has the column: Delta shows the structs of columns without values."""


@dataclass(frozen=True, slots=True)
class _Node:
    """A field of the file: where its Parquet columns are, and at which level it is not null."""

    first: int
    after: int
    level: int
    members: Mapping[str, _Node | None] | None


class _Reading:
    """One footer, taken apart once for all of its columns."""

    def __init__(self, footer: pq.FileMetaData, columns: StatsColumns) -> None:
        self._footer = footer
        self._columns = columns
        self._groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        self._tree, count = _members(footer.schema.to_arrow_schema(), 0, 0)
        if count != footer.num_columns:
            # The tree does not tell which column is whose.
            self._tree = dict.fromkeys(self._tree)
        created = footer.created_by or ""
        java = _PARQUET_JAVA.match(created)
        # Both count the nulls of all levels, and give bounds of strings whole or not at all.
        self._known_writer = java is not None or created.startswith(_PARQUET_CPP)
        # parquet-java orders NaN last, as Spark does; the other one passes over it.
        self._orders_nan = java is not None and int(java[1]) >= 10
        self._old_calendar = any(key in (footer.metadata or {}) for key in _LEGACY_CALENDAR)
        self._histograms: tuple[tuple[tuple[int, ...], ...], ...] | None = None

    def leaf(self, column: StatsColumn, exact: Bounds | None) -> _Leaf:
        """What the log is to say of one column."""
        node = self._find(column.path)
        if isinstance(node, int):
            return _Leaf(nulls=node, present=False)
        if node is None:
            return _Leaf()
        if column.type == VOID:
            return _Leaf(nulls=self._footer.num_rows)
        if column.is_group:
            return _Leaf(nulls=self._group_nulls(node) if exact is None else exact.nulls)
        about = self._footer.schema.column(node.first)
        if node.after - node.first != 1 or about.max_repetition_level:
            return _Leaf()
        kind = kind_of(column.type) if column.ordered else None
        logical = about.logical_type.to_json()
        if kind is None or not kind.accepts(about.physical_type, logical):
            return _Leaf(nulls=self._chunks(node.first, about, None)[0])
        nulls, low, high = (
            self._surely(column, *self._chunks(node.first, about, kind))
            if exact is None
            else (exact.nulls, exact.low, exact.high)
        )
        length = self._columns.prefix_length
        return _Leaf(
            nulls=nulls,
            low=None if low is None else kind.render(low, False, length, logical),
            high=None if high is None else kind.render(high, True, length, logical),
        )

    def _find(self, path: ColumnPath) -> _Node | int | None:
        """The field, or None if in doubt, or how many nulls a column has that is not there."""
        members: Mapping[str, _Node | None] | None = self._tree
        node: _Node | None = None
        for name in path:
            if members is None:
                return None
            if name not in members:
                folded = name.casefold()
                # Some readers would take a column of other case, or one of the same id.
                doubtful = self._columns.by_id or any(n.casefold() == folded for n in members)
                return None if doubtful else self._footer.num_rows
            node = members[name]
            if node is None:
                return None
            members = node.members
        return node

    def _chunks(
        self, index: int, about: Any, kind: BoundKind | None
    ) -> tuple[int | None, Any, Any]:
        """Nulls, least and greatest raw value over all row groups, each None if one has none."""
        nulls: int | None = 0
        low = high = None
        bounded = kind is not None
        decode = None if kind is None else kind.decode
        for group in self._groups:
            chunk = group.column(index)
            found = chunk.statistics
            own = found.null_count if found is not None and found.has_null_count else None
            if own is None and about.max_definition_level == 0:
                own = 0
            nulls = None if nulls is None or own is None else nulls + own
            if not bounded or own == chunk.num_values:
                continue
            if found is None or not found.has_min_max:
                bounded = False
                continue
            small, large = found.min_raw, found.max_raw
            if decode is not None:
                small, large = decode(small), decode(large)
            low = small if low is None else lower(low, small)
            high = large if high is None else upper(high, large)
        return (nulls, low, high) if bounded else (nulls, None, None)

    def _surely(
        self, column: StatsColumn, nulls: int | None, low: Any, high: Any
    ) -> tuple[int | None, Any, Any]:
        """The bounds without those that the writer of the file may have got by other rules."""
        if column.type == STRING and not self._known_writer:
            return nulls, None, None
        if column.type in (FLOAT, DOUBLE) and not self._orders_nan:
            # A greatest value would be wrong if there is a NaN; a least one is right all the same.
            return nulls, low if self._known_writer else None, None
        if self._old_calendar and column.type in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            return nulls, None, None
        return nulls, low, high

    def _group_nulls(self, node: _Node) -> int | None:
        """How often an array, map or variant is null itself, whatever is in it."""
        if node.level == 0:
            return 0
        if not self._known_writer:
            return None
        for index in range(node.first, node.after):
            about = self._footer.schema.column(index)
            nulls = self._chunks(index, about, None)[0]
            # A null at any level counts as one of the leaf: none there, none here.
            if nulls == 0 or (nulls is not None and about.max_definition_level == node.level):
                return nulls
        return self._nulls_by_level(node)

    def _nulls_by_level(self, node: _Node) -> int | None:
        if self._histograms is None:
            written = io.BytesIO()
            self._footer.write_metadata_file(written)
            self._histograms = level_histograms(written.getvalue())
        levels = self._footer.schema.column(node.first).max_definition_level + 1
        total = 0
        for group, histograms in zip(self._groups, self._histograms, strict=True):
            found = histograms[node.first]
            if len(found) != levels or sum(found) != group.column(node.first).num_values:
                return None
            total += sum(found[: node.level])
        return total


def _members(
    fields: Iterable[pa.Field], first: int, level: int
) -> tuple[dict[str, _Node | None], int]:
    """The fields by name with their Parquet columns, and the column after the last of them."""
    members: dict[str, _Node | None] = {}
    for field in fields:
        own = level + field.nullable
        kind = _storage(field.type)
        inner = None
        if pa.types.is_struct(kind):
            inner, after = _members(kind, first, own)
        else:
            after = first + _width(kind)
        # Of two fields with one name nobody knows which is meant.
        members[field.name] = None if field.name in members else _Node(first, after, own, inner)
        first = after
    return members, first


def _storage(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _width(kind: pa.DataType) -> int:
    """How many Parquet columns the type takes."""
    kind = _storage(kind)
    if not pa.types.is_nested(kind):
        return 1
    return sum(_width(kind.field(i).type) for i in range(kind.num_fields))


def _place(values: dict[str, Any], path: ColumnPath, value: Any) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def _without_blanks(values: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _without_blanks(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not None
    }
