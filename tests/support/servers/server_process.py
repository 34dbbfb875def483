"""A server as a process of its own on a loopback port: started, waited for, stopped."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ["accepts", "free_port", "server_process"]

_HOST = "127.0.0.1"
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0


def free_port() -> int:
    """A loopback port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def accepts(port: int) -> bool:
    """Whether a server accepts connections on a loopback port."""
    with contextlib.suppress(OSError), socket.create_connection((_HOST, port), 1):
        return True
    return False


@contextlib.contextmanager
def server_process(
    name: str,
    command: Sequence[str],
    *,
    log_path: Path,
    is_ready: Callable[[], bool],
    stop_signal: signal.Signals = signal.SIGTERM,
    **popen: Any,
) -> Iterator[None]:
    """Run a server until the end of the block, its output in ``log_path``."""
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, **popen)
    try:
        deadline = time.monotonic() + _START_SECONDS
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                text = log_path.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{name} did not start:\n{text}")
            time.sleep(0.05)
        yield
    finally:
        process.send_signal(stop_signal)
        try:
            process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
