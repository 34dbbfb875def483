"""Four Spark drivers change one table at the same time: nothing is lost, losers know to whom."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.scale import is_full_scale, scale
from tests.support.spark.workers import (
    Driver,
    Seen,
    apply,
    assert_both_engines_read,
    drivers,
    new_table,
    see,
)
from twinlake.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SECONDS = scale(6, 60)
COMMITS = 5
"""What each driver has to land."""
PATIENCE = 240
"""Seconds more that a slow machine gets until all have landed theirs and one has lost."""
OPERATIONS = {"write": "WRITE", "merge": "MERGE", "delete": "DELETE", "optimize": "OPTIMIZE"}
CONFLICTS = {
    "ConcurrentAppendException",
    "ConcurrentDeleteReadException",
    "ConcurrentDeleteDeleteException",
}

Notes = dict[str, list[dict[str, Any]]]


def _landed(table: Path) -> dict[str, int]:
    """How many commits there are of each kind."""
    found = Counter(commit.operation for commit in Table.open(table).history())
    return {kind: found[name] for kind, name in OPERATIONS.items()}


def _race(table: Path, folder: Path) -> Notes:
    """Let them go together and stop them when the time is over."""
    with drivers() as running:
        for number, kind in enumerate(OPERATIONS):
            task = {"kind": kind, "base": number * 1_000_000, "warm": [kind]}
            running.append(Driver("contend", kind, table, folder, **task))
        for driver in running:
            driver.wait_ready()
        began = time.monotonic()
        for driver in running:
            driver.go()
        while (spent := time.monotonic() - began) < SECONDS + PATIENCE:
            enough = spent >= SECONDS and min(_landed(table).values()) >= COMMITS
            if enough and any("lost" in note for driver in running for note in driver.notes()):
                break
            for driver in running:
                driver.check_alive()
            time.sleep(0.5)
        (folder / "stop").touch()
        for driver in running:
            driver.join()
        return {driver.name: driver.notes() for driver in running}


def _begun(notes: Notes) -> dict[str, dict[str, Any]]:
    return {note["begin"]: note for lines in notes.values() for note in lines if "begin" in note}


def _done(notes: Notes) -> dict[str, int]:
    return {
        note["done"]: note["version"]
        for lines in notes.values()
        for note in lines
        if "done" in note
    }


def assert_every_acknowledged_change_counts(notes: Notes, seen: Seen) -> dict[int, int]:
    """The changes in the order of their versions make exactly the rows that are there."""
    begun, done, tagged = _begun(notes), _done(notes), seen.tagged()
    assert tagged.keys() <= done.keys(), "a change is there that nobody was told of"
    # Nothing was committed for these: somewhere between begin and end there was nothing to do.
    idle = {tag: (begun[tag]["version"], done[tag]) for tag in done.keys() - tagged.keys()}
    by_version = {version: tag for tag, version in tagged.items()}
    rows: dict[int, int] = {}
    for version in range(seen.version + 1):
        if version in by_version:
            note = begun[by_version[version]]
            apply(note["op"], note["what"], rows)
        for tag, (first, last) in list(idle.items()):
            if first <= version <= last and _is_idle(begun[tag], rows):
                del idle[tag]
    assert not idle, f"done, and not in the log: {sorted(idle)[:3]}"
    assert seen.rows == rows
    return rows


def _is_idle(note: dict[str, Any], rows: dict[int, int]) -> bool:
    after = dict(rows)
    apply(note["op"], note["what"], after)
    return after == rows


def assert_losers_know_who_won(notes: Notes, seen: Seen) -> list[dict[str, Any]]:
    begun, commits = _begun(notes), {commit.version: commit for commit in seen.commits}
    lost = [note for lines in notes.values() for note in lines if "lost" in note]
    tagged = seen.tagged()
    for note in lost:
        tag, told = note["lost"], note["error"]
        assert tag not in tagged, f"{tag} lost and is there"
        assert told["class"] in CONFLICTS, told
        assert told["delta_class"], told
        winner = commits[told["winner"]]
        assert told["winner"] > begun[tag]["version"], told
        assert winner.operation == told["operation"], told
        assert not winner.user_metadata.startswith(f"{begun[tag]['op']}-"), told
        assert f"version {told['winner']}" in told["text"], told
    return lost


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    "vectors",
    [
        pytest.param("true", id="deletion vectors"),
        *([pytest.param("false", id="copy on write")] if is_full_scale() else []),
    ],
)
def test_four_drivers_on_one_table(tmp_path: Path, delta_spark: SparkSession, vectors: str) -> None:
    table, folder = tmp_path / "table", tmp_path / "notes"
    folder.mkdir()
    new_table(table, **{"delta.enableDeletionVectors": vectors})
    notes = _race(table, folder)
    seen = see(table)
    rows = assert_every_acknowledged_change_counts(notes, seen)
    landed = _landed(table)
    assert min(landed.values()) >= COMMITS, landed
    lost = assert_losers_know_who_won(notes, seen)
    assert lost, "nobody lost: that was no race"
    # Who lost took back the files of the attempt.
    assert not seen.strays
    assert_both_engines_read(delta_spark, table, rows)
