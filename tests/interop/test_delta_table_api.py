"""The same code with ``delta.tables.DeltaTable`` and with ours, side by side (policy ``minimal``).

Every scenario runs once with each package on a table of its own and returns what it saw; both have
to see the same. Only what cannot be equal is left out: times, sizes in bytes, ids and engines.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_CONF = {
    "spark.twinlake.upgradePolicy": "minimal",
    # Delta lists the folder of a VACUUM in this many tasks, by default 10,000.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
#: Metrics that say how long it took, how many bytes it was, or how Delta went about it.
_VARYING = re.compile(
    r"(?i)bytes|timems|filessize|size|numfiles$|numaddedfiles|numtargetfilesadded|directories"
)


@dataclass(frozen=True)
class Side:
    """One of the two packages, with a folder of its own."""

    api: Any
    spark: SparkSession
    folder: Path
    base: Path

    def path(self, name: str = "t") -> str:
        return str(self.folder / name)

    def name(self, name: str) -> str:
        return f"{name}_{self.folder.name}"

    def new(self, name: str = "t") -> Any:
        """A copy of a small table that Delta made, with rows in two commits."""
        shutil.copytree(self.base, self.path(name))
        return self.open(name)

    def open(self, name: str) -> Any:
        return self.api.DeltaTable.forPath(self.spark, self.path(name))


@pytest.fixture(scope="module")
def sides(
    delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    import delta.tables as theirs

    import twinlake.spark as ours

    ours_at, theirs_at = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    base = tmp_path_factory.mktemp("base") / "t"
    builder = theirs.DeltaTable.create(delta_spark).location(str(base)).property("k", "v")
    builder.addColumn("id", "INT", nullable=False, comment="key").addColumn("d", "STRING").execute()
    for values in ("(1, 'a'), (2, 'b')", "(3, 'c')"):
        delta_spark.sql(f"INSERT INTO delta.`{base}` VALUES {values}")
    settings = {**_CONF, "spark.twinlake.catalog": str(ours_at / "names.db")}
    for key, value in settings.items():
        delta_spark.conf.set(key, value)
    yield Side(ours, delta_spark, ours_at, base), Side(theirs, delta_spark, theirs_at, base)
    for key in settings:
        delta_spark.conf.unset(key)


def rows(frame: DataFrame) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def schema(frame: DataFrame) -> Any:
    return json.loads(frame.schema.json())


def history(table: Any, limit: int | None = None) -> list[Any]:
    """The history without what must differ."""
    seen = []
    for row in table.history(limit).collect():
        parameters = {k: _plain(v) for k, v in (row.operationParameters or {}).items()}
        metrics = {
            k: None if _VARYING.search(k) else v
            for k, v in (row.operationMetrics or {}).items()
            if not k.endswith("TimeMs")
        }
        seen.append(
            (row.version, row.operation, parameters, metrics, row.readVersion, row.isBlindAppend)
        )
    return seen


def _plain(value: str | None) -> Any:
    """A parameter without the numbers of columns, JSON parsed."""
    if value is None:
        return None
    text = re.sub(r"#\d+L?", "#", value)
    try:
        return json.loads(text)
    except ValueError:
        return text


def detail(table: Any) -> dict[str, Any]:
    row = table.detail().collect()[0].asDict()
    for key in ("id", "location", "createdAt", "lastModified", "sizeInBytes", "name"):
        assert row.pop(key) is not None or key == "name"
    return {key: sorted(v) if isinstance(v, list) else v for key, v in row.items()}


def _views(side: Side) -> Any:
    table = side.new()
    frame = table.history()
    return (
        schema(frame),
        schema(table.detail()),
        history(table),
        history(table, 1),
        history(table, 0),
        history(table, -1),
        detail(table),
        rows(table.toDF()),
        schema(table.toDF()),
        rows(table.alias("q").toDF().select("q.id")),
    )


def _row_changes(side: Side) -> Any:
    from pyspark.sql import functions as F

    table = side.new("changes")
    assert table.delete("id = 1") is None
    assert table.update("id = 2", {"d": "concat(d, '!')"}) is None
    table.update(set={"d": F.lit("z")})
    table.alias("q").delete(F.col("q.id") == 3)
    source = side.spark.createDataFrame([(2, "new"), (9, "nine")], "id INT, d STRING")
    merged = (
        table.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .whenMatchedUpdate(set={"d": "s.d"})
        .whenNotMatchedInsertAll()
        .execute()
    )
    return rows(table.toDF()), schema(merged), rows(merged), [h[:2] for h in history(table)]


def _columns_of_frames(side: Side) -> Any:
    """Conditions and values that were taken from the table's own frame."""
    from pyspark.sql import functions as F

    table = side.new("bound")
    table.delete(table.toDF().id == 1)
    frame = table.toDF()
    table.update(frame.id == 2, {"d": F.concat(frame.d, F.lit("!"))})
    table.alias("q").update("q.id = 3", {"q.d": "concat(q.d, '?')"})
    table.alias("q").update(F.col("q.id") == 3, {"d": F.concat(F.col("q.d"), F.lit("?"))})
    source = side.spark.createDataFrame([(3, "new"), (9, "nine")], "id INT, d STRING")
    frame = table.toDF()
    clauses = table.merge(source, frame.id == source.id).whenMatchedUpdate(
        condition=frame.d != source.d, set={"d": F.concat(frame.d, source.d)}
    )
    clauses.whenNotMatchedInsertAll().execute()
    return rows(side.open("bound").toDF()), *history(table)


