"""Both sides of a table side by side: our Delta reader, and PyIceberg on the Iceberg metadata."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec
from pyiceberg import expressions
from pyiceberg.table import StaticTable

from tests.support.local_engine import rows_of
from twinlake.commit import DELTA_HOOKS, Operation, Transaction
from twinlake.iceberg import SyncResult, sync_table
from twinlake.log.deletion_vectors import dv_key, inline_descriptor, write_dv_file
from twinlake.table import Table
from twinlake.table.operations.create import new_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from twinlake.actions import AddFile
    from twinlake.protocol import Metadata

__all__ = [
    "V2",
    "V3",
    "agree",
    "as_text",
    "hide",
    "iceberg_rows",
    "opened",
    "remove_files",
    "replace_table",
    "sql",
    "successor",
    "twin",
]

V2 = {"delta.columnMapping.mode": "id", "delta.enableIcebergCompatV2": "true"}
V3 = {
    "delta.columnMapping.mode": "id",
    "delta.enableIcebergCompatV3": "true",
    "delta.enableRowTracking": "true",
    "delta.enableDeletionVectors": "true",
}

#: PyIceberg's predicates; their declared arguments are not those they take.
sql: Any = expressions

Row = dict[str, Any]


def twin(
    folder: Path, schema: str, *partitions: str, properties: Mapping[str, object] = V2
) -> Table:
    """A new table with an Iceberg compat feature."""
    return Table.create(
        folder, schema, partition_by=partitions, properties=properties, durable=False
    )


def opened(folder: Path) -> StaticTable:
    """The table as PyIceberg opens it: by its folder alone."""
    return StaticTable.from_metadata(str(folder / "_iceberg"))


def iceberg_rows(folder: Path, snapshot_id: int | None = None, where: Any = None) -> list[Row]:
    """The rows PyIceberg returns."""
    condition = sql.AlwaysTrue() if where is None else where
    scan = opened(folder).scan(row_filter=condition, snapshot_id=snapshot_id)
    found: list[Row] = scan.to_arrow().to_pylist()
    return found


def as_text(rows: Iterable[Row]) -> list[str]:
    """Rows in a form that compares: not a number is itself, and zones are all UTC."""
    return sorted(repr(_plain(row)) for row in rows)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case dt.datetime() if value.tzinfo is not None:
            return value.astimezone(dt.UTC).isoformat()
        case _:
            return value


def agree(table: Table, folder: Path, *, first: int = 0) -> SyncResult:
    """Sync, and hold the rows of both sides against each other at every version Iceberg has.

    ``first`` is the oldest version that Delta has.
    """
    done = sync_table(table.snapshot)
    assert done.version == table.version
    assert as_text(iceberg_rows(folder)) == as_text(rows_of(table.snapshot))
    for snapshot in opened(folder).metadata.snapshots:
        assert snapshot.summary is not None
        version = int(snapshot.summary.additional_properties["delta-version"])
        if version < first:
            continue
        expected = as_text(rows_of(table.at(version).snapshot))
        assert as_text(iceberg_rows(folder, snapshot.snapshot_id)) == expected, version
    return done


def now_ms() -> int:
    return int(dt.datetime.now(dt.UTC).timestamp() * 1000)


def remove_files(table: Table, files: Sequence[AddFile] | None = None) -> Table:
    """Take files out of a table: some, or all."""
    chosen = list(table.snapshot.adds()) if files is None else files
    gone = [add.remove(deletion_timestamp=now_ms()) for add in chosen]
    return table.commit("DELETE", gone, parameters={"predicate": "[]"})


def hide(
    table: Table, folder: Path, wanted: Mapping[str, Sequence[int]], *, inline: bool = False
) -> Table:
    """Hide rows by deletion vectors: positions by the path of the file; no positions, no vector."""
    actions: list[Any] = []
    for add in list(table.snapshot.adds()):
        if add.path not in wanted:
            continue
        positions = wanted[add.path]
        vector = None
        if positions and inline:
            vector = inline_descriptor(positions)
        elif positions:
            uuid = uuid4()
            data, (vector,) = write_dv_file([positions], uuid)
            (folder / dv_key(uuid)).write_bytes(data)
        stats = {**msgspec.json.decode(add.stats or "{}"), "tightBounds": vector is None}
        text = msgspec.json.encode(stats).decode()
        hidden = msgspec.structs.replace(add, deletion_vector=vector, stats=text, data_change=True)
        if hidden.key != add.key:
            actions += [add.remove(deletion_timestamp=now_ms()), hidden]
    return table.commit("DELETE", actions, parameters={"predicate": "[]"})


def _promises(table: Table) -> dict[str, str]:
    """What a table says of itself that its successor says, too."""
    wanted = {*V2, *V3, "delta.enableTypeWidening"}
    return {key: value for key, value in table.properties.items() if key in wanted}


def successor(table: Table, schema: str, *partitions: str) -> Metadata:
    """The metadata of what replaces a table."""
    return new_metadata(
        schema,
        partition_by=partitions,
        cluster_by=(),
        properties=_promises(table),
        name=None,
        description=None,
        runtime=table.runtime,
        replaces=table.metadata,
    )


def replace_table(table: Table, schema: str, *partitions: str) -> Table:
    """REPLACE TABLE with another schema, and without any of the files."""
    metadata = successor(table, schema, *partitions)
    operation = Operation(name="REPLACE TABLE", parameters={"partitionBy": list(partitions)})
    transaction = Transaction(table.snapshot, operation, table.runtime, DELTA_HOOKS)
    transaction.record_whole_table()
    transaction.update_metadata(metadata)
    gone = [add.remove(deletion_timestamp=now_ms()) for add in table.snapshot.adds()]
    return Table(transaction.add(*gone).commit().snapshot)
