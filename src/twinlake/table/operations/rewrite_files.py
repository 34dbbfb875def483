"""Rewriting files without changing a row: what DROP FEATURE has to do to the data first.

An engine writes, ``commit.plans`` decides and checks what it wrote, and one commit swaps the files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.commit.plans import TableRules, plan_reorg_purge
from twinlake.errors import StorageError
from twinlake.runtime import RewriteRequest
from twinlake.schema import (
    TYPE_CHANGES_KEY,
    Struct,
    char_length,
    physical_name,
    physical_schema,
    to_arrow,
    walk_fields,
)
from twinlake.storage import resolve

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    import pyarrow as pa

    from twinlake.actions import AddFile
    from twinlake.commit.plans import Outcome
    from twinlake.log import Snapshot
    from twinlake.protocol import Metadata
    from twinlake.runtime import Rewriter, Runtime
    from twinlake.storage import Store

__all__ = ["discard", "narrow_files", "rewrite"]

_MAGIC: Final = b"PAR1"


def rewrite(
    snapshot: Snapshot,
    rewriter: Rewriter,
    runtime: Runtime,
    *,
    metadata: Metadata,
    stale: Collection[str] = (),
) -> Outcome | None:
    """Write again what has hidden rows or is ``stale``, to fit ``metadata``; None if nothing is.

    Nothing is committed.
    """
    rules = TableRules.of(snapshot.metadata)
    plan = plan_reorg_purge(snapshot.adds(), rules=rules, stale=frozenset(stale))
    if not plan.bins:
        return None
    request = RewriteRequest(
        snapshot=snapshot,
        bins=tuple(packed.files for packed in plan.bins),
        metadata=metadata,
        row_ids=plan.materialise_row_ids,
        progress=runtime.progress,
    )
    written = rewriter.rewrite(request)
    # The plan compares partitions, and column mapping may go in this very commit.
    old, new = _partition_names(snapshot.metadata), _partition_names(metadata)
    back = {new[column]: old[column] for column in new}
    forth = {before: after for after, before in back.items()}
    try:
        outcome = plan.finish(
            [[_renamed(file, back) for file in files] for files in written],
            now=runtime.clock.now_ms(),
        )
    except Exception:
        discard(snapshot.store, (file for files in written for file in files))
        raise
    adds = (_renamed(file, forth) for file in outcome.adds)
    lengths = _padded_partitions(snapshot.metadata, metadata)
    return replace(outcome, adds=tuple(_padded(file, lengths) for file in adds))


def _partition_names(metadata: Metadata) -> dict[str, str]:
    mapped = metadata.column_mapping_mode != "none"
    return {
        field.name: physical_name(field) if mapped else field.name
        for field in metadata.schema
        if field.name in metadata.partition_columns
    }


def _padded_partitions(before: Metadata, after: Metadata) -> dict[str, int]:
    """The partition columns that are a CHAR no more, and the length of their values."""
    names = _partition_names(after)
    both = zip(before.schema, after.schema, strict=True)
    return {
        names[new.name]: length
        for old, new in both
        if new.name in names and char_length(new) is None and (length := char_length(old))
    }


def _padded(file: AddFile, lengths: dict[str, int]) -> AddFile:
    """The file in the partition that readers saw: with the spaces of CHAR values."""
    if not lengths:
        return file
    values = {
        name: value.ljust(lengths.get(name, 0)) if value else value
        for name, value in file.partition_values.items()
    }
    return msgspec.structs.replace(file, partition_values=values)


def _renamed(file: AddFile, names: dict[str, str]) -> AddFile:
    values = {names.get(name, name): value for name, value in file.partition_values.items()}
    return msgspec.structs.replace(file, partition_values=values)


def discard(store: Store, files: Iterable[AddFile]) -> None:
    """Delete files that no commit will name; what cannot be deleted is left to VACUUM."""
    for file in files:
        try:
            home, key = resolve(store, file.path, allow_outside=False)
            home.delete([key])
        except StorageError:
            continue


def narrow_files(snapshot: Snapshot, runtime: Runtime) -> frozenset[str]:
    """The live files that hold a widened column in an older, narrower type, by their footers."""
    metadata = snapshot.metadata
    widened = {
        path[0]
        for path, field in walk_fields(metadata.schema)
        if TYPE_CHANGES_KEY in field.metadata
    }
    logical = Struct(
        tuple(
            field
            for field in metadata.schema
            if field.name in widened and field.name not in metadata.partition_columns
        )
    )
    if not len(logical):
        return frozenset()
    mode = metadata.column_mapping_mode
    expected = to_arrow(physical_schema(logical, mode), field_ids=mode != "none")
    files = [(file.path, file.size) for file in snapshot.adds()]
    narrow = runtime.executor.map(_IsNarrow(snapshot.store, expected), files)
    return frozenset(path for (path, _), old in zip(files, narrow, strict=True) if old)


@dataclass(frozen=True, slots=True)
class _IsNarrow:
    """A value and no closure, so that an executor may send it to another process."""

    store: Store
    expected: pa.Schema

    def __call__(self, file: tuple[str, int]) -> bool:
        import pyarrow as pa
        import pyarrow.parquet as pq

        from twinlake.log import footer_bytes

        path, size = file
        home, key = resolve(self.store, path)
        try:
            footer = footer_bytes(size, lambda at, length: home.read_range(key, at, length))
            found = pq.read_schema(pa.BufferReader(_MAGIC + footer))
        except (pa.ArrowException, ValueError):
            # What cannot be decided is rewritten, which is always right.
            return True
        by_id: dict[int | None, Any] = {_field_id(field): field for field in found}
        by_id[None] = None
        for field in self.expected:
            place = found.get_field_index(field.name)
            column = found.field(place) if place >= 0 else by_id.get(_field_id(field))
            if column is not None and not _is_same(column.type, field.type):
                return True
        return False


def _field_id(field: Any) -> int | None:
    value = (field.metadata or {}).get(b"PARQUET:field_id")
    return int(value) if value is not None else None


def _is_same(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether values need no widening; representations of one type count as the same."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_struct(expected):
        return kinds.is_struct(found) and all(
            _is_same(found.field(field.name).type, field.type)
            for field in expected
            if found.get_field_index(field.name) >= 0
        )
    if kinds.is_map(expected):
        return kinds.is_map(found) and _are_same(
            (found.key_type, found.item_type), (expected.key_type, expected.item_type)
        )
    if kinds.is_list(expected) or kinds.is_large_list(expected):
        is_list = kinds.is_list(found) or kinds.is_large_list(found)
        return is_list and _is_same(found.value_type, expected.value_type)
    if kinds.is_timestamp(expected):
        return bool(kinds.is_timestamp(found))
    exact = kinds.is_integer(expected) or kinds.is_floating(expected) or kinds.is_decimal(expected)
    return bool(found == expected) if exact else True


def _are_same(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    return all(_is_same(one, other) for one, other in zip(found, expected, strict=True))
