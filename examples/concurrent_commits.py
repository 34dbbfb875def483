"""A DELETE and an UPDATE of one row that overlap: in a model, in the code, on a twin table."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from twinlake import ConflictError, Table
from twinlake.spark import DeltaTable, scan, write
from twinlake.verify import check
from twinlake.verify.models import IcebergV2

from .step import Step, calls, facts, grid, prose, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

COLUMNS: Final = "name STRING, colour STRING"
COMPAT: Final = "icebergWriterCompatV3"
TWIN: Final = {
    "delta.enableIcebergWriterCompatV3": "true",
    "delta.enableDeletionVectors": "true",
}


def steps(folder: Path, spark: SparkSession | None = None) -> Iterator[Step]:
    """The anomaly found, its fix proved, and the same history in practice."""
    yield anomaly()
    yield fixed()
    yield on_the_code()
    # The DELETE that waits keeps one core.
    if spark is not None and spark.sparkContext.defaultParallelism > 1:
        yield on_a_twin(folder / "favourites", spark)


def anomaly() -> Step:
    """The shortest interleaving of a model of Iceberg commits that breaks a property."""
    start = time.monotonic()
    result = check(IcebergV2())
    seconds = time.monotonic() - start
    violation = result.violations[0]
    rows = [
        (step.number, step.actor, step.action, ", ".join(text(one) for one in step.checks))
        for step in violation.trace.steps
    ]
    return Step(
        name="verify_anomaly",
        title="A deleted row that is read again",
        data={"seconds": round(seconds, 2), **result.to_dict()},
        parts=[
            prose(
                "Two writers, one row: one deletes it while the other updates it. The model covers "
                "every interleaving of two Iceberg v2 commits under snapshot isolation. The "
                "shortest one that breaks a property:"
            ),
            "$ twinlake verify iceberg --config seed",
            facts(
                {
                    "seconds": f"{seconds:.2f}",
                    "states": f"{result.states:,}",
                    "violated": f"{violation.property}, after {len(violation.trace)} steps",
                }
            ),
            grid("step actor action checks", rows),
            prose(f"The failed comparison: {violation.message}."),
            prose(
                "In either order of the two statements the row ends up deleted. The DELETE only "
                "checks that the data file it read still exists, and it does."
            ),
        ],
    )


def text(validation: Any) -> str:
    """A validation of a commit with its result."""
    return f"{'✓' if validation.passed else '✗'} {validation.name}"


def fixed() -> Step:
    """The same model with one validation more."""
    result = check(IcebergV2(fix="A"))
    return Step(
        name="verify_fix",
        title="The fix, proved",
        data=result.to_dict(),
        parts=[
            prose("The DELETE aborts if a delete file was added since it read. All interleavings:"),
            "$ twinlake verify iceberg --config seed --fix",
            facts({"states": f"{result.states:,}, searched to the end"}),
            grid("property verdict", result.verdicts.items()),
        ],
    )


def on_the_code() -> Step:
    """The counterexample, replayed on the code that commits."""
    command = ["verify", "code", "--models"]
    found = subprocess.run(
        [sys.executable, "-m", "twinlake", *command, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    replay = json.loads(found.stdout)["replays"][0]
    shown = {name: replay[name] for name in ("name", "model", "property", "masked", "by")}
    return Step(
        name="verify_code",
        title="The same interleaving on the code",
        data=shown,
        parts=[
            prose(
                "The commits of twinlake itself, on a store in memory, with their storage calls in "
                "the order of the model's counterexample:"
            ),
            f"$ twinlake {' '.join(command)}",
            facts(shown),
        ],
    )


def on_a_twin(path: Path, spark: SparkSession) -> Step:
    """A DELETE that has read and not yet committed while an UPDATE of its row commits."""
    table = Table.create(path, COLUMNS, properties=TWIN)
    rows = spark.createDataFrame([("jack", "red"), ("sarah", "green")], COLUMNS)
    table = write(rows.coalesce(1), str(path), mode="append")
    favourites = DeltaTable.forPath(spark, str(path))
    conflict = delete_during(
        spark, favourites, lambda: favourites.update("name = 'jack'", {"colour": "'blue'"})
    )
    after_update = read(spark, path)
    favourites.delete("name = 'jack'")
    table = table.refresh()
    return Step(
        name="verify_twin_table",
        title="The same history on a twin table",
        data={
            "masked": conflict is not None,
            "error": conflict and {**conflict.to_dict(), "type": type(conflict).__name__},
            "after_update": after_update,
            "rows": read(spark, path),
            "version": table.version,
            "keeps_promise": table.check(COMPAT, files=True).ok,
        },
        parts=[
            prose(
                f"A table with {COMPAT} and deletion vectors. The DELETE, a MERGE whose source "
                "waits, has read version 1; the UPDATE commits version 2; then the DELETE tries to "
                "commit:"
            ),
            calls('favourites.update("name = \'jack\'", {"colour": "\'blue\'"})'),
            f"{type(conflict).__name__}:\n{conflict}",
            prose(
                "Both change the deletion vector of one file, so the second fails. The table has "
                f"the rows {spelled(after_update)}. Retried on version 2 the DELETE leaves "
                f"{spelled(read(spark, path))}."
            ),
            grid(
                "version operation read_version",
                [(one.version, one.operation, one.read_version) for one in table.history()],
                title="history",
            ),
        ],
    )


def delete_during(
    spark: SparkSession, table: DeltaTable, other: Callable[[], object]
) -> ConflictError | None:
    """Delete jack, with ``other`` between the read and the commit; returns the conflict."""
    with tempfile.TemporaryDirectory() as signals:
        has_read, may_commit = Path(signals, "read"), Path(signals, "commit")

        def wait(name: str) -> tuple[str]:
            has_read.touch()
            while not may_commit.exists():
                time.sleep(0.01)
            return (name,)

        source = spark.sparkContext.parallelize(["jack"], 1).map(wait).toDF("name STRING")
        merge = table.alias("t").merge(source.alias("s"), "t.name = s.name").whenMatchedDelete()
        found: list[ConflictError] = []

        def delete() -> None:
            try:
                merge.execute()
            except ConflictError as error:
                found.append(error)

        thread = threading.Thread(target=delete)
        thread.start()
        try:
            while thread.is_alive() and not has_read.exists():
                time.sleep(0.01)
            other()
        finally:
            may_commit.touch()
            thread.join()
    return found[0] if found else None


def read(spark: SparkSession, path: Path) -> list[dict[str, str]]:
    """The rows by name."""
    return [row.asDict() for row in scan(spark, str(path)).orderBy("name").collect()]


def spelled(rows: list[dict[str, str]]) -> str:
    """Rows in a sentence."""
    return " and ".join(f"{row['name']} {row['colour']}" for row in rows)


if __name__ == "__main__":
    run(steps, on_spark=True)
