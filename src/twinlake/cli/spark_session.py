"""The Spark session of commands that may need one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from twinlake.cli.progress_display import ProgressDisplay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["spark_session"]


@contextlib.contextmanager
def spark_session(
    settings: Mapping[str, str] | None = None,
    *,
    wanted: bool = True,
    progress: ProgressDisplay | None = None,
) -> Iterator[Any]:
    """A session on this machine with these settings, or None if it is not wanted."""
    if not wanted:
        yield None
        return
    # PySpark may not be installed, and takes long to import.
    from twinlake.spark.session import local_session

    with contextlib.ExitStack() as stack:
        with (progress or ProgressDisplay()).stage("starting Spark"):
            spark = stack.enter_context(local_session(settings))
        yield spark
