"""Random histories: carrying the face on gives what making it anew gives, and the rows of Delta."""

from __future__ import annotations

import datetime as dt
import math
import shutil
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg import manifest as pyiceberg_manifest
from pyiceberg.manifest import DataFileContent
from pyiceberg.table import StaticTable
from pyiceberg.table.snapshots import Snapshot, Summary

from tests.support.data_files import write_file
from tests.support.iceberg.both_sides import (
    V2,
    V3,
    agree,
    as_text,
    hide,
    iceberg_rows,
    now_ms,
    opened,
    remove_files,
    replace_table,
    successor,
)
from tests.support.local_engine import rows_of
from tests.support.log_tables import commit, info
from tests.support.scale import scale
from twinlake.actions import AddFile
from twinlake.commit import DELTA_HOOKS, Operation, Transaction
from twinlake.iceberg import IntegrityCheck, sync_table, synced_version
from twinlake.iceberg.derive.snapshot_id import SNAPSHOT_TAG
from twinlake.iceberg.format.manifest import EntryStatus, ManifestContent, ManifestEntry
from twinlake.iceberg.format.table_metadata import encode_metadata
from twinlake.iceberg.sync.manifest_reader import StoredManifests
from twinlake.iceberg.sync.metadata_cache import METADATA_CACHE
from twinlake.iceberg.sync.metadata_files import MetadataFiles
from twinlake.log import CACHE, commit_key, load_snapshot
from twinlake.runtime import Runtime
from twinlake.storage import LocalStore
from twinlake.table import Table
from twinlake.table.operations.create import new_metadata

pytestmark = pytest.mark.slow

NUMBERS = (None, 0, -1, 7, 2**31 - 1, -(2**31))
FRACTIONS = (None, 0.5, 0.0, -0.0, math.nan, math.inf)
MOMENT = dt.datetime(2024, 2, 29, 1, 2, 3, 456_789, dt.UTC)
#: Values of a type, whether partitions are made of them or not.
VALUES: dict[str, tuple[Any, ...]] = {
    "string": (None, "a", "q/=?", "ü", "x" * 40),
    "integer": NUMBERS,
    "long": (*NUMBERS, 2**53 + 1, -(2**63)),
    "float": FRACTIONS,
    "double": (*FRACTIONS, 0.1),
    "decimal(5,2)": (None, Decimal("-999.99"), Decimal("0.00")),
    "decimal(9,2)": (None, Decimal("1234567.89"), Decimal("0.00")),
    "date": (None, dt.date(1969, 12, 31), dt.date(2024, 2, 29)),
    "binary": (None, b"ab", "ü".encode()),
    "timestamp": (None, MOMENT, MOMENT.replace(year=1904, microsecond=0)),
}
PARTITIONS = ("STRING", "INT", "DATE", "TIMESTAMP", "BINARY", "FLOAT", "DOUBLE")
WIDER = {"integer": "LONG", "float": "DOUBLE", "decimal(5,2)": "DECIMAL(9,2)"}
COLUMNS = "name STRING, n INT, f FLOAT, e DECIMAL(5,2), s STRUCT<x: INT, t: STRING>"


def row(table: Table, chance: Random) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in table.schema:
        kind = str(field.type)
        if kind.startswith("struct"):
            made[field.name] = chance.choice((None, {"x": chance.choice(NUMBERS), "t": "s"}))
        else:
            made[field.name] = chance.choice(VALUES[kind])
    return made


def new_file(table: Table, folder: Path, chance: Random) -> AddFile:
    rows = [row(table, chance) for _ in range(chance.randint(1, 3))]
    for name in table.metadata.partition_columns:
        for one in rows[1:]:
            one[name] = rows[0][name]
    return write_file(table, folder, rows)


def begin(folder: Path, columns: str, parts: list[str], properties: dict[str, str]) -> Table:
    return Table.create(folder, columns, partition_by=parts, properties=properties, durable=False)


def begin_with_rows(
    folder: Path, columns: str, parts: list[str], properties: dict[str, str], chance: Random
) -> Table:
    """A table whose first version has files already."""
    runtime = Runtime()
    metadata = new_metadata(
        columns,
        partition_by=parts,
        cluster_by=(),
        properties=properties,
        name=None,
        description=None,
        runtime=runtime,
    )
    store = LocalStore(folder, durable=False)
    operation = Operation(name="WRITE", parameters={"mode": "ErrorIfExists"})
    transaction = Transaction.for_new_table(store, operation, runtime, DELTA_HOOKS)
    coming: Any = SimpleNamespace(metadata=metadata, schema=metadata.schema)
    files = [new_file(coming, folder, chance) for _ in range(2)]
    transaction.update_metadata(metadata).add(*files).commit()
    return Table.open(folder, durable=False)


