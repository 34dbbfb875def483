"""The ports by which the world comes in: clock, ids, executors, the rewriter, progress.

Everything above takes these as arguments, so that the model checker can drive the shipped
code through every interleaving and so that file-parallel work runs in-process or on Spark
from one piece of code. Engines that move rows are found by name (``engine_for``), never imported.
"""

from twinlake.runtime._ports import (
    Clock,
    Executor,
    Ids,
    InProcess,
    Progress,
    RandomIds,
    Rewriter,
    RewriteRequest,
    Runtime,
    SystemClock,
    Threads,
    silent,
)
from twinlake.runtime.engines import (
    ENGINE_GROUP,
    ContentReader,
    Engine,
    FileContent,
    OffendingRows,
    engine_for,
)

__all__ = [
    "ENGINE_GROUP",
    "Clock",
    "ContentReader",
    "Engine",
    "Executor",
    "FileContent",
    "Ids",
    "InProcess",
    "OffendingRows",
    "Progress",
    "RandomIds",
    "RewriteRequest",
    "Rewriter",
    "Runtime",
    "SystemClock",
    "Threads",
    "engine_for",
    "silent",
]
