"""MERGE in this process: rows of a source update, delete or join the rows of a table by keys.

Whole rows are matched by equal keys, as an upsert needs it. Conditions on clauses, other join
conditions and rows that the source lacks are for Spark.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from twinlake.commit import Operation, OperationName, ReadSet
from twinlake.commit.plans import (
    MergeClause,
    TableRules,
    Then,
    When,
    plan_merge,
    refuse_ambiguous,
)
from twinlake.errors import Code, UserError, listed
from twinlake.files import ROW_INDEX, map_ahead
from twinlake.schema import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    Decimal,
    quote_name,
    to_arrow,
)
from twinlake.schema.predicates import (
    Column,
    Comparison,
    Literal,
    Op,
    all_of,
    comparable,
)
from twinlake.table.rows.arrow_data import ArrowData
from twinlake.table.rows.fitted_array import fit_array
from twinlake.table.rows.row_change import LocalRowChange
from twinlake.table.rows.row_commit import is_committed
from twinlake.table.rows.schema_evolution import evolve, refuse_duplicates
from twinlake.table.rows.update import ChangedRows
from twinlake.table.rows.write import new_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile
    from twinlake.commit import CommitOptions, CommitResult
    from twinlake.protocol import Metadata
    from twinlake.schema.predicates import Expr
    from twinlake.table.view import TableView

__all__ = ["RowMerge"]

#: Types of which Arrow finds equal values as Spark does.
_KEY_TYPES: Final = frozenset(
    (
        BYTE,
        SHORT,
        INTEGER,
        LONG,
        FLOAT,
        DOUBLE,
        BOOLEAN,
        STRING,
        BINARY,
        DATE,
        TIMESTAMP,
        TIMESTAMP_NTZ,
    )
)
#: Types whose statistics bound them; floats have NaN.
_BOUNDED: Final = frozenset((BYTE, SHORT, INTEGER, LONG, STRING, DATE))
_SOURCE: Final = "__twinlake_source"
_FILE: Final = "__twinlake_file"


@dataclass(frozen=True, kw_only=True)
class RowMerge:
    """One MERGE."""

    table: TableView
    data: Any
    on: tuple[str, ...]
    update: tuple[str, ...] | bool = True
    """Columns that matched rows take from the source; True for all it has, False for none."""
    insert: bool = True
    delete: bool = False
    """Whether matched rows are deleted instead of updated."""
    merge_schema: bool = False
    options: CommitOptions
    txn: tuple[str, int] | None = None

    @cached_property
    def clauses(self) -> tuple[MergeClause, ...]:
        """What becomes of rows."""
        found = []
        if self.delete:
            found.append(MergeClause(When.MATCHED, Then.DELETE))
        elif self.update:
            found.append(MergeClause(When.MATCHED, Then.UPDATE))
        if self.insert:
            found.append(MergeClause(When.NOT_MATCHED, Then.INSERT))
        return tuple(found)

    def run(self) -> CommitResult | None:
        """Match, write and commit; None if nothing changes, or ``txn`` says that it was done."""
        self._check_arguments()
        if is_committed(self.table, self.txn):
            return None
        before = self.table.metadata
        data = ArrowData.of(self.data, self.table.schema)
        refuse_duplicates(data.schema)
        metadata = evolve(
            data.schema,
            before,
            merge_schema=self.merge_schema,
            overwrite_schema=False,
            implicit_casts=True,
            ids=self.table.runtime.ids,
        )
        if not data.schema.fields:
            # An empty list of rows, say: it does not even say that it has the keys.
            return None
        keys = self._keys(data, before)
        source = pa.Table.from_batches(list(data.batches()), data.reader.schema).combine_chunks()
        fitted = self._key_table(source, keys, metadata)
        with LocalRowChange(
            self.table, self._operation(keys), metadata, options=self.options, txn=self.txn
        ) as change:
            return self._merge(change, source, fitted, keys)

    def _check_arguments(self) -> None:
        problems = []
        if not self.on:
            problems.append("on= names no column")
        if self.delete and isinstance(self.update, tuple):
            problems.append("matched rows are either deleted or updated")
        if not self.clauses:
            problems.append("nothing is updated, inserted or deleted")
        if problems:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The MERGE cannot be done like that.",
                why=listed(problems),
                fix="Correct the arguments that are named.",
                fields={"problems": problems},
            )
        if any(clause.when is When.MATCHED for clause in self.clauses):
            TableRules.of(self.table.metadata).refuse_row_loss("MERGE")

    def _keys(self, data: ArrowData, metadata: Metadata) -> tuple[str, ...]:
        """The key columns as the table spells them."""
        found, problems, by_spark = [], [], []
        for name in self.on:
            field, given = metadata.schema.get(name), data.schema.get(name)
            if field is None or given is None:
                where = "the table" if field is None else "the data"
                problems.append(f"{name} is not a column of {where}")
            elif not comparable(field):
                by_spark.append(f"{name} is a CHAR, which only Spark compares")
            elif field.type not in _KEY_TYPES and not isinstance(field.type, Decimal):
                by_spark.append(f"{name} is {field.type}, by which only Spark matches rows")
            else:
                found.append(field.name)
        if problems or by_spark:
            raise UserError(
                Code.INVALID_ARGUMENT if problems else Code.SPARK_REQUIRED,
                "Rows cannot be matched by these columns.",
                why=listed([*problems, *by_spark]),
                fix="Name columns that both have, of no nested type, or merge with "
                "`twinlake.spark.DeltaTable.merge`.",
                fields={"problems": [*problems, *by_spark]},
            )
        return tuple(found)

    def _operation(self, keys: Sequence[str]) -> Operation:
        def listed_as(when: When) -> list[dict[str, str]]:
            return [{"actionType": str(c.then)} for c in self.clauses if c.when is when]

        condition = " AND ".join(f"(t.{quote_name(k)} = s.{quote_name(k)})" for k in keys)
        parameters = {
            "predicate": [condition],
            "matchedPredicates": listed_as(When.MATCHED),
            "notMatchedPredicates": listed_as(When.NOT_MATCHED),
            "notMatchedBySourcePredicates": [],
        }
        return Operation(name=OperationName.MERGE, parameters=parameters)

    def _key_table(self, source: pa.Table, keys: Sequence[str], metadata: Metadata) -> pa.Table:
        """The keys of the source in the types of the table, and the numbers of its rows."""
        kinds = to_arrow(metadata.schema)
        by_name = {name.casefold(): name for name in source.column_names}
        columns = {}
        for key in keys:
            column = _flat(source.column(by_name[key.casefold()]))
            columns[key] = _hashed(fit_array(column, kinds.field(key).type, (key,)))
        return pa.table({**columns, _SOURCE: pa.array(np.arange(source.num_rows))})

    def _merge(
        self, change: LocalRowChange, source: pa.Table, source_keys: pa.Table, keys: Sequence[str]
    ) -> CommitResult | None:
        snapshot = change.snapshot
        where = _key_range(source_keys, keys, self.table.metadata)
        files = list(snapshot.adds(where))
        reads = ReadSet(predicates=(where,), files=frozenset(add.path for add in files))
        matched = self._matched(change, files, source_keys, keys, where)
        pairs = zip(matched[_FILE].to_pylist(), matched[ROW_INDEX].to_pylist(), strict=True)
        counted: dict[tuple[int, int], int] = {}
        for pair in pairs:
            counted[pair] = counted.get(pair, 0) + 1
        refuse_ambiguous(self.clauses, counted.items())
        rows_of: dict[int, list[int]] = {}
        for file, row in sorted(counted):
            rows_of.setdefault(file, []).append(row)
        kind = "delete" if self.delete else "update"
        changes = any(clause.when is When.MATCHED for clause in self.clauses)
        touched = [
            change.touched_file(files[number], **{kind: rows})
            for number, rows in sorted(rows_of.items())
            if changes
        ]
        inserted = self._inserted(source, matched, change.metadata) if self.insert else []
        plan = plan_merge(
            touched,
            clauses=self.clauses,
            source_rows=source.num_rows,
            inserted_rows=sum(batch.num_rows for batch in inserted),
            rules=change.rules,
            reads=reads,
        )
        update = _Update(self, source, matched, [add.path for add in files], change.metadata)
        written = change.write(plan, updated=update.apply, inserted=inserted)
        return change.commit(plan.finish(written, now=self.table.runtime.clock.now_ms()))

    def _matched(
        self,
        change: LocalRowChange,
        files: Sequence[AddFile],
        source_keys: pa.Table,
        keys: Sequence[str],
        where: Expr,
    ) -> pa.Table:
        """File, position and row of the source for each match."""
        reader = change.reader(columns=tuple((key,) for key in keys), where=where, positions=True)

        def found(item: tuple[int, AddFile]) -> pa.Table:
            number, add = item
            rows = pa.Table.from_batches(list(reader.readable_batches(add)), reader.schema)
            for place, key in enumerate(keys):
                if pa.types.is_floating(rows.schema.field(place).type):
                    rows = rows.set_column(place, key, _hashed(_flat(rows.column(place))))
            joined = rows.join(source_keys, list(keys), join_type="inner", use_threads=False)
            named = joined.select([ROW_INDEX, _SOURCE])
            numbers = pa.repeat(pa.scalar(number, pa.int64()), named.num_rows)
            return named.append_column(_FILE, numbers)

        parts = list(map_ahead(found, enumerate(files)))
        empty = pa.schema([(ROW_INDEX, pa.int64()), (_SOURCE, pa.int64()), (_FILE, pa.int64())])
        return pa.concat_tables([empty.empty_table(), *parts]).combine_chunks()

    def _inserted(
        self, source: pa.Table, matched: pa.Table, metadata: Metadata
    ) -> list[pa.RecordBatch]:
        mask = np.ones(source.num_rows, dtype=bool)
        mask[matched[_SOURCE].to_numpy()] = False
        new = source.filter(pa.array(mask))
        return list(new_rows(ArrowData.of(new), metadata)) if new.num_rows else []


@dataclass(frozen=True)
class _Update:
    """New values of matched rows, taken from the source."""

    merge: RowMerge
    source: pa.Table
    matched: pa.Table
    paths: Sequence[str]
    metadata: Metadata

    @cached_property
    def _columns(self) -> dict[int, str]:
        """Positions of the columns that are taken, and their names in the source."""
        names = [name.casefold() for name in self.metadata.schema.names()]
        wanted = self.merge.update
        chosen = self.source.column_names if isinstance(wanted, bool) else wanted
        by_name = {name.casefold(): name for name in self.source.column_names}
        missing = [n for n in chosen if n.casefold() not in names or n.casefold() not in by_name]
        if missing:
            raise UserError(
                Code.COLUMN_NOT_FOUND,
                f"Columns to update are not in both table and data: {listed(missing, ', ')}.",
                fix="Name columns that both have.",
                fields={"columns": missing},
            )
        return {names.index(n.casefold()): by_name[n.casefold()] for n in chosen}

    @cached_property
    def _source_row(self) -> dict[str, dict[int, int]]:
        found: dict[str, dict[int, int]] = {}
        columns = (self.matched[name].to_pylist() for name in (_FILE, ROW_INDEX, _SOURCE))
        for file, row, source in zip(*columns, strict=True):
            found.setdefault(self.paths[file], {})[row] = source
        return found

    @cached_property
    def _changed(self) -> ChangedRows:
        return ChangedRows.of(self.metadata, frozenset(self._columns))

    def apply(self, path: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows of one file with their new values."""
        by_row = self._source_row[path]
        numbers = pa.array([by_row[row] for row in rows.column(ROW_INDEX).to_pylist()], pa.int64())
        taken = self.source.take(numbers)
        arrays = _with_all_columns(rows, self._changed.schema)
        for place, name in self._columns.items():
            field = self._changed.schema.field(place)
            arrays[place] = fit_array(_flat(taken.column(name)), field.type, (field.name,))
        return self._changed.batch(arrays)