def some(table: Table, chance: Random, most: int = 2) -> list[AddFile]:
    live = list(table.snapshot.adds())
    return chance.sample(live, min(len(live), chance.randint(1, most)))


def append(table: Table, folder: Path, chance: Random) -> Table:
    adds = [new_file(table, folder, chance) for _ in range(chance.randint(1, 3))]
    return table.commit("WRITE", adds, parameters={"mode": "Append"}, tags=own_id(chance))


def own_id(chance: Random) -> dict[str, str] | None:
    """Now and then the id of a client, which may be a wrong one, or one that was there before."""
    own = chance.choice((None, None, "no number", "7", str(chance.getrandbits(63))))
    return None if own is None else {SNAPSHOT_TAG: own}


def delete(table: Table, _folder: Path, chance: Random) -> Table:
    return remove_files(table, some(table, chance))


def overwrite(table: Table, folder: Path, chance: Random) -> Table:
    gone = [add.remove(deletion_timestamp=now_ms()) for add in some(table, chance, 9)]
    adds = [new_file(table, folder, chance)]
    parameters = {"mode": "Overwrite"}
    return table.commit("WRITE", [*gone, *adds], parameters=parameters, tags=own_id(chance))


def restate(table: Table, _folder: Path, chance: Random) -> Table:
    again = [
        msgspec.structs.replace(
            add,
            data_change=False,
            stats=chance.choice((add.stats, f'{{"numRecords":{_count(add)}}}')),
            tags={"a": str(chance.random())},
        )
        for add in some(table, chance)
    ]
    return table.commit("COMPUTE STATS", again) if again else table


def _count(add: AddFile) -> int:
    count: int = msgspec.json.decode(add.stats or "{}")["numRecords"]
    return count


def add_column(table: Table, _folder: Path, chance: Random) -> Table:
    name = f"c{table.version}"
    return table.add_column(
        f"{name} {chance.choice(('INT', 'STRING', 'FLOAT'))}", first=chance.random() < 0.3
    )


def rename(table: Table, _folder: Path, chance: Random) -> Table:
    free = [f.name for f in table.schema if f.name not in ("id", "p", "q")]
    return table.rename_column(chance.choice(free), f"r{table.version}")


def drop(table: Table, _folder: Path, chance: Random) -> Table:
    free = [f.name for f in table.schema if f.name not in ("id", "p", "q")]
    return table.drop_column(chance.choice(free)) if len(free) > 1 else table


def widen(table: Table, _folder: Path, chance: Random) -> Table:
    """A partition column, too, but for the floats among them."""
    parts = table.metadata.partition_columns
    found = [
        (field.name, WIDER[str(field.type)])
        for field in table.schema
        if str(field.type) in WIDER and not (field.name in parts and str(field.type) == "float")
    ]
    return table.widen_column(*chance.choice(found)) if found else table


def replace(table: Table, folder: Path, chance: Random) -> Table:
    """Other columns and partitions, and none of the files; one column lives on under its name.

    The promise forbids to take another partition column, but not every engine keeps to that.
    """
    parts = chance.choice((["p"], ["q"], ["q", "p"], [], ["p"]))
    columns = f"id LONG, p {chance.choice(PARTITIONS)}, q {chance.choice(PARTITIONS)}, {COLUMNS}"
    if table.metadata.partition_columns in ((), tuple(parts)):
        return append(replace_table(table, columns, *parts), folder, chance)
    other = successor(table, columns, *parts)
    gone = [add.remove(deletion_timestamp=now_ms()) for add in table.snapshot.adds()]
    commit(table.snapshot.store, table.version + 1, info(), other, *gone)
    return append(table.refresh(), folder, chance)


def clean_up(table: Table, folder: Path, chance: Random) -> Table:
    """Take the oldest commits away, as engines do after a while."""
    first = chance.randint(max(0, table.version - 4), table.version)
    if first <= oldest(folder):
        return table
    table.at(first).checkpoint()
    for version in range(oldest(folder), first):
        (folder / commit_key(version)).unlink()
    CACHE.forget(table.snapshot.store.url)
    return Table.open(folder, durable=False)


def oldest(folder: Path) -> int:
    return min(int(path.stem) for path in (folder / "_delta_log").glob("0*[0-9].json"))


def settle(table: Table, _folder: Path, _chance: Random) -> Table:
    return table.set_properties({"note": str(table.version)})


