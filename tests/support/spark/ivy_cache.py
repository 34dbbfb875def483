"""The cache that Spark's package resolver fills, which only one process may fill at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["sole_resolver"]


@contextmanager
def sole_resolver() -> Iterator[None]:
    """Hold the Ivy cache against other processes that would resolve packages at the same time."""
    path = Path(tempfile.gettempdir()) / f"twinlake-ivy-{os.getuid()}.lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
