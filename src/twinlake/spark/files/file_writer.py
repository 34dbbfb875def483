"""Which writer makes the files of a frame.

Small frames are written by the driver, others by Spark's own Parquet writer where that can make
what is wanted, and by pyarrow in the workers everywhere else.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Literal, Protocol
from uuid import uuid4

from twinlake.errors import Code, UserError, listed
from twinlake.files import WriteTask
from twinlake.schema import parse_schema
from twinlake.spark.files.arrow_writer import ArrowWriter, compression_of
from twinlake.spark.files.native_writer import NativeWriter
from twinlake.spark.files.small_writer import small_batches
from twinlake.spark.session import session_conf
from twinlake.storage import decode_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from twinlake.actions import AddFile
    from twinlake.files import FileTarget

__all__ = [
    "WRITERS",
    "WRITER_SETTING",
    "FileWriter",
    "WriterName",
    "delete_uncommitted",
    "write_files",
]


class FileWriter(Protocol):
    """Turns the rows of a frame into files that nobody sees until they are committed."""

    def refusal(self, target: FileTarget) -> str | None:
        """Why this writer cannot make such files; None if it can."""
        ...

    def write(self, frame: DataFrame, target: FileTarget) -> tuple[AddFile, ...]:
        """The new files; if anything fails, what was written is deleted as far as possible.

        The frame has the table's columns by their logical names, in order, then the extra ones.
        """
        ...


WriterName = Literal["native", "arrow"]
WRITER_SETTING: Final = "spark.twinlake.writer"
"""Which writer a session uses: native, arrow, or auto."""

WRITERS: Final[Mapping[str, FileWriter]] = {"native": NativeWriter(), "arrow": ArrowWriter()}
"""The writers in the order in which they are preferred."""


def write_files(
    frame: DataFrame, target: FileTarget, *, writer: WriterName | None = None
) -> tuple[AddFile, ...]:
    """Write the rows of a frame; nobody sees the files before they are committed.

    The frame has the table's columns by their logical names, in order, then the extra ones.
    """
    _check_columns(frame, target)
    spark = frame.sparkSession
    asked = writer or session_conf(spark, WRITER_SETTING, "auto").lower()
    if asked != "auto":
        return _forced(asked, target).write(frame, target)
    batches = small_batches(frame)
    if batches is not None:
        task = WriteTask(target=target, job=str(uuid4()), compression=compression_of(spark))
        return task.write(batches)
    return _chosen(frame, target).write(frame, target)


def delete_uncommitted(target: FileTarget, files: Sequence[AddFile]) -> None:
    """Delete files that were not committed, as far as that is possible; VACUUM gets the rest."""
    if files:
        with contextlib.suppress(Exception):
            target.store().delete([decode_path(file.path) for file in files])


def _forced(name: str, target: FileTarget) -> FileWriter:
    found = WRITERS.get(name)
    if found is None:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"There is no writer {name!r}.",
            why=f"{WRITER_SETTING} is one of auto, {', '.join(WRITERS)}",
            fix=f"Run `spark.conf.set({WRITER_SETTING!r}, 'auto')`.",
            fields={"writer": name},
        )
    if why := found.refusal(target):
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The {name} writer cannot write this table.",
            why=why,
            fix=f"Run `spark.conf.set({WRITER_SETTING!r}, 'auto')`.",
            fields={"writer": name, "reason": why},
        )
    return found


def _chosen(frame: DataFrame, target: FileTarget) -> FileWriter:
    # Files that Spark writes on another machine's disk are lost in silence; workers report what
    # they wrote, so that it can be checked.
    here = str(frame.sparkSession.sparkContext.master).startswith("local")
    reasons = []
    for name, writer in WRITERS.items():
        if name == "native" and not here:
            continue
        why = writer.refusal(target)
        if why is None:
            return writer
        reasons.append(f"{name}: {why}")
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"No writer can write the files of table {target.metadata.label}.",
        why=listed(reasons),
        fix="Move the table to a local folder or to an object store.",
        fields={"table": target.metadata.label},
    )


def _check_columns(frame: DataFrame, target: FileTarget) -> None:
    """Rows are taken by position from here on, so names and types must be the table's."""
    given = parse_schema(frame.schema.json()).fields
    wanted = (*target.metadata.schema, *target.extra)
    problems = []
    if len(given) != len(wanted):
        problems.append(f"{len(given)} columns instead of {len(wanted)}")
    for one, other in zip(given, wanted, strict=False):
        if one.name != other.name:
            problems.append(f"{one.name} instead of {other.name}")
        elif str(one.type) != str(other.type):
            problems.append(f"{one.name} is {one.type}, not {other.type}")
    if problems:
        raise UserError(
            Code.SCHEMA_INVALID,
            f"The frame does not have the columns of table {target.metadata.label}.",
            why=listed(problems),
            fix="Select and cast the columns of the table, in their order.",
            delta_class="DELTA_SCHEMA_CHANGED",
            fields={"problems": problems},
        )
