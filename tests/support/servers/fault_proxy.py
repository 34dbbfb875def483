"""An HTTP proxy before an object store that loses or falsifies replies on order.

    with FaultProxy(server.port) as proxy:
        store = open_store(server.url(), options=server.options_at(proxy.port))
        proxy.arm(FaultKind.STORE_THEN_DROP)      # the next PUT is stored, its reply is lost

Requests pass unchanged, headers and all: they are signed.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from dataclasses import dataclass
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class _Fault:
    name: str
    stores: bool  # does the request reach the server?
    status: int | None  # what the client is told; None: the line is dropped


class FaultKind(Enum):
    """What happens to a request."""

    STORE_THEN_500 = _Fault("store-then-500", True, 500)
    STORE_THEN_503 = _Fault("store-then-503", True, 503)
    STORE_THEN_DROP = _Fault("store-then-drop", True, None)
    CONFLICT_409 = _Fault("409-without-effect", False, 409)
    FAIL_500 = _Fault("500-without-effect", False, 500)
    DROP = _Fault("drop-without-effect", False, None)

    def __str__(self) -> str:
        return self.value.name


#: The four of the measured failure modes that a commit must survive.
COMMIT_FAULTS = (
    FaultKind.STORE_THEN_500,
    FaultKind.STORE_THEN_503,
    FaultKind.STORE_THEN_DROP,
    FaultKind.CONFLICT_409,
)

_CODES = {409: "ConditionalRequestConflict", 500: "InternalError", 503: "SlowDown"}


class FaultProxy:
    """A proxy on a free loopback port; ``arm`` decides what the next requests meet."""

    def __init__(self, upstream_port: int) -> None:
        self.upstream_port = upstream_port
        self.requests: list[tuple[str, str]] = []  # (method, path) of every request seen
        self._lock = threading.Lock()
        self._armed: list[tuple[str, str, FaultKind]] = []
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = _QuietServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def port(self) -> int:
        port: int = self._server.server_address[1]
        return port

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    def arm(self, kind: FaultKind, *, times: int = 1, method: str = "PUT", path: str = "") -> None:
        """Let the next ``times`` requests of a method meet a fault, if their path has a part."""
        with self._lock:
            self._armed.extend([(method, path, kind)] * times)

    @property
    def armed(self) -> int:
        """How many faults still wait for a request."""
        with self._lock:
            return len(self._armed)

    def disarm(self) -> None:
        """Forget what was armed."""
        with self._lock:
            self._armed.clear()

    def take(self, method: str, path: str) -> FaultKind | None:
        """The fault that this request meets, if any."""
        with self._lock:
            self.requests.append((method, path))
            for index, (wanted, part, kind) in enumerate(self._armed):
                if wanted == method and part in path:
                    del self._armed[index]
                    return kind
        return None


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._open: set[socket.socket] = set()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def hang_up(self) -> None:
        """End connections that clients keep alive, so that no thread outlives the proxy."""
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up as they like."""


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultProxy
    protocol_version = "HTTP/1.1"
    # Headers and body of a reply go out in two writes; waiting for an ack would cost 40 ms.
    disable_nagle_algorithm = True

    def log_message(self, *args: Any) -> None:
        """No lines on the terminal."""

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.proxy.take(self.command, self.path)
        if fault is None:
            self._forward(body, reply=True)
            return
        if fault.value.stores:
            self._forward(body, reply=False)
        if fault.value.status is None:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._refuse(fault.value.status)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _serve

    def _forward(self, body: bytes, *, reply: bool) -> None:
        upstream = http.client.HTTPConnection("127.0.0.1", self.proxy.upstream_port, timeout=30)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            content = answer.read()
            if reply:
                self._answer(answer, content)
        finally:
            upstream.close()

    def _answer(self, answer: http.client.HTTPResponse, content: bytes) -> None:
        self.send_response_only(answer.status, answer.reason)
        sized = False
        for name, value in answer.getheaders():
            if name.lower() in _HOP_BY_HOP:
                continue
            sized = sized or name.lower() == "content-length"
            self.send_header(name, value)
        if not sized:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _refuse(self, status: int) -> None:
        code = _CODES[status]
        content = f"<Error><Code>{code}</Code><Message>on order</Message></Error>".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
