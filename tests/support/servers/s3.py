"""A real S3 server on a free loopback port: versitygw over a temporary folder.

Its race test matters more than its answers: servers exist that refuse a second writer politely
one after the other and still let two win when they come together. Such a server is unfit to
judge us, so it is raced before the first test uses it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.servers.object_server import BUCKET
from tests.support.servers.server_process import accepts, free_port, server_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ACCESS_KEY", "BUCKET", "SECRET_KEY", "S3Server", "find_binary", "s3_server"]

ACCESS_KEY = "test"
SECRET_KEY = "testtest"

_PROJECT = Path(__file__).resolve().parents[3]


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

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> dict[str, Any]:
        """What ``open_store(..., options=...)`` needs."""
        return self.options_at(self.port)

    @property
    def wrong_secret(self) -> Mapping[str, str]:
        return {"secret_access_key": "not-the-SECRET"}

    def options_at(self, port: int) -> dict[str, Any]:
        """The options for a proxy before the server, on another port."""
        return {
            "endpoint": f"http://127.0.0.1:{port}",
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET_KEY,
            "region": "us-east-1",
            "allow_http": True,
        }

    def url(self, path: str = "", *, bucket: str = BUCKET) -> str:
        return f"s3://{bucket}/{path}".rstrip("/")


@contextlib.contextmanager
def s3_server(binary: Path) -> Iterator[S3Server]:
    """Start the server in a temporary folder, and stop it at the end."""
    root = Path(tempfile.mkdtemp(prefix="twinlake-s3-"))
    data, port = root / "data", free_port()
    (data / BUCKET).mkdir(parents=True)
    try:
        with server_process(
            f"The S3 server on port {port}",
            [str(binary), "--port", f"127.0.0.1:{port}", "posix", str(data)],
            log_path=root / "server.log",
            is_ready=lambda: accepts(port),
            env={**os.environ, "ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": SECRET_KEY},
        ):
            yield S3Server(port=port, data=data)
    finally:
        shutil.rmtree(root, ignore_errors=True)
