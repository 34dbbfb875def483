"""A real server of Azure Blob Storage on a free loopback port: Azurite, in memory.

It is raced before the first test uses it, as the S3 server is.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import http.client
import os
import shutil
import tempfile
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.servers.object_server import BUCKET
from tests.support.servers.server_process import accepts, free_port, server_process

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ACCOUNT", "ACCOUNT_KEY", "AzureServer", "azure_server", "find_binary"]

# Each server gets its accounts by the environment: nothing depends on Azurite's built-in one.
ACCOUNT = "testaccount"
ACCOUNT_KEY = base64.b64encode(b"the key of the tests").decode()

_API_VERSION = "2021-08-06"
_PROJECT = Path(__file__).resolve().parents[3]


def find_binary() -> Path | None:
    """Azurite's blob server: ``$TWINLAKE_AZURE_BINARY``, or what ``make azure`` installs."""
    named = os.environ.get("TWINLAKE_AZURE_BINARY")
    installed = _PROJECT / ".tools" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    candidate = Path(named) if named else installed
    # The binary is a script of Node.
    found = candidate.is_file() and os.access(candidate, os.X_OK) and shutil.which("node")
    return candidate if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureServer:
    """A running server with one container."""

    port: int

    @property
    def options(self) -> dict[str, Any]:
        """What ``open_store(..., options=...)`` needs."""
        return self.options_at(self.port)

    @property
    def wrong_secret(self) -> Mapping[str, str]:
        return {"account_key": base64.b64encode(b"not the SECRET").decode()}

    def options_at(self, port: int) -> dict[str, Any]:
        """The options for a proxy before the server, on another port."""
        return {
            "endpoint": f"http://127.0.0.1:{port}/{ACCOUNT}",
            "account_name": ACCOUNT,
            "account_key": ACCOUNT_KEY,
            "allow_http": True,
        }

    def url(self, path: str = "", *, bucket: str = BUCKET) -> str:
        return f"az://{bucket}/{path}".rstrip("/")

    def abfss_url(self, path: str = "") -> str:
        """The same with the account in it, as Hadoop and Spark spell it."""
        return f"abfss://{BUCKET}@{ACCOUNT}.dfs.core.windows.net/{path}".rstrip("/")


@contextlib.contextmanager
def azure_server(binary: Path) -> Iterator[AzureServer]:
    """Start the server, create the container, and stop the server at the end."""
    root = Path(tempfile.mkdtemp(prefix="twinlake-azure-"))
    port = free_port()
    memory = ["--inMemoryPersistence", "--silent", "--disableTelemetry"]
    # The client asks for a newer version of the API than the server knows by name.
    address = ["--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    try:
        with server_process(
            f"The Azure server on port {port}",
            [str(binary), *memory, *address],
            log_path=root / "server.log",
            is_ready=lambda: accepts(port),
            env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{ACCOUNT_KEY}"},
            cwd=root,
        ):
            _create_container(port)
            yield AzureServer(port=port)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _create_container(port: int) -> None:
    """Put Container, signed with the key of the account; obstore has no call for it."""
    path = f"/{ACCOUNT}/{BUCKET}"
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _API_VERSION}
    signed = "\n".join(
        (
            "PUT",
            *[""] * 11,  # no content and no conditions
            *(f"{name}:{value}" for name, value in headers.items()),
            f"/{ACCOUNT}{path}",
            "restype:container",
        )
    )
    digest = hmac.new(base64.b64decode(ACCOUNT_KEY), signed.encode(), hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("PUT", f"{path}?restype=container", headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode(errors="replace")
    finally:
        connection.close()
    if answer.status != http.client.CREATED:
        raise RuntimeError(f"The Azure server did not create a container: {answer.status} {text}")
