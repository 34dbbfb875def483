"""MERGE: which clause a row falls to, which matches are ambiguous, and the plan of the result.

The engine joins and evaluates conditions; the order of clauses and what is allowed are decided
here. Evolving the schema to the source's is the engine's business and does not change the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from twinlake.commit.plans.model import TableRules, TouchedFile, refuse
from twinlake.commit.plans.rows import RowPlan, plan_rows
from twinlake.errors import Code, UserError, listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from twinlake.commit.read_set import ReadSet

__all__ = [
    "MergeClause",
    "Then",
    "When",
    "ambiguous_rows",
    "check_clauses",
    "only_matched",
    "plan_merge",
    "refuse_ambiguous",
]


class When(StrEnum):
    """Which rows a clause is about."""

    MATCHED = "matched"
    NOT_MATCHED = "not matched"
    NOT_MATCHED_BY_SOURCE = "not matched by source"


class Then(StrEnum):
    """What a clause does."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True)
class MergeClause:
    """One WHEN ... THEN ... of a MERGE; ``conditional`` when it has an AND condition."""

    when: When
    then: Then
    conditional: bool = False


_ALLOWED: Final[Mapping[When, frozenset[Then]]] = {
    When.MATCHED: frozenset({Then.UPDATE, Then.DELETE}),
    When.NOT_MATCHED: frozenset({Then.INSERT}),
    When.NOT_MATCHED_BY_SOURCE: frozenset({Then.UPDATE, Then.DELETE}),
}
_OMITTED_CONDITION: Final[Mapping[When, str]] = {
    When.MATCHED: "DELTA_NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
    When.NOT_MATCHED: "DELTA_NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION",
    When.NOT_MATCHED_BY_SOURCE: "DELTA_NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION",
}


class _Sortable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


Row = TypeVar("Row", bound=_Sortable)


def check_clauses(clauses: Sequence[MergeClause]) -> None:
    """Refuse a MERGE without clauses, with actions that do not fit, or with unreachable clauses."""
    if not clauses:
        raise _bad_clauses(["there is no WHEN clause"], "DELTA_MERGE_MISSING_WHEN")
    problems = [
        f"WHEN {clause.when.upper()} cannot {clause.then.upper()}"
        for clause in clauses
        if clause.then not in _ALLOWED[clause.when]
    ]
    unreachable: str | None = None
    for when in When:
        same = [clause for clause in clauses if clause.when is when]
        if any(not clause.conditional for clause in same[:-1]):
            problems.append(
                f"only the last WHEN {when.upper()} clause can omit its condition: "
                "the ones after it are never reached"
            )
            unreachable = unreachable or _OMITTED_CONDITION[when]
    if problems:
        raise _bad_clauses(problems, unreachable)


def only_matched(clauses: Sequence[MergeClause]) -> bool:
    """Whether all clauses are WHEN MATCHED ones."""
    return all(clause.when is When.MATCHED for clause in clauses)


def ambiguous_rows(
    clauses: Sequence[MergeClause], matches: Iterable[tuple[Row, int]]
) -> tuple[Row, ...]:
    """The target rows for which MERGE could not say what becomes of them, sorted.

    ``matches`` counts, for a target row, the source rows that match it, also where no clause takes
    the match. Only where all clauses are WHEN MATCHED ones, Delta Spark leaves out matches of which
    it is unknown whether a clause takes them. More than one is ambiguous, except where a match can
    only delete the row, and where target rows do not change at all.
    """
    matched = [clause for clause in clauses if clause.when is When.MATCHED]
    only_deletes = matched == [MergeClause(When.MATCHED, Then.DELETE)]
    only_inserts = all(clause.when is When.NOT_MATCHED for clause in clauses)
    if only_deletes or only_inserts:
        return ()
    return tuple(sorted(row for row, count in matches if count > 1))


def refuse_ambiguous(clauses: Sequence[MergeClause], matches: Iterable[tuple[Row, int]]) -> None:
    """Raise Delta's error if `ambiguous_rows` finds any."""
    rows = ambiguous_rows(clauses, matches)
    if rows:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Several source rows match the same target row of the MERGE.",
            why=f"{len(rows)} target rows are matched more than once, so the result would be "
            "a matter of chance.",
            fix="Make the source unique on the merge keys before merging.",
            delta_class="DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
            fields={"rows": list(rows[:10]), "count": len(rows)},
        )


def plan_merge(
    files: Iterable[TouchedFile],
    *,
    clauses: Sequence[MergeClause],
    source_rows: int,
    inserted_rows: int,
    rules: TableRules,
    reads: ReadSet,
    updated_by_source: int = 0,
    deleted_by_source: int = 0,
) -> RowPlan:
    """The plan of a MERGE, given the rows each clause took.

    ``updated_by_source`` and ``deleted_by_source`` say how many of the rows fell to a NOT
    MATCHED BY SOURCE clause; they only split the metrics.
    """
    check_clauses(clauses)
    seen = tuple(files)
    counts = {
        Then.UPDATE: sum(len(file.update) for file in seen),
        Then.DELETE: sum(len(file.delete) for file in seen),
        Then.INSERT: inserted_rows,
    }
    able = {clause.then for clause in clauses}
    problems = [
        f"{count} rows to {then}, but no clause does that"
        for then, count in counts.items()
        if count and then not in able
    ]
    if not 0 <= updated_by_source <= counts[Then.UPDATE]:
        problems.append(f"{updated_by_source} of {counts[Then.UPDATE]} updates by source")
    if not 0 <= deleted_by_source <= counts[Then.DELETE]:
        problems.append(f"{deleted_by_source} of {counts[Then.DELETE]} deletes by source")
    if problems:
        raise refuse("MERGE cannot be planned.", problems)
    return plan_rows(
        "MERGE",
        seen,
        rules=rules,
        reads=reads,
        inserted_rows=inserted_rows,
        extra_metrics={
            "numSourceRows": source_rows,
            "numTargetRowsMatchedUpdated": counts[Then.UPDATE] - updated_by_source,
            "numTargetRowsMatchedDeleted": counts[Then.DELETE] - deleted_by_source,
            "numTargetRowsNotMatchedBySourceUpdated": updated_by_source,
            "numTargetRowsNotMatchedBySourceDeleted": deleted_by_source,
        },
    )


def _bad_clauses(problems: list[str], delta_class: str | None) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        "The clauses of the MERGE cannot be used.",
        why=listed(problems),
        fix="Give at least one clause, and a condition to all but the last of each kind.",
        delta_class=delta_class,
        fields={"problems": problems},
    )
