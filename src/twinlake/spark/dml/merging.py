"""MERGE: one join decides for each row what becomes of it, and the plan does the rest.

The rows that change are computed once and kept: positions, data files and change files all come
from the same result. So the source is read exactly once, and a source that answers differently
each time still gives a consistent table.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F

from twinlake.commit import CommitOptions, Operation, OperationName
from twinlake.commit.plans import ChangeType, Then, When, plan_merge, refuse_ambiguous
from twinlake.commit.readset import ReadSet
from twinlake.schema import GENERATION_EXPRESSION_KEY, Struct
from twinlake.schema.predicates import And, Opaque
from twinlake.spark.dml.changing import CHANGE_TYPE, RowChange
from twinlake.spark.dml.merge_clauses import Clause, MergeColumns, Scopes, resolve_clauses
from twinlake.spark.dml.resolving import (
    Resolved,
    Scope,
    conjuncts,
    renumbered,
    shares_columns,
    stand_in,
)
from twinlake.spark.reading.columns import visible_field
from twinlake.spark.reading.conditions import empty_frame, skipping_expression
from twinlake.spark.reading.table_scan import FILE_NUMBER, ROW_ID, ROW_INDEX, Scan
from twinlake.spark.rows.enforcing import enforce
from twinlake.spark.rows.identity import marks, with_identity
from twinlake.spark.session import session_conf
from twinlake.spark.spark_types import quoted, spark_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyroaring import AbstractBitMap64 as Positions
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

    from twinlake.commit.plans import MergeClause, Outcome, RowPlan
    from twinlake.protocol import Metadata
    from twinlake.schema.predicates import Expr
    from twinlake.table import Table

__all__ = ["AUTO_MERGE", "MergeRequest", "merge"]

AUTO_MERGE: Final = "spark.databricks.delta.schema.autoMerge.enabled"

_ACTION: Final = "__twinlake_action"
_FROM_SOURCE: Final = "__twinlake_source"
_SOURCE_ROW: Final = "__twinlake_source_row"
_PARAMETERS: Final[Mapping[When, str]] = {
    When.MATCHED: "matchedPredicates",
    When.NOT_MATCHED: "notMatchedPredicates",
    When.NOT_MATCHED_BY_SOURCE: "notMatchedBySourcePredicates",
}
_UNTOLD: Final = "numTargetChangeFileBytes"
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


def merge(spark: SparkSession, table: Table, request: MergeRequest) -> Mapping[str, int]:
    """Merge the source into the table; returns the metrics.

    Nothing is committed if nothing changes.
    """
    started = time.monotonic()
    run = _Merge.of(spark, table, request)
    with run.change as change:
        outcome = run.outcome()
        change.commit(outcome, started=started)
    return {key: int(value) for key, value in outcome.metrics.items()}


@dataclass(slots=True, kw_only=True)
class _Merge:
    """One MERGE, resolved."""

    change: RowChange
    request: MergeRequest
    template: DataFrame
    condition: Resolved
    columns: MergeColumns
    target_only: Expr | None
    """What of the condition concerns the table alone, and so can skip files."""
    source_rows: Observation = field(default_factory=lambda: _observation("source"))
    inserted_rows: Observation = field(default_factory=lambda: _observation("inserted"))
    kept: list[DataFrame] = field(default_factory=list)
    """Frames that are held until the MERGE is over."""

    @staticmethod
    def of(spark: SparkSession, table: Table, request: MergeRequest) -> _Merge:
        metadata = table.metadata
        template = _template(spark, metadata, request)
        named = template if request.alias is None else template.alias(request.alias)
        source = stand_in(spark, request.source)
        scopes = Scopes(
            target=Scope(frame=named),
            source=Scope(frame=source),
            both=Scope(frame=named.crossJoin(source)),
        )
        evolution = request.evolution or session_conf(spark, AUTO_MERGE, "false").lower() == "true"
        condition = scopes.both.condition(request.condition, "search condition")
        columns = resolve_clauses(
            scopes,
            request.clauses,
            metadata,
            alias=request.alias,
            evolution=evolution,
            defaults="allowColumnDefaults" in (table.protocol.writer_features or ()),
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
        parts = [part for part in conjuncts(condition.expression) if scopes.target.covers(part)]
        return _Merge(
            change=change,
            request=request,
            template=template,
            condition=condition,
            columns=columns,
            target_only=_skipping(spark, metadata, request.alias, parts),
        )

    @property
    def clauses(self) -> list[MergeClause]:
        return [each.clause.planned for each in self.columns.clauses]

    def has(self, when: When) -> bool:
        return any(clause.when is when for clause in self.clauses)

    def outcome(self) -> Outcome:
        try:
            outcome = self._outcome()
        finally:
            for frame in self.kept:
                _forget(frame)
        metrics = {key: value for key, value in outcome.metrics.items() if key != _UNTOLD}
        return replace(outcome, metrics=metrics)

    def _outcome(self) -> Outcome:
        change = self.change
        files, reads = self._files()
        changed = self._changed(files)
        found = _Found.of(changed, self.clauses)
        touched = change.touched_files(files, delete=found.delete, update=found.update)
        inserted = self._inserted(changed)
        nothing = not touched and not inserted and change.metadata is None
        plan = plan_merge(
            touched,
            clauses=self.clauses,
            source_rows=0 if nothing else self._source_rows(),
            inserted_rows=inserted,
            rules=change.rules,
            reads=reads,
            updated_by_source=found.updated_by_source,
            deleted_by_source=found.deleted_by_source,
        )
        return self._written(plan, changed)

    def _files(self) -> tuple[pa.Table, ReadSet]:
        """The files that may hold rows the MERGE looks at, and what that means for conflicts."""
        expr = None if self.has(When.NOT_MATCHED_BY_SOURCE) else self.target_only
        files = self.change.snapshot.files(expr)
        paths = frozenset(files["path"].to_pylist())
        if expr is None:
            return files, ReadSet(whole_table=True, files=paths)
        return files, ReadSet(predicates=(expr,), files=paths)

    def _changed(self, files: pa.Table) -> DataFrame:
        """The rows that change, with what becomes of them; computed here, once."""
        change = self.change
        scan = Scan(
            snapshot=change.snapshot,
            files=files,
            positions=True,
            row_ids=change.rules.row_tracking,
        )
        target = renumbered(change.spark, scan.frame(change.spark), self.template)
        source = self.request.source.select("*", F.lit(True).alias(_FROM_SOURCE))
        kinds = frozenset(when for when in When if self.has(when))
        if kinds == {When.MATCHED, When.NOT_MATCHED} and _is_small(self.request.source):
            return self._apart(target, source)
        counted = source.observe(self.source_rows, F.count(F.lit(1)).alias("rows"))
        joined = _joined(target, counted, self.condition.column, kinds)
        acted = joined.select("*", self._action(kinds).alias(_ACTION))
        rows = self._shaped(acted.where(F.col(_ACTION).isNotNull()), kinds)
        return self._kept(self._counted(rows))

    def _apart(self, target: DataFrame, source: DataFrame) -> DataFrame:
        """Matches and inserts one after the other, so that a small source can be broadcast.

        In one outer join it could not be, and the whole table would be shuffled.
        """
        numbered = source.select("*", F.monotonically_increasing_id().alias(_SOURCE_ROW))
        once = self._kept(numbered.observe(self.source_rows, F.count(F.lit(1)).alias("rows")))
        matched, fresh = frozenset({When.MATCHED}), frozenset({When.NOT_MATCHED})
        joined = target.join(F.broadcast(once), self.condition.column, "inner")
        acted = joined.select("*", self._action(matched).alias(_ACTION))
        # A pair that no clause takes is kept too: its source row is not to be inserted.
        pairs = self._kept(self._shaped(acted, matched, _SOURCE_ROW))
        seen = pairs.select(F.col(_SOURCE_ROW).alias("__twinlake_seen"))
        left = once.join(seen, F.col(_SOURCE_ROW) == F.col("__twinlake_seen"), "left_anti")
        chosen = left.select("*", self._action(fresh).alias(_ACTION))
        rows = self._shaped(chosen.where(F.col(_ACTION).isNotNull()), fresh)
        inserts = self._kept(self._counted(rows))
        return pairs.where(F.col(_ACTION).isNotNull()).drop(_SOURCE_ROW).union(inserts)

    def _shaped(self, acted: DataFrame, kinds: frozenset[When], *more: str) -> DataFrame:
        return self._generated(acted.select(*self._outputs(acted, kinds), *more))

    def _kept(self, frame: DataFrame) -> DataFrame:
        """The frame, computed now and never again."""
        kept = frame.localCheckpoint(eager=True)
        self.kept.append(kept)
        return kept

    def _counted(self, rows: DataFrame) -> DataFrame:
        is_insert = F.col(_ACTION).isin(self._numbers(Then.INSERT))
        counted = F.count(F.when(is_insert, True)).alias("rows")
        return rows.observe(self.inserted_rows, counted)

    def _action(self, kinds: frozenset[When]) -> Column:
        """The number of the clause that a row falls to: the first that holds."""
        # With one kind of clause the join itself has left only rows of that kind.
        alone = len(kinds) == 1
        sides = {
            When.MATCHED: F.col(FILE_NUMBER).isNotNull() & F.col(_FROM_SOURCE).isNotNull(),
            When.NOT_MATCHED: F.col(FILE_NUMBER).isNull(),
            When.NOT_MATCHED_BY_SOURCE: F.col(_FROM_SOURCE).isNull(),
        }
        chain: Any = F
        for number, each in enumerate(self.columns.clauses):
            if each.clause.when not in kinds:
                continue
            holds = F.lit(True) if alone else sides[each.clause.when]
            if each.condition is not None:
                holds = holds & each.condition.column
            chain = chain.when(holds, F.lit(number))
        column: Column = chain.otherwise(F.lit(None).cast("int"))
        return column

    def _numbers(self, *wanted: Then) -> list[int]:
        return [number for number, clause in enumerate(self.clauses) if clause.then in wanted]

    def _outputs(self, acted: DataFrame, kinds: frozenset[When]) -> list[Column]:
        """The table's columns as the clauses make them, where the row was, and the clause."""
        made = [
            (number, each.values)
            for number, each in enumerate(self.columns.clauses)
            if each.values and each.clause.when in kinds
        ]
        columns = []
        for position, wanted in enumerate(self.columns.metadata.schema):
            kind = spark_type(Struct((visible_field(wanted),)))[0].dataType
            chain: Any = F
            for number, values in made:
                chain = chain.when(F.col(_ACTION) == F.lit(number), values[position])
            value = chain.otherwise(F.lit(None).cast(kind)) if made else F.lit(None).cast(kind)
            columns.append(value.alias(wanted.name))
        for name, spelled in ((FILE_NUMBER, "int"), (ROW_INDEX, "bigint"), (ROW_ID, "bigint")):
            if name in acted.columns:
                columns.append(F.col(name))
            elif name != ROW_ID or self.change.rules.row_tracking:
                columns.append(F.lit(None).cast(spelled).alias(name))
        return [*columns, F.col(_ACTION)]

    def _generated(self, rows: DataFrame) -> DataFrame:
        """Generated columns follow the other values, where a clause does not set them itself."""
        made: dict[str, Column] = {}
        for wanted in self.columns.metadata.schema:
            numbers = [
                number
                for number, each in enumerate(self.columns.clauses)
                if wanted.name in each.computed
            ]
            if not numbers:
                continue
            kind = spark_type(Struct((visible_field(wanted),)))[0].dataType
            text = str(wanted.metadata[GENERATION_EXPRESSION_KEY])
            current = F.col(quoted(wanted.name))
            follows = F.col(_ACTION).isin(numbers)
            made[wanted.name] = F.when(follows, F.expr(text).cast(kind)).otherwise(current)
        if not made:
            return rows
        return rows.select(
            *(made[n].alias(n) if n in made else F.col(quoted(n)) for n in rows.columns)
        )

    def _inserted(self, changed: DataFrame) -> int:
        numbers = self._numbers(Then.INSERT)
        if not numbers:
            return 0
        seen = _observed(self.inserted_rows)
        return changed.where(F.col(_ACTION).isin(numbers)).count() if seen is None else seen

    def _source_rows(self) -> int:
        # Spark leaves the source unread where the table has no rows to join it with.
        seen = _observed(self.source_rows)
        return self.request.source.count() if seen is None else seen

    def _written(self, plan: RowPlan, changed: DataFrame) -> Outcome:
        change = self.change
        numbered, drawn = self._numbered(changed)
        updates, inserts = self._numbers(Then.UPDATE), self._numbers(Then.INSERT)
        rows: DataFrame | None = None
        images: DataFrame | None = None
        if plan.updated_rows + plan.inserted_rows:
            kept = numbered.where(F.col(_ACTION).isin(updates + inserts))
            rows = enforce(kept, change.after, computed=self._always_computed())
            if plan.needs_change_files:
                kind = F.when(
                    F.col(_ACTION).isin(updates), F.lit(str(ChangeType.UPDATE_POSTIMAGE))
                ).otherwise(F.lit(str(ChangeType.INSERT)))
                images = kept.withColumn(CHANGE_TYPE, kind)
        written = change.write(plan, changed=rows, change_rows=images)
        if drawn:
            change.metadata = marks(change.after, written.files, columns=drawn) or change.metadata
        return plan.finish(written, now=change.table.runtime.clock.now_ms())

    def _always_computed(self) -> frozenset[str]:
        """Generated columns that no clause gave values of its own: they need no check."""
        made = [each.computed for each in self.columns.clauses if each.values]
        return frozenset.intersection(*made) if made else frozenset()

    def _numbered(self, changed: DataFrame) -> tuple[DataFrame, frozenset[str]]:
        """Inserted rows with the identity values the table gives them."""
        drawn: frozenset[str] = frozenset().union(*(c.drawn for c in self.columns.clauses))
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
            numbers = [n for n, each in enumerate(self.columns.clauses) if name in each.drawn]
            value = F.when(F.col(_ACTION).isin(numbers), F.col(quoted(name)))
            columns.append(value.otherwise(F.col(own[name])).alias(name))
        return numbered.select(*columns), drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The rows of the table that change, by file."""

    delete: Mapping[int, Positions]
    update: Mapping[int, Positions]
    deleted_by_source: int
    updated_by_source: int

    @staticmethod
    def of(changed: DataFrame, clauses: Sequence[MergeClause]) -> _Found:
        import numpy as np

        if all(clause.then is Then.INSERT for clause in clauses):
            return _Found(delete={}, update={}, deleted_by_source=0, updated_by_source=0)
        rows = changed.where(F.col(FILE_NUMBER).isNotNull())
        table = rows.select(FILE_NUMBER, ROW_INDEX, _ACTION).toArrow()
        files, positions, actions = (
            table[name].to_numpy() for name in (FILE_NUMBER, ROW_INDEX, _ACTION)
        )
        order = np.lexsort((positions, files))
        files, positions, actions = files[order], positions[order], actions[order]
        again = np.zeros(len(files), bool)
        again[1:] = (files[1:] == files[:-1]) & (positions[1:] == positions[:-1])
        repeated = Counter(zip(files[again].tolist(), positions[again].tolist(), strict=True))
        refuse_ambiguous(clauses, [(row, count + 1) for row, count in repeated.items()])
        files, positions, actions = files[~again], positions[~again], actions[~again]

        def chosen(then: Then, when: When | None = None) -> Any:
            numbers = [
                n for n, c in enumerate(clauses) if c.then is then and when in (None, c.when)
            ]
            return np.isin(actions, numbers)

        deleted, updated = chosen(Then.DELETE), chosen(Then.UPDATE)
        by_source = When.NOT_MATCHED_BY_SOURCE
        return _Found(
            delete=_by_file(files[deleted], positions[deleted]),
            update=_by_file(files[updated], positions[updated]),
            deleted_by_source=int(chosen(Then.DELETE, by_source).sum()),
            updated_by_source=int(chosen(Then.UPDATE, by_source).sum()),
        )


def _by_file(files: Any, positions: Any) -> dict[int, Positions]:
    """Positions by file, both sorted by file."""
    import numpy as np
    from pyroaring import BitMap64

    numbers, starts = np.unique(files, return_index=True)
    if not len(numbers):
        return {}
    pieces = np.split(positions, starts[1:])
    return {
        int(number): BitMap64(piece.tolist()) for number, piece in zip(numbers, pieces, strict=True)
    }


def _template(spark: SparkSession, metadata: Metadata, request: MergeRequest) -> DataFrame:
    """A frame without rows that has the table's columns.

    It shares its column ids with the table's frame, so that columns taken from there mean the
    target; unless the source was made from that frame and has them already.
    """
    # A frame of ``toDF()`` lists its files when it is looked at; its template has the same columns.
    like: DataFrame | None = getattr(request.target, "_template", request.target)
    fresh = empty_frame(spark, metadata)
    if like is None or like.dtypes != fresh.dtypes or shares_columns(like, request.source):
        return fresh
    return stand_in(spark, like)


def _parameters(condition: Resolved, columns: MergeColumns) -> dict[str, Any]:
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


def _skipping(
    spark: SparkSession, metadata: Metadata, alias: str | None, parts: Sequence[Any]
) -> Expr | None:
    """Conditions on the table alone as files are skipped by them; None if there are none."""
    from sqlglot.errors import SqlglotError

    found: list[Expr] = []
    for part in parts:
        sql = str(part.sql())
        try:
            found.append(skipping_expression(spark, _unqualified(sql, alias), metadata))
        except SqlglotError:
            found.append(Opaque(sql))
    if not found:
        return None
    return found[0] if len(found) == 1 else And(tuple(found))


def _unqualified(sql: str, alias: str | None) -> str:
    """The condition without the name of the table before its columns."""
    if alias is None:
        return sql
    from sqlglot import exp, parse_one

    tree = parse_one(sql, dialect="spark")
    for column in list(tree.find_all(exp.Column)):
        parts = column.parts
        if len(parts) > 1 and parts[0].name.casefold() == alias.casefold():
            _, name, *below = (part.copy() for part in parts)
            bare = exp.column(name)
            column.replace(exp.Dot.build([bare, *below]) if below else bare)
    return tree.sql(dialect="spark")


def _joined(target: DataFrame, source: DataFrame, on: Column, kinds: frozenset[When]) -> DataFrame:
    """The join that keeps just the rows that clauses of these kinds are about."""
    if kinds == {When.NOT_MATCHED}:
        return source.join(target, on, "left_anti")
    if kinds == {When.NOT_MATCHED_BY_SOURCE}:
        return target.join(source, on, "left_anti")
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
    from pyspark.sql import Observation

    return Observation(f"twinlake {name}")


def _observed(observation: Observation) -> int | None:
    """What was counted; None if Spark found that it need not look there."""
    jo: Any = observation._jo
    row = jo.getRowOrEmpty()
    return int(row.get().getLong(0)) if row.isDefined() else None


def _forget(frame: DataFrame) -> None:
    """Free what was kept of a frame."""
    jdf: Any = frame._jdf
    jdf.queryExecution().logical().rdd().unpersist(False)
