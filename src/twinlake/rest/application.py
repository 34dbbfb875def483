"""The ASGI application: requests in, matched and limited; handlers in threads; answers out.

The loop that reads requests never waits for a disk or a database. Handlers run in threads; a route
may have a way that needs none, which answers from memory or not at all. A handler gets a value and
gives a value, so that tests call it without a server.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect, Request
from starlette.routing import Router

from twinlake.errors import Code, TwinlakeError
from twinlake.iceberg.requests import malformed
from twinlake.rest.access_log import log_access
from twinlake.rest.context import ServerContext
from twinlake.rest.error_response import error_response
from twinlake.rest.origin import check_origin
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

_ERRORS: Final = logging.getLogger("twinlake.server")
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_BODILESS: Final = frozenset({204, 304})
_DISCARDED: Final = 8
"""How many times the limit of a body is read and thrown away before the connection is closed."""


def create_application(settings: ServerSettings) -> ASGIApp:
    """The server as an ASGI application; one for each process."""
    return _Server(ServerContext.open(settings))


class _Server:
    """Answers HTTP requests, and ends when it is asked to."""

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self.routes = RouteTable(ROUTES)
        self._lifespan = Router(lifespan=self._closing)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        begin = time.perf_counter()
        method: str = scope["method"]
        # Names may hold slashes: the path is split before it is decoded.
        path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
        headers = {n.decode("latin-1"): v.decode("latin-1") for n, v in scope["headers"]}
        route: Route | None = None
        try:
            check_origin(headers)
            route, parameters = self.routes.match(method, path)
            request = ApiRequest(
                method=method,
                path=path,
                parameters=parameters,
                query=parse_query(scope["query_string"]),
                headers=headers,
            )
            answer = await self._answer(route, request, scope, receive)
        except ClientDisconnect:
            # Also what the web server makes of a body that is framed wrong, by a client that waits.
            answer = error_response(malformed("its body ended before it was complete"))
        except TwinlakeError as error:
            answer = error_response(error, is_commit=route is not None and route.is_commit)
        size = await _send(answer, method, headers.get("accept-encoding", ""), send)
        seconds = time.perf_counter() - begin
        operation = "unknown" if route is None else route.operation
        self.context.counters.count_request(operation, answer.status, seconds)
        log_access(scope, method, path, answer.status, size, seconds)

    @contextlib.asynccontextmanager
    async def _closing(self, _: object) -> AsyncIterator[None]:
        yield
        # What was accepted is answered before this; the database is closed behind it.
        await asyncio.to_thread(self.context.close)

    async def _answer(
        self, route: Route, request: ApiRequest, scope: Scope, receive: Receive
    ) -> ApiResponse:
        if route.from_memory is not None:
            answer = route.from_memory(self.context, request)
            if answer is not None:
                return answer
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
            if request.method in _WITH_BODY:
                body = await self._body(request, Request(scope, receive))
                request = request.with_body(body)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self.context.pool, self._handle, route, request)
        finally:
            counters.running -= route.is_limited

    def _handle(self, route: Route, request: ApiRequest) -> ApiResponse:
        """Run a handler; whatever it raises is an answer."""
        try:
            encoding = request.headers.get("content-encoding", "").strip().lower()
            if encoding and request.body:
                limit = self.context.settings.limits.body_bytes
                request = request.with_body(unpacked(request.body, encoding, limit))
            return route.handler(self.context, request)
        except TwinlakeError as error:
            if error.code is Code.INTERNAL:
                _ERRORS.exception("%s failed", route.operation)
            return error_response(error, is_commit=route.is_commit)
        except Exception as error:
            _ERRORS.exception("%s failed", route.operation)
            return error_response(_bug(error), is_commit=route.is_commit)

    async def _body(self, request: ApiRequest, stream: Request) -> bytes:
        limits = self.context.settings.limits
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > _DISCARDED * limits.body_bytes:
            raise too_large(limits.body_bytes)
        try:
            async with asyncio.timeout(limits.body_seconds):
                return await _read(stream, limits.body_bytes)
        except TimeoutError as error:
            raise malformed(f"its body took more than {limits.body_seconds:g} seconds") from error


async def _read(stream: Request, limit: int) -> bytes:
    """The body; one beyond the limit is refused, but only once the client has sent it.

    Whoever still sends when the connection ends sees no answer, and takes a commit for unknown.
    """
    pieces: list[bytes] = []
    size = 0
    async for piece in stream.stream():
        size += len(piece)
        if size > _DISCARDED * limit:
            break
        if size <= limit:
            pieces.append(piece)
    if size > limit:
        raise too_large(limit)
    return b"".join(pieces)


async def _send(answer: ApiResponse, method: str, accepted: str, send: Send) -> int:
    """Send an answer, packed where the client takes it; returns the size of its body."""
    body, is_packed = answer.encoded(accepted)
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
    if is_packed:
        headers.append((b"content-encoding", b"gzip"))
    if method == "HEAD" or answer.status in _BODILESS:
        # No answer to HEAD has a body, an error neither.
        body = b""
    if answer.status not in _BODILESS:
        headers.append((b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
    return len(body)


def _bug(error: Exception) -> TwinlakeError:
    return TwinlakeError(
        Code.INTERNAL,
        "The server failed unexpectedly.",
        why=f"this is a bug in twinlake ({type(error).__name__})",
        fix="Report it with what the server logged.",
    )
