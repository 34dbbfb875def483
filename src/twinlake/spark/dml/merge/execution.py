"""MERGE: a join finds the clause of each row, and the plan decides which files change.

The rows that change are computed once and kept: positions, data files and change files all come
from the same result. Where files are rewritten anyway and the source is small, only the source
is kept, and changed rows are made as the files are written. In both ways the source is read exactly
once, and a source that answers differently each time still gives a consistent table.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F

from twinlake.commit import CommitOptions, Operation, OperationName, ReadSet
from twinlake.commit.plans import ChangeType, Mode, RewriteFile, Then, When, plan_merge
from twinlake.spark.dml.merge.clauses import Clause, MergeColumns, MergeScopes, resolve_clauses
from twinlake.spark.dml.merge.file_skipping import target_only
from twinlake.spark.dml.merge.matches import SOURCE_ROW, MergeMatches, numbered_rows
from twinlake.spark.dml.merge.resolution import (
    ExpressionScope,
    ResolvedExpression,
    has_equal_keys,
    is_repeatable,
    shares_columns,
)
from twinlake.spark.dml.merge.rows import ACTION, FROM_SOURCE, MergeRows
from twinlake.spark.dml.row_change import CHANGE_TYPE, RowChange
from twinlake.spark.read.conditions import empty_frame, template_of
from twinlake.spark.read.expression_ids import empty_copy, with_expression_ids
from twinlake.spark.read.table_scan import Scan
from twinlake.spark.rows.constraints import enforce
from twinlake.spark.rows.identity import with_high_water_marks, with_identity
from twinlake.spark.session import session_conf
from twinlake.spark.spark_types import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from twinlake.commit.plans import Outcome, RowPlan
    from twinlake.protocol import Metadata
    from twinlake.schema.predicates import Expr
    from twinlake.table import Table

__all__ = ["AUTO_MERGE", "MergeRequest", "merge"]

AUTO_MERGE: Final = "spark.databricks.delta.schema.autoMerge.enabled"

_PARAMETERS: Final[Mapping[When, str]] = {
    When.MATCHED: "matchedPredicates",
    When.NOT_MATCHED: "notMatchedPredicates",
    When.NOT_MATCHED_BY_SOURCE: "notMatchedBySourcePredicates",
}
_HIDDEN_METRIC: Final = "numTargetChangeFileBytes"
"""A metric that plans count and Delta's history does not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """What a user asks of a MERGE."""

    source: DataFrame
    condition: str | Column
    clauses: tuple[Clause, ...]
    alias: str | None = None
    """The name that expressions use for the table."""
    evolution: bool = False
    """Whether columns that only the source has are added to the table."""
    target: DataFrame | None = None
    """The frame of the table that expressions may have taken columns from."""
    options: CommitOptions = field(default_factory=CommitOptions)
    txn: tuple[str, int] | None = None
    """The application and its version that the commit is to be known by."""


