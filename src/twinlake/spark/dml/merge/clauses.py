"""The clauses of a MERGE as columns: what each makes of a row, for every column of the table.

Which columns a clause names and which it leaves alone is settled here, before anything is read:
``*`` becomes assignments, new columns of the source become columns of the table, values are cast
as an INSERT casts them, and what is not assigned keeps its value or gets its default.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from twinlake.commit.plans import MergeClause, Then, When, check_clauses
from twinlake.errors import Code, UserError, listed
from twinlake.schema import (
    GENERATION_EXPRESSION_KEY,
    IDENTITY_START_KEY,
    Array,
    Map,
    Struct,
    StructField,
    parse_path,
    render_path,
    render_type,
)
from twinlake.spark.dml.assignments import AssignmentTree
from twinlake.spark.dml.merge.resolution import ExpressionScope, ResolvedExpression
from twinlake.spark.read.columns import visible_type
from twinlake.spark.rows.projection import cast_column, default_value
from twinlake.table.rows import evolve, refuse_explicit, refuse_update

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, SparkSession

    from twinlake.protocol import Metadata
    from twinlake.schema import ColumnPath, DataType

__all__ = [
    "Clause",
    "MergeColumns",
    "MergeScopes",
    "ResolvedClause",
    "assigned_schema",
    "resolve_clauses",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One WHEN ... THEN ... as a user gives it."""

    when: When
    then: Then
    condition: str | Column | None = None
    assignments: Mapping[str, str | Column] | None = None
    """Values by column; None stands for ``*``, all columns by name."""

    @property
    def planned(self) -> MergeClause:
        """What the plan of the MERGE has to know about it."""
        return MergeClause(self.when, self.then, self.condition is not None)

    @property
    def takes_all(self) -> bool:
        """Whether it is an UPDATE SET * or INSERT *."""
        return self.assignments is None and self.then is not Then.DELETE


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeScopes:
    """What the expressions of each kind of clause can see."""

    target: ExpressionScope
    source: ExpressionScope
    both: ExpressionScope

    def of(self, when: When) -> ExpressionScope:
        """The columns a clause can name."""
        return {
            When.MATCHED: self.both,
            When.NOT_MATCHED: self.source,
            When.NOT_MATCHED_BY_SOURCE: self.target,
        }[when]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedClause:
    """A clause with its condition and, for each column of the table, the value it gives."""

    clause: Clause
    condition: ResolvedExpression | None
    values: tuple[Column, ...] = ()
    computed: frozenset[str] = frozenset()
    """Generated columns that follow from the other values."""
    drawn: frozenset[str] = frozenset()
    """Identity columns whose values the table gives out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeColumns:
    """All clauses of a MERGE, and the metadata of the table after it."""

    clauses: tuple[ResolvedClause, ...]
    metadata: Metadata


_Assignments = dict["ColumnPath", ResolvedExpression]


def resolve_clauses(
    scopes: MergeScopes,
    clauses: Sequence[Clause],
    metadata: Metadata,
    *,
    alias: str | None = None,
    evolution: bool = False,
) -> MergeColumns:
    """The clauses as columns; raises what Delta raises for clauses that cannot be used."""
    check_clauses([clause.planned for clause in clauses])
    conditions = [
        None
        if clause.condition is None
        else scopes.of(clause.when).condition(clause.condition, f"{clause.then.upper()} condition")
        for clause in clauses
    ]
    reader = _Reader(scopes=scopes, metadata=metadata, alias=alias, evolution=evolution)
    assigned = [reader.assignments(clause) for clause in clauses]
    after = metadata
    if evolution:
        named = [
            path
            for clause, given in zip(clauses, assigned, strict=True)
            if clause.when is not When.NOT_MATCHED_BY_SOURCE and not clause.takes_all
            for path in given
        ]
        everything = any(clause.takes_all for clause in clauses)
        incoming = assigned_schema(scopes.source.schema, named, everything=everything)
        after = evolve(
            incoming, metadata, merge_schema=True, overwrite_schema=False, implicit_casts=True
        )
    maker = _Values(
        after=after.schema,
        current=dict(zip(metadata.schema.names(), scopes.target.attributes(), strict=True)),
        evolution=evolution,
        spark=scopes.target.frame.sparkSession,
    )
    made = {Then.UPDATE: maker.updated, Then.INSERT: maker.inserted}
    return MergeColumns(
        clauses=tuple(
            made[clause.then](clause, condition, given)
            if clause.then in made
            else ResolvedClause(clause=clause, condition=condition)
            for clause, condition, given in zip(clauses, conditions, assigned, strict=True)
        ),
        metadata=after,
    )


def assigned_schema(
    source: Struct, named: Iterable[ColumnPath], *, everything: bool, path: ColumnPath = ()
) -> Struct:
    """The columns of the source that some clause assigns, whole or in parts.

    >>> from twinlake.schema import parse_ddl, render_ddl
    >>> source = parse_ddl("id INT, s STRUCT<a: INT, b: INT>")
    >>> render_ddl(assigned_schema(source, [("s", "b")], everything=False))
    's STRUCT<b: INT>'
    """
    wanted = {tuple(part.casefold() for part in each) for each in named}
    kept = []
    for own in source:
        here = (*path, own.name.casefold())
        below = any(each[: len(here)] == here and each != here for each in wanted)
        if here in wanted or (everything and not isinstance(own.type, Struct)):
            kept.append(own)
        elif isinstance(own.type, Struct) and (below or everything):
            inner = assigned_schema(own.type, wanted, everything=everything, path=here)
            kept.append(replace(own, type=inner))
    return Struct(tuple(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """From the assignments that users write to resolved ones by column path."""

    scopes: MergeScopes
    metadata: Metadata
    alias: str | None
    evolution: bool

    def assignments(self, clause: Clause) -> _Assignments:
        if clause.then is Then.DELETE:
            return {}
        place = f"{clause.then.upper()} clause"
        if clause.takes_all:
            return self._all(clause, place)
        return self._named(clause, place)

    def _all(self, clause: Clause, place: str) -> _Assignments:
        source = self.scopes.source
        found = dict(zip(source.schema.names(), source.attributes(), strict=True))
        if self.evolution and clause.then is Then.INSERT:
            return {self._known((name,)) or (name,): value for name, value in found.items()}
        if self.evolution:
            return dict(self._leaves(Struct(source.schema.fields), found, ()))
        by_name: dict[str, list[str]] = {}
        for name in found:
            by_name.setdefault(name.casefold(), []).append(name)
        missing = [f.name for f in self.metadata.schema if f.name.casefold() not in by_name]
        if missing:
            raise self._unresolved(missing, place, source.schema)
        return {
            (field.name,): found[by_name[field.name.casefold()][0]]
            for field in self.metadata.schema
        }

    def _leaves(
        self, schema: Struct, found: Mapping[str, ResolvedExpression], path: ColumnPath
    ) -> Iterable[tuple[ColumnPath, ResolvedExpression]]:
        """The fields of the source one by one: what its structs lack, the target's keep."""
        for own in schema:
            here, value = (*path, own.name), found[own.name]
            if isinstance(own.type, Struct) and self._is_struct(here):
                inner = {
                    child.name: replace(
                        value, column=value.column.getField(child.name), type=child.type
                    )
                    for child in own.type
                }
                yield from self._leaves(own.type, inner, here)
            else:
                yield self._known(here) or here, value

    def _is_struct(self, path: ColumnPath) -> bool:
        kind: DataType = self.metadata.schema
        for part in path:
            own = kind.get(part) if isinstance(kind, Struct) else None
            if own is None:
                return False
            kind = own.type
        return isinstance(kind, Struct)

    def _named(self, clause: Clause, place: str) -> _Assignments:
        given = dict(clause.assignments or {})
        columns = [F.expr(v) if isinstance(v, str) else v for v in given.values()]
        paths = [self._path(name, clause, place) for name in given]
        values = self.scopes.of(clause.when).values(columns, place)
        _refuse_overlap(paths, clause.then)
        return dict(zip(paths, values, strict=True))

    def _path(self, name: str, clause: Clause, place: str) -> ColumnPath:
        """Where a name leads: to the table, or with schema evolution to a new column."""
        parts = parse_path(name)
        known = self._known(parts)
        if known is not None:
            return known
        if self.evolution and clause.when is not When.NOT_MATCHED_BY_SOURCE:
            new = _path_in(self.scopes.source.schema, parts)
            if new is not None:
                return new
        raise self._unresolved([name], place, self.metadata.schema)

    def _known(self, parts: ColumnPath) -> ColumnPath | None:
        qualified = self.alias is not None and parts[0].casefold() == self.alias.casefold()
        if qualified and len(parts) > 1:
            found = _path_in(self.metadata.schema, parts[1:])
            if found is not None:
                return found
        return _path_in(self.metadata.schema, parts)

    def _unresolved(self, names: Sequence[str], place: str, schema: Struct) -> UserError:
        return UserError(
            Code.COLUMN_NOT_FOUND,
            f"{', '.join(names)} in the {place} of MERGE cannot be resolved.",
            why=f"the columns are {', '.join(render_path((n,)) for n in schema.names())}",
            fix="Name existing columns, or call `withSchemaEvolution()` of the merge "
            "builder where the source has them.",
            delta_class="DELTA_MERGE_UNRESOLVED_EXPRESSION",
            fields={"columns": list(names), "place": place},
        )


