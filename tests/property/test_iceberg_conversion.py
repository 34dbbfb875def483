"""Random histories: carrying the face on gives what making it anew gives, and the rows of Delta."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.manifest import ManifestEntry
from pyiceberg.table import StaticTable

from tests.support.data_files import write_file
from tests.support.iceberg_faces import (
    V2,
    V3,
    agree,
    as_text,
    hide,
    iceberg_rows,
    now_ms,
    opened,
    remove_files,
)
from tests.support.local_engine import rows_of
from tests.support.scale import scale
from twinlake.actions import AddFile
from twinlake.iceberg import Check, sync
from twinlake.iceberg.face_files import FaceFiles
from twinlake.iceberg.manifest_reading import Manifests
from twinlake.iceberg.manifests import Entry
from twinlake.iceberg.metadata_file import encode_metadata
from twinlake.iceberg.resting import RESTING
from twinlake.iceberg.snapshot_ids import SNAPSHOT_TAG
from twinlake.log import load_snapshot
from twinlake.storage import LocalStore
from twinlake.table import Table

NUMBERS = (None, 0, -1, 7, 2**31 - 1, -(2**31))
TEXTS = (None, "a", "ü", "x" * 40)
PARTS = (None, "p", "q/=?", "ü")


def row(table: Table, chance: Random) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for field in table.schema:
        kind = str(field.type)
        if kind == "string":
            made[field.name] = chance.choice(TEXTS)
        elif kind.startswith("struct"):
            made[field.name] = chance.choice((None, {"x": chance.choice(NUMBERS), "t": "s"}))
        else:
            made[field.name] = chance.choice(NUMBERS)
    return made


def new_file(table: Table, folder: Path, chance: Random) -> AddFile:
    rows = [row(table, chance) for _ in range(chance.randint(1, 3))]
    part = chance.choice(PARTS)
    for name in table.metadata.partition_columns:
        for one in rows:
            one[name] = part
    return write_file(table, folder, rows)


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
        f"{name} {chance.choice(('INT', 'STRING'))}", first=chance.random() < 0.3
    )


def rename(table: Table, _folder: Path, chance: Random) -> Table:
    free = [f.name for f in table.schema if f.name not in ("id", "p")]
    return table.rename_column(chance.choice(free), f"r{table.version}")


def drop(table: Table, _folder: Path, chance: Random) -> Table:
    free = [f.name for f in table.schema if f.name not in ("id", "p")]
    return table.drop_column(chance.choice(free)) if len(free) > 1 else table


def settle(table: Table, _folder: Path, _chance: Random) -> Table:
    return table.set_properties({"note": str(table.version)})


def restore(table: Table, _folder: Path, chance: Random) -> Table:
    return table.restore(chance.randint(max(0, table.version - 3), table.version - 1))


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
COMMON: list[Step] = [append, delete, overwrite, restate, add_column, rename, drop, settle, restore]


def facts(table: StaticTable) -> dict[str, Any]:
    """What a metadata file says, without how it is spread over files."""
    metadata = table.metadata
    return {
        "current": metadata.current_snapshot_id,
        "schema": metadata.current_schema_id,
        "schemas": {one.schema_id: str(one) for one in metadata.schemas},
        "spec": metadata.default_spec_id,
        "specs": {one.spec_id: str(one) for one in metadata.partition_specs},
        "columns": metadata.last_column_id,
        "uuid": metadata.table_uuid,
        "properties": metadata.properties,
        "snapshots": [
            (s.snapshot_id, s.parent_snapshot_id, s.sequence_number, s.timestamp_ms, s.schema_id,
             s.summary and (s.summary.operation, s.summary.additional_properties))
            for s in metadata.snapshots
        ],
        "log": [(entry.snapshot_id, entry.timestamp_ms) for entry in metadata.snapshot_log],
    }  # fmt: skip


def live(table: StaticTable, place: int = -1) -> list[Any]:
    """The live files of a snapshot, with all that is said of them."""
    if not table.metadata.snapshots:
        return []
    snapshot = table.metadata.snapshots[place]
    entries = [
        _entry(entry)
        for manifest in snapshot.manifests(table.io)
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    return sorted(entries, key=repr)


def _entry(entry: ManifestEntry) -> tuple[Any, ...]:
    file = entry.data_file
    return (
        file.file_path,
        file.content,
        entry.sequence_number,
        entry.snapshot_id,
        file.spec_id,
        repr(file.partition),
        file.record_count,
        file.file_size_in_bytes,
        file.value_counts,
        file.null_value_counts,
        file.lower_bounds,
        file.upper_bounds,
    )


def remembered(table: Table) -> None:
    """What is kept for the next conversion is what lies there."""
    store = table.snapshot.store
    ground = RESTING.take(store)
    if ground is None:
        return
    files = FaceFiles(store)
    read = files.load(table.version)
    assert read is not None
    assert ground.face.rows == read.rows
    mine, theirs = (b"".join(encode_metadata(f.metadata)) for f in (ground.face, read))
    assert mine == theirs
    known, fresh = Manifests(files, known=ground.known), Manifests(files)
    for row in read.rows:
        assert known.paths(row).to_text() == fresh.paths(row).to_text()
        told = zip(known.entries(row), fresh.entries(row), strict=True)
        assert all(_said(a) == _said(b) for a, b in told)
    RESTING.keep(store, ground)


def _said(entry: Entry) -> Entry:
    """The entry as it is written: the counts of a file's metrics are its own."""
    file = entry.file
    metrics = msgspec.structs.replace(file.metrics, record_count=file.record_count)
    return msgspec.structs.replace(entry, file=msgspec.structs.replace(file, metrics=metrics))


