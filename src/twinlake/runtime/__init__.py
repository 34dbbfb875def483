"""The ports by which the world comes in: clock, ids, executors, the rewriter, progress.

Everything above takes these as arguments, so that the model checker can drive the shipped
code through every interleaving and so that file-parallel work runs in-process or on Spark
from one piece of code.
"""

from twinlake.runtime._ports import (
    Clock,
    Executor,
    Ids,
    InProcess,
    Progress,
    RandomIds,
    Rewriter,
    Runtime,
    SystemClock,
    silent,
)

__all__ = [
    "Clock",
    "Executor",
    "Ids",
    "InProcess",
    "Progress",
    "RandomIds",
    "Rewriter",
    "Runtime",
    "SystemClock",
    "silent",
]
