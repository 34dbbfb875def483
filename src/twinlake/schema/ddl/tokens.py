"""Words, names, literals and signs of DDL text, each with its place in the text."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from twinlake.errors import Code, UserError

__all__ = ["Token", "fail", "quote_text", "tokenize"]

# Every alternative starts with its own characters, so matching is linear in the text.
_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*)
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<word>\w+)
  | (?P<sign>[^\w\s`'"])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\(.)|''|\"\"", re.DOTALL)
_ESCAPED: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ENDS: Final = {"`": "A backtick", "'": "A quote", '"': "A quote"}


class Token(NamedTuple):
    """``text`` is the value: unquoted for names and literals, as written for the rest."""

    kind: str
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether this is one of the given (upper case) keywords."""
        return self.kind == "word" and self.text.upper() in words

    def is_sign(self, sign: str) -> bool:
        """Whether this is the given sign."""
        return self.kind == "sign" and self.text == sign


def tokenize(text: str) -> list[Token]:
    """The tokens of the text, closed by one of kind ``end``."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        if text.startswith("/*", position):
            close = text.find("*/", position + 2)
            if close < 0:
                fail(text, position, "A comment is not closed.")
            position = close + 2
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            fail(text, position, f"{_ENDS.get(text[position], 'Something')} is not closed.")
        kind = match.lastgroup or "sign"
        if kind != "space":
            tokens.append(Token(kind, _value(kind, match[0]), match.start(), match.end()))
        position = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def quote_text(text: str) -> str:
    """The text as a SQL string literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fail(text: str, position: int, why: str) -> NoReturn:
    """Raise the one error of DDL parsing, pointing at the place."""
    start = max(0, position - 30)
    excerpt = text[start : position + 30].replace("\n", " ")
    raise UserError(
        Code.SCHEMA_INVALID,
        f"Cannot understand the DDL text at position {position}: ...{excerpt!r}..."
        if len(text) > 60
        else f"Cannot understand the DDL text at position {position}: {text!r}.",
        why=why,
        fix="Write columns like: id BIGINT NOT NULL, tags MAP<STRING, STRUCT<n: INT>> COMMENT 'x'.",
        delta_class="PARSE_SYNTAX_ERROR",
        fields={"position": position, "excerpt": excerpt},
    )


def _value(kind: str, raw: str) -> str:
    if kind == "name":
        return raw[1:-1].replace("``", "`")
    if kind == "string":
        return _ESCAPE.sub(_unescape, raw[1:-1])
    return raw


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    if match[2]:
        # Like patterns keep their backslash, as in Spark.
        return "\\" + match[2] if match[2] in "%_" else _ESCAPED.get(match[2], match[2])
    return match[0][0]
