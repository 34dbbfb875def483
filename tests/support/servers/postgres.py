"""A real PostgreSQL server on a free loopback port, in a temporary folder.

The server is the machine's own, or the one that ``make postgres`` puts below ``.tools``, where the
driver is as well. PostgreSQL refuses to run as root, so root starts it as somebody else, who may
not be able to read the folder of this project: then the server is copied to where he can.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.servers.server_process import free_port, server_process

if TYPE_CHECKING:
    from collections.abc import Iterator

_PROJECT = Path(__file__).resolve().parents[3]
TOOLS = _PROJECT / ".tools" / "postgres"
_READY = "database system is ready to accept connections"
_OTHERS = ("postgres", "nobody")
_NOBODY = 65534


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresServer:
    """A running server."""

    port: int

    @property
    def url(self) -> str:
        """As SQLAlchemy takes it."""
        return f"postgresql+psycopg://lake@127.0.0.1:{self.port}/postgres"


def find_server() -> Path | None:
    """The folder of ``initdb`` and ``postgres``."""
    named = os.environ.get("TWINLAKE_POSTGRES_BIN")
    on_path = shutil.which("initdb")
    candidates = [
        *([Path(named)] if named else []),
        *([Path(on_path).resolve().parent] if on_path else []),
        *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True),
        *sorted(TOOLS.glob("*/pginstall*/bin"), reverse=True),
    ]
    whole = (c for c in candidates if (c / "initdb").is_file() and (c / "postgres").is_file())
    return next(whole, None)


def find_driver() -> bool:
    """Whether Psycopg can be imported, from ``.tools`` if need be."""
    if TOOLS.is_dir() and str(TOOLS) not in sys.path:
        sys.path.append(str(TOOLS))
    try:
        import psycopg  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return False
    return bool(psycopg.__version__)


@contextlib.contextmanager
def postgres_server(binaries: Path) -> Iterator[PostgresServer]:
    """Start the server, and stop it at the end."""
    as_user = _other_user()
    root = _own_folder(as_user)
    data, log_path, port = root / "data", root / "server.log", free_port()
    try:
        if not _runs([str(binaries / "postgres"), "--version"], as_user):
            binaries = _copied(binaries, root)
        initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "lake", "-A", "trust", "-N"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=root, **as_user)
        command = [str(binaries / "postgres"), "-D", str(data), "-p", str(port)]
        settings = ["-h", "127.0.0.1", "-k", str(root), "-c", "fsync=off"]
        with server_process(
            f"PostgreSQL on port {port}",
            [*command, *settings],
            log_path=log_path,
            is_ready=lambda: _READY in log_path.read_text(errors="replace"),
            # The signal for a fast end; SIGTERM waits for connections.
            stop_signal=signal.SIGINT,
            cwd=root,
            **as_user,
        ):
            yield PostgresServer(port=port)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _other_user() -> dict[str, Any]:
    """The arguments of Popen by which root leaves off being root."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: (entry.pw_uid, entry.pw_gid) for entry in pwd.getpwall()}
    user, group = next((known[name] for name in _OTHERS if name in known), (_NOBODY, _NOBODY))
    return {"user": user, "group": group, "extra_groups": []}


def _own_folder(as_user: dict[str, Any]) -> Path:
    """A new folder of the user's own, in a place that he can get to."""
    places = dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp"))
    within = (one for one in places if _runs(["/bin/sh", "-c", 'cd "$0"', one], as_user))
    root = Path(tempfile.mkdtemp(prefix="twinlake-pg-", dir=next(within, None)))
    if as_user:
        os.chown(root, as_user["user"], as_user["group"])
    return root


def _runs(command: list[str], as_user: dict[str, Any]) -> bool:
    try:
        done = subprocess.run(command, check=False, capture_output=True, cwd="/", **as_user)
    except OSError:
        return False
    return done.returncode == 0


def _copied(binaries: Path, root: Path) -> Path:
    """The server in a folder that its user can read, with all that it finds beside it."""
    installed = binaries.parent
    # Packages of Python have the libraries that came with them in a folder beside their own.
    top = next((one for one in installed.parents[:2] if any(one.glob("*.libs"))), installed.parent)
    for path in (installed, *top.glob("*.libs")):
        target = root / "server" / path.relative_to(top)
        shutil.copytree(path, target, symlinks=True)
    for path in (root / "server", *(root / "server").rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    return root / "server" / binaries.relative_to(top)
