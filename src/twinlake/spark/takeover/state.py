"""Which sessions are served, and when a call of PySpark's comes from twinlake itself.

The takeover is one for the process: sessions that nobody named, such as those of micro-batches, are
served while any session asked for it. A session that was disabled is not.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, Final
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
    """The state of the process; changed under its lock."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._asked: set[str] = set()
        self._left: set[str] = set()
        self._ids: WeakKeyDictionary[SparkSession, str] = WeakKeyDictionary()
        self._inside = threading.local()
        self.default_format: str | None = None
        """Spark's format of calls that name none, as it was when the takeover began."""

    def add(self, spark: SparkSession) -> None:
        """Serve a session."""
        self._asked.add(self._id(spark))
        self._left.discard(self._id(spark))

    def remove(self, spark: SparkSession) -> bool:
        """Serve a session no longer; whether nobody asks any more."""
        self._asked.discard(self._id(spark))
        if self._asked:
            self._left.add(self._id(spark))
            return False
        self._left.clear()
        return True

    def _id(self, spark: SparkSession) -> str:
        """The same for all objects of PySpark's that stand for one session."""
        found = self._ids.get(spark)
        if found is None:
            jsession: Any = spark._jsparkSession
            found = self._ids[spark] = str(jsession.sessionUUID())
        return found

    @property
    def _depth(self) -> int:
        return int(getattr(self._inside, "depth", 0))

    @property
    def is_on(self) -> bool:
        """Whether any session asked for it."""
        return bool(self._asked)

    def serves(self, spark: SparkSession) -> bool:
        """Whether a call on the session is looked at now."""
        if not self._asked or self._depth:
            return False
        # Most often nobody left, and no session has to be told from another.
        return not self._left or self._id(spark) not in self._left

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """While twinlake works in this thread, PySpark's calls are Spark's own."""
        depth = self._depth
        self._inside.depth = depth + 1
        try:
            yield
        finally:
            self._inside.depth = depth

    def is_chosen(self, name: str | None) -> bool:
        """Whether a call with that format, or with none, is handed over."""
        return is_ours(self.default_format if name is None else name)


TAKEOVER: Final = Takeover()
