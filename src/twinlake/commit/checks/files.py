"""Checks of the files that a commit adds and removes.

Readers drop statistics that they cannot parse, or fail on them, each in its own way; a partition
value that is none of its column's type makes the file unreadable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from twinlake.commit.checks.actions import repeated
from twinlake.commit.checks.check import CheckFailure
from twinlake.commit.conflict.rule import named
from twinlake.commit.row_tracking import assigns_row_ids, is_fresh
from twinlake.errors import Code, CorruptTable, UserError, how_to_set
from twinlake.protocol import keys
from twinlake.schema import ColumnMappingMode, parse_partition_value, physical_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.actions import AddCDCFile, AddFile, Metadata
    from twinlake.commit.checks.check import Draft
    from twinlake.schema import DataType

__all__ = [
    "append_only",
    "data_change",
    "duplicate_files",
    "live_files",
    "parsable_partition_values",
    "parsable_statistics",
    "partition_keys",
    "partition_values",
    "row_counts",
]


def duplicate_files(draft: Draft) -> Iterator[CheckFailure]:
    """No file is added twice, removed twice, or both."""
    summary = draft.change.summary
    file_of = (lambda path: path) if draft.paths is None else draft.paths.file
    if twice := repeated(file_of(add.path) for add in summary.adds):
        yield CheckFailure(
            message=f"more than one add of {named(twice, 'path')}",
            delta_class="DELTA_DUPLICATE_ACTIONS_FOUND",
        )
    if twice := repeated(file_of(remove.path) for remove in summary.removes):
        yield CheckFailure(
            message=f"more than one remove of {named(twice, 'path')}",
            delta_class="DELTA_DUPLICATE_ACTIONS_FOUND",
        )
    if not summary.adds or not summary.removes:
        return
    removed = {(file_of(remove.path), remove.key[1]) for remove in summary.removes}
    if both := {a.path for a in summary.adds if (file_of(a.path), a.key[1]) in removed}:
        yield CheckFailure(
            message=f"add and remove of the same {named(both, 'file')}",
            delta_class="DELTA_DUPLICATE_ACTIONS_FOUND",
        )


def live_files(draft: Draft) -> Iterator[CheckFailure]:
    """No added path is live already under another key or spelling."""
    summary = draft.change.summary
    if draft.spellings:
        again = {
            f"{path} (as {live})"
            for path, live in draft.spellings.items()
            if path in summary.added_paths and live not in summary.removed_paths
        }
        if again:
            yield CheckFailure(
                message=f"files that are in the table in another spelling: {named(again)}",
                fix="Name the file as the table does, or remove it in the same commit.",
            )
    if not draft.live:
        return
    removed = {remove.key for remove in summary.removes}
    doubled = {
        add.path
        for add in summary.adds
        if add.path in draft.live
        and draft.live[add.path] != add.key
        and draft.live[add.path] not in removed
    }
    if doubled:
        yield CheckFailure(
            message=(
                f"{named(doubled, 'path')} would be in the table twice, with different "
                "deletion vectors"
            ),
            fix="Remove the file as it is now in the same commit.",
        )


def append_only(draft: Draft) -> Iterator[CheckFailure]:
    """No row leaves an append-only table."""
    change = draft.change
    if not change.summary.removes:
        return
    if change.version == 0 or not change.base.metadata.flag(keys.APPEND_ONLY):
        return
    lost = [remove.path for remove in change.summary.removes if remove.data_change]
    if lost:
        yield CheckFailure(
            message=f"the table is append-only, but {named(lost, 'file')} would be removed",
            code=Code.APPEND_ONLY,
            delta_class="DELTA_CANNOT_MODIFY_APPEND_ONLY",
            fix=f"If rows may be deleted, run {how_to_set(keys.APPEND_ONLY, 'false')} first.",
        )


def data_change(draft: Draft) -> Iterator[CheckFailure]:
    """DataChange agrees with the operation, and between add and remove of a file."""
    change, summary = draft.change, draft.change.summary
    if wrong := [cdc.path for cdc in summary.changes if cdc.data_change]:
        yield CheckFailure(message=f"dataChange is set on change data {named(wrong, 'file')}")
    if not change.operation.changes_data:
        changed = [add.path for add in summary.adds if add.data_change]
        changed += [remove.path for remove in summary.removes if remove.data_change]
        if changed:
            yield CheckFailure(
                message=(
                    f"{change.operation.name} must not change rows, but dataChange is set on "
                    f"{named(changed, 'file')}"
                )
            )
    if not summary.adds or not summary.removes:
        return
    removed = {remove.path: remove.data_change for remove in summary.removes}
    differ = [a.path for a in summary.adds if removed.get(a.path, a.data_change) != a.data_change]
    if differ:
        yield CheckFailure(
            message=f"add and remove disagree on dataChange of {named(differ, 'file')}"
        )


def partition_keys(metadata: Metadata) -> frozenset[str]:
    """What every ``partitionValues`` must have as keys: physical names."""
    columns = metadata.partition_columns
    if not columns or metadata.get(keys.COLUMN_MAPPING_MODE, "none").lower() == "none":
        return frozenset(columns)
    fields = (metadata.schema.get(name) for name in columns)
    return frozenset(physical_name(field) for field in fields if field is not None)


def partition_values(draft: Draft) -> Iterator[CheckFailure]:
    """Files have a value for every partition column, and no other."""
    change = draft.change
    if not change.summary.adds and not change.summary.changes:
        return
    expected = partition_keys(change.metadata)
    wrong: dict[str, list[str]] = {}
    files: tuple[AddFile | AddCDCFile, ...] = (*change.summary.adds, *change.summary.changes)
    for file in files:
        if file.partition_values.keys() != expected:
            missing = expected - file.partition_values.keys()
            extra = file.partition_values.keys() - expected
            parts = [f"no value for {named(missing)}"] if missing else []
            parts += [f"a value for {named(extra)}, no partition column"] if extra else []
            wrong.setdefault(" and ".join(parts), []).append(file.path)
    for text, paths in wrong.items():
        yield CheckFailure(
            message=f"partitionValues have {text} on {named(paths, 'file')}",
            fix="Give every partition column a value, under its physical name.",
        )


def row_counts(draft: Draft) -> Iterator[CheckFailure]:
    """Files have numRecords where deletion vectors or row ids need it."""
    change = draft.change
    if not change.summary.adds:
        return
    assigning = assigns_row_ids(change.protocol, change.metadata)
    vectors: list[str] = []
    tracked: list[str] = []
    for add in change.summary.adds:
        if add.deletion_vector is not None:
            if add.num_records is None:
                vectors.append(add.path)
        elif assigning and is_fresh(add, change.read_mark) and add.num_records is None:
            tracked.append(add.path)
    if vectors:
        yield CheckFailure(
            message=f"deletion vectors need numRecords in the stats of {named(vectors, 'file')}",
            delta_class="DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS",
        )
    if tracked:
        yield CheckFailure(
            message=f"row tracking needs numRecords in the statistics of {named(tracked, 'file')}",
            delta_class="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
        )


def parsable_statistics(draft: Draft) -> Iterator[CheckFailure]:
    """Statistics of new files are JSON objects of Delta's shape."""
    if draft.trusted_files:
        return
    # A live file is in the table as it is; committing it again adds no damage.
    new = (add for add in draft.change.summary.adds if add.path not in draft.live)
    if found := dict(_unparsable_statistics(new)):
        yield CheckFailure(
            message=f"no JSON object as statistics of {named(found, 'file')} "
            f"({next(iter(found.values()))})",
            fix="Give the files statistics as an object, or none.",
        )


