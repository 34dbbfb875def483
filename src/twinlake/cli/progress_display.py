"""How far a long command is: on a terminal lines that are overwritten, in a pipe nothing.

They are written to standard error and removed at the end, so that standard output holds the
result only.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Sized
from typing import TYPE_CHECKING, Any, Final, TypeVar

from twinlake.cli.json_output import JsonOutput
from twinlake.runtime import InProcess, Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.progress import Progress, Task, TaskID

    from twinlake.cli.output import Output

__all__ = ["ProgressDisplay", "progress_display"]

T = TypeVar("T")
R = TypeVar("R")

#: The stages that operations report, in the words of their users, and what they count.
_STAGES: Final = {
    "check": ("checking footers", "files"),
    "rewrite": ("rewriting", "groups of files"),
    "vacuum": ("deleting", "files"),
    "sync": ("converting", "commits"),
    "import": ("writing versions", "snapshots"),
}


class ProgressDisplay:
    """The stages of a command; this one shows nothing."""

    @property
    def runtime(self) -> Runtime:
        """The ports for a table whose operations report here."""
        return Runtime()

    def counting_runtime(self, label: str) -> Runtime:
        """The same, for operations that report nothing: what they do file by file is counted."""
        del label
        return self.runtime

    @contextlib.contextmanager
    def stage(self, label: str, *, size_in_bytes: int | None = None) -> Iterator[None]:
        """Show what is being done until it is done; of so many bytes, where that is known."""
        del label, size_in_bytes
        yield


class _TerminalDisplay(ProgressDisplay):
    def __init__(self, lines: Progress) -> None:
        self._lines = lines
        self._tasks: dict[str, TaskID] = {}
        self._counts: dict[str, tuple[int, int]] = {}
        self._size: int | None = None
        self._lock = threading.Lock()

    @property
    def runtime(self) -> Runtime:
        return Runtime(progress=self._report)

    def counting_runtime(self, label: str) -> Runtime:
        return Runtime(progress=self._report, executor=_CountingExecutor(self._counter(label)))

    @contextlib.contextmanager
    def stage(self, label: str, *, size_in_bytes: int | None = None) -> Iterator[None]:
        task = self._lines.add_task(label, total=None, unit="", size=size_in_bytes)
        self._size = size_in_bytes
        try:
            yield
        finally:
            self._size = None
            self._lines.remove_task(task)

    def _report(self, stage: str, done: int, total: int) -> None:
        label, unit = _STAGES.get(stage, (stage, ""))
        self._lines.update(self._task(label, unit), completed=done, total=total)

    def _counter(self, label: str) -> Callable[[int, int], None]:
        def count(done: int, more: int) -> None:
            task = self._task(label, "files")
            with self._lock:
                before, known = self._counts.get(label, (0, 0))
                all_done, known = before + done, known + more
                self._counts[label] = all_done, known
            # What came without a length was in no total.
            total = max(known, all_done) if known else None
            self._lines.update(task, completed=all_done, total=total)

        return count

    def _task(self, label: str, unit: str) -> TaskID:
        with self._lock:
            if label not in self._tasks:
                self._tasks[label] = self._lines.add_task(
                    label, total=None, unit=unit, size=self._size
                )
            return self._tasks[label]


class _CountingExecutor(InProcess):
    """Runs everything here, and tells of items that are to come and of each that is done."""

    def __init__(self, count: Callable[[int, int], None]) -> None:
        self._count = count

    def map(self, fn: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        if isinstance(items, Sized):
            self._count(0, len(items))
        for result in super().map(fn, items):
            self._count(1, 0)
            yield result


@contextlib.contextmanager
def progress_display(output: Output) -> Iterator[ProgressDisplay]:
    """A display on standard error, if that is a terminal and the output is for people.

    What the command prints at last comes after it, or the lines would be mixed up.
    """
    if isinstance(output, JsonOutput) or not _is_terminal():
        yield ProgressDisplay()
        return
    from rich.console import Console

    # A copy of the descriptor: while Spark starts, what is written to the other goes into a file.
    with os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8") as stream:
        console = Console(file=stream, force_terminal=True)
        if console.is_dumb_terminal:
            yield ProgressDisplay()
            return
        with _lines(console) as lines:
            yield _TerminalDisplay(lines)


def _is_terminal() -> bool:
    try:
        return os.isatty(sys.stderr.fileno())
    except (OSError, ValueError):  # no file at all, or closed
        return False


def _lines(console: Any) -> Progress:
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class _Counts(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(_counts_text(task))

    class _TimeLeft(TimeRemainingColumn):
        def render(self, task: Task) -> Text:
            if task.total is None or task.time_remaining is None:
                return Text("")
            return Text.assemble(super().render(task), " left")

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        _Counts(),
        TimeElapsedColumn(),
        _TimeLeft(),
        console=console,
        transient=True,
    )


def _counts_text(task: Task) -> str:
    from twinlake.table import human_size

    size = task.fields.get("size")
    of = f"of {human_size(size)}" if size else ""
    done, unit = int(task.completed), task.fields.get("unit", "")
    if task.total is not None:
        return f"{done:,}/{int(task.total):,} {unit} {of}".strip()
    return f"{done:,} {unit} {of}".strip() if done else of
