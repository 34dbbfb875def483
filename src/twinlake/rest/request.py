"""A request as handlers get it: matched, read within its limits, unpacked, decoded."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

from twinlake.errors import Code, UserError
from twinlake.iceberg.requests import malformed
from twinlake.rest.names import NamespaceName, TableIdentity

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ApiRequest", "decode_body", "parse_query", "too_large", "unpacked"]

_Body = TypeVar("_Body")
_MOST_FIELDS: Final = 100
_LONGEST_KEY: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One request, independent of the server it came by."""

    method: str
    path: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What the path names, decoded."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """By names in lower case."""
    body: bytes = b""

    def with_body(self, body: bytes) -> ApiRequest:
        """The same request with the body that came after its headers."""
        return ApiRequest(
            method=self.method,
            path=self.path,
            parameters=self.parameters,
            query=self.query,
            headers=self.headers,
            body=body,
        )

    @property
    def namespace(self) -> NamespaceName:
        """The namespace of the path."""
        return NamespaceName.parse(self.parameters["namespace"])

    @property
    def table(self) -> TableIdentity:
        """The table of the path."""
        return TableIdentity.of(self.namespace.levels, self.parameters["table"])

    @property
    def idempotency_key(self) -> str | None:
        """The key by which a client that got no answer sends the request again."""
        key = self.headers.get("idempotency-key")
        if key is None:
            return None
        if not key or len(key) > _LONGEST_KEY or not key.isascii() or not key.isprintable():
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The idempotency key cannot be used.",
                why="a key is a UUID of version 7",
                fix="Send a UUID as the header Idempotency-Key, or leave it out.",
            )
        return key

    def flag(self, name: str) -> bool:
        """A boolean of the query; false where it is left out."""
        value = self.query.get(name, "false").lower()
        if value not in ("true", "false"):
            raise malformed(f"{name} is true or false")
        return value == "true"

    def decode(self, kind: type[_Body]) -> _Body:
        """The body as a value."""
        return decode_body(self.body, kind)


def decode_body(body: bytes, kind: type[_Body]) -> _Body:
    """A JSON document as a value; ``UserError`` where it is none."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise malformed(str(error) or type(error).__name__) from error


def parse_query(text: bytes) -> dict[str, str]:
    """The first value of each name of a query."""
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError as error:
        raise malformed("the query is none") from error
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """A body without its content encoding, as long as it stays within the limit.

    >>> import gzip
    >>> unpacked(gzip.compress(b"{}"), "gzip", 10)
    b'{}'
    """
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "x-gzip"):
        raise malformed(f"the content encoding {encoding[:20]!r} is not known, gzip is")
    machine: Any = zlib.decompressobj(wbits=31)
    try:
        data = machine.decompress(body, limit + 1)
    except zlib.error as error:
        raise malformed("the body is no gzip stream") from error
    if len(data) > limit:
        raise too_large(limit)
    if not machine.eof or machine.unused_data:
        raise malformed("the gzip stream is cut short, or something follows it")
    return bytes(data)


def too_large(limit: int) -> UserError:
    """The error for a body beyond the limit."""
    return UserError(
        Code.INVALID_ARGUMENT,
        "The body of the request is too large.",
        why=f"the server reads {limit:,} bytes at most",
        fix="Send a smaller request.",
    )