def restore(table: Table, folder: Path, chance: Random) -> Table:
    first = max(oldest(folder), table.version - 3)
    target = table.at(chance.randint(first, table.version))
    # One that was replaced is another table.
    allowed = target.metadata.id == table.metadata.id
    return table.restore(target.version) if allowed and target.version < table.version else table


def mask(table: Table, folder: Path, chance: Random) -> Table:
    wanted = {
        add.path: [at for at in range(_count(add)) if chance.random() < 0.5]
        for add in some(table, chance)
    }
    changed = {
        add.path: wanted[add.path]
        for add in table.snapshot.adds()
        if add.path in wanted and (wanted[add.path] or add.deletion_vector is not None)
    }
    return hide(table, folder, changed, inline=chance.random() < 0.5) if changed else table


Step = Callable[[Table, Path, Random], Table]
COMMON: list[Step] = [
    append, delete, overwrite, restate, add_column, rename, drop, widen, settle, restore, replace,
    clean_up,
]  # fmt: skip


def facts(table: StaticTable, first: int) -> dict[str, Any]:
    """What a metadata file says, without how it is spread over files.

    ``first`` is the oldest version that the log has, see :func:`since`.
    """
    metadata, snapshots = table.metadata, since(table, first)
    ids = {one.snapshot_id for one in snapshots}
    used = {metadata.current_schema_id, *(one.schema_id for one in snapshots)}
    return {
        "current": first or metadata.current_snapshot_id,
        "schema": metadata.current_schema_id,
        "schemas": {
            one.schema_id: str(one)
            for one in metadata.schemas
            if not first or one.schema_id in used
        },
        "spec": (metadata.default_spec_id, str(metadata.spec())),
        "specs": {one.spec_id: str(one) for one in metadata.partition_specs if not first},
        "columns": metadata.last_column_id,
        # That of the table before it was replaced, which the log may have forgotten.
        "uuid": first or metadata.table_uuid,
        "properties": {k: v for k, v in metadata.properties.items() if k != "base-delta-version"},
        "rows": getattr(metadata, "next_row_id", None),
        "snapshots": [
            (first or s.snapshot_id, first or s.parent_snapshot_id,
             s.sequence_number, s.schema_id, getattr(s, "first_row_id", None),
             first or s.timestamp_ms, s.summary and dict(s.summary.additional_properties),
             s.summary and s.summary.operation)
            for s in snapshots
        ],
        "log": [
            first or (entry.snapshot_id, entry.timestamp_ms)
            for entry in metadata.snapshot_log
            if entry.snapshot_id in ids
        ],
    }  # fmt: skip


def since(table: StaticTable, first: int) -> list[Snapshot]:
    """The snapshots that can be held against each other.

    A face made anew begins with the first version that the log has. It knows nothing of earlier
    ones, takes all files of that version for new, in its types and with the statistics of then
    (so that telling of them anew may be news or not), lets times rise from there, and gives an id
    that a client drew twice to the first commit that it knows.
    """
    found = [(one, one.summary) for one in table.metadata.snapshots]
    return [
        one
        for one, summary in found
        if not first
        or (
            summary
            and int(summary.additional_properties["delta-version"]) > first
            and not _tells_anew(summary)
        )
    ]


def _tells_anew(summary: Summary) -> bool:
    """Whether a snapshot changes statistics alone."""
    return (
        summary.operation.value == "replace"
        and "added-data-files" not in summary.additional_properties
    )


def live(table: StaticTable, first: int) -> dict[int, list[Any]]:
    """The live files of every snapshot, with all that is said of them."""
    return {
        snapshot.sequence_number or 0: sorted(
            (
                _entry(entry, first)
                for manifest in snapshot.manifests(table.io)
                for entry in manifest.fetch_manifest_entry(table.io)
            ),
            key=repr,
        )
        for snapshot in since(table, first)
    }


#: What follows the version in the name of a file with a vector.
_VECTOR = len(f"{uuid4()}.puffin")


def _entry(entry: pyiceberg_manifest.ManifestEntry, first: int) -> tuple[Any, ...]:
    file, number = entry.data_file, entry.sequence_number or 0
    is_known = number > first or not first
    path = file.file_path
    return (
        # A vector from before is in a file that has the number of the first version.
        path if is_known or file.content is DataFileContent.DATA else path[-_VECTOR:],
        file.content,
        max(number, first),
        first or entry.snapshot_id,
        file.spec_id,
        # Not by their values: not a number is itself here.
        repr(file.partition),
        file.record_count,
        file.file_size_in_bytes,
        is_known and (file.value_counts, file.null_value_counts),
        is_known and (file.lower_bounds, file.upper_bounds),
    )


