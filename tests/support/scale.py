"""Loop counts of the tests: small by default, full when ``TWINLAKE_SCALE=full``."""

from __future__ import annotations

import os

__all__ = ["is_full_scale", "scale"]


def is_full_scale() -> bool:
    """Whether the long loops were asked for (``make soak``)."""
    return os.environ.get("TWINLAKE_SCALE", "small") == "full"


def scale(small: int, full: int) -> int:
    """Pick the number of rounds for this run."""
    return full if is_full_scale() else small