def anew(folder: Path) -> StaticTable:
    """The face made from nothing, while the one that is carried on is put aside."""
    kept, face = folder / "_kept", folder / "_iceberg"
    face.rename(kept)
    # By a store of its own: what is known of the one that is carried on stays.
    assert sync(load_snapshot(LocalStore(folder, durable=False))).rebuilt
    found = opened(folder)
    for place in range(len(found.metadata.snapshots)):
        found.metadata.snapshots[place].manifests(found.io)
    return found


def back(folder: Path) -> None:
    shutil.rmtree(folder / "_iceberg")
    (folder / "_kept").rename(folder / "_iceberg")


def play(
    folder: Path, seed: int, steps: list[Step], properties: dict[str, str], part: bool
) -> None:
    chance = Random(seed)
    columns = "id INT, p STRING, name STRING, s STRUCT<x: INT, t: STRING>"
    table = Table.create(
        folder, columns, partition_by=["p"] * part, properties=properties, durable=False
    )
    sync(table.snapshot)
    checks = chance.choice(([Check.NOTHING], list(Check)))
    for step in steps:
        if step in (delete, overwrite, restate, mask) and not table.snapshot.num_files:
            step = append
        table = step(table, folder, chance)
        if chance.random() < 0.3:
            continue
        done = sync(table.snapshot, check=chance.choice(checks))
        assert not done.rebuilt
        remembered(table)
        carried = opened(folder)
        assert as_text(iceberg_rows(folder)) == as_text(rows_of(table.snapshot))
        mine, entries = facts(carried), live(carried)
        fresh = anew(folder)
        assert facts(fresh) == mine
        assert live(fresh) == entries
        back(folder)
    agree(table, folder)


@pytest.mark.parametrize("part", [False, True], ids=["plain", "partitioned"])
@pytest.mark.parametrize(
    ("properties", "kinds"), [(V2, COMMON), (V3, [*COMMON, mask, mask, mask])], ids=["v2", "v3"]
)
@settings(max_examples=scale(4, 100), deadline=None)
@given(data=st.data())
def test_carried_on_or_made_anew(
    properties: dict[str, str], kinds: list[Step], part: bool, data: st.DataObject
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
