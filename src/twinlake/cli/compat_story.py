"""The part of ``twinlake demo`` about Iceberg writers: refused, planned, upgraded, clean."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.compat_view import report_blocks
from twinlake.cli.output import error_lines
from twinlake.cli.plan_view import plan_blocks
from twinlake.cli.view import Facts, Grid, Heading, Lines, Prose, View
from twinlake.errors import CompatViolation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from twinlake.compat import Plan, Report
    from twinlake.table import Table

__all__ = ["compat_story"]

_TARGET: Final = "icebergWriterCompatV1"
_FLAG: Final = "delta.enableIcebergWriterCompatV1"
_RETENTION: Final = "delta.dropFeatureTruncateHistory.retentionDuration"
_ROWS: Final = 10_000
_SHOWN: Final = 3
_PROPERTIES: Final = {
    "delta.enableDeletionVectors": "true",
    "delta.enableChangeDataFeed": "true",
}


def compat_story(spark: Any, folder: Path) -> Iterator[View]:
    """A table that breaks rules becomes one that Iceberg writers may write; a view a step."""
    path = folder / "visits"
    table = _messy(spark, str(path))
    yield _refused(table)
    yield _planned(table)
    table = table.set_properties({_RETENTION: "interval 0 hours"})
    began = time.monotonic()
    plan = table.upgrade(_TARGET, spark=spark)
    yield _upgraded(plan, time.monotonic() - began)
    yield _clean(table.refresh(), spark)


def _messy(spark: Any, path: str) -> Table:
    from twinlake.spark import DeltaTable, write

    rows = spark.range(_ROWS).selectExpr(
        "id",
        "CAST(id % 90 AS TINYINT) AS age",
        "element_at(array('north', 'south'), CAST(id % 2 + 1 AS INT)) AS region",
        "array(CAST(id % 7 AS SMALLINT)) AS rooms",
    )
    table = write(rows, path, partition_by="region", properties=_PROPERTIES)
    DeltaTable.forPath(spark, path).delete("id % 10 = 3")
    return table.refresh()


def _refused(table: Table) -> View:
    try:
        table.set_properties({_FLAG: "true"})
    except CompatViolation as error:
        refusal = error
    else:  # pragma: no cover - the rules would have to be gone
        raise AssertionError(_FLAG)
    report = table.check(_TARGET, files=True)
    return View(
        data={"step": "compat_refused", "error": refusal.to_dict(), "report": report.to_dict()},
        blocks=[
            Heading("12. May Iceberg write here?"),
            Prose(
                "A table that promises icebergWriterCompatV1 can be written by Iceberg writers as "
                "well. This one was made without a thought of them: small integers, deletion "
                "vectors, a change data feed, columns found by name."
            ),
            Lines((f'>>> visits.set_properties({{"{_FLAG}": "true"}})',), style="bold"),
            Lines((error_lines(refusal)[0],)),
            Prose("Nothing was changed. Every rule it breaks, with files and all:"),
            Grid.of("rule places:r what_the_rule_asks", _broken(report)),
            Prose("`twinlake check visits --files` names each place, and how to mend it."),
        ],
    )


def _broken(report: Report) -> list[tuple[str, int, str]]:
    from twinlake.compat.report import groups

    return [(group.rule, group.count, group.title) for group in groups(report)]


def _planned(table: Table) -> View:
    plan = table.upgrade(_TARGET, dry_run=True)
    return View(
        data={"step": "compat_plan", "plan": plan.to_dict()},
        blocks=[
            Heading("13. What it would take"),
            Lines((f'>>> visits.upgrade("{_TARGET}", dry_run=True)',), style="bold"),
            *plan_blocks(plan),
            Prose(
                "Versions with deletion vectors have to leave the history, which by default may "
                f"only go a day later: upgrade would stop there and a later run would finish. For "
                f"this demonstration {_RETENTION} is set to zero."
            ),
        ],
    )


def _upgraded(plan: Plan, seconds: float) -> View:
    return View(
        data={"step": "compat_upgrade", "seconds": round(seconds, 2), "plan": plan.to_dict()},
        blocks=[
            Heading("14. Done, step by step"),
            Lines((f'>>> visits.upgrade("{_TARGET}", spark=spark)',), style="bold"),
            Facts((("seconds", f"{seconds:.1f}"),)),
            *plan_blocks(plan),
            Prose(
                "Every step is an ordinary commit. Killed anywhere in between, the table is valid, "
                "and running the same upgrade again finishes it."
            ),
        ],
    )


def _clean(table: Table, spark: Any) -> View:
    from twinlake.schema import physical_name, render_type
    from twinlake.spark import scan

    report = table.check(_TARGET, files=True)
    count = scan(spark, table.location).count()
    fields = [(f.name, render_type(f.type), physical_name(f)) for f in table.schema]
    return View(
        data={"step": "compat_clean", "report": report.to_dict(), "rows": count},
        blocks=[
            Heading("15. The clean report"),
            Lines((f'>>> visits.check("{_TARGET}", files=True)',), style="bold"),
            *report_blocks(report, _SHOWN),
            Grid.of("column type in_files", fields),
            Facts((("rows", f"{count:,}"),)),
        ],
    )
