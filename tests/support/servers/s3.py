"""A real S3 server on a free loopback port: versitygw over a temporary folder.

Its race test matters more than its answers: servers exist that refuse a second writer politely
one after the other and still let two win when they come together. Such a server is unfit to
judge us, so it is raced before the first test uses it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "lakehouse"
ACCESS_KEY = "test"
SECRET_KEY = "testtest"

_PROJECT = Path(__file__).resolve().parents[3]
_START_SECONDS = 20.0


def find_binary() -> Path | None:
    """The server's binary: ``$TWINLAKE_S3_BINARY``, or the one ``make s3`` builds."""
    named = os.environ.get("TWINLAKE_S3_BINARY")
    candidate = Path(named) if named else _PROJECT / ".tools" / "versitygw"
    return candidate if candidate.is_file() and os.access(candidate, os.X_OK) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Server:
    """A running server: where it listens and where it keeps its buckets as plain folders."""

    port: int
    data: Path
    process: subprocess.Popen[bytes] = field(repr=False)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, Any]:
        """What ``open_store(..., options=...)`` needs."""
        return options_for(self.port)

    def url(self, path: str = "") -> str:
        return f"s3://{BUCKET}/{path}".rstrip("/")


def options_for(port: int) -> dict[str, Any]:
    """The options of a server, or of a proxy before it, on a loopback port."""
    return {
        "endpoint": f"http://127.0.0.1:{port}",
        "access_key_id": ACCESS_KEY,
        "secret_access_key": SECRET_KEY,
        "region": "us-east-1",
        "allow_http": True,
    }


@contextlib.contextmanager
def s3_server(binary: Path) -> Iterator[S3Server]:
    """Start the server in a temporary folder, and stop it at the end."""
    root = Path(tempfile.mkdtemp(prefix="twinlake-s3-"))
    data = root / "data"
    (data / BUCKET).mkdir(parents=True)
    log_path = root / "server.log"
    port = _free_port()
    try:
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [str(binary), "--port", f"127.0.0.1:{port}", "posix", str(data)],
                env={**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            _wait_for(process, port, log_path)
            yield S3Server(port=port, data=data, process=process)
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for(process: subprocess.Popen[bytes], port: int, log_path: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    text = log_path.read_text(errors="replace")[-2000:]
    raise RuntimeError(f"the S3 server did not start on port {port}:\n{text}")
