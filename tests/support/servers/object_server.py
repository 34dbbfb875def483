"""What tests ask of a running object store, whichever service it speaks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BUCKET", "ObjectServer"]

#: The bucket, or container, that every server starts with.
BUCKET = "lakehouse"


class ObjectServer(Protocol):
    """A running server with an empty bucket or container."""

    @property
    def port(self) -> int:
        """The loopback port it listens on."""
        ...

    @property
    def options(self) -> dict[str, Any]:
        """What ``open_store(..., options=...)`` needs."""
        ...

    @property
    def wrong_secret(self) -> Mapping[str, str]:
        """The option with the secret, well formed and not accepted."""
        ...

    def options_at(self, port: int) -> dict[str, Any]:
        """The options for a proxy before the server, on another port."""
        ...

    def url(self, path: str = "", *, bucket: str = BUCKET) -> str:
        """The URL of a path in a bucket."""
        ...
