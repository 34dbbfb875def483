"""Statements of SQL here and in Delta Spark, one after the other on copies of one table."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.test_delta_table_api import history
from tests.support.spark.sql_statements import REFUSED, SCRIPTS, Bound, Expected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_KEPT_METRICS = ("numFilesAdded", "numFilesRemoved", "partitionsOptimized")
_BY_FILE_LAYOUT = {
    "WRITE": ("numRemovedFiles",),
    "MERGE": ("numTargetRowsCopied", "numOutputRows", "numTargetFilesRemoved"),
}
_CONF = {
    "spark.twinlake.upgradePolicy": "minimal",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


@dataclass(frozen=True)
class Side:
    """One of the two ways to run a statement, with tables of its own."""

    name: str
    spark: SparkSession
    folder: Path
    run: Callable[..., DataFrame]

    def names(self, script: str) -> dict[str, str]:
        """What the placeholders of a script stand for."""
        slug = script.replace(" ", "_")
        return {
            "t": f"delta.`{self.folder / slug / 't'}`",
            "t2": f"delta.`{self.folder / slug / 't2'}`",
            "s": f"delta.`{self.folder / 's'}`",
            "f": str(self.folder / slug / "f"),
            "n": f"{slug}_{self.name}",
            "m": f"{slug}_{self.name}_m",
            "h": "hiding",
        }

    def prepare(self, script: str, base: Path) -> dict[str, str]:
        folder = self.folder / script.replace(" ", "_")
        (folder / "f").mkdir(parents=True)
        for name in ("t", "t2"):
            shutil.copytree(base / "t", folder / name)
        return self.names(script)


@pytest.fixture(scope="module")
def base(delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that Delta Spark made: ``t`` in two commits after its first, and ``s``."""
    folder = tmp_path_factory.mktemp("base")
    run = delta_spark.sql
    run(f"CREATE TABLE delta.`{folder}/t` (id INT, d STRING, p INT) USING delta PARTITIONED BY (p)")
    run(f"INSERT INTO delta.`{folder}/t` VALUES (1, 'a', 1), (2, 'b', 2)")
    run(f"INSERT INTO delta.`{folder}/t` VALUES (3, 'c', 1)")
    run(f"CREATE TABLE delta.`{folder}/s` (id INT, v INT) USING delta")
    run(f"INSERT INTO delta.`{folder}/s` VALUES (2, 20), (3, 10), (9, 90)")
    return folder


@pytest.fixture(scope="module")
def sides(
    delta_spark: SparkSession, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Side, Side]]:
    from twinlake.spark import sql

    ours_at, theirs_at = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    for folder in (ours_at, theirs_at):
        shutil.copytree(base / "s", folder / "s")
    settings = {**_CONF, "spark.twinlake.catalog": str(ours_at / "names.db")}
    for key, value in settings.items():
        delta_spark.conf.set(key, value)

    def ours(text: str, args: Any) -> DataFrame:
        return sql(delta_spark, text, args)

    def theirs(text: str, args: Any) -> DataFrame:
        return delta_spark.sql(text, args)

    yield (
        Side("ours", delta_spark, ours_at, ours),
        Side("theirs", delta_spark, theirs_at, theirs),
    )
    for key in settings:
        delta_spark.conf.unset(key)