def _hashed(keys: pa.Array) -> pa.Array:
    """Keys as the join compares them: as in Spark NaN equals NaN, and one zero the other."""
    if not pa.types.is_floating(keys.type):
        return keys
    zero, nan = (pa.scalar(value, keys.type) for value in (0.0, math.nan))
    alike = pc.if_else(pc.is_nan(keys), nan, pc.add(keys, zero))
    return alike.view(pa.int64() if keys.type == pa.float64() else pa.int32())


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _with_all_columns(rows: pa.RecordBatch, schema: pa.Schema) -> list[pa.Array]:
    """Rows of the version before, with the columns of the version after: new ones are null."""
    there = set(rows.schema.names)
    return [
        fit_array(rows.column(f.name), f.type, (f.name,))
        if f.name in there
        else pa.nulls(rows.num_rows, f.type)
        for f in schema
    ]


def _key_range(source: pa.Table, keys: Sequence[str], metadata: Metadata) -> Expr:
    """What every row that may match fulfils: its keys lie between those of the source."""
    parts: list[Expr] = []
    for key in keys:
        field = metadata.schema.get(key)
        assert field is not None
        if field.type not in _BOUNDED:
            continue
        ends = pc.min_max(source[key]).as_py()
        if ends["min"] is None:
            continue
        column = Column((field.name,), field.type)
        parts.append(Comparison(Op.GE, column, Literal(ends["min"], field.type)))
        parts.append(Comparison(Op.LE, column, Literal(ends["max"], field.type)))
    return all_of(parts)
