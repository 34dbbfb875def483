"""``twinlake serve`` as a process of its own: started, killed, started again, stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.rest_clients.clients import CatalogAddress
from tests.support.servers.server_process import accepts, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["WAREHOUSE", "CatalogServer", "catalog_server"]

WAREHOUSE = "lake"
_PROJECT = Path(__file__).resolve().parents[3]
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0


@dataclass(kw_only=True)
class CatalogServer:
    """A server on a warehouse and a database that it may share with others."""

    folder: Path
    """Where its log goes, and the warehouse and the database unless others are given."""
    warehouse: str = ""
    database: str = ""
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    name: str = "server"
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self.warehouse = self.warehouse or str(self.folder / "warehouse")
        self.database = self.database or f"sqlite:///{self.folder}/catalog.db"

    @property
    def url(self) -> str:
        """What clients are told."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> CatalogAddress:
        """How clients find it."""
        return CatalogAddress(url=self.url, warehouse=WAREHOUSE)

    def folder_of(self, table: str) -> Path:
        """Where a table of the catalog is."""
        location: str = self.address.pyiceberg().load_table(table).location()
        return Path(location.removeprefix("file://"))

    @property
    def log(self) -> Path:
        """What it prints."""
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        """Start it, on the same port every time, and wait until it accepts connections."""
        Path(self.warehouse).mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "twinlake", "serve", "--port", str(self.port)]
        command += ["--warehouse", f"{WAREHOUSE}={self.warehouse}", "--database", self.database]
        # A group of its own: its workers are killed with it.
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *self.arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(_PROJECT / "src"), **self.environment},
                start_new_session=True,
            )
        until = time.monotonic() + _START_SECONDS
        while not accepts(self.port):
            if self.process.poll() is not None or time.monotonic() > until:
                text = self.log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"The catalog server did not start:\n{text}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it and its workers where they stand."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None

    def stop(self) -> None:
        """Ask it to end; killed if it does not."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_STOP_SECONDS)
        self.kill()


@contextlib.contextmanager
def catalog_server(folder: Path, **settings: Any) -> Iterator[CatalogServer]:
    """A server that runs until the end of the block."""
    server = CatalogServer(folder=folder, **settings)
    try:
        server.start()
        yield server
    finally:
        server.stop()
