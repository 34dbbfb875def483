"""Errors of the operating system that a Spark job met in the JVM, as errors of a store.

Java names no number, only the text of the C library, and Spark wraps it several times. The text
counts only in exceptions of Java's and Hadoop's own I/O: values of rows are in other messages.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError

from twinlake.storage import OS_ERRORS, os_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.errors import StorageError

__all__ = ["job_storage_error"]

_DEEPEST_CAUSE: Final = 12
_IO_CLASSES: Final = ("java.io.", "java.nio.file.", "org.apache.hadoop.fs.")
_TEXTS: Final[Mapping[str, int]] = {os.strerror(number): number for number in OS_ERRORS}


def job_storage_error(error: BaseException) -> StorageError | None:
    """The error of a store behind a failed job; None if the job failed for other reasons."""
    # A JVM that went down cannot be asked; its own exception is passed on.
    with contextlib.suppress(Exception):
        for text in _io_messages(error):
            number = next((n for known, n in _TEXTS.items() if known in text), None)
            if number is not None:
                message = text.splitlines()[0]
                found = os_error(
                    OSError(number, message),
                    "A Spark job could not use a file or folder.",
                    {"message": message},
                )
                # Shuffles and spills write there, not into the table.
                found.why = f"{found.why}, in a table or in spark.local.dir: {message}"
                return found
    return None


def _io_messages(error: BaseException) -> Iterator[str]:
    cause: Any = (
        error.java_exception
        if isinstance(error, Py4JJavaError)
        else getattr(error, "_origin", None)
    )
    for _ in range(_DEEPEST_CAUSE):
        if cause is None:
            return
        if str(cause.getClass().getName()).startswith(_IO_CLASSES):
            yield str(cause.getMessage() or "")
        cause = cause.getCause()
