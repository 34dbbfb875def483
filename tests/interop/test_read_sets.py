"""Every file whose change would change what a statement does is in the read set that it commits.

Statements of the random workloads run on Spark. The transaction is observed as it commits, Delta
Spark says which rows each file had before, and what a statement does with rows is said in
``tests.support.engines.read_influence``, file by file left out. A file that matters has to be
covered twice: against a commit that rewrites or removes it, and against one that adds another file
with the same rows.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pytest
from pyspark.errors import PySparkException

from tests.support.engines import workloads as w
from tests.support.engines.read_influence import COLUMNS, files_that_matter
from tests.support.engines.steps import Side, frame_of
from tests.support.scale import scale
from twinlake.commit import ReadSet, Transaction
from twinlake.commit.read_set import partition_matches
from twinlake.errors import TwinlakeError
from twinlake.schema import parse_ddl
from twinlake.schema.predicates import parse_predicate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from twinlake.log import Snapshot

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_TABLES: Final[dict[str, tuple[str | None, str, dict[str, str]]]] = {
    "partitions and vectors": ("p", "native", {w.VECTORS: "true"}),
    "rewritten files": (None, "arrow", {}),
    "partitions without Spark": ("p", "local", {}),
}
_SHOWN: Final = list(_TABLES)[: scale(2, 3)]
_ROUNDS: Final = scale(1, 20)
_BY_SOURCE: Final = "whenNotMatchedBySource"


def _inserts_only(step: w.Step) -> bool:
    if not isinstance(step, w.Merge) or step.evolve:
        return False
    return all(name == "whenNotMatchedInsertAll" for name, _ in step.clauses)


def _merges(step: w.Step, *, by_source: bool) -> bool:
    """Whether it is a MERGE that also changes rows; such as match no source row, or others."""
    if not isinstance(step, w.Merge) or step.evolve or _inserts_only(step):
        return False
    return any(name.startswith(_BY_SOURCE) for name, _ in step.clauses) == by_source


#: What the statements of a round are, in their order: those that take every row come last.
_KINDS: Final[dict[str, Callable[[w.Step], bool]]] = {
    "MERGE that only inserts": _inserts_only,
    "MERGE": lambda step: _merges(step, by_source=False),
    "UPDATE": lambda step: isinstance(step, w.Update),
    "DELETE": lambda step: isinstance(step, w.Delete) and step.where is not None,
    "replaceWhere": lambda step: isinstance(step, w.Write) and step.replace_where is not None,
    "MERGE by source": lambda step: _merges(step, by_source=True),
    "dynamic overwrite": lambda step: isinstance(step, w.Write) and step.dynamic,
}
_TRIES: Final = 20


@dataclass(frozen=True, kw_only=True)
class _Commit:
    """A transaction as it was committed."""

    snapshot: Snapshot
    reads: ReadSet
    removed: frozenset[str]


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[_Commit]:
    """Every commit on a version that is there, as the transaction itself has it."""
    found: list[_Commit] = []
    commit = Transaction.commit

    def observed(self: Transaction, *args: Any, **kwargs: Any) -> Any:
        result = commit(self, *args, **kwargs)
        if result.version > 0:
            removed = self._change().summary.removed_paths
            found.append(_Commit(snapshot=self.snapshot, reads=self.reads, removed=removed))
        return result

    monkeypatch.setattr(Transaction, "commit", observed)
    return found


@pytest.mark.parametrize("name", _SHOWN)
def test_files_that_matter_are_in_the_read_set(
    name: str, delta_spark: SparkSession, tmp_path: Path, commits: list[_Commit]
) -> None:
    partition, writer, properties = _TABLES[name]
    rng = Random(name)
    seen: Counter[str] = Counter()
    for number in range(_ROUNDS):
        side = _table(delta_spark, tmp_path / str(number), writer, partition, properties)
        for kind in _KINDS:
            while side.table().snapshot.num_files < 2:
                side.run(w.Write(rows=w.Rows(seed=rng.randrange(100), count=7)), ())
            files = _rows_by_file(side)
            for _ in range(_TRIES):
                step = _statement(rng, side, kind)
                matter = files_that_matter(step, files, _source(side, step), partition)
                commit = _committed(side, step, commits) if matter else None
                if commit is not None:
                    assert not _uncovered(matter, commit), step
                    seen[kind] += len(matter)
                    break
    # A kind of statement for which no file matters shows nothing.
    assert not [kind for kind in _KINDS if not seen[kind]], seen


_TRUE: Final = ReadSet(predicates=(parse_predicate("true", parse_ddl("id BIGINT")),))
#: What a transaction forgets of the files that matter and of a condition that all rows meet.
_WEAKER: Final[dict[str, Callable[[ReadSet, set[str]], ReadSet]]] = {
    "nothing recorded": lambda _, __: ReadSet(),
    "no predicates": lambda reads, _: replace(reads, predicates=()),
    "no files": lambda reads, _: replace(reads, files=frozenset()),
    "one file missing": lambda reads, matter: reads.without_files(sorted(matter)[:1]),
}
# The files are read and none is removed: the rows are only compared.
_INSERTING: Final = w.Merge(
    rows=w.Rows(seed=3, count=30), clauses=(("whenNotMatchedInsertAll", {}),)
)


def test_a_weaker_read_set_is_noticed(
    delta_spark: SparkSession, tmp_path: Path, commits: list[_Commit]
) -> None:
    side = _table(delta_spark, tmp_path, "arrow", None, {})
    matter, commit = _inserted(side, commits)
    narrow = replace(commit.reads, whole_table=False)
    assert not _uncovered(matter, replace(commit, reads=_TRUE.merge(narrow)))
    for name, weaker in _WEAKER.items():
        weak = replace(commit, reads=weaker(_TRUE.merge(narrow), matter))
        assert _uncovered(matter, weak), name


def test_a_transaction_that_records_nothing_is_noticed(
    delta_spark: SparkSession,
    tmp_path: Path,
    commits: list[_Commit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side = _table(delta_spark, tmp_path, "arrow", None, {})
    monkeypatch.setattr(Transaction, "record", lambda self, _: self)
    matter, commit = _inserted(side, commits)
    assert _uncovered(matter, commit).keys() == matter


def _table(
    spark: SparkSession,
    path: Path,
    writer: str,
    partition: str | None,
    properties: dict[str, str],
) -> Side:
    """A table of several files with rows of their own."""
    side = Side(spark, path, writer)
    start = w.Start(
        columns=", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items()),
        partition_by=(partition,) if partition else (),
        properties=properties,
    )
    side.run(start, ())
    for seed in range(3):
        side.run(w.Write(rows=w.Rows(seed=seed, count=7)), ())
    return side


def _statement(rng: Random, side: Side, kind: str) -> w.Step:
    """A statement of the random workloads that is of this kind."""
    metadata = side.table().metadata
    shape = w.Shape(
        schema=side.schema(),
        partition_by=tuple(metadata.partition_columns),
        properties=dict(metadata.configuration),
        steps=1,
    )
    while True:
        step = w.random_step(rng, shape)
        if _KINDS[kind](step):
            return step


def _committed(side: Side, step: w.Step, commits: list[_Commit]) -> _Commit | None:
    """What a statement commits; ``None`` if it is refused or changes nothing."""
    commits.clear()
    try:
        side.run(step, ())
    except (TwinlakeError, PySparkException):
        # Two rows of the source for one of the target, a new row that replaceWhere does not admit.
        return None
    if not commits:
        return None
    (commit,) = commits
    return commit


def _inserted(side: Side, commits: list[_Commit]) -> tuple[set[str], _Commit]:
    """The files that matter to a MERGE that only inserts, and what it committed."""
    matter = files_that_matter(_INSERTING, _rows_by_file(side), _source(side, _INSERTING), None)
    commit = _committed(side, _INSERTING, commits)
    assert matter
    assert commit is not None
    return matter, commit


def _uncovered(matter: Iterable[str], commit: _Commit) -> dict[str, str]:
    """The files of which the commit would not notice every change, and which one it would not."""
    return {path: hole for path in sorted(matter) if (hole := _hole(commit, path))}


def _hole(commit: _Commit, path: str) -> str:
    """Which change of a file the commit would not notice; empty if there is none."""
    reads, snapshot = commit.reads, commit.snapshot
    if reads.whole_table:
        return ""
    if path not in reads.files | commit.removed:
        return "another commit may rewrite or remove it"
    (add,) = (one for one in snapshot.adds() if one.path == path)
    if not any(all(partition_matches(p, [add], snapshot.metadata)) for p in reads.predicates):
        return "another commit may add a file with the same rows"
    return ""


def _rows_by_file(side: Side) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of each live file as Delta Spark reads them."""
    files: dict[str, list[tuple[Any, ...]]] = {add.path: [] for add in side.table().snapshot.adds()}
    frame = side.spark.read.format("delta").load(str(side.path))
    for *row, name in frame.select(*COLUMNS, "_metadata.file_path").collect():
        (path,) = (one for one in files if unquote(name).endswith("/" + unquote(one)))
        files[path].append(tuple(row))
    return files


def _source(side: Side, step: w.Step) -> list[tuple[Any, ...]]:
    rows = getattr(step, "rows", None)
    if rows is None:
        return []
    partition_by = side.table().metadata.partition_columns
    frame = frame_of(side.spark, rows, side.schema(), partition_by)
    return [tuple(row) for row in frame.select(*COLUMNS).collect()]
