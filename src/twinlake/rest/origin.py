"""Whether a request may come from a page in a browser of this machine.

A server without accounts trusts whoever reaches its loopback address. Pages of other sites reach it
through the browser: by a plain form, or under a name of theirs that resolves to 127.0.0.1.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_origin"]


def check_origin(headers: Mapping[str, str]) -> None:
    """Refuse what a browser sends for a page, and names that are none of this machine."""
    host = headers.get("host", "")
    if "origin" in headers or not _is_loopback(host):
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The server does not answer requests of web pages.",
            why="the request has an Origin, or its Host is no loopback address",
            fix="Use the address that the server was started with, such as 127.0.0.1. A proxy "
            "before the server is to send that as Host.",
        )


def _is_loopback(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name in ("127.0.0.1", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
