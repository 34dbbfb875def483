"""Spark drivers killed in the middle of operations: only what was committed is there, all of it."""

from __future__ import annotations

import contextlib
import os
import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.scale import scale
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

KILLS = scale(2, 50)
WORK = scale(1, 2), scale(4, 7)
"""From how many operations up to how many a driver gets done before it is killed."""
ROOM = 1_000_000
"""How many ids a driver has for itself."""
COARSE = 0.05
"""The clock of file times is not as fine as that of the notes."""
WRITERS = ("auto", "arrow")
"""The first is Spark's own, but where there is a change feed."""


VECTORS, CHANGES = "delta.enableDeletionVectors", "delta.enableChangeDataFeed"
MODES = (
    {VECTORS: "true", CHANGES: "false"},
    {VECTORS: "false", CHANGES: "true"},
    {VECTORS: "true", CHANGES: "true"},
    {VECTORS: "false", CHANGES: "false"},
)
"""How the table is changed; it turns to the next after a few kills."""
TURN = scale(1, 4)


@dataclass(frozen=True, slots=True)
class Aim:
    """When to kill: during an operation, at its first new file or at any moment."""

    op: str
    at_first_file: bool


AIMS = (
    Aim("merge", True),
    Aim("vacuum", False),
    Aim("write", True),
    Aim("delete", True),
    Aim("optimize", True),
    Aim("merge", False),
    Aim("delete", False),
    Aim("write", True),
    Aim("optimize", True),
    Aim("write", False),
    Aim("merge", True),
    Aim("optimize", False),
)


@dataclass(slots=True)
class Model:
    """What must be in the table, as far as the notes of the dead can tell."""

    rows: dict[int, int] = field(default_factory=dict)
    between: int = 0
    """Kills between an operation's first data file and its commit."""

    def follow(self, notes: list[dict[str, Any]], seen: Seen) -> None:
        """Take over what a driver did; its last operation may have happened or not."""
        tagged = seen.tagged()
        done = {note["done"] for note in notes if "done" in note}
        begun = [note for note in notes if "begin" in note]
        for note in begun:
            tag, op = note["begin"], note["op"]
            if tag in done:
                # These may find nothing to do; of a DELETE the rows tell.
                idle = op in ("optimize", "vacuum", "delete")
                assert idle or tag in tagged, f"{tag} was lost"
            if tag in done or tag in tagged:
                apply(op, note["what"], self.rows)
        assert len(begun) - len(done) <= 1
        assert seen.rows == self.rows, f"{begun[-1]}: {_difference(seen.rows, self.rows)}"
        self._look_at_strays(begun, done, tagged, seen)

    def _look_at_strays(
        self, begun: list[dict[str, Any]], done: set[str], tagged: dict[str, int], seen: Seen
    ) -> None:
        """Only the operation that was killed may leave files behind."""
        started, last = begun[0]["at"] - COARSE, begun[-1]
        ours = {key: at for key, at in seen.strays.items() if at >= started}
        began = last["at"] - COARSE
        leaks = sorted(key for key, at in ours.items() if at < began)
        assert not leaks, f"finished operations left {leaks[:3]}"
        if last["begin"] not in done and last["begin"] not in tagged and ours:
            self.between += 1


def _difference(found: dict[int, int], wanted: dict[int, int]) -> str:
    changed = [n for n in found.keys() & wanted.keys() if found[n] != wanted[n]]
    return (
        f"missing {sorted(wanted.keys() - found.keys())[:5]}, "
        f"too many {sorted(found.keys() - wanted.keys())[:5]}, "
        f"other values {sorted(changed)[:5]}"
    )


def _has_file_since(table: Path, moment: float) -> bool:
    """Whether something was written to the folder of the table, the log apart."""
    for folder, folders, files in os.walk(table):
        folders[:] = [name for name in folders if name != "_delta_log"]
        for file in files:
            # What is seen may be moved or deleted before it is looked at.
            with contextlib.suppress(FileNotFoundError):
                if os.stat(f"{folder}/{file}").st_mtime >= moment:  # noqa: PTH116
                    return True
    return False