def row_ids(table: Table) -> dict[str, int | None]:
    """The first row id of every live data file; PyIceberg does not read it."""
    files = MetadataFiles(table.snapshot.store)
    state = files.load(table.version)
    assert state is not None
    rows = [row for row in state.rows if row.content is ManifestContent.DATA]
    entries = [entry for row in rows for entry in StoredManifests(files).entries(row)]
    return {
        e.file.path: e.file.first_row_id for e in entries if e.status is not EntryStatus.DELETED
    }


def remembered(table: Table) -> None:
    """What is kept for the next conversion is what lies there."""
    store = table.snapshot.store
    ground = METADATA_CACHE.take(store)
    if ground is None:
        return
    files = MetadataFiles(store)
    read = files.load(table.version)
    assert read is not None
    assert ground.state.rows == read.rows
    mine, theirs = (b"".join(encode_metadata(f.metadata)) for f in (ground.state, read))
    assert mine == theirs
    known, fresh = StoredManifests(files, known=ground.known), StoredManifests(files)
    for row in read.rows:
        assert known.paths(row).to_text() == fresh.paths(row).to_text()
        told = zip(known.entries(row), fresh.entries(row), strict=True)
        assert all(_said(a) == _said(b) for a, b in told)
    METADATA_CACHE.keep(store, ground)


def _said(entry: ManifestEntry) -> ManifestEntry:
    """The entry as it is written: the counts of a file's metrics are its own."""
    file = entry.file
    metrics = msgspec.structs.replace(file.metrics, record_count=file.record_count)
    return msgspec.structs.replace(entry, file=msgspec.structs.replace(file, metrics=metrics))


def anew(folder: Path) -> StaticTable:
    """The face made from nothing, while the one that is carried on is put aside."""
    kept, state = folder / "_kept", folder / "_iceberg"
    state.rename(kept)
    # By a store of its own: what is known of the one that is carried on stays.
    assert sync_table(load_snapshot(LocalStore(folder, durable=False))).rebuilt
    found = opened(folder)
    for place in range(len(found.metadata.snapshots)):
        found.metadata.snapshots[place].manifests(found.io)
    return found


def back(folder: Path) -> None:
    shutil.rmtree(folder / "_iceberg")
    (folder / "_kept").rename(folder / "_iceberg")


def play(
    folder: Path, seed: int, steps: list[Step], properties: dict[str, str], part: str | None
) -> None:
    chance = Random(seed)
    columns = f"id INT, p {part or 'STRING'}, {COLUMNS}"
    parts, wanted = ["p"] if part else [], {**properties, "delta.enableTypeWidening": "true"}
    if chance.random() < 0.5:
        table = begin(folder, columns, parts, wanted)
    else:
        table = begin_with_rows(folder, columns, parts, wanted, chance)
    sync_table(table.snapshot)
    checks = chance.choice(([IntegrityCheck.NOTHING], list(IntegrityCheck)))
    for step in steps:
        if step in (delete, overwrite, restate, mask) and not table.snapshot.num_files:
            step = append
        table = step(table, folder, chance)
        if chance.random() < 0.3:
            continue
        first, reached = oldest(folder), synced_version(table.snapshot)
        done = sync_table(table.snapshot, check=chance.choice(checks))
        # It is made anew only if commits that it lacks are gone.
        assert not done.rebuilt or (reached is not None and reached < first)
        remembered(table)
        carried = opened(folder)
        assert as_text(iceberg_rows(folder)) == as_text(rows_of(table.snapshot))
        mine, entries, ids = facts(carried, first), live(carried, first), row_ids(table)
        fresh = anew(folder)
        assert row_ids(table) == ids
        assert facts(fresh, first) == mine
        assert live(fresh, first) == entries
        back(folder)
    agree(table, folder, first=oldest(folder))


@pytest.mark.parametrize("part", [None, *PARTITIONS])
@pytest.mark.parametrize(
    ("properties", "kinds"), [(V2, COMMON), (V3, [*COMMON, mask, mask, mask])], ids=["v2", "v3"]
)
@settings(max_examples=scale(2, 40), deadline=None)
@given(data=st.data())
def test_carried_on_or_made_anew(
    properties: dict[str, str], kinds: list[Step], part: str | None, data: st.DataObject
) -> None:
    names = {kind.__name__: kind for kind in kinds}
    weighted = [kind.__name__ for kind in (append, *kinds)]
    drawn = data.draw(st.lists(st.sampled_from(weighted), min_size=3, max_size=scale(8, 30)))
    seed = data.draw(st.integers(0, 2**32))
    folder = Path(tempfile.mkdtemp(prefix="twin"))
    try:
        play(folder, seed, [append, *(names[name] for name in drawn)], properties, part)
    finally:
        shutil.rmtree(folder)
