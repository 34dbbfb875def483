"""An answer, independent of the server that sends it."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ApiResponse", "json_response", "no_content"]

_JSON: Final = {"content-type": "application/json"}
_SMALLEST_PACKED: Final = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResponse:
    """Status, headers and body; ``packed`` is the body as gzip where that was made before."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    packed: bytes | None = None

    def encoded(self, accepted: str) -> tuple[bytes, bool]:
        """The body for a client that accepts these encodings, and whether it is packed."""
        if len(self.body) < _SMALLEST_PACKED or not _accepts_gzip(accepted):
            return self.body, False
        return self.packed or gzip.compress(self.body, compresslevel=1, mtime=0), True


def json_response(
    value: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> ApiResponse:
    """An answer with a JSON document."""
    return ApiResponse(
        status=status, headers={**_JSON, **(headers or {})}, body=msgspec.json.encode(value)
    )


def no_content() -> ApiResponse:
    """An answer that says no more than that it was done."""
    return ApiResponse(status=204)


def _accepts_gzip(accepted: str) -> bool:
    if not accepted:
        return False
    for one in accepted.lower().split(","):
        name, _, quality = one.partition(";")
        if name.strip() in ("gzip", "*") and quality.replace(" ", "") not in ("q=0", "q=0.0"):
            return True
    return False