def merge(spark: SparkSession, table: Table, request: MergeRequest) -> Mapping[str, int]:
    """Merge the source into the table; returns the metrics.

    Nothing is committed if nothing changes.
    """
    started = time.monotonic()
    run = _Merge.of(spark, table, request)
    with run.change as change:
        outcome = run.outcome()
        change.commit(outcome, started=started, txn=request.txn)
    return {key: int(value) for key, value in outcome.metrics.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joined:
    """The result of the join of a MERGE."""

    found: MergeMatches
    inserted: int
    changed: DataFrame | None = None
    """Rows to write, with the clause that each falls to; others may be among them."""
    source: DataFrame | None = None
    """The source, where updated rows are to be made together with those that are copied."""


@dataclass(slots=True, kw_only=True)
class _Merge:
    """One MERGE, resolved."""

    change: RowChange
    request: MergeRequest
    template: DataFrame
    scopes: MergeScopes
    condition: ResolvedExpression
    rows: MergeRows
    target_only: Expr | None
    """What of the conditions concerns the table alone, and so can skip files."""
    source_rows: Observation = field(default_factory=lambda: _observation("source"))
    inserted_rows: Observation = field(default_factory=lambda: _observation("inserted"))
    kept: list[DataFrame] = field(default_factory=list)
    """Frames that are held until the MERGE is over."""

    @staticmethod
    def of(spark: SparkSession, table: Table, request: MergeRequest) -> _Merge:
        metadata = table.metadata
        template = _template(spark, metadata, request)
        named = template if request.alias is None else template.alias(request.alias)
        source = empty_copy(spark, request.source)
        scopes = MergeScopes(
            target=ExpressionScope(frame=named),
            source=ExpressionScope(frame=source),
            both=ExpressionScope(frame=named.crossJoin(source)),
        )
        evolution = request.evolution or session_conf(spark, AUTO_MERGE, "false").lower() == "true"
        condition = scopes.both.condition(request.condition, "search condition")
        columns = resolve_clauses(
            scopes,
            request.clauses,
            metadata,
            alias=request.alias,
            evolution=evolution,
        )
        operation = Operation(name=OperationName.MERGE, parameters=_parameters(condition, columns))
        after = columns.metadata
        change = RowChange(
            spark,
            table,
            operation,
            metadata=None if after == metadata else after,
            options=request.options,
        )
        return _Merge(
            change=change,
            request=request,
            template=template,
            scopes=scopes,
            condition=condition,
            rows=MergeRows(columns=columns, row_ids=change.rules.row_tracking),
            target_only=target_only(
                spark, metadata, scopes, condition, columns.clauses, alias=request.alias
            ),
        )

    def outcome(self) -> Outcome:
        try:
            outcome = self._outcome()
        finally:
            for frame in self.kept:
                _unpersist(frame)
        metrics = {key: value for key, value in outcome.metrics.items() if key != _HIDDEN_METRIC}
        return replace(outcome, metrics=metrics)

    def _outcome(self) -> Outcome:
        change = self.change
        files, reads = self._files()
        with change.timed("scan"):
            joined = self._joined(files)
        found = joined.found
        touched = change.touched_files(files, delete=found.delete, update=found.update)
        acts = bool(touched or joined.inserted)
        plan = plan_merge(
            touched,
            clauses=self.rows.clauses,
            source_rows=self._read_rows(acts=acts),
            inserted_rows=joined.inserted,
            rules=change.rules,
            reads=reads,
            updated_by_source=found.updated_by_source,
            deleted_by_source=found.deleted_by_source,
        )
        with change.timed("rewrite"):
            return self._written(plan, joined)

    def _files(self) -> tuple[pa.Table, ReadSet]:
        """The files that may hold rows the MERGE looks at, and what that means for conflicts."""
        expr = None if When.NOT_MATCHED_BY_SOURCE in self.rows.kinds else self.target_only
        files = self.change.snapshot.files(expr)
        paths = frozenset(files["path"].to_pylist())
        if expr is None:
            return files, ReadSet(whole_table=True, files=paths)
        return files, ReadSet(predicates=(expr,), files=paths)

    def _target(self, files: pa.Table, *, positions: bool) -> DataFrame:
        """The rows of these files, under the column ids that expressions were resolved with."""
        change = self.change
        scan = Scan(
            snapshot=change.snapshot,
            files=files,
            positions=positions,
            row_ids=change.rules.row_tracking,
        )
        return with_expression_ids(change.spark, scan.frame(change.spark), self.template)

    def _joined(self, files: pa.Table) -> _Joined:
        """The join, in the way that reads and moves the fewest rows."""
        kinds = self.rows.kinds
        in_place = self._in_place()
        in_steps = in_place or kinds == {When.MATCHED, When.NOT_MATCHED}
        if in_steps and _is_small(self.request.source):
            return self._join_in_steps(files, in_place=in_place)
        return self._join_once(files)

    def _in_place(self) -> bool:
        """Whether updated rows can be made while the files they are in are rewritten.

        The join is then done twice, so it has to be cheap and to come out the same: conditions
        are deterministic in any case, but the clock or a function in Python may
        give another result later.
        """
        change = self.change
        rules = change.rules
        matched = [c for c in self.rows.columns.clauses if c.clause.when is When.MATCHED]
        conditions = [self.condition, *(c.condition for c in matched if c.condition is not None)]
        return (
            bool(matched)
            and When.NOT_MATCHED_BY_SOURCE not in self.rows.kinds
            and rules.mode is Mode.COPY_ON_WRITE
            and not rules.change_data
            and change.metadata is None
            and has_equal_keys(self.condition, self.scopes.target, self.scopes.source)
            and all(is_repeatable(change.spark, condition) for condition in conditions)
        )

    def _join_once(self, files: pa.Table) -> _Joined:
        """All kinds of rows in one join."""
        rows, kinds = self.rows, self.rows.kinds
        target = self._target(files, positions=True)
        counted = self._source().observe(self.source_rows, F.count(F.lit(1)).alias("rows"))
        acted = rows.acted(_join(target, counted, self.condition.column, kinds), kinds)
        # A match that no clause takes is kept too, as it can make another one ambiguous.
        counts = F.col(ACTION).isNotNull() | rows.counts(kinds)
        changed = self._kept(self._counted(rows.shaped(acted.where(counts), kinds)))
        found = MergeMatches.of(changed, rows.clauses)
        return _Joined(found=found, inserted=self._inserted(changed), changed=changed)

    def _join_in_steps(self, files: pa.Table, *, in_place: bool) -> _Joined:
        """Matches and inserts one after the other, so that a small source can be broadcast.

        In one outer join it could not be, and the whole table would be shuffled.
        """
        rows, matched = self.rows, frozenset({When.MATCHED})
        source = numbered_rows(self._source())
        once = self._kept(source.observe(self.source_rows, F.count(F.lit(1)).alias("rows")))
        target = self._target(files, positions=True)
        pairs = rows.acted(target.join(F.broadcast(once), self.condition.column, "inner"), matched)
        if not in_place:
            pairs = self._kept(rows.shaped(pairs, matched, SOURCE_ROW))
        elif When.NOT_MATCHED not in rows.kinds:
            pairs = pairs.where(rows.counts(matched)).drop(SOURCE_ROW)
        # A pair that no clause takes counts too: its source row is not to be inserted.
        found = MergeMatches.of(pairs, rows.clauses)
        changed, inserted = self._fresh(once, found)
        if in_place:
            return _Joined(found=found, inserted=inserted, changed=changed, source=once)
        taken = pairs.where(F.col(ACTION).isNotNull()).drop(SOURCE_ROW)
        return _Joined(
            found=found,
            inserted=inserted,
            changed=taken if changed is None else taken.union(changed),
        )

    def _fresh(self, once: DataFrame, found: MergeMatches) -> tuple[DataFrame | None, int]:
        """The rows to insert, and how many they are."""
        rows, fresh = self.rows, frozenset({When.NOT_MATCHED})
        clauses = [clause for clause in rows.clauses if clause.when is When.NOT_MATCHED]
        if not clauses:
            return None, 0
        acted = rows.acted(found.unmatched(once), fresh)
        inserts = rows.shaped(acted.where(F.col(ACTION).isNotNull()), fresh)
        if self.change.rules.change_data or all(clause.conditional for clause in clauses):
            inserts = self._kept(self._counted(inserts))
            count = self._inserted(inserts)
        else:
            count = self._source_rows(once) - found.matched_source_rows
        return (inserts, count) if count else (None, 0)

    def _source(self) -> DataFrame:
        return self.request.source.select("*", F.lit(True).alias(FROM_SOURCE))

    def _kept(self, frame: DataFrame) -> DataFrame:
        """The frame, computed now and never again."""
        kept = frame.localCheckpoint(eager=True)
        self.kept.append(kept)
        return kept

    def _counted(self, rows: DataFrame) -> DataFrame:
        is_insert = F.col(ACTION).isin(self.rows.numbers(Then.INSERT))
        counted = F.count(F.when(is_insert, True)).alias("rows")
        return rows.observe(self.inserted_rows, counted)

    def _inserted(self, changed: DataFrame) -> int:
        numbers = self.rows.numbers(Then.INSERT)
        if not numbers:
            return 0
        seen = _observed(self.inserted_rows)
        return changed.where(F.col(ACTION).isin(numbers)).count() if seen is None else seen

    def _read_rows(self, *, acts: bool) -> int:
        """How many rows of the source are read."""
        source = self.request.source
        if acts:
            return self._source_rows(source)
        # Spark leaves the source unread, or stops, where no row of the table can match.
        return 0 if self.change.metadata is None else source.count()

    def _source_rows(self, source: DataFrame) -> int:
        seen = _observed(self.source_rows)
        return source.count() if seen is None else seen

    def _written(self, plan: RowPlan, joined: _Joined) -> Outcome:
        change = self.change
        updates, inserts = (self.rows.numbers(then) for then in (Then.UPDATE, Then.INSERT))
        parts: list[DataFrame] = []
        images: DataFrame | None = None
        drawn: frozenset[str] = frozenset()
        if joined.source is not None:
            parts += self._rewritten(plan, joined.source)
        if joined.changed is not None and plan.updated_rows + plan.inserted_rows:
            stays = joined.changed.where(F.col(ACTION).isin(updates + inserts))
            kept, drawn = self._numbered(stays)
            parts.append(kept)
            if plan.needs_change_files:
                kind = F.when(
                    F.col(ACTION).isin(updates), F.lit(str(ChangeType.UPDATE_POSTIMAGE))
                ).otherwise(F.lit(str(ChangeType.INSERT)))
                images = kept.withColumn(CHANGE_TYPE, kind)
        computed = self._always_computed()
        written = change.write(
            plan,
            changed=[enforce(part, change.after, computed=computed) for part in parts],
            change_rows=images,
            changed_holds_copied=joined.source is not None,
        )
        if drawn:
            change.metadata = (
                with_high_water_marks(change.after, written.files, columns=drawn) or change.metadata
            )
        return plan.finish(written, now=change.table.runtime.clock.now_ms())

    def _rewritten(self, plan: RowPlan, source: DataFrame) -> list[DataFrame]:
        """All rows of the touched files: updated ones and others stay together in their new file.

        The plan checks that they come to the rows it was made for.
        """
        paths = [
            step.file.add.path
            for step in plan.steps
            if isinstance(step, RewriteFile) or len(step.file.update)
        ]
        if not paths:
            return []
        target = self._target(self.change.only(paths), positions=False)
        # Of several matches of a row at most one is taken by a clause, or all of them delete it.
        on = self.condition.column & self.rows.taken(When.MATCHED)
        joined = target.join(F.broadcast(source), on, "left")
        current = [each.column for each in self.scopes.target.attributes()]
        return [self.rows.rewritten(joined, current)]

    def _always_computed(self) -> frozenset[str]:
        """Generated columns that no clause gave values of its own: they need no check."""
        made = [each.computed for each in self.rows.columns.clauses if each.values]
        return frozenset.intersection(*made) if made else frozenset()

    def _numbered(self, changed: DataFrame) -> tuple[DataFrame, frozenset[str]]:
        """Inserted rows with the identity values the table gives them."""
        clauses = self.rows.columns.clauses
        drawn: frozenset[str] = frozenset().union(*(c.drawn for c in clauses))
        if not drawn:
            return changed, drawn
        own = {name: f"__twinlake_given_{n}" for n, name in enumerate(sorted(drawn))}
        bare = changed.withColumnsRenamed(own)
        numbered = with_identity(bare, self.change.after)
        columns = []
        for name in changed.columns:
            if name not in own:
                columns.append(F.col(quoted(name)))
                continue
            numbers = [n for n, each in enumerate(clauses) if name in each.drawn]
            value = F.when(F.col(ACTION).isin(numbers), F.col(quoted(name)))
            columns.append(value.otherwise(F.col(own[name])).alias(name))
        return numbered.select(*columns), drawn


def _template(spark: SparkSession, metadata: Metadata, request: MergeRequest) -> DataFrame:
    """A frame without rows that has the table's columns.

    It shares its column ids with the table's frame, so that columns taken from there mean the
    target; unless the source was made from that frame and has them already.
    """
    like = None if request.target is None else template_of(request.target)
    fresh = empty_frame(spark, metadata)
    if like is None or like.dtypes != fresh.dtypes or shares_columns(like, request.source):
        return fresh
    return empty_copy(spark, like)


def _parameters(condition: ResolvedExpression, columns: MergeColumns) -> dict[str, Any]:
    found: dict[str, Any] = {"predicate": [condition.text]}
    for when, name in _PARAMETERS.items():
        found[name] = [
            {
                **({} if each.condition is None else {"predicate": each.condition.text}),
                "actionType": str(each.clause.then),
            }
            for each in columns.clauses
            if each.clause.when is when
        ]
    return found


def _join(target: DataFrame, source: DataFrame, on: Column, kinds: frozenset[When]) -> DataFrame:
    """The join that keeps just the rows that clauses of these kinds are about."""
    if kinds == {When.NOT_MATCHED}:
        return source.join(target, on, "left_anti")
    sides = {
        (False, False): "inner",
        (True, False): "right",
        (False, True): "left",
        (True, True): "full",
    }
    how = sides[When.NOT_MATCHED in kinds, When.NOT_MATCHED_BY_SOURCE in kinds]
    return target.join(source, on, how)


def _is_small(frame: DataFrame) -> bool:
    """Whether Spark would broadcast the frame, by what it knows without running it."""
    jdf: Any = frame._jdf
    execution = jdf.queryExecution()
    limit = int(jdf.sparkSession().sessionState().conf().autoBroadcastJoinThreshold())
    # A number of Scala's arrives as an object or, where it is small, as one of Python's.
    return int(str(execution.optimizedPlan().stats().sizeInBytes())) <= limit


def _observation(name: str) -> Observation:
    return Observation(f"twinlake {name}")


def _observed(observation: Observation) -> int | None:
    """What was counted; None if Spark found that it need not look there."""
    jo: Any = observation._jo
    row = jo.getRowOrEmpty()
    return int(row.get().getLong(0)) if row.isDefined() else None


def _unpersist(frame: DataFrame) -> None:
    """Free the checkpoint of a frame."""
    jdf: Any = frame._jdf
    jdf.queryExecution().logical().rdd().unpersist(False)
