"""The proposed fixes for the merge-on-read DELETE, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.verify.checker import check
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.snapshot_scan import KEY, ROW
from twinlake.verify.models.iceberg.validation import FIXES
from twinlake.verify.models.iceberg.values import DELETE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.verify.checker import Transition

__all__ = ["FixReport", "compare_fixes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixReport:
    """What a fix buys and costs."""

    fix: str | None
    #: By history rule: the property violated, or ``None``.
    violated: Mapping[str, str | None]
    #: By history rule: how many states the search first reached by a DELETE that aborts.
    delete_aborts: Mapping[str, int]
    #: By history rule: how many states were stored.
    states: Mapping[str, int]


def compare_fixes(
    *, max_write_ops: int = 4, col1_values: tuple[str, ...] = ("jack", "sarah")
) -> tuple[FixReport, ...]:
    """Check every fix under both history rules, with all reductions on."""
    reports: list[FixReport] = []
    for fix in FIXES:
        results = {
            rule: check(
                IcebergV2(
                    fix=fix,
                    history=rule,
                    identity="canonical",
                    max_write_ops=max_write_ops,
                    col1_values=col1_values,
                ),
                symmetry=True,
                reduction=True,
                tally=is_aborting_delete,
            )
            for rule in (KEY, ROW)
        }
        reports.append(
            FixReport(
                fix=fix,
                violated={rule: one.violated for rule, one in results.items()},
                delete_aborts={rule: one.tally or 0 for rule, one in results.items()},
                states={rule: one.states for rule, one in results.items()},
            )
        )
    return tuple(reports)


def is_aborting_delete(outcome: Transition) -> bool:
    """Whether a move is a DELETE that fails its validation."""
    first = outcome.steps[0]
    return bool(first.actor.sql_op == DELETE and first.next.actor.state == "ABORTED")