@dataclass(slots=True)
class Watch:
    """Where a driver is; its notes are read again only when there are more of them."""

    driver: Driver
    size: int = 0
    done: int = 0
    op: str | None = None
    """The operation it is at; None between two of them."""
    at: float = 0.0
    """When the last note was taken."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each operation took last."""

    def look(self) -> tuple[int, str | None]:
        """How many operations it was told are done, and which it is at."""
        journal = self.driver.journal
        size = journal.stat().st_size if journal.exists() else 0
        if size != self.size:
            notes, self.size = self.driver.notes(), size
            self.done = sum("done" in note for note in notes)
            self.op, self.at = (notes[-1].get("op"), notes[-1]["at"]) if notes else (None, 0.0)
            for begin, end in zip(notes[::2], notes[1::2], strict=False):
                self.seconds[begin["op"]] = end["at"] - begin["at"]
        return self.done, self.op


def _kill(driver: Driver, table: Path, aim: Aim, dice: random.Random) -> None:
    """Let it do some work, wait for the moment, kill it."""
    watch, enough = Watch(driver), dice.randrange(*WORK)
    while True:
        driver.check_alive()
        done, op = watch.look()
        if done < enough or op != aim.op:
            time.sleep(0.002)
            continue
        if not aim.at_first_file:
            # At any moment of the operation, as far as one can tell how long it will take.
            time.sleep(dice.uniform(0, watch.seconds.get(aim.op, 1.0)))
            break
        while watch.look() == (done, op) and not _has_file_since(table, watch.at):
            driver.check_alive()
            time.sleep(0.0005)
        if watch.look() == (done, op):
            # Now and then a little later: more files are there, or some are in place already.
            time.sleep(dice.choice((0, 0, 0, 0.005, 0.02)))
            break
    driver.kill()


def _start(number: int, table: Path, folder: Path) -> Driver:
    return Driver(
        "until killed",
        f"d{number}",
        table,
        folder,
        base=number * ROOM,
        writer=WRITERS[number % len(WRITERS)],
        warm=["write"],
    )


@pytest.mark.slow
@pytest.mark.spark
def test_killed_drivers_leave_what_they_committed(
    tmp_path: Path, delta_spark: SparkSession
) -> None:
    table, notes = tmp_path / "table", tmp_path / "notes"
    notes.mkdir()
    new_table(table)
    dice, model, kills = random.Random(KILLS), Model(), 0
    with drivers() as running:
        # The next driver gets up while this one works: a JVM takes as long as a round.
        following = _start(0, table, notes)
        running.append(following)
        # A kill can come a moment late, on some machines mostly; more of them make up for it.
        while kills < KILLS or (model.between * 2 < KILLS and kills < 4 * KILLS):
            driver, aim = following, AIMS[kills % len(AIMS)]
            driver.wait_ready()
            if kills % TURN == 0:
                Table.open(table).set_properties(MODES[kills // TURN % len(MODES)])
            driver.go()
            kills += 1
            following = _start(kills, table, notes)
            running.append(following)
            _kill(driver, table, aim, dice)
            model.follow(driver.notes(), see(table))
        # The one that is left goes on with all that the dead have left behind.
        following.wait_ready()
        following.go()
        watch = Watch(following)
        while watch.look()[0] < 4:
            following.check_alive()
            time.sleep(0.01)
        following.kill()
    model.follow(following.notes(), see(table))
    assert model.between * 2 >= KILLS, f"{model.between} of {kills} between file and commit"
    # What the dead have left is swept, even where its name hides it.
    Table.open(table).vacuum(0, enforce_retention=False)
    swept = see(table)
    assert (swept.rows, swept.strays) == (model.rows, {})
    assert {entry.name for entry in table.iterdir()} <= {
        "_delta_log",
        "_change_data",
        "part=0",
        "part=1",
    }
    assert_both_engines_read(delta_spark, table, model.rows)