def _restore(side: Side) -> Any:
    table = side.new("restore")
    times = [row.timestamp for row in table.history().orderBy("version").collect()]
    first, nothing = table.restoreToVersion(1), table.restoreToVersion(3)
    # Delta's handle shows the rows of its first scan for ever; a fresh one does not.
    seen = [schema(first), schema(nothing), rows(nothing), rows(side.open("restore").toDF())]
    table.restoreToTimestamp(str(times[2]))
    return [*seen, rows(side.open("restore").toDF()), history(table, 2)]


def _protocol(side: Side) -> Any:
    table = side.new("protocol")
    table.upgradeTableProtocol(1, 1)
    table.upgradeTableProtocol(1, 5)
    table.addFeatureSupport("deletionVectors")
    return detail(table), history(table, 3)


def _vacuum(side: Side) -> Any:
    table = side.new("vacuum")
    table.delete()
    side.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        done = table.vacuum(0)
    finally:
        side.spark.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    return schema(done), rows(done), history(table, 2), rows(table.toDF())


def _optimize(side: Side) -> Any:
    table = side.new("optimize")
    done = table.optimize().executeCompaction()
    row = done.collect()[0]
    return (
        schema(done),
        (row.metrics.numFilesAdded, row.metrics.numFilesRemoved, row.metrics.totalConsideredFiles),
        rows(table.toDF()),
        [h[:2] for h in history(table, 1)],
    )


def _builders(side: Side) -> Any:
    from pyspark.sql.types import StructType

    make = side.api.DeltaTable
    table = (
        make.createOrReplace(side.spark)
        .location(side.path("built"))
        .addColumn("id", "BIGINT", generatedByDefaultAs=side.api.IdentityGenerator(5, 2))
        .addColumn("v", "VARCHAR(9)", comment="text")
        .addColumn("n", "INT", nullable=False)
        .addColumn("twice", "INT", generatedAlwaysAs="n * 2")
        .addColumns(StructType.fromDDL("p DATE, s STRUCT<a: INT>"))
        .partitionedBy("p")
        .comment("a table")
        .property("delta.enableDeletionVectors", "true")
        .property("team", "orders")
        .execute()
    )
    seen = [detail(table), schema(table.toDF()), history(table)]
    replaced = (
        make.replace(side.spark)
        .location(side.path("built"))
        .addColumn("x", "STRING")
        .clusterBy("x")
        .execute()
    )
    seen += [detail(replaced), history(replaced, 1), rows(replaced.toDF())]
    again = make.replace(side.spark).location(side.path("built")).addColumn("x", "STRING").execute()
    return [*seen, detail(again), history(again, 1)]


