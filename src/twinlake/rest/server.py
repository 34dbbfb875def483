"""Starting the server: granian around the application, its limits, its log, its end.

granian and no other: it closes a connection whose headers do not come, which is what slow clients
are held off by.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Any

from twinlake.errors import Code, UserError
from twinlake.rest.settings import check_host

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from twinlake.rest.settings import ServerSettings

__all__ = ["serve"]


def serve(settings: ServerSettings) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that run are answered first."""
    check_host(settings.host)
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
    server.serve(target_loader=functools.partial(_load, settings), wrap_loader=False)


def _load(settings: ServerSettings) -> ASGIApp:
    """The application of one worker process."""
    from twinlake.rest.application import create_application

    _log_to_standard_error()
    return create_application(settings)


def _log_to_standard_error() -> None:
    handler: logging.Handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    for name in ("twinlake.access", "twinlake.server"):
        logger: Any = logging.getLogger(name)
        logger.setLevel(logging.INFO)
        logger.handlers = [handler]
        logger.propagate = False
