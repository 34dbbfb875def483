"""Fixtures for the whole suite: the servers; object stores are raced before anyone trusts them."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from tests.support.not_run import not_run
from tests.support.processes.race import race, through_library
from tests.support.rest_clients.clients import duckdb_on_catalog
from tests.support.servers import azure as azure_support
from tests.support.servers import postgres as postgres_support
from tests.support.servers import s3 as s3_support
from tests.support.servers.catalog import catalog_server as run_catalog_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tests.support.servers.azure import AzureServer
    from tests.support.servers.catalog import CatalogServer
    from tests.support.servers.object_server import ObjectServer
    from tests.support.servers.postgres import PostgresServer
    from tests.support.servers.s3 import S3Server

_FIT = "fit"
_NO_S3 = (
    "there is no S3 server: `make s3` builds it (needs Go once), "
    "or TWINLAKE_S3_BINARY names a versitygw binary"
)
_NO_AZURE = (
    "there is no server of Azure Blob Storage: `make azure` installs it (needs Node and npm), "
    "or TWINLAKE_AZURE_BINARY names an azurite-blob script"
)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server, proved to give every key exactly one winner."""
    binary = s3_support.find_binary()
    if binary is None:
        not_run(_NO_S3, required_by="TWINLAKE_REQUIRE_S3")
    with s3_support.s3_server(binary) as server:
        _check_fitness("s3", server, tmp_path_factory)
        yield server


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """A real server of Azure Blob Storage, proved to give every key exactly one winner."""
    binary = azure_support.find_binary()
    if binary is None:
        not_run(_NO_AZURE, required_by="TWINLAKE_REQUIRE_AZURE")
    with azure_support.azure_server(binary) as server:
        _check_fitness("azure", server, tmp_path_factory)
        yield server


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("s3_server", id="s3", marks=pytest.mark.s3),
        pytest.param("azure_server", id="azure", marks=pytest.mark.azure),
    ],
)
def object_server(request: pytest.FixtureRequest) -> ObjectServer:
    """Each real object store by turns."""
    server: ObjectServer = request.getfixturevalue(request.param)
    return server


def _check_fitness(name: str, server: ObjectServer, temp: pytest.TempPathFactory) -> None:
    """Fail the tests of a server that cannot be trusted. One race for all workers of a run."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        verdict = _race(server)
    else:
        with (temp.getbasetemp().parent / f"{name}-verdict-{run}").open("a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            verdict = file.read()
            if not verdict:
                verdict = _race(server)
                file.write(verdict)
    if verdict != _FIT:
        pytest.fail(f"server unfit: {verdict}", pytrace=False)


def _race(server: ObjectServer) -> str:
    result = race(through_library, server.url(), options=server.options, prefix="fitness")
    # A key without a winner counts as well: a race that nobody could enter proves nothing.
    unfair = result.unfair
    if not unfair:
        return _FIT
    return f"{len(unfair)} of {len(result.winners)} keys have not exactly one winner"


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


@pytest.fixture(scope="session")
def catalog_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogServer]:
    """``twinlake serve`` on a warehouse of its own, with a namespace ``n``."""
    with run_catalog_server(tmp_path_factory.mktemp("catalog")) as server:
        server.address.pyiceberg().create_namespace("n")
        yield server


@pytest.fixture(scope="session")
def catalog_duck(catalog_server: CatalogServer) -> Iterator[Any]:
    """A connection of DuckDB with that catalog as ``lake``."""
    found = duckdb_on_catalog(catalog_server.address)
    if isinstance(found, str):
        not_run(found, required_by="TWINLAKE_REQUIRE_INTEROP")
    yield found
    found.close()
