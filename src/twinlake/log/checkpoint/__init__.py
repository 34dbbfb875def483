"""Checkpoints of every kind, read and written, and the hint that names the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake._lazy_exports import lazy_exports

if TYPE_CHECKING:
    from twinlake.log.checkpoint.last_checkpoint import replace_object
    from twinlake.log.checkpoint.reader import read_checkpoint, read_files

__all__ = [
    "read_checkpoint",
    "read_files",
    "replace_object",
]

if not TYPE_CHECKING:  # what needs pyarrow
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "twinlake.log.checkpoint.last_checkpoint": ("replace_object",),
            "twinlake.log.checkpoint.reader": ("read_checkpoint", "read_files"),
        },
    )
