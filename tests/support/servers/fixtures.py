"""Fixtures for the whole suite: the S3 server, raced before anyone trusts it."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from tests.support.not_run import not_run
from tests.support.processes.race import race, through_library
from tests.support.servers import postgres as postgres_support
from tests.support.servers import s3 as server_support

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.servers.postgres import PostgresServer
    from tests.support.servers.s3 import S3Server

_MISSING = (
    "there is no S3 server: `make s3` builds it (needs Go once), "
    "or TWINLAKE_S3_BINARY names a versitygw binary"
)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, proved to give every key exactly one winner."""
    binary = server_support.find_binary()
    if binary is None:
        not_run(_MISSING, required_by="TWINLAKE_REQUIRE_S3")
    with server_support.s3_server(binary) as server:
        unfit = _verdict(server, tmp_path_factory.getbasetemp().parent)
        if unfit:
            pytest.fail(f"server unfit: {unfit}", pytrace=False)
        yield server


def _verdict(server: S3Server, shared: Path) -> str:
    """Why the server cannot be used, or nothing. One race for all workers of a test run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return _race(server)
    path = shared / f"s3-verdict-{run}"
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = file.read()
        if not known:
            known = _race(server) or "fit"
            file.write(known)
    return "" if known == "fit" else known


def _race(server: S3Server) -> str:
    result = race(through_library, server.url(), options=server.options, prefix="fitness")
    # A key without a winner counts as well: a race that nobody could enter proves nothing.
    unfair = result.unfair
    return (
        f"{len(unfair)} of {len(result.winners)} keys have not exactly one winner" if unfair else ""
    )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL server, empty."""
    binaries = postgres_support.find_server()
    if binaries is None or not postgres_support.find_driver():
        not_run(
            "there is no PostgreSQL server or no driver for it: `make postgres` fetches both",
            required_by="TWINLAKE_REQUIRE_POSTGRES",
        )
    with postgres_support.postgres_server(binaries) as server:
        yield server
