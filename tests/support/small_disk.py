"""A small file system of a test's own, which can be filled up, made read-only and closed to us.

It is mounted by a child process in a mount namespace of its own, so nobody else sees it and it is
gone with the child. Root ignores permissions; the child gives up the capabilities for that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from tests.support.not_run import not_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["SmallDisk", "child_prefix"]

_CAPABILITIES = "-dac_override,-dac_read_search"
_PREFIXES = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"))


def child_prefix(folder: Path) -> tuple[str, ...]:
    """The command that starts a child which may mount; says NOT RUN where nobody may."""
    probe = folder / "probe"
    probe.mkdir(exist_ok=True)
    mount = ("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(probe))
    prefixes = ((*prefix, "setpriv", f"--bounding-set={_CAPABILITIES}") for prefix in _PREFIXES)
    found = next((prefix for prefix in prefixes if _works(*prefix, *mount)), None)
    if found is None:
        not_run(
            "this machine lets no process mount a file system of its own (unshare, setpriv, mount)",
            required_by="TWINLAKE_REQUIRE_MOUNT",
        )
    return found


def _works(*command: str) -> bool:
    with contextlib.suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    return False


class SmallDisk:
    """The side of the child."""

    def __init__(self, folder: Path, size: str) -> None:
        self.folder = folder
        folder.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))

    @contextlib.contextmanager
    def full(self, left: int = 0) -> Iterator[None]:
        """Within the block about so many bytes are free."""
        ballast = self.folder / "ballast"
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))
        if left:
            os.truncate(ballast, max(ballast.stat().st_size - left, 0))
        try:
            yield
        finally:
            ballast.unlink()

    @contextlib.contextmanager
    def read_only(self) -> Iterator[None]:
        """Within the block nothing can be written."""
        _run("mount", "-o", "remount,ro", str(self.folder))
        try:
            yield
        finally:
            _run("mount", "-o", "remount,rw", str(self.folder))

    @contextlib.contextmanager
    def closed(self, *folders: str) -> Iterator[None]:
        """Within the block this user may read the folders and not write them."""
        modes = {self.folder / name: 0 for name in folders}
        for path in modes:
            modes[path] = path.stat().st_mode
            path.chmod(0o555)
        try:
            yield
        finally:
            for path, mode in modes.items():
                path.chmod(mode)

    def copy(self, name: str, target: Path) -> None:
        """Take a table out, since all that is here goes with this process."""
        shutil.copytree(self.folder / name, target)


def _run(*command: str) -> None:
    found = subprocess.run(command, check=False, capture_output=True, text=True)
    assert not found.returncode, f"{command}: {found.stderr}"
