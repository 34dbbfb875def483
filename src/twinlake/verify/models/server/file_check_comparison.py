"""Does a server hide the anomaly of merge-on-read deletes? It depends on what it looks at."""

from __future__ import annotations

from dataclasses import dataclass

from twinlake.verify.checker import check
from twinlake.verify.models.server.clients import NO_CHECK, SINCE_BASE, SINCE_SCAN
from twinlake.verify.models.server.model import ServerCommits

__all__ = ["FileCheckReport", "compare_file_checks"]

ONE, TWO = ("jack",), ("jack", "sarah")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheckReport:
    """What a server does to a DELETE that should have looked at new delete files."""

    #: Since when the server looks whether the files of a commit have changed.
    file_check: str
    #: Whether a file without any row left is removed from the log.
    drop_emptied: bool
    #: How many rows the file has that DELETE and UPDATE touch.
    rows_in_file: int
    #: The property that fails all the same, why, and after how many steps.
    violated: str | None
    message: str | None
    steps: int | None
    states: int

    @property
    def is_masked(self) -> bool:
        """Whether the anomaly cannot be reached through this server."""
        return self.violated is None


def compare_file_checks() -> tuple[FileCheckReport, ...]:
    """The configuration of the anomaly, without its fix, through every kind of server."""
    return tuple(
        _masking(file_check, drop_emptied=drop_emptied, rows=rows)
        for drop_emptied in (False, True)
        for rows in (ONE, TWO)
        for file_check in (NO_CHECK, SINCE_BASE, SINCE_SCAN)
    )


def _masking(file_check: str, *, drop_emptied: bool, rows: tuple[str, ...]) -> FileCheckReport:
    # A file of several rows is there from the start: no insert of the clients makes one.
    stored = rows if len(rows) > 1 else ()
    model = ServerCommits(
        file_check=file_check,
        drop_emptied=drop_emptied,
        col1_values=rows,
        stored_ids=stored,
        max_write_ops=2 if stored else 3,
    )
    result = check(model, symmetry=True, reduction=True)
    first = result.violations[0] if result.violations else None
    return FileCheckReport(
        file_check=file_check,
        drop_emptied=drop_emptied,
        rows_in_file=len(rows),
        violated=first.property if first else None,
        message=first.message if first else None,
        steps=len(first.trace) if first else None,
        states=result.states,
    )
