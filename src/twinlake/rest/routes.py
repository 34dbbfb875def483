"""The routes as data, and which of them a request means.

``config`` advertises them, the reference page lists them, and requests are matched by them. A path
is split before it is decoded, because names may hold slashes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from twinlake.errors import Code, UserError
from twinlake.iceberg.requests import malformed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from twinlake.rest.context import ServerContext
    from twinlake.rest.request import ApiRequest
    from twinlake.rest.response import ApiResponse

    Handler = Callable[[ServerContext, ApiRequest], ApiResponse]
    FromMemory = Callable[[ServerContext, ApiRequest], ApiResponse | None]

__all__ = ["Route", "RouteTable"]

_LONGEST_PATH: Final = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One row: what a method on a path does."""

    method: str
    path: str
    """With names in braces, as the specification writes it."""
    operation: str
    """The ``operationId`` of the specification; for our own routes a name of the same kind."""
    handler: Handler
    summary: str
    is_catalog: bool = True
    """Whether the specification of the REST catalog has it; others are not advertised."""
    is_commit: bool = False
    """Whether a 5xx means to clients that a commit may have happened."""
    is_limited: bool = True
    """Whether it counts against the limit of requests at once."""

    from_memory: FromMemory | None = None
    """Answers without waiting for anything, or not at all: then the handler runs in a thread."""

    @property
    def endpoint(self) -> str:
        """The route as ``config`` advertises it."""
        return f"{self.method} {self.path}"


@dataclass(slots=True)
class _Node:
    """One segment of the paths."""

    children: dict[str, _Node] = field(default_factory=dict)
    parameter: str = ""
    """The name of the segment below that may be anything."""
    below: _Node | None = None
    routes: dict[str, Route] = field(default_factory=dict)
    """By method."""


class RouteTable:
    """Routes by path and method."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._root = _Node()
        for route in self.routes:
            node = self._root
            for segment in route.path.strip("/").split("/"):
                if not segment.startswith("{"):
                    node = node.children.setdefault(segment, _Node())
                    continue
                node.parameter = segment[1:-1]
                node.below = node.below or _Node()
                node = node.below
            node.routes[route.method] = route

    def match(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """The route of a request and what its path names; ``path`` is as the client sent it."""
        node: _Node | None = self._root
        parameters: dict[str, str] = {}
        if len(path) > _LONGEST_PATH:
            raise malformed("the path is too long")
        for segment in path.strip("/").split("/"):
            if node is None:
                break
            child = node.children.get(segment)
            if child is None and node.below is not None and segment:
                parameters[node.parameter] = _decoded(segment)
                child = node.below
            node = child
        if node is None or not node.routes:
            raise UserError(
                Code.ROUTE_NOT_FOUND,
                "There is no such route.",
                why=f"no path of the catalog is like {path[:200]!r}",
                fix="Send what GET /v1/config lists as endpoints.",
            )
        route = node.routes.get(method)
        if route is None:
            raise UserError(
                Code.ROUTE_NOT_FOUND,
                f"The route does not take {method[:20]}.",
                why=f"it takes {', '.join(node.routes)}",
                fix="Send what GET /v1/config lists as endpoints.",
                fields={"allow": ", ".join(node.routes)},
            )
        return route, parameters


def _decoded(segment: str) -> str:
    """A segment of a path as text, decoded once."""
    if "%" not in segment and "+" not in segment:
        return segment
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise malformed("the path is no UTF-8") from error
