"""The metrics of writes, as Delta names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.commit.plans import live_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twinlake.actions import AddFile

__all__ = ["write_metrics"]


def write_metrics(files: Sequence[AddFile]) -> dict[str, str]:
    """How much was written."""
    rows = [live_rows(file) for file in files]
    found = {
        "numFiles": str(len(files)),
        "numOutputBytes": str(sum(file.size for file in files)),
    }
    if all(count is not None for count in rows):
        found["numOutputRows"] = str(sum(count or 0 for count in rows))
    return found
