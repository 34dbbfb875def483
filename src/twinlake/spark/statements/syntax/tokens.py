"""The tokens of a statement: words, quoted names, strings, numbers and signs, with their offsets.

Only what tells them apart is known here. Comments are left out; what is between two tokens stays
in the text, so that a part of a statement is always cut out of it and never put together again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SqlToken", "TokenKind", "tokenize"]


class TokenKind(Enum):
    """What a token is."""

    WORD = auto()  #: a keyword or a plain name; digits may come first
    QUOTED_NAME = auto()  #: a name in backticks
    STRING = auto()
    SIGN = auto()  #: one character
    UNCLOSED = auto()  #: a string, a name or a comment without its end


@dataclass(frozen=True, slots=True)
class SqlToken:
    """One token; ``text[start:end]`` is what is written."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """A word in capitals, for keywords; empty for anything else."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    @property
    def name(self) -> str | None:
        """The part of a name that it is, if it can be one."""
        if self.kind is TokenKind.QUOTED_NAME:
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind is TokenKind.WORD else None


_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|--[^\r\n]*)
    |(?P<comment>/\*)
    |(?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    |(?P<quoted>`(?:[^`]|``)*`)
    |(?P<unclosed>['"`].*)
    |(?P<word>\w+)
    |(?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
_KINDS: Final = {
    "string": TokenKind.STRING,
    "quoted": TokenKind.QUOTED_NAME,
    "unclosed": TokenKind.UNCLOSED,
    "word": TokenKind.WORD,
    "sign": TokenKind.SIGN,
}


def tokenize(text: str) -> tuple[SqlToken, ...]:
    r"""The tokens of a text.

    >>> [token.text for token in tokenize("VACUUM t -- old\n RETAIN 7 /* days */ HOURS")]
    ['VACUUM', 't', 'RETAIN', '7', 'HOURS']
    """
    return tuple(_tokens(text))


def _tokens(text: str) -> Iterator[SqlToken]:
    position = 0
    while found := _TOKEN.match(text, position):
        group, start = str(found.lastgroup), position
        position = found.end()
        if group == "comment":
            position = _comment_end(text, start)
            if position < 0:
                yield SqlToken(TokenKind.UNCLOSED, text[start:], start)
                return
        elif group != "space":
            yield SqlToken(_KINDS[group], found[0], start)


def _comment_end(text: str, start: int) -> int:
    """The offset behind a comment, which may hold others; negative without an end."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return -1
