"""The tables that are listed: made once, kept in ``benchmarks/data``."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.harness import ROOT

# Part of every folder's name: tables of an older recipe are not taken for new ones.
_RECIPE: Final = 1
_COLUMNS: Final = {
    "id": "long",
    "name": "string",
    "amount": "double",
    "ts": "timestamp",
    "d": "date",
    "part": "string",
}
_DAY_MS: Final = 86_400_000
_PARTITIONS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRecipe:
    """A table of ``commits * adds`` live files, one in a hundred more removed again."""

    commits: int
    adds: int
    checkpoint: str | None = None
    """Who writes a checkpoint in place of the commits: ``delta-rs``, ``twinlake`` or nobody."""

    @property
    def files(self) -> int:
        """How many files are live in the end."""
        return self.commits * self.adds

    @property
    def name(self) -> str:
        """The folder's name."""
        return f"v{_RECIPE}-{self.commits}x{self.adds}-{self.checkpoint or 'json'}"


def table(data: Path, recipe: TableRecipe) -> Path:
    """The folder of a table, made in a process of its own if it is not there yet."""
    folder = data / recipe.name
    if not folder.exists():
        making = data / f"{recipe.name}.making"
        shutil.rmtree(making, ignore_errors=True)
        encoded = msgspec.json.encode(recipe).decode()
        command = [sys.executable, "-m", "benchmarks.tables", encoded, str(making)]
        subprocess.run(command, cwd=ROOT, check=True)
        making.rename(folder)
    return folder


def make(folder: Path, recipe: TableRecipe) -> None:
    """Write the commits, then the checkpoint if one is asked for, and drop what it replaces."""
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    _write_commits(log, recipe)
    if recipe.checkpoint is None:
        return
    {"delta-rs": _peer_checkpoint, "twinlake": _our_checkpoint}[recipe.checkpoint](folder)
    if not list(log.glob(f"{recipe.commits - 1:020d}.checkpoint*.parquet")):
        raise SystemExit(f"{recipe.checkpoint} wrote no checkpoint of the last version")
    for version in range(recipe.commits - 1):
        (log / f"{version:020d}.json").unlink()


def _peer_checkpoint(folder: Path) -> None:
    from deltalake import DeltaTable

    DeltaTable(folder).create_checkpoint()


def _our_checkpoint(folder: Path) -> None:
    from twinlake import Table

    Table.open(folder, durable=False).checkpoint()


def _write_commits(log: Path, recipe: TableRecipe) -> None:
    rng, encode = random.Random(20), msgspec.json.encode
    # Tombstones of today are still in a checkpoint; old ones would be left out.
    now, number = int(time.time() * 1000), 0
    extra = max(1, recipe.adds // 100)
    doomed: list[bytes] = []
    for version in range(recipe.commits):
        info = {"timestamp": now, "operation": "WRITE", "operationParameters": {"mode": "Append"}}
        lines = [encode({"commitInfo": info})]
        if version == 0:
            lines += _head()
        lines += doomed
        doomed = []
        last = version == recipe.commits - 1
        for position in range(recipe.adds + (0 if last else extra)):
            add = add_action(number, version, rng)
            lines.append(encode({"add": add}))
            number += 1
            if position >= recipe.adds:
                doomed.append(encode({"remove": _remove(add, now)}))
        (log / f"{version:020d}.json").write_bytes(b"\n".join(lines) + b"\n")


def _head() -> list[bytes]:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in _COLUMNS.items()
    ]
    schema = msgspec.json.encode({"type": "struct", "fields": fields}).decode()
    metadata = {
        "id": "0a5d8c1e-6f5b-4a7e-9d55-3c1f0e6b7a10",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": ["part"],
        # Commits to a copy of the table are timed without checkpoints in between.
        "configuration": {"delta.checkpointInterval": "1000000"},
        "createdTime": 1_700_000_000_000,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    return [
        msgspec.json.encode({"protocol": protocol}),
        msgspec.json.encode({"metaData": metadata}),
    ]


def add_action(number: int, version: int, rng: random.Random) -> dict[str, Any]:
    """The add of a file of a thousand rows that nobody has written."""
    day, part = number % 700, f"p{number % _PARTITIONS}"
    stats = {
        "numRecords": 1000,
        "minValues": {
            "id": number * 1000,
            "name": f"a{number:07d}",
            "amount": rng.random(),
            "ts": _time(day),
            "d": _date(day),
        },
        "maxValues": {
            "id": number * 1000 + 999,
            "name": f"z{number:07d}",
            "amount": 1 + rng.random(),
            "ts": _time(day + 1),
            "d": _date(day + 1),
        },
        "nullCount": {"id": 0, "name": number % 7, "amount": 0, "ts": 0, "d": 0},
    }
    return {
        "path": f"part={part}/part-{number:07d}-{rng.getrandbits(128):032x}.snappy.parquet",
        "partitionValues": {"part": part},
        "size": 100_000 + number,
        "modificationTime": 1_700_000_000_000 + version,
        "dataChange": True,
        "stats": msgspec.json.encode(stats).decode(),
    }


def _remove(add: dict[str, object], now: int) -> dict[str, object]:
    return {
        "path": add["path"],
        "deletionTimestamp": now,
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": add["partitionValues"],
        "size": add["size"],
    }


def _date(day: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(1_672_531_200 + day * _DAY_MS // 1000))


def _time(day: int) -> str:
    return f"{_date(day)}T06:30:00.{day % 1000:03d}Z"


if __name__ == "__main__":
    make(Path(sys.argv[2]), msgspec.json.decode(sys.argv[1], type=TableRecipe))
