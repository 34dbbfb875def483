"""Rules about the files of a commit, as its actions describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.compat.rule import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.compat.rule import Case

__all__ = ["files_have_no_vectors", "files_have_row_counts"]


def files_have_no_vectors(case: Case) -> Iterator[Finding]:
    """No live file hides rows by a deletion vector."""
    subject = case.subject
    marked = [add for add in subject.adds if add.deletion_vector is not None]
    for add in marked:
        yield Finding(
            path=add.path,
            found="a deletion vector",
            wanted="none",
            message=f"file {add.path} is added with a deletion vector",
        )
    others = subject.vectors - len(marked)
    if others > 0:
        named = "1 file" if others == 1 else f"{others} files"
        yield Finding(
            path="",
            found=named,
            wanted="none",
            message=f"{named} of the table still {'has' if others == 1 else 'have'} "
            "a deletion vector",
        )


def files_have_row_counts(case: Case) -> Iterator[Finding]:
    """Iceberg manifests hold the number of rows of every file."""
    for add in case.subject.adds:
        if add.num_records is None:
            yield Finding(
                path=add.path,
                found=_short(add.stats),
                wanted="statistics with numRecords",
                message=f"file {add.path} has no numRecords in its statistics",
            )


def _short(stats: str | None) -> str:
    if stats is None:
        return "no statistics"
    return stats if len(stats) <= 80 else f"{stats[:77]}..."
