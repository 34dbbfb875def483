"""Reading the tokens of a statement one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from twinlake.errors import Code, UserError
from twinlake.spark.statements.syntax.tokens import SqlToken, TokenKind, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NameParts", "TokenCursor"]

NameParts = tuple[str, ...]
"""A name as its parts, without quotes."""


@dataclass
class TokenCursor:
    """A position in the tokens of a statement; ``take`` moves it, ``expect`` insists."""

    text: str
    tokens: Sequence[SqlToken]
    position: int = 0
    _end: SqlToken = field(init=False)

    def __post_init__(self) -> None:
        self._end = SqlToken(TokenKind.SIGN, "", len(self.text))

    @classmethod
    def of(cls, text: str) -> TokenCursor:
        """A cursor at the first token; a semicolon at the end belongs to no statement."""
        tokens = tokenize(text)
        while tokens and tokens[-1].text == ";":
            tokens = tokens[:-1]
        return cls(text, tokens)

    @property
    def token(self) -> SqlToken:
        """The next token, or an empty one behind the last."""
        return self.tokens[self.position] if self.position < len(self.tokens) else self._end

    @property
    def at_end(self) -> bool:
        """Whether all tokens are read."""
        return self.position >= len(self.tokens)

    def sees(self, *words: str) -> bool:
        """Whether these words or signs come next."""
        ahead = self.tokens[self.position : self.position + len(words)]
        return len(ahead) == len(words) and all(
            token.word == word or (token.kind is TokenKind.SIGN and token.text == word)
            for token, word in zip(ahead, words, strict=True)
        )

    def take(self, *words: str) -> bool:
        """Move behind these words, if they come next."""
        found = self.sees(*words)
        if found:
            self.position += len(words)
        return found

    def expect(self, *words: str) -> None:
        """Move behind these words; anything else is a syntax error."""
        for word in words:
            if not self.take(word):
                self.refuse(f"expected {word}")

    def expect_end(self) -> None:
        """Nothing may come after this."""
        if not self.at_end:
            self.refuse("expected the end of the statement")

    def name(self) -> NameParts:
        """A name of one or more parts."""
        parts = [self.name_part()]
        while self.take("."):
            parts.append(self.name_part())
        return tuple(parts)

    def table_or_none(self) -> NameParts | None:
        """A table, where other statements have something else at this place."""
        if self.token.kind is TokenKind.STRING or self.token.name:
            return self.table()
        return None

    def name_part(self) -> str:
        """One part of a name."""
        found = self.token.name
        if not found:
            self.refuse("expected a name")
        self.position += 1
        return found

    def table(self) -> NameParts:
        """A table: its name, or its path as a string."""
        if self.token.kind is TokenKind.STRING:
            return ("delta", self.string())
        return self.name()

    def names(self) -> list[NameParts]:
        """Names between commas, in brackets or not."""
        closed = self.take("(")
        found = [self.name()]
        while self.take(","):
            found.append(self.name())
        if closed:
            self.expect(")")
        return found

    def string(self) -> str:
        """A string without its quotes."""
        token = self.token
        if token.kind is not TokenKind.STRING:
            self.refuse("expected a string")
        self.position += 1
        return string_value(token.text)

    def number(self) -> float:
        """A number, with a fraction or without; a minus may stand before it."""
        sign = -1 if self.take("-") else 1
        digits = self.token.text if self.token.word.isdecimal() else ""
        if digits:
            self.position += 1
        if self.sees(".") and (after := self._next_word()).isdecimal():
            self.position += 2
            digits = f"{digits or '0'}.{after}"
        if not digits:
            self.refuse("expected a number")
        return sign * float(digits)

    def integer(self) -> int:
        """A whole number."""
        token = self.token
        if not token.word.isdecimal():
            self.refuse("expected a whole number")
        self.position += 1
        return int(token.text)

    def text_before(self, *words: str) -> str:
        """The text up to one of these words that stands outside of brackets, or to the end."""
        start, depth = self.token.start, 0
        last = self.token
        while not self.at_end:
            token = self.token
            if depth == 0 and token.word and token.word in words:
                break
            if token.kind is TokenKind.SIGN:
                depth += {"(": 1, ")": -1}.get(token.text, 0)
                if depth < 0:
                    break
            last = token
            self.position += 1
        if last.start < start or self.token.start == start:
            self.refuse("expected an expression")
        return self.text[start : last.end]

    def bracketed_text(self) -> str:
        """The text between a bracket, which comes next, and the one that closes it."""
        self.expect("(")
        start = self.tokens[self.position - 1].end
        found = self.token
        if not self.take(")"):
            self.text_before()
            found = self.token
            self.expect(")")
        return self.text[start : found.start].strip()

    def _next_word(self) -> str:
        following = self.position + 1
        return self.tokens[following].word if following < len(self.tokens) else ""

    def refuse(self, why: str) -> NoReturn:
        """A syntax error at the next token, with the mark that Spark's own have."""
        token = self.token
        before = self.text[: token.start]
        line = before.count("\n") + 1
        column = token.start - (before.rfind("\n") + 1)
        near = f"'{token.text}'" if token.text else "end of input"
        lines = self.text.splitlines() or [""]
        lines.insert(line, "-" * column + "^^^")
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"Syntax error at or near {near} (line {line}, pos {column}).",
            why="{}\n\n== SQL ==\n{}".format(why, "\n".join(lines)),
            fix="Correct the statement at the mark.",
            delta_class="PARSE_SYNTAX_ERROR",
            fields={"line": line, "position": column, "near": token.text},
        )


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


def string_value(literal: str) -> str:
    r"""The value of a string as it is written, with its quotes.

    >>> string_value(r"'it\'s'"), string_value(r"r'a\b'")
    ("it's", 'a\\b')
    """
    if literal[0] in "rR":
        return literal[2:-1]
    body, value, position = literal[1:-1], [], 0
    while position < len(body):
        char = body[position]
        if char != "\\" or position + 1 == len(body):
            value.append(char)
            position += 1
            continue
        code = body[position + 1]
        digits = {"u": 4, "U": 8}.get(code, 0)
        numeral = body[position + 2 : position + 2 + digits]
        if (
            digits
            and len(numeral) == digits
            and all(c in "0123456789abcdefABCDEF" for c in numeral)
        ):
            value.append(chr(int(numeral, 16)))
            position += 2 + digits
            continue
        # The wildcards of LIKE keep their backslash.
        value.append(f"\\{code}" if code in "%_" else _ESCAPES.get(code, code))
        position += 2
    return "".join(value)
