"""The ASGI application: requests in, matched and limited; handlers in threads; answers out.

The loop that reads requests never waits for a disk or a database. A handler gets a value and gives
a value, so that tests call it without a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Router

from twinlake.errors import Code, TwinlakeError
from twinlake.iceberg.requests import malformed
from twinlake.rest.context import ServerContext
from twinlake.rest.error_response import error_response
from twinlake.rest.request import ApiRequest, parse_query, too_large, unpacked
from twinlake.rest.resources import ROUTES
from twinlake.rest.routes import RouteTable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from twinlake.rest.response import ApiResponse
    from twinlake.rest.routes import Route
    from twinlake.rest.settings import ServerSettings

__all__ = ["create_application"]

_ACCESS: Final = logging.getLogger("twinlake.access")
_ERRORS: Final = logging.getLogger("twinlake.server")
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


def create_application(settings: ServerSettings) -> ASGIApp:
    """The server as an ASGI application; one for each process."""
    server = _Server(ServerContext.open(settings))

    @contextlib.asynccontextmanager
    async def lifespan(_: object) -> AsyncIterator[None]:
        yield
        # What was accepted is answered before this; the database is closed behind it.
        await asyncio.to_thread(server.context.close)

    return Router(default=server, lifespan=lifespan, redirect_slashes=False)


class _Server:
    """Answers HTTP requests."""

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self.routes = RouteTable(ROUTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        begin = time.perf_counter()
        request = Request(scope, receive)
        # Names may hold slashes: the path is split before it is decoded.
        path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
        route: Route | None = None
        try:
            route, parameters = self.routes.match(request.method, path)
            answer = await self._answer(route, parameters, path, request)
        except ClientDisconnect:
            return
        except TwinlakeError as error:
            answer = error_response(error, is_commit=route is not None and route.is_commit)
        response = _response(answer, request)
        await response(scope, receive, send)
        seconds = time.perf_counter() - begin
        operation = "unknown" if route is None else route.operation
        self.context.counters.count_request(operation, answer.status, seconds)
        if _ACCESS.isEnabledFor(logging.INFO):
            # Neither query nor headers: they are where secrets would be.
            _ACCESS.info(
                '%s "%s %s" %d %d %.1fms',
                request.client.host if request.client else "-",
                request.method,
                path.encode("ascii", "backslashreplace").decode(),
                answer.status,
                len(response.body),
                seconds * 1000,
            )

    async def _answer(
        self, route: Route, parameters: dict[str, str], path: str, request: Request
    ) -> ApiResponse:
        counters, limits = self.context.counters, self.context.settings.limits
        if route.is_limited and counters.running >= limits.requests:
            raise TwinlakeError(
                Code.SERVER_BUSY,
                "The server is busy.",
                why=f"it answers {limits.requests} requests at once",
                fix="Send the request again in a second.",
            )
        counters.running += route.is_limited
        try:
            body = await self._body(request) if request.method in _WITH_BODY else b""
            given = ApiRequest(
                method=request.method,
                path=path,
                parameters=parameters,
                query=parse_query(request.scope["query_string"]),
                headers=_headers(request),
                body=body,
            )
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.context.pool, self._handle, route, given)
        finally:
            counters.running -= route.is_limited

    def _handle(self, route: Route, request: ApiRequest) -> ApiResponse:
        """Run a handler; whatever it raises is an answer."""
        try:
            encoding = request.headers.get("content-encoding", "").strip().lower()
            if encoding and request.body:
                request = _unpacked(request, encoding, self.context.settings.limits.body_bytes)
            return route.handler(self.context, request)
        except TwinlakeError as error:
            if error.code is Code.INTERNAL:
                _ERRORS.exception("%s failed", route.operation)
            return error_response(error, is_commit=route.is_commit)
        except Exception as error:
            _ERRORS.exception("%s failed", route.operation)
            return error_response(_bug(error), is_commit=route.is_commit)

    async def _body(self, request: Request) -> bytes:
        limits = self.context.settings.limits
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > limits.body_bytes:
            raise too_large(limits.body_bytes)
        try:
            async with asyncio.timeout(limits.body_seconds):
                return await _read(request, limits.body_bytes)
        except TimeoutError as error:
            raise malformed(f"its body took more than {limits.body_seconds:g} seconds") from error


async def _read(request: Request, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
    return b"".join(pieces)


def _headers(request: Request) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers.raw}


def _unpacked(request: ApiRequest, encoding: str, limit: int) -> ApiRequest:
    return ApiRequest(
        method=request.method,
        path=request.path,
        parameters=request.parameters,
        query=request.query,
        headers=request.headers,
        body=unpacked(request.body, encoding, limit),
    )


def _response(answer: ApiResponse, request: Request) -> Response:
    body, is_packed = answer.encoded(request.headers.get("accept-encoding", ""))
    headers = dict(answer.headers)
    if is_packed:
        headers["content-encoding"] = "gzip"
    if request.method == "HEAD" or answer.status in (204, 304):
        # An answer to HEAD has no body, an error neither.
        return Response(status_code=answer.status, headers=headers)
    return Response(body, status_code=answer.status, headers=headers)


def _bug(error: Exception) -> TwinlakeError:
    return TwinlakeError(
        Code.INTERNAL,
        "The server failed unexpectedly.",
        why=f"this is a bug in twinlake ({type(error).__name__})",
        fix="Report it with what the server logged.",
    )
