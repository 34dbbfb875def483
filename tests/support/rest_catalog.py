"""The REST catalog for tests: in this process, and as granian runs it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from tests.support.servers.server_process import free_port, server_process
from twinlake.rest import ServerLimits, ServerSettings, Warehouse, create_application

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from starlette.types import ASGIApp

__all__ = ["COLUMNS", "NAMESPACES", "RestCaller", "rest_caller", "rest_server", "schema"]

NAMESPACES = "/v1/lake/namespaces"
COLUMNS = (("id", "long"), ("name", "string"))


def schema(*columns: tuple[str, str]) -> dict[str, Any]:
    """An Iceberg schema of optional columns."""
    fields = [
        {"id": number, "name": name, "type": kind, "required": False}
        for number, (name, kind) in enumerate(columns or COLUMNS, 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


class RestCaller:
    """A client of a server in this process; documents in, status and documents out."""

    def __init__(self, app: ASGIApp, folder: Path, runner: asyncio.Runner) -> None:
        self.folder = folder
        """The warehouse."""
        transport = httpx.ASGITransport(app)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8181")
        self._runner = runner

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """The answer of the server; bytes are sent as they are."""
        where = path if path.startswith("/") else f"{NAMESPACES}/{path}"
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        request = self._client.build_request(
            method, where, headers=headers, **({} if body is None else content)
        )
        return self._runner.run(self._client.send(request))

    def send_all(self, *requests: tuple[str, str, Any]) -> list[httpx.Response]:
        """The answers to requests that are sent at once."""

        async def every() -> list[httpx.Response]:
            sent = [
                self._client.send(self._client.build_request(method, path, json=body))
                for method, path, body in requests
            ]
            return await asyncio.gather(*sent)

        return self._runner.run(every())

    def ok(self, method: str, path: str, body: Any = None) -> Any:
        """The document of an answer that must say yes."""
        answer = self.send(method, path, body)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def error(self, method: str, path: str, body: Any = None) -> tuple[int, str, str]:
        """Status, type and message of an answer that must say no."""
        answer = self.send(method, path, body)
        found = answer.json()["error"]
        assert found["code"] == answer.status_code
        return answer.status_code, found["type"], found["message"]

    def namespace(self, *levels: str) -> None:
        """Make a namespace."""
        self.ok("POST", NAMESPACES, {"namespace": levels})

    def table(self, path: str, **asked: Any) -> Any:
        """Make a table ``namespace/name``; returns its ``LoadTableResult``."""
        namespace, _, name = path.partition("/")
        body = {"name": name, "schema": schema(), **asked}
        return self.ok("POST", f"{namespace}/tables", body)


@contextlib.contextmanager
def rest_caller(
    folder: Path,
    *,
    allowed: tuple[Path, ...] = (),
    names_file: Path | None = None,
    warehouse: str = "",
    **limits: Any,
) -> Iterator[RestCaller]:
    """A server with the warehouse ``lake`` in a folder, and its database beside it."""
    settings = ServerSettings(
        warehouses=(
            Warehouse(name="lake", location=warehouse or str(folder / "lake")),
            Warehouse(name="other", location=str(folder / "other")),
        ),
        database=str(folder / "server.db"),
        allowed_locations=tuple(map(str, allowed)),
        names_file=None if names_file is None else str(names_file),
        limits=ServerLimits(**limits),
    )
    app = create_application(settings)
    with asyncio.Runner() as runner:
        yield RestCaller(app, folder / "lake", runner)
        runner.run(_end(app))


async def _end(app: ASGIApp) -> None:
    """Stop an application as a server does: its threads end, its database is closed."""
    asked = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    told: list[str] = []

    async def receive() -> Any:
        return asked.pop(0)

    async def send(message: Any) -> None:
        told.append(message["type"])

    await app({"type": "lifespan", "state": {}}, receive, send)
    assert told == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


@contextlib.contextmanager
def rest_server(folder: Path, *words: str, log: str = "server.log") -> Iterator[str]:
    """``twinlake serve`` as a process; the block gets its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [
        *(sys.executable, "-m", "twinlake", "serve", "--port", str(port)),
        *("--warehouse", f"lake={folder / 'lake'}", "--database", str(folder / "server.db")),
        *words,
    ]

    def is_ready() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/ready", timeout=5):
            return True
        time.sleep(0.1)
        return False

    environment = {**os.environ, "TWINLAKE_CATALOG": str(folder / "names.db")}
    with server_process(
        "twinlake serve",
        command,
        log_path=folder / log,
        is_ready=is_ready,
        env=environment,
        cwd=Path(__file__).parents[2],
    ):
        yield address
