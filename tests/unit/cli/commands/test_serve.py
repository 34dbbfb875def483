"""``twinlake serve``: what it refuses before it listens."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.servers.server_process import free_port
from tests.unit.cli.running import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--host", "0.0.0.0"], "cannot listen on 0.0.0.0"),
        (["--host", "::"], "cannot listen on ::"),
        (["--host", "192.168.0.1"], "cannot listen on"),
        (["--host", "example.com"], "cannot listen on"),
        (["--host", "localhost.example.com"], "cannot listen on"),
        (["--kind", "native"], "cannot make native"),
        (["--auth", "tokens"], "cannot check tokens"),
        (["--auth", "oidc"], "cannot check oidc"),
        (["--warehouse", "lake"], "is not a warehouse"),
        (["--warehouse", "a b=/x"], "is not a warehouse"),
        (["--warehouse", "../x=/x"], "is not a warehouse"),
        (["--warehouse", "w="], "is not a warehouse"),
        (["--warehouse", "lake=/other"], "named twice"),
        (["--database", "postgresql://h/db"], "PostgreSQL"),
        (["--warehouse", "w=ftp://x/y"], "cannot be opened"),
        (["--database", "/dev/null/server.db"], "cannot be used"),
    ],
)
def test_what_cannot_be_served_is_refused_before_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    def serve(_: object) -> None:
        pytest.fail("it would listen")

    monkeypatch.setattr("twinlake.cli.commands.serve.run_server", serve)
    result = run("serve", "--port", free_port(), "--warehouse", f"lake={tmp_path}", *words)
    assert (result.exit_code, told in result.stderr) == (1, True), result.stderr
    assert "fix:" in result.stderr


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = run("serve", "--warehouse", f"lake={tmp_path}", "--port", port)
    assert (result.exit_code, f"port {port}" in result.stderr) == (1, True)
