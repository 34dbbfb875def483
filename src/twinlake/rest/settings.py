"""What a server is started with: warehouses, the database of names, addresses, limits."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from typing import Final

from twinlake.errors import Code, UserError

__all__ = ["ServerLimits", "ServerSettings", "Warehouse", "check_host"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Warehouse:
    """A name that clients give, and the location below which its tables are made."""

    name: str
    location: str

    @classmethod
    def parse(cls, text: str) -> Warehouse:
        """A warehouse as the command line writes it: ``NAME=LOCATION``.

        >>> Warehouse.parse("lake=s3://bucket/lake").name
        'lake'
        """
        name, equals, location = text.partition("=")
        if not equals or not location.strip() or not _NAME.fullmatch(name):
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"{text!r} is not a warehouse.",
                why="a warehouse is a name of letters, digits, `-` and `_`, and a location",
                fix="Write `--warehouse NAME=LOCATION`, such as `--warehouse lake=/data/lake`.",
                fields={"warehouse": text},
            )
        return cls(name=name, location=location.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """What one request, and all requests together, may take."""

    body_bytes: int = 32 << 20
    """Of a request, unpacked."""
    body_seconds: float = 30.0
    """How long a client may take to send a body."""
    header_seconds: float = 10.0
    requests: int = 64
    """Answered or waiting for a thread at once, in one process; more are refused with 503."""
    threads: int = 16
    page_size: int = 10_000
    """The most names that one page has."""
    conversion_seconds: float = 20.0
    """How long loading a table may convert before older metadata is answered."""
    cached_bytes: int = 64 << 20
    """Of answers that are kept for the next client."""
    shutdown_seconds: int = 30
    """How long requests may take to end once the server is asked to stop."""
    undrop_ms: int = 7 * 24 * 60 * 60 * 1000
    """How long a dropped table can be brought back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """All of it, as one value that a worker process takes."""

    warehouses: tuple[Warehouse, ...]
    database: str
    """A path, or a URL such as ``sqlite:////data/server.db``."""
    host: str = "127.0.0.1"
    port: int = 8181
    workers: int = 1
    allowed_locations: tuple[str, ...] = ()
    """Where tables may be registered and made beside the warehouses."""
    names_file: str | None = None
    """The catalog of names whose tables the server takes over when it starts."""
    limits: ServerLimits = field(default_factory=ServerLimits)


def check_host(host: str) -> None:
    """Refuse an address that other machines reach: the server has no accounts."""
    if host == "localhost":
        return
    try:
        if ipaddress.ip_address(host).is_loopback:
            return
    except ValueError:
        pass
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"The server cannot listen on {host}.",
        why="it has no accounts, so that whoever reaches it may change every table",
        fix="Start it with `--host 127.0.0.1`, and put a proxy that checks who asks before it.",
        fields={"host": host},
    )