def _path_in(schema: Struct, parts: ColumnPath) -> ColumnPath | None:
    """The path in the schema's own spelling; None if a part is not there."""
    kind: DataType = schema
    found = []
    for part in parts:
        own = kind.get(part) if isinstance(kind, Struct) else None
        if own is None:
            return None
        found.append(own.name)
        kind = own.type
    return tuple(found)


def _refuse_overlap(paths: Sequence[ColumnPath], then: Then) -> None:
    if then is Then.INSERT:
        nested = [path for path in paths if len(path) > 1]
        if nested:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"INSERT of MERGE cannot name a nested field: {render_path(nested[0])}.",
                fix="Give the whole column a value.",
                delta_class="DELTA_UNSUPPORTED_NESTED_FIELD_IN_OPERATION",
                fields={"columns": [render_path(path) for path in nested]},
            )
    clashes = [
        f"{render_path(one)} and {render_path(other)}"
        for position, one in enumerate(paths)
        for other in paths[position + 1 :]
        if one[: len(other)] == other or other[: len(one)] == one
    ]
    if clashes:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{then.upper()} of MERGE assigns a column twice.",
            why=listed(clashes),
            fix="Assign each column once.",
            delta_class="DELTA_DUPLICATE_COLUMNS_ON_INSERT"
            if then is Then.INSERT
            else "DELTA_CONFLICT_SET_COLUMN",
            fields={"columns": clashes},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Values:
    """Makes the values of clauses, column by column of the table after the MERGE."""

    after: Struct
    current: Mapping[str, ResolvedExpression]
    evolution: bool
    spark: SparkSession

    def updated(
        self, clause: Clause, condition: ResolvedExpression | None, given: _Assignments
    ) -> ResolvedClause:
        refuse_update(self.after, {path[0] for path in given})
        tree = AssignmentTree.of(given)
        values = tuple(self._updated_field(f, tree.children.get(f.name)) for f in self.after)
        return ResolvedClause(
            clause=clause,
            condition=condition,
            values=values,
            computed=self._generated(given),
        )

    def inserted(
        self, clause: Clause, condition: ResolvedExpression | None, given: _Assignments
    ) -> ResolvedClause:
        schema = self.after
        names = {path[0] for path in given}
        refuse_explicit(schema, [name for name in names if schema.get(name) is not None])
        drawn = frozenset(
            f.name for f in schema if IDENTITY_START_KEY in f.metadata and f.name not in names
        )
        return ResolvedClause(
            clause=clause,
            condition=condition,
            values=tuple(self._inserted_field(f, given.get((f.name,))) for f in schema),
            computed=self._generated(given),
            drawn=drawn,
        )

    def _generated(self, given: _Assignments) -> frozenset[str]:
        named = {path[0] for path in given}
        return frozenset(
            f.name
            for f in self.after
            if GENERATION_EXPRESSION_KEY in f.metadata and f.name not in named
        )

    def _updated_field(
        self, wanted: StructField, node: AssignmentTree[ResolvedExpression] | None
    ) -> Column:
        known = self.current.get(wanted.name)
        if known is None:
            return self._value(node, None, None, wanted, (wanted.name,))
        return self._value(node, known.column, known.type, wanted, (wanted.name,))

    def _value(
        self,
        node: AssignmentTree[ResolvedExpression] | None,
        current: Column | None,
        has: DataType | None,
        wanted: StructField,
        path: ColumnPath,
    ) -> Column:
        if node is not None and node.own is not None:
            return self._stored(node.own, wanted.type, path)
        if node is not None and isinstance(wanted.type, Struct):
            parts = []
            for child in wanted.type:
                own = has.get(child.name) if isinstance(has, Struct) else None
                inner = None if current is None or own is None else current.getField(own.name)
                kind = None if own is None else own.type
                below = node.children.get(child.name)
                parts.append(
                    self._value(below, inner, kind, child, (*path, child.name)).alias(child.name)
                )
            return F.struct(*parts)
        if current is None or has is None:
            return F.lit(None).cast(visible_type(wanted))
        return cast_column(self.spark, current, has, wanted.type, path)

    def _inserted_field(self, wanted: StructField, given: ResolvedExpression | None) -> Column:
        if given is not None:
            return self._stored(given, wanted.type, (wanted.name,))
        return default_value(self.spark, wanted)

    def _stored(self, given: ResolvedExpression, wants: DataType, path: ColumnPath) -> Column:
        if not _same_fields(given.type, wants, fewer=self.evolution):
            raise UserError(
                Code.SCHEMA_EVOLUTION,
                f"{render_type(given.type)} cannot be stored in column {render_path(path)}, "
                f"which is {render_type(wants)}.",
                why="all fields inside a struct have to match",
                fix="Build the struct with the fields of the table, or call "
                "`withSchemaEvolution()` of the merge builder.",
                delta_class="DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                fields={"column": render_path(path)},
            )
        return cast_column(self.spark, given.column, given.type, wants, path)


def _same_fields(has: DataType, wants: DataType, *, fewer: bool) -> bool:
    """Whether structs have the same fields at every level, or fewer where that is allowed."""
    match has, wants:
        case Struct(), Struct():
            own = {name.casefold() for name in has.names()}
            theirs = {name.casefold() for name in wants.names()}
            if not (own <= theirs if fewer else own == theirs):
                return False
            pairs = ((f, wants.get(f.name)) for f in has)
            return all(w is None or _same_fields(f.type, w.type, fewer=fewer) for f, w in pairs)
        case Array(), Array():
            return _same_fields(has.element, wants.element, fewer=fewer)
        case Map(), Map():
            return _same_fields(has.key, wants.key, fewer=fewer) and _same_fields(
                has.value, wants.value, fewer=fewer
            )
        case _:
            return True
