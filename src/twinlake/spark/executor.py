"""Spark as the executor of the control plane: one function over many items, on the workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from twinlake.errors import TwinlakeError
from twinlake.spark.python_workers import run_in_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

__all__ = ["SparkExecutor"]

T = TypeVar("T")
R = TypeVar("R")

# A job takes a tenth of a second before its first item runs.
_FEW: Final = 16
_SLICES_A_CORE: Final = 4


@dataclass(frozen=True, slots=True)
class SparkExecutor:
    """Runs a function over items as a Spark job, or right here where the items are few.

    Functions travel by reference: the workers need the package, not the driver's code. An error of
    twinlake's comes back as itself, and it is the one of the first item that failed.
    """

    spark: SparkSession
    few: int = _FEW
    """Fewer items than this run in this process."""

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The results, in the order of the items."""
        found = list(items)
        return map(fn, found) if len(found) < self.few else self._as_job(fn, found)

    def _as_job(self, fn: Callable[[T], R], items: list[T]) -> Iterator[R]:
        context: Any = self.spark.sparkContext
        slices = min(len(items), _SLICES_A_CORE * max(context.defaultParallelism, 1))
        for row in run_in_workers(self.spark, _Guarded(fn), items, slices):
            if isinstance(row, _Failed):
                raise row.error
            yield row


@dataclass(frozen=True, slots=True)
class _Failed:
    error: TwinlakeError


@dataclass(frozen=True, slots=True)
class _Guarded(Generic[T, R]):
    """The function; an error of ours becomes a result, because a job would turn it into text."""

    fn: Callable[[T], R]

    def __call__(self, item: T) -> R | _Failed:
        try:
            return self.fn(item)
        except TwinlakeError as error:
            return _Failed(error)
