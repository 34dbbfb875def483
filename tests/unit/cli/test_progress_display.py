"""Progress of long commands: lines on a terminal, and nothing anywhere else."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from tests.support.data_files import append
from tests.unit.cli.running import run
from twinlake import Table
from twinlake.cli.console import ConsoleOutput
from twinlake.cli.json_output import JsonOutput
from twinlake.cli.progress_display import ProgressDisplay, progress_display
from twinlake.runtime import InProcess, silent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from twinlake.cli.output import Output

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    """The reading end of a terminal; a thread empties it, or writers would wait."""

    def __init__(self) -> None:
        self._reading, self.writing = os.openpty()
        self._parts: list[bytes] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self._reading, 4096)
            except OSError:  # the last writer is gone
                return
            if not part:
                return
            self._parts.append(part)

    def text(self) -> str:
        """All that was written; nothing more can be."""
        os.close(self.writing)
        self._thread.join(10)
        os.close(self._reading)
        return b"".join(self._parts).decode()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    return Screen()


@contextlib.contextmanager
def on_terminal(screen: Screen, output: Output | None = None) -> Iterator[ProgressDisplay]:
    """The display of a command whose standard error is the terminal."""
    with (
        os.fdopen(os.dup(screen.writing), "w") as stream,
        contextlib.redirect_stderr(stream),
        progress_display(output or ConsoleOutput()) as progress,
    ):
        yield progress


def test_stages_are_shown_with_numbers_and_bytes(screen: Screen) -> None:
    with on_terminal(screen) as progress:
        with progress.stage("starting Spark"):
            pass
        with progress.stage("compacting [3] files", size_in_bytes=5 << 20):
            progress.runtime.progress("rewrite", 1, 4)
            progress.runtime.progress("rewrite", 4, 4)
    text = ESCAPES.sub("", screen.text())
    assert "compacting [3] files" in text
    assert "4/4 groups of files of 5.0 MiB" in text
    assert "0:00:0" in text


def test_files_are_counted_where_an_operation_reports_nothing(screen: Screen) -> None:
    with on_terminal(screen) as progress:
        executor = progress.counting_runtime("reading").executor
        assert list(executor.map(str, range(1200))) == [str(n) for n in range(1200)]
        assert isinstance(executor, InProcess)
        assert len(list(executor.map(str, iter(range(300))))) == 300
    # What comes without a length joins the total when it is done.
    assert "1,500/1,500 files" in ESCAPES.sub("", screen.text())


def test_files_that_come_without_a_length_have_no_total(screen: Screen) -> None:
    with on_terminal(screen) as progress:
        executor = progress.counting_runtime("reading").executor
        assert len(list(executor.map(str, iter(range(300))))) == 300
    assert re.search(r"300 files", ESCAPES.sub("", screen.text()))


def test_totals_of_commands_that_count_more_than_files(screen: Screen) -> None:
    with on_terminal(screen) as progress:
        report = progress.runtime.progress
        report("sync", 3, 7)
        report("import", 2, 5)
    text = ESCAPES.sub("", screen.text())
    assert "converting" in text
    assert "3/7 commits" in text
    assert "2/5 snapshots" in text


def test_the_lines_are_removed_at_the_end(screen: Screen) -> None:
    with on_terminal(screen) as progress, progress.stage("planning"):
        pass
    # The line is erased, and the cursor is shown again.
    assert screen.text().rstrip("\r").endswith("\x1b[2K\x1b[?25h")


def test_nothing_with_json(screen: Screen) -> None:
    with on_terminal(screen, JsonOutput()) as progress, progress.stage("planning"):
        assert type(progress) is ProgressDisplay
        assert progress.runtime.progress is silent
    assert screen.text() == ""


def test_nothing_on_a_dumb_terminal(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with on_terminal(screen) as progress, progress.stage("planning"):
        pass
    assert screen.text() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), io.TextIOWrapper(io.BytesIO())])
def test_nothing_in_a_pipe(stream: io.TextIOBase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with (
        contextlib.redirect_stderr(stream),
        progress_display(ConsoleOutput()) as progress,
        progress.stage("planning"),
    ):
        assert type(progress) is ProgressDisplay


def test_a_failure_is_not_hidden(screen: Screen) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        on_terminal(screen) as progress,
        progress.stage("planning"),
    ):
        raise ZeroDivisionError
    assert "planning" in screen.text()


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    path = tmp_path / "twin"
    properties = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
    table = Table.create(path, "id LONG", (), properties, durable=False)
    append(table, path, [{"id": 1}], [{"id": 2}]).iceberg.sync()
    return path


COMMANDS = {
    "vacuum": (["vacuum", "TABLE", "--yes"], "finding files"),
    "upgrade": (["upgrade", "TABLE"], "planning"),
    "sync": (["sync", "TABLE"], "converting"),
    "verify-twin": (["verify-twin", "TABLE", "--rows"], "comparing both sides"),
}


@pytest.mark.process
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_show_progress_on_a_terminal_only(twin: Path, name: str) -> None:
    words, shown = COMMANDS[name]
    words = [word.replace("TABLE", str(twin)) for word in words]
    screen = Screen()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path)}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-m", "twinlake", *words],
        stdout=subprocess.PIPE, stderr=screen.writing, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert shown in screen.text()
    assert shown not in done.stdout
    assert "\x1b" not in done.stdout
    again = run(*words)
    assert (again.exit_code, again.stderr) == (0, "")


WHILE_SPARK_STARTS = """
import sys, time
from pathlib import Path
from twinlake.cli.console import ConsoleOutput
from twinlake.cli.progress_display import progress_display
from twinlake.spark.session import stderr_into

with progress_display(ConsoleOutput()) as progress, progress.stage("starting Spark"):
    with stderr_into(Path(sys.argv[1])):
        time.sleep(0.5)
"""


@pytest.mark.process
def test_the_display_goes_on_while_standard_error_is_sent_into_a_file(tmp_path: Path) -> None:
    # What the JVM prints is read from there if it does not start; nothing of ours may be in it.
    screen = Screen()
    subprocess.run(
        [sys.executable, "-c", WHILE_SPARK_STARTS, str(tmp_path / "log")],
        stderr=screen.writing, check=True, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    assert screen.text().count("starting Spark") > 1
    assert (tmp_path / "log").read_bytes() == b""