def parsable_partition_values(draft: Draft) -> Iterator[CheckFailure]:
    """Partition values of new files are values of their column's type."""
    summary = draft.change.summary
    if draft.trusted_files:
        return
    new: list[AddFile | AddCDCFile] = [add for add in summary.adds if add.path not in draft.live]
    new.extend(summary.changes)
    wrong: dict[tuple[str, str], dict[str, str]] = {}
    for name, kind, value, path in _unparsable_partition_values(new, draft.change.metadata):
        wrong.setdefault((name, str(kind)), {})[path] = value
    for (name, shown), files in wrong.items():
        yield CheckFailure(
            message=f"{next(iter(files.values()))[:100]!r} is no value of partition column {name} "
            f"of type {shown}, on {named(files, 'file')}",
            fix="Give every partition value as the Delta protocol spells its type.",
        )


class _Object(msgspec.Struct):
    """Any object: its members are skipped."""


class _Stats(msgspec.Struct, rename="camel"):
    num_records: int | None = None
    tight_bounds: bool | None = None
    min_values: _Object | None = None
    max_values: _Object | None = None
    null_count: _Object | None = None


_STATS: Final = msgspec.json.Decoder(_Stats)


def _unparsable_statistics(adds: Iterable[AddFile]) -> Iterator[tuple[str, str]]:
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


def _unparsable_partition_values(
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
