"""The access log: what a line has, and what it never has."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from twinlake.rest.access_log import log_access, log_to_standard_error

if TYPE_CHECKING:
    from starlette.types import Scope


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker process changes these for all of itself."""
    for flag in ("logThreads", "logProcesses", "logMultiprocessing"):
        monkeypatch.setattr(logging, flag, True)
    for logger in map(logging.getLogger, ("twinlake.access", "twinlake.server")):
        monkeypatch.setattr(logger, "handlers", [])
        monkeypatch.setattr(logger, "propagate", True)


def test_a_line_says_who_asked_for_what_and_what_came_of_it(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    # It puts the levels back.
    caplog.set_level(logging.INFO, "twinlake.access")
    caplog.set_level(logging.INFO, "twinlake.server")
    log_to_standard_error()
    scope: Scope = {"client": ("127.0.0.1", 5)}
    for path in ("/v1/a%", "/v1/ü"):
        log_access(scope, "GET", path, 200, 12, 0.0034)
    logging.getLogger("twinlake.server").warning("gone")
    lines = capsys.readouterr().err.splitlines()
    time, rest = lines[0].split(",", 1)
    assert time.count("-") == time.count(":") == 2
    assert rest[3:] == ' twinlake.access INFO 127.0.0.1 "GET /v1/a%" 200 12 3.4ms'
    # No byte of a client reaches a terminal.
    assert lines[1].endswith("\"GET '/v1/\\xfc'\" 200 12 3.4ms")
    assert lines[2].endswith(" twinlake.server WARNING gone")


def test_a_client_without_an_address_is_a_dash(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "twinlake.access"):
        log_access({}, "HEAD", "/", 404, 0, 0.0)
    assert caplog.messages == ['- "HEAD /" 404 0 0.0ms']


def test_no_line_where_nobody_wants_any(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "twinlake.access"):
        log_access({}, "HEAD", "/", 404, 0, 0.0)
    assert caplog.messages == []
