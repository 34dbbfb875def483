"""delta-rs opens the checkpoints twinlake writes, with nothing else of the history left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from twinlake.actions import AddFile, Protocol, SetTransaction, encode_lines
from twinlake.log import CheckpointKind, commit_key, load_snapshot, write_checkpoint
from twinlake.protocol import Metadata
from twinlake.storage import LocalStore

if TYPE_CHECKING:
    from pathlib import Path

V1 = Protocol(1, 2)
V2 = Protocol(
    3, 7, reader_features=frozenset({"v2Checkpoint"}), writer_features=frozenset({"v2Checkpoint"})
)
KINDS: dict[str, tuple[Protocol, dict[str, Any]]] = {
    "classic": (V1, {}),
    "multipart": (V1, {"parts": 3}),
    "v2-parquet": (V2, {"kind": CheckpointKind.V2_PARQUET}),
    "v2-parquet-sidecars": (V2, {"kind": CheckpointKind.V2_PARQUET, "sidecars": 2}),
    "v2-json": (V2, {"kind": CheckpointKind.V2_JSON}),
    "v2-json-sidecars": (V2, {"kind": CheckpointKind.V2_JSON, "sidecars": 2}),
    "v2-classic": (V2, {"kind": CheckpointKind.V2_CLASSIC}),
    "v2-classic-sidecars": (V2, {"kind": CheckpointKind.V2_CLASSIC, "sidecars": 1}),
}
FIELDS = [
    {"name": "id", "type": "long", "nullable": True, "metadata": {}},
    {"name": "name", "type": "string", "nullable": True, "metadata": {"comment": "é"}},
    {"name": "day", "type": "date", "nullable": True, "metadata": {}},
]


def make_log(path: Path, protocol: Protocol, configuration: dict[str, str]) -> LocalStore:
    store = LocalStore(path, durable=False)
    metadata = Metadata(
        id="8d7c4f3e-0000-4000-8000-000000000001",
        name="peer",
        description="words",
        schema_string=json.dumps({"type": "struct", "fields": FIELDS}),
        partition_columns=("day",),
        configuration=configuration,
        created_time=1_700_000_000_000,
    )
    adds = [
        AddFile(
            path=f"day=2024-05-{n + 1:02}/part-{n}.parquet",
            partition_values={"day": f"2024-05-{n + 1:02}"},
            size=1000 + n,
            modification_time=1_700_000_000_000 + n,
            data_change=True,
            stats=json.dumps(
                {
                    "numRecords": n,
                    "minValues": {"id": n},
                    "maxValues": {"id": n},
                    "nullCount": {"id": 0},
                }
            ),
        )
        for n in range(20)
    ]
    gone = adds[3].remove(deletion_timestamp=1_800_000_000_000_000)
    transaction = SetTransaction(app_id="app", version=5)
    store.create(commit_key(0), encode_lines([protocol, metadata]))
    store.create(commit_key(1), encode_lines(adds))
    store.create(commit_key(2), encode_lines([gone, transaction]))
    return store


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"delta.checkpoint.writeStatsAsStruct": "true"},
        {
            "delta.checkpoint.writeStatsAsStruct": "true",
            "delta.checkpoint.writeStatsAsJson": "false",
        },
    ],
    ids=["json-stats", "both-stats", "struct-stats"],
)
@pytest.mark.parametrize("name", KINDS)
def test_delta_rs_opens_it(name: str, configuration: dict[str, str], tmp_path: Path) -> None:
    protocol, options = KINDS[name]
    store = make_log(tmp_path, protocol, configuration)
    snapshot = load_snapshot(store)
    write_checkpoint(snapshot, **options)
    store.delete(commit_key(v) for v in range(3))

    theirs = DeltaTable(str(tmp_path))

    assert theirs.version() == 2
    actions = pa.table(theirs.get_add_actions(flatten=True)).to_pylist()
    view = snapshot.files().to_pylist()
    assert {(a["path"], a["size_bytes"], a["num_records"]) for a in actions} == {
        (f["path"], f["size"], f["num_records"]) for f in view
    }
    assert {a["min.id"] for a in actions} == {f["stats"]["min_values"]["id"] for f in view}
    assert json.loads(theirs.schema().to_json())["fields"] == FIELDS
    found = theirs.metadata()
    assert (str(found.id), found.name, found.description) == (
        snapshot.metadata.id,
        snapshot.metadata.name,
        snapshot.metadata.description,
    )
    assert (found.partition_columns, found.configuration) == (["day"], configuration)
    assert found.created_time == snapshot.metadata.created_time
    spoken = theirs.protocol()
    assert (spoken.min_reader_version, spoken.min_writer_version) == (
        protocol.min_reader_version,
        protocol.min_writer_version,
    )
    assert frozenset(spoken.reader_features or ()) == (protocol.reader_features or frozenset())
    assert frozenset(spoken.writer_features or ()) == (protocol.writer_features or frozenset())
    assert theirs.transaction_version("app") == 5


def test_delta_rs_goes_on_writing_after_our_checkpoint(tmp_path: Path) -> None:
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    for _ in range(3):
        write_deltalake(str(tmp_path), rows, mode="append")
    store = LocalStore(tmp_path, durable=False)
    write_checkpoint(load_snapshot(store))
    store.delete([commit_key(0), commit_key(1)])
    write_deltalake(str(tmp_path), rows, mode="append")
    theirs = DeltaTable(str(tmp_path))
    assert theirs.version() == 3
    assert theirs.to_pyarrow_table().num_rows == 8
    assert load_snapshot(store).num_files == 4
    # And the other way round: what delta-rs checkpoints, twinlake reads.
    theirs.create_checkpoint()
    store.delete(commit_key(v) for v in range(4))
    assert load_snapshot(store).num_files == 4