def _names(side: Side) -> Any:
    make, name = side.api.DeltaTable, side.name("named")
    table = make.create(side.spark).tableName(name).addColumn("x", "INT").execute()
    made = make.createIfNotExists(side.spark).tableName(name).addColumn("y", "INT").execute()
    replaced = make.createOrReplace(side.spark).tableName(name).addColumn("y", "INT").execute()
    found = make.forName(side.spark, name.upper())
    by_path = make.forName(side.spark, f"delta.`{side.path()}`")
    return [
        *(history(each) for each in (table, made, replaced, found)),
        schema(found.toDF()),
        rows(by_path.toDF()),
        found.detail().collect()[0]["name"].endswith(f"default.{name}"),
    ]


def _defaults(side: Side) -> Any:
    settings = {
        "spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true",
        "spark.databricks.delta.properties.defaults.minWriterVersion": "5",
        "spark.databricks.delta.commitInfo.userMetadata": "a note",
    }
    for key, value in settings.items():
        side.spark.conf.set(key, value)
    try:
        builder = side.api.DeltaTable.create(side.spark).location(side.path("defaults"))
        table = builder.addColumn("x", "INT").execute()
        table.delete()
        notes = [row.userMetadata for row in table.history().collect()]
    finally:
        for key in settings:
            side.spark.conf.unset(key)
    return detail(table), history(table)[-1], notes[-1]


def _questions(side: Side) -> Any:
    ask = side.api.DeltaTable.isDeltaTable
    inside = f"{side.path()}/x=1"
    quoted = f"delta.`{side.path()}`"
    return [
        ask(side.spark, it) for it in (side.path(), inside, side.path("no"), quoted, "nope", "t t")
    ]


SCENARIOS: dict[str, Callable[[Side], Any]] = {
    "views": _views,
    "row-changes": _row_changes,
    "columns-of-frames": _columns_of_frames,
    "restore": _restore,
    "protocol": _protocol,
    "vacuum": _vacuum,
    "optimize": _optimize,
    "builders": _builders,
    "names": _names,
    "defaults": _defaults,
    "questions": _questions,
}


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_the_same_code_sees_the_same(
    sides: tuple[Side, Side], scenario: Callable[[Side], Any]
) -> None:
    ours, theirs = (scenario(side) for side in sides)
    # One by one, so that a difference is shown and not the whole of both.
    for part, (left, right) in enumerate(zip(ours, theirs, strict=True)):
        assert left == right, part


def _create(side: Side, name: str = "wrong") -> Any:
    return side.api.DeltaTable.create(side.spark).location(side.path(name))


def _for_path(side: Side, name: str = "t") -> Any:
    return side.open(name)


def _x(side: Side) -> Any:
    return _create(side).addColumn("x", "INT")


