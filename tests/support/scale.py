"""Loop counts of the tests: small by default, full when ``TWINLAKE_SCALE=full``."""

from __future__ import annotations

import os
from typing import TypeVar

__all__ = ["is_full_scale", "scale"]

Count = TypeVar("Count", int, float)


def is_full_scale() -> bool:
    """Whether the long loops were asked for (``make soak``)."""
    return os.environ.get("TWINLAKE_SCALE", "small") == "full"


def scale(small: Count, full: Count) -> Count:
    """Pick the number of rounds, or seconds, for this run."""
    return full if is_full_scale() else small
