"""The part of ``twinlake demo`` about commits that overlap: by model, then on a real twin."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from twinlake.cli.output import error_lines
from twinlake.cli.verify.view import brief_grid, comparison
from twinlake.cli.view import Facts, Grid, Heading, Lines, Prose, View
from twinlake.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from twinlake.cli.verify.rows import Row
    from twinlake.table import Table

__all__ = ["verify_story"]

_COLUMNS: Final = "name STRING, colour STRING"
_PROMISE: Final = "icebergWriterCompatV3"
_TWIN: Final = {
    "delta.enableIcebergWriterCompatV3": "true",
    "delta.enableDeletionVectors": "true",
}


def verify_story(folder: Path, *, first: int) -> Iterator[View]:
    """The anomaly found, the fix proved, the same history on a table; ``first`` numbers them."""
    yield _anomaly(first)
    yield _fixed(first + 1)
    yield _on_a_twin(folder / "favourites", first + 2)


def _anomaly(number: int) -> View:
    from twinlake.verify import check
    from twinlake.verify.models import IcebergV2

    began = time.monotonic()
    result = check(IcebergV2())
    spent = time.monotonic() - began
    found = result.violations[0]
    return View(
        data={"step": "verify_anomaly", "seconds": round(spent, 2), **result.to_dict()},
        blocks=[
            Heading(f"{number}. A row that comes back"),
            Prose(
                "Two writers, one row: one deletes it while the other updates it. A model of "
                "Iceberg v2 commits under snapshot isolation, with every way in which the two can "
                "interleave, has a run that ends wrong. This is the shortest:"
            ),
            Lines(("$ twinlake verify iceberg --config seed",), style="bold"),
            Facts(
                (
                    ("seconds", f"{spent:.2f}"),
                    ("states", f"{result.states:,}"),
                    ("violated", f"{found.property}, after {len(found.trace)} steps"),
                )
            ),
            brief_grid(found.trace),
            *comparison(found.message, found.to_dict()["fields"]),
            Prose(
                "Whoever goes first, in the end the row should be gone. The DELETE only looks "
                "whether the file it read is still there, and it is."
            ),
        ],
    )


def _fixed(number: int) -> View:
    from twinlake.verify import check
    from twinlake.verify.models import IcebergV2

    result = check(IcebergV2(fix="A"))
    return View(
        data={"step": "verify_fix", **result.to_dict()},
        blocks=[
            Heading(f"{number}. The fix, proved"),
            Prose("The DELETE gives up if a delete file came in since it read. All runs again:"),
            Lines(("$ twinlake verify iceberg --config seed --fix",), style="bold"),
            Facts((("states", f"{result.states:,}, all there are"),)),
            Grid.of("property verdict", result.verdicts.items()),
        ],
    )


def _on_a_twin(path: Path, number: int) -> View:
    from twinlake.cli.verify.rows import delete_rows, insert_rows, read_rows, update_rows
    from twinlake.table import Table

    table = Table.create(path, _COLUMNS, properties=_TWIN)
    table = insert_rows(
        table, [{"name": "jack", "colour": "red"}, {"name": "sarah", "colour": "green"}]
    )
    held = delete_rows(table, "name", "jack")
    update_rows(table, "name", "jack", {"colour": "blue"}).commit()
    refusal: ConflictError | None = None
    try:
        held.commit()
    except ConflictError as error:
        refusal = error
    between = _sorted(read_rows(table.refresh()))
    delete_rows(table.refresh(), "name", "jack").commit()
    table = table.refresh()
    left = _sorted(read_rows(table))
    told = (f"{type(refusal).__name__}:", *error_lines(refusal)) if refusal else ("committed",)
    return View(
        data={
            "step": "verify_twin_table",
            "masked": refusal is not None,
            "error": refusal and {**refusal.to_dict(), "type": type(refusal).__name__},
            "after_update": between,
            "rows": left,
            "version": table.version,
            "keeps_promise": table.check(_PROMISE, files=True).ok,
        },
        blocks=[
            Heading(f"{number}. The same history on a twin"),
            Prose(
                f"A table that Iceberg may write, with deletion vectors, keeping {_PROMISE}. The "
                "DELETE has read and written its vector, and waits; the UPDATE commits version 2; "
                "then the DELETE tries to commit:"
            ),
            Lines(told),
            Prose(
                "Both change the vector of one file, so the second is refused. The table holds "
                f"{_told(between)}, as the UPDATE left it, and the DELETE knows that it failed. "
                f"Run again on version 2 it leaves {_told(left)}."
            ),
            Grid.of("version:r operation on_version:r", _history(table), title="history"),
        ],
    )


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: str(row["name"]))


def _told(rows: list[Row]) -> str:
    return " and ".join(f"{row['name']} {row['colour']}" for row in rows)


def _history(table: Table) -> list[tuple[Any, ...]]:
    return [(one.version, one.operation, one.read_version) for one in table.history()]