MISTAKES: dict[str, Callable[[Side], Any]] = {
    "no-table-at-path": lambda s: _for_path(s, "nowhere"),
    "no-table-of-name": lambda s: s.api.DeltaTable.forName(s.spark, "nowhere"),
    "no-table-in-quotes": lambda s: s.api.DeltaTable.forName(s.spark, f"delta.`{s.path('no')}`"),
    "odd-name": lambda s: s.api.DeltaTable.forName(s.spark, "a b"),
    "hadoop-conf": lambda s: s.api.DeltaTable.forPath(s.spark, s.path(), {"spark.x": "1"}),
    "retention": lambda s: _for_path(s).vacuum(0),
    "restore-late": lambda s: _for_path(s).restoreToVersion(99),
    "restore-negative": lambda s: _for_path(s).restoreToVersion(-1),
    "restore-early": lambda s: _for_path(s).restoreToTimestamp("2001-01-01"),
    "restore-future": lambda s: _for_path(s).restoreToTimestamp("2101-01-01 00:00:00"),
    "restore-nonsense": lambda s: _for_path(s).restoreToTimestamp("nonsense"),
    "restore-type": lambda s: _for_path(s).restoreToVersion("1"),
    "feature-type": lambda s: _for_path(s).addFeatureSupport(1),
    "feature-unknown": lambda s: _for_path(s).addFeatureSupport("nope"),
    "drop-unknown": lambda s: _for_path(s).dropFeatureSupport("nope"),
    "drop-type": lambda s: _for_path(s).dropFeatureSupport("appendOnly", "yes"),
    "versions": lambda s: _for_path(s).upgradeTableProtocol(1, 9),
    "update-without-set": lambda s: _for_path(s).update("id = 1"),
    "update-set-type": lambda s: _for_path(s).update("id = 1", {"d": 1}),
    "update-column": lambda s: _for_path(s).update("id = 1", {"nope": "1"}),
    "delete-column": lambda s: _for_path(s).delete("nope = 1"),
    "delete-type": lambda s: _for_path(s).delete(1),
    "merge-source": lambda s: _for_path(s).merge(None, "true"),
    "create-there": lambda s: _create(s, "t").addColumn("x", "INT").execute(),
    "create-nowhere": lambda s: s.api.DeltaTable.create(s.spark).addColumn("x", "INT").execute(),
    "replace-missing": lambda s: (
        s.api.DeltaTable.replace(s.spark).location(s.path("no")).addColumn("x", "INT").execute()
    ),
    "replace-missing-name": lambda s: (
        s.api.DeltaTable.replace(s.spark).tableName("nowhere").addColumn("x", "INT").execute()
    ),
    "replace-columns": lambda s: s.api.DeltaTable.replace(s.spark).location(s.path()).execute(),
    "other-columns": lambda s: (
        s.api.DeltaTable.createOrReplace(s.spark).location(s.path()).addColumn("x", "INT").execute()
    ),
    "namespace": lambda s: (
        s.api.DeltaTable.create(s.spark).tableName("nowhere.t").addColumn("x", "INT").execute()
    ),
    "column-twice": lambda s: _x(s).addColumn("X", "INT").execute(),
    "all-partitioned": lambda s: _x(s).partitionedBy("x").execute(),
    "partition-and-cluster": lambda s: (
        _x(s).addColumn("y", "INT").partitionedBy("x").clusterBy("y").execute()
    ),
    "type": lambda s: _create(s).addColumn("x", "FOO").execute(),
    "type-type": lambda s: _create(s).addColumn("x", 1),
    "name-type": lambda s: _create(s).tableName(1),
    "property-type": lambda s: _create(s).property("a", 1),
    "partition-type": lambda s: _create(s).partitionedBy(["a", 1]),
    "generated-twice": lambda s: _create(s).addColumn("x", "INT", True, "1", s.api.DeltaTable),
    "generated-type": lambda s: _create(s).addColumn("x", "INT", generatedAlwaysAs=1),
    "identity-step": lambda s: _create(s).addColumn(
        "x", "BIGINT", generatedAlwaysAs=s.api.IdentityGenerator(1, 0)
    ),
    "identity-type": lambda s: (
        _create(s).addColumn("x", "INT", generatedAlwaysAs=s.api.IdentityGenerator()).execute()
    ),
    "generated-mismatch": lambda s: (
        _x(s).addColumn("y", "INT", generatedAlwaysAs="x || 'a'").execute()
    ),
    "generated-reference": lambda s: (
        _x(s).addColumn("y", "INT", generatedAlwaysAs="nope").execute()
    ),
    "generated-random": lambda s: (
        _x(s).addColumn("y", "DOUBLE", generatedAlwaysAs="rand()").execute()
    ),
    "generated-aggregate": lambda s: (
        _x(s).addColumn("y", "BIGINT", generatedAlwaysAs="sum(x)").execute()
    ),
    "property-unknown": lambda s: _x(s).property("delta.nope", "1").execute(),
    "append-only": lambda s: _x(s).property("delta.appendOnly", "true").execute().delete(),
}


