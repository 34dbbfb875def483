"""Which sessions are served, and when a call of PySpark's comes from twinlake itself.

The takeover is one for the process: sessions that nobody named, such as those of micro-batches, are
served while any session asked for it. A session that was disabled is not.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

__all__ = ["FORMATS", "TAKEOVER", "Takeover", "is_ours"]

FORMATS: Final = frozenset({"delta", "twinlake"})
"""The formats that are handed over."""


def is_ours(name: str | None) -> bool:
    """Whether a format is handed over.

    >>> is_ours("Delta"), is_ours("parquet"), is_ours(None)
    (True, False, False)
    """
    return name is not None and name.lower() in FORMATS


class Takeover:
    """The state of the process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._asked: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
        self._inside = threading.local()
        self.default_format: str | None = None
        """Spark's format of calls that name none, as it was when the takeover began."""

    def add(self, spark: SparkSession) -> None:
        """Serve a session."""
        self._asked[spark] = True

    def remove(self, spark: SparkSession) -> bool:
        """Serve a session no longer; whether it was the last one."""
        self._asked[spark] = False
        if self.is_on:
            return False
        self._asked.clear()
        return True

    @property
    def is_on(self) -> bool:
        """Whether any session asked for it."""
        return any(self._asked.values())

    def serves(self, spark: SparkSession) -> bool:
        """Whether a call on the session is looked at now."""
        if getattr(self._inside, "depth", 0):
            return False
        return self._asked.get(spark, True) and self.is_on

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """While twinlake works in this thread, PySpark's calls are Spark's own."""
        self._inside.depth = getattr(self._inside, "depth", 0) + 1
        try:
            yield
        finally:
            self._inside.depth -= 1

    def is_chosen(self, name: str | None) -> bool:
        """Whether a call with that format, or with none, is handed over."""
        return is_ours(self.default_format if name is None else name)


TAKEOVER: Final = Takeover()