def _filled(text: str, names: dict[str, str]) -> str:
    """The placeholders in a text; other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], found[0]), text)


def _answer(side: Side, text: str, args: Any, names: dict[str, str]) -> tuple[str, Any]:
    """What a statement comes to: its schema and rows, or its error class."""
    filled: Any = args
    if isinstance(args, dict):
        filled = {k: _filled(v, names) if isinstance(v, str) else v for k, v in args.items()}
    try:
        frame = side.run(_filled(text, names), filled)
        rows = [tuple(row) for row in frame.collect()] if frame.columns else []
    except Exception as error:
        return "error", _error_class(error)
    schema = frame.schema.simpleString()
    if "operationParameters" in frame.columns:
        rows = [(row.version, row.operation) for row in frame.collect()]
    elif "minReaderVersion" in frame.columns:
        chosen = ("format", "partitionColumns", "minReaderVersion", "minWriterVersion")
        rows = [tuple(row) for row in frame.select(*chosen).collect()]
    elif "metrics" in frame.columns:
        rows = [tuple(row.metrics[name] for name in _KEPT_METRICS) for row in frame.collect()]
    elif "table_size_after_restore" in frame.columns:
        counts = [name for name in frame.columns if "size" not in name]
        rows = [tuple(row) for row in frame.select(*counts).collect()]
    return schema, sorted((_plain(side, row) for row in rows), key=repr)


def _error_class(error: Exception) -> str:
    condition = getattr(error, "getCondition", lambda: None)()
    if condition:
        return str(condition)
    # What Delta lets through as an error of Java has its class in the text.
    found = re.search(r"\[((?:DELTA_)?[A-Z]+_[A-Z_.]+)\]|(DELTA_[A-Z_]+)", str(error))
    return str(found[1] or found[2]) if found else type(error).__name__


def _plain(side: Side, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row without what each side has of its own: folders, names and where names live."""
    cells = []
    for cell in row:
        if isinstance(cell, str):
            cell = cell.replace(str(side.folder), "FOLDER").replace(f"_{side.name}", "")
            cell = re.sub(r"\b(spark_catalog|twinlake)\.", "", cell)
        cells.append(cell)
    return tuple(cells)


def _table_history(side: Side, names: dict[str, str]) -> list[Any]:
    import delta.tables

    import twinlake.spark

    api: Any = twinlake.spark if side.name == "ours" else delta.tables
    path = names["t"].removeprefix("delta.`").removesuffix("`")
    found = history(api.DeltaTable.forPath(side.spark, path))
    for _, operation, _, metrics, *_ in found:
        # How many files a write makes is up to each engine, and with it which rows share a file.
        for name in _BY_FILE_LAYOUT.get(operation, ()):
            metrics.pop(name, None)
    return found


@pytest.mark.parametrize("script", SCRIPTS)
def test_statements_do_what_they_do_in_delta_spark(
    script: str, sides: tuple[Side, Side], base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from twinlake import Table
    from twinlake.spark.statements.queries.statement import SparkStatement

    passed_on: list[str] = []
    pass_on = SparkStatement.pass_on

    def noted(statement: SparkStatement) -> DataFrame:
        passed_on.append(statement.given)
        return pass_on(statement)

    monkeypatch.setattr(SparkStatement, "pass_on", noted)
    places = [side.prepare(script, base) for side in sides]
    different = []
    for case in SCRIPTS[script]:
        text, args, literal = _asked(case)
        passed_on.clear()
        ours = _answer(sides[0], text, args, places[0])
        theirs = _answer(sides[1], literal, None, places[1])
        wanted = ("error", case.ours) if isinstance(case, Expected) else theirs
        if ours != wanted:
            different.append(f"{text} {args or ''}\n   ours {ours}\n wanted {wanted}")
        if passed_on and any(places[0][key] in passed_on[0] for key in ("t", "s")):
            assert ours[0] == "error", f"Spark itself ran {passed_on[0]}"
    assert not different, "\n".join(different)
    mine, other = (_table_history(s, n) for s, n in zip(sides, places, strict=True))
    assert mine == other
    location = places[0]["t"].removeprefix("delta.`").removesuffix("`")
    own = [r.engine_info for r in Table.open(location).history()][: -len(_BASE_COMMITS)]
    assert [info for info in own if not str(info).startswith("twinlake")] == []


_BASE_COMMITS = ("CREATE TABLE", "WRITE", "WRITE")


def _asked(case: str | Bound | Expected) -> tuple[str, Any, str]:
    """What is run here with which values, and what is run by Delta Spark."""
    if isinstance(case, Bound):
        return case.text, case.args, case.literal
    text = case.text if isinstance(case, Expected) else case
    return text, None, text


def test_there_are_enough_statements() -> None:
    assert sum(map(len, SCRIPTS.values())) + len(REFUSED) >= 150


def test_what_is_not_supported_is_refused_by_name(sides: tuple[Side, Side], base: Path) -> None:
    from twinlake import Table

    ours, _ = sides
    names = ours.prepare("refused", base)
    location = names["t"].removeprefix("delta.`").removesuffix("`")
    before = Table.open(location).version
    for text, says in REFUSED.items():
        with pytest.raises(Exception, match=re.escape(says)):
            ours.run(_filled(text, names), None)
    assert Table.open(location).version == before
