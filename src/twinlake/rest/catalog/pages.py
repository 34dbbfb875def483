"""Lists in pages: a token is the key after which the next page begins."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from twinlake.errors import Code, UserError

__all__ = ["NamePage", "PageRequest"]

_Item = TypeVar("_Item")

_EVERYTHING: Final = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """How much of a list is asked for; ``size`` None is all of it."""

    after: str = ""
    size: int | None = None

    @property
    def limit(self) -> int:
        """How many rows to read: one more than is shown tells whether more follows."""
        return _EVERYTHING if self.size is None else self.size + 1

    @classmethod
    def parse(cls, token: str | None, size: str | None, most: int) -> PageRequest:
        """What ``pageToken`` and ``pageSize`` ask for: without a token everything."""
        wanted = _size(size)
        if token is None and wanted is None:
            return cls()
        return cls(after=_decode(token or ""), size=min(wanted or most, most))


@dataclass(frozen=True, slots=True, kw_only=True)
class NamePage(Generic[_Item]):
    """Some of a list, and the token of what follows; None at its end."""

    items: list[_Item]
    next_token: str | None = None

    @classmethod
    def of(cls, found: list[tuple[str, _Item]], size: int | None) -> NamePage[_Item]:
        """A page of what was found, which is one more than its size if more follows."""
        if size is None or len(found) <= size:
            return cls(items=[item for _, item in found])
        shown = found[:size]
        return cls(items=[item for _, item in shown], next_token=_encode(shown[-1][0]))


def _encode(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def _decode(token: str) -> str:
    try:
        padded = token + "=" * (-len(token) % 4)
        return base64.b64decode(padded.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError) as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "The page token is none of this server.",
            why="it cannot be read",
            fix="Send the token of the previous page, or none for the first.",
        ) from error


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) < 1:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{text[:20]!r} is not the size of a page.",
            why="a page has one name or more",
            fix="Send a whole number of at least 1 as the size of a page.",
        )
    return int(text)