def _error(side: Side, mistake: Callable[[Side], Any]) -> tuple[set[type], str | None]:
    """The PySpark and Python types it can be caught as, and Delta's error class."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import exceptions

    kinds = (
        *(ValueError, TypeError, Py4JJavaError),
        *(exceptions.base.AnalysisException, exceptions.base.ParseException),
        exceptions.base.IllegalArgumentException,
        exceptions.base.UnsupportedOperationException,
    )
    with pytest.raises(Exception) as caught:
        mistake(side)
    error = caught.value
    condition = error.getCondition() if hasattr(error, "getCondition") else None
    if condition is None:
        named = re.search(r"Exception: \[(DELTA_\w+)\]", str(error))
        condition = named.group(1) if named else None
    return {kind for kind in kinds if isinstance(error, kind)}, condition


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_the_same_mistake_is_the_same_error(
    sides: tuple[Side, Side], mistake: Callable[[Side], Any]
) -> None:
    for side in sides:
        if not side.api.DeltaTable.isDeltaTable(side.spark, side.path()):
            side.new()
    ours, theirs = (_error(side, mistake) for side in sides)
    assert ours == theirs


def test_what_comes_later_is_refused(sides: tuple[Side, Side]) -> None:
    from pyspark.errors import UnsupportedOperationException

    side = sides[0]
    table = side.new("later")
    calls: list[Callable[[], Any]] = [
        lambda: table.generate("symlink_format_manifest"),
        lambda: table.clone(side.path("copy")),
        lambda: table.cloneAtVersion(0, side.path("copy")),
        lambda: table.cloneAtTimestamp("2026-01-01", side.path("copy")),
        lambda: side.api.DeltaTable.convertToDelta(side.spark, "parquet.`/data`"),
        lambda: table.optimize().executeZOrderBy("id"),
    ]
    for call in calls:
        with pytest.raises(UnsupportedOperationException, match="is not supported yet"):
            call()


def test_a_handle_follows_the_table(sides: tuple[Side, Side]) -> None:
    side = sides[0]
    table = side.new("moving")
    side.api.DeltaTable.forPath(side.spark, side.path("moving")).delete("id = 3")
    assert rows(table.toDF()) == [(1, "a"), (2, "b")]
    assert table.history(1).collect()[0].version == 3


_WITHOUT_ANY_JAR = """
import sys
from pyspark.sql import SparkSession

folder = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
settings = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.warehouse.dir": f"{folder}/warehouse",
    "spark.twinlake.catalog": f"{folder}/names.db",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
for key, value in settings.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
try:
    spark._jvm.java.lang.Class.forName("io.delta.tables.DeltaTable")
except Exception:
    pass
else:
    raise SystemExit("there is a Delta jar in this session")

from twinlake.spark import DeltaTable, scan, write

orders = DeltaTable.create(spark).tableName("orders").addColumn("id", "BIGINT").execute()
place = orders.detail().collect()[0]["location"]
write(spark.range(10), place, "append")
write(spark.range(10, 20), place, "append")
orders.delete("id < 5")
orders.update("id = 5", {"id": "100"})
source = spark.range(18, 22).alias("s")
merge = orders.alias("t").merge(source, "t.id = s.id")
merge.whenMatchedDelete().whenNotMatchedInsertAll().execute()
orders.optimize().executeCompaction()
table = DeltaTable.forName(spark, "orders")
assert sorted(r.id for r in table.toDF().collect()) == [*range(6, 18), 20, 21, 100]
assert scan(spark, place, where="id = 100").count() == 1
print([r.operation for r in table.history().collect()])
spark.stop()
"""


def test_no_jar_is_needed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_ANY_JAR, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == str(
        ["OPTIMIZE", "MERGE", "UPDATE", "DELETE", "WRITE", "WRITE", "CREATE TABLE"]
    )
