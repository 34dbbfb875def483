"""Starting the server: granian around the application, its limits, its log, its end.

granian and no other: it closes a connection whose headers do not come, which is what slow clients
are held off by.
"""

from __future__ import annotations

import errno
import functools
import logging
import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError
from twinlake.rest.access_log import log_to_standard_error
from twinlake.rest.catalog import check_database, open_database
from twinlake.rest.location_policy import home_location
from twinlake.rest.settings import check_host

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from twinlake.rest.settings import ServerSettings

__all__ = ["check_settings", "serve"]

_PORT_SECONDS: Final = 3.0
_WATCH_SECONDS: Final = 0.5
_SERVER_LOG: Final = logging.getLogger("twinlake.server")


def check_settings(settings: ServerSettings) -> None:
    """Refuse what no server can start with, before it listens."""
    check_host(settings.host)
    names = [one.name for one in settings.warehouses]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Warehouse {', '.join(twice)} is named twice.",
            why="a name stands for one location",
            fix="Give each `--warehouse` a name of its own.",
            fields={"warehouses": twice},
        )
    for text in (*(one.location for one in settings.warehouses), *settings.allowed_locations):
        home_location(text)
    check_database(settings.database)
    _check_port(settings.host, settings.port)
    # Here a failure is one message, in a worker it would be a trace and a worker started again.
    open_database(settings.database).close()


def _check_port(host: str, port: int) -> None:
    """Refuse a port that is in use.

    The processes of a server share their port, and would share it with another server's as well.
    """
    until = time.monotonic() + _PORT_SECONDS
    try:
        while not _is_free(host, port) and time.monotonic() < until:
            # The workers of a server that was killed need a moment to notice.
            time.sleep(0.1)
        _bind(host, port)
    except OSError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The server cannot listen on port {port} of {host}.",
            why=error.strerror or str(error),
            fix="Stop what listens there, or give `--port` another number.",
            fields={"host": host, "port": port},
        ) from error


def _is_free(host: str, port: int) -> bool:
    try:
        _bind(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise
    return True


def _bind(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that run are answered first."""
    check_settings(settings)
    try:
        from granian import Granian
        from granian.constants import HTTPModes, Interfaces
        from granian.http import HTTP1Settings
    except ImportError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The server cannot start.",
            why="its web server is not installed",
            fix="Run `pip install 'twinlake[server]'`.",
        ) from error
    limits = settings.limits
    server = Granian(
        "twinlake.rest",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(header_read_timeout=int(limits.header_seconds * 1000)),
        websockets=False,
        backpressure=2 * limits.requests,
        log_access=False,
        log_enabled=True,
        log_dictconfig={"version": 1, "disable_existing_loggers": False},
        workers_kill_timeout=limits.shutdown_seconds,
        respawn_failed_workers=True,
    )
    server.serve(target_loader=functools.partial(_load, settings, os.getpid()), wrap_loader=False)


def _load(settings: ServerSettings, parent: int) -> ASGIApp:
    """The application of one worker process."""
    from twinlake.rest.application import create_application

    log_to_standard_error()
    _end_with_parent(parent, settings.limits.shutdown_seconds)
    return create_application(settings)


def _end_with_parent(parent: int, seconds: int) -> None:
    """End this worker when the process that started it is killed: nobody would ever stop it."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        _SERVER_LOG.warning("the server is gone, and this worker ends")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(seconds)
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()
