"""Catalog servers to be measured: processes on loopback ports, and the CPU time they have used.

Iceberg's reference server listens on every interface of the machine, so the process that starts it
has a network namespace to itself; so that nothing else differs, it starts ours in one as well.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.harness import ROOT, java

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = [
    "NAMESPACE",
    "Server",
    "load",
    "load_client",
    "loopback_up",
    "our_server",
    "reference_server",
    "what_is_missing",
]

_JARS: Final = Path(os.environ.get("TWINLAKE_ICEBERG_REST", ROOT / ".tools" / "iceberg-rest"))
"""Where ``make iceberg-rest`` puts the reference server."""
_CLIENT: Final = ROOT / "benchmarks" / "load"
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_HOST: Final = "127.0.0.1"

NAMESPACE: Final = (
    ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--net", "--user", "--map-root-user")
)
"""What a command begins with that has a network of its own, without a way out."""


def what_is_missing(*, reference: bool) -> str | None:
    """Why servers cannot be compared, or ``None`` if they can."""
    if shutil.which("go") is None:
        return "the load client is built from source: install Go"
    if shutil.which("unshare") is None or not _succeeds([*NAMESPACE, "true"]):
        return "network namespaces are not allowed here, and the peer listens on every interface"
    if reference and java() is None:
        return "there is no Java; install one or set JAVA_HOME"
    if reference and not any(_JARS.glob("iceberg-open-api-*.jar")):
        return "Iceberg's reference server is not there; fetch it once with: make iceberg-rest"
    return None


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def loopback_up() -> None:
    """Switch the loopback interface on, which is off in a new namespace."""
    # ioctl: SIOCGIFFLAGS and SIOCSIFFLAGS, IFF_UP.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = fcntl.ioctl(probe, 0x8913, struct.pack("16sh22x", b"lo", 0))
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(probe, 0x8914, struct.pack("16sh22x", b"lo", flags | 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server."""

    url: str
    """What ``/v1/config`` lies below."""
    pid: int
    warehouse: str | None = None
    """What clients call the warehouse, if they have to."""

    def cpu_seconds(self) -> float:
        """User and system time of the process, its children and all their threads."""
        return sum(_cpu_ticks(pid) for pid in _tree(self.pid)) / _TICKS

    def memory_mb(self) -> dict[str, float]:
        """Of the largest of its processes: what is resident now, and the most that ever was."""
        return {
            name: max(_status_kb(pid, field) for pid in _tree(self.pid)) / 1024
            for name, field in (("resident", "VmRSS"), ("peak", "VmHWM"))
        }

    @property
    def properties(self) -> dict[str, str]:
        """How PyIceberg finds it."""
        named = {} if self.warehouse is None else {"warehouse": self.warehouse}
        return {"type": "rest", "uri": self.url, **named}


@contextmanager
def our_server(folder: Path, *, warehouse: Path | None = None) -> Iterator[Server]:
    """``twinlake serve`` with its database in a folder."""
    port, name = _free_port(), "bench"
    place = warehouse or folder / "warehouse"
    place.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "twinlake", "serve", "--port", str(port)]
    command += ["--warehouse", f"{name}={place}", "--database", f"sqlite:///{folder}/catalog.db"]
    with _running(command, folder / "server.log", port, {}) as pid:
        yield Server(url=f"http://{_HOST}:{port}", pid=pid, warehouse=name)


@contextmanager
def reference_server(folder: Path) -> Iterator[Server]:
    """Iceberg's reference server with a JDBC catalog on SQLite."""
    port = _free_port()
    settings = {
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        "CATALOG_WAREHOUSE": f"file:{folder}/warehouse",
        "CATALOG_REST_PORT": str(port),
    }
    command = [str(java()), "-cp", f"{_JARS}/*", "org.apache.iceberg.rest.RESTCatalogServer"]
    with _running(command, folder / "server.log", port, settings) as pid:
        yield Server(url=f"http://{_HOST}:{port}", pid=pid)


@contextmanager
def _running(
    command: Sequence[str], log: Path, port: int, settings: Mapping[str, str]
) -> Iterator[int]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={**os.environ, "PYTHONPATH": f"{ROOT}/src", **settings},
        )
    try:
        until = time.monotonic() + _START_SECONDS
        while not _accepts(port):
            if process.poll() is not None or time.monotonic() > until:
                text = log.read_text(errors="replace")[-2_000:]
                raise RuntimeError(f"the server did not start:\n{text}")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _accepts(port: int) -> bool:
    try:
        socket.create_connection((_HOST, port), 1).close()
    except OSError:
        return False
    return True


def _tree(pid: int) -> list[int]:
    """A process and all that it has started."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        # It may be gone by now.
        try:
            fields = status.read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        parents[int(status.parent.name)] = int(fields[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    # utime, stime, and what children that have ended used: cutime, cstime.
    return sum(map(int, fields[11:15]))


def _status_kb(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    return 0


@cache
def load_client(folder: Path) -> Path:
    """The load client, built by Go if it is not there yet."""
    binary = folder / "load-client"
    sources = [*_CLIENT.glob("*.go"), _CLIENT / "go.mod"]
    newest = max(source.stat().st_mtime for source in sources)
    if not binary.exists() or binary.stat().st_mtime < newest:
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["go", "build", "-o", str(binary), "."], cwd=_CLIENT, check=True)
    return binary


def load(
    client: Path, url: str, requests: int, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Send so many requests; what all replies are, and how long they took."""
    command = [str(client), "-url", url, "-requests", str(requests)]
    for name, value in (headers or {}).items():
        command += ["-header", f"{name}: {value}"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
