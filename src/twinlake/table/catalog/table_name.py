"""The names of tables: parsed, folded and printed as Spark does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from twinlake.errors import Code, UserError

__all__ = ["TableName", "refuse_name", "split_name"]

_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A full name; ``str()`` of it can be parsed again.

    >>> str(TableName.parse("Sales.`Odd Name`"))
    'twinlake.sales.`odd name`'
    """

    catalog: str
    namespace: str
    table: str

    @classmethod
    def parse(
        cls, text: str, *, catalog: str = "twinlake", namespace: str = "default"
    ) -> TableName:
        """The name that a text means; what it leaves out comes from the arguments."""
        parts = split_name(text)
        match parts:
            case [table]:
                levels: list[str] = []
            case [*levels, table] if len(levels) == 1:
                pass
            case [catalog, *levels, table]:
                pass
            case _:
                refuse_name(text, "it is empty")
        if any("." in level for level in levels):
            refuse_name(text, "a catalog file cannot hold a namespace with a dot in it")
        return cls(catalog.lower(), ".".join(levels).lower() or namespace.lower(), table.lower())

    def __str__(self) -> str:
        return ".".join(map(_quoted, (self.catalog, *self.namespace.split("."), self.table)))


def split_name(text: str) -> list[str]:
    """The parts of a dotted name; a backtick-quoted part may hold anything."""
    parts: list[str] = []
    rest = text.strip()
    while rest:
        if rest.startswith("`"):
            part, rest = _quoted_part(text, rest)
        else:
            end = rest.find(".")
            part, rest = (rest, "") if end < 0 else (rest[:end], rest[end:])
            if not part or any(c in "`/\\:;,()=" or c.isspace() for c in part):
                refuse_name(text, f"the part {part!r} is empty or needs backticks")
        if not part or len(part) > _LONGEST_NAME or not part.isprintable():
            refuse_name(text, "a part is empty, too long or has control characters")
        parts.append(part)
        if rest and (rest[0] != "." or len(rest) == 1):
            refuse_name(text, "its parts are to be separated by single dots")
        rest = rest[1:]
    return parts


def _quoted_part(text: str, rest: str) -> tuple[str, str]:
    part, position = "", 1
    while True:
        end = rest.find("`", position)
        if end < 0:
            refuse_name(text, "a backtick is not closed")
        part += rest[position:end]
        if rest[end + 1 : end + 2] != "`":
            return part, rest[end + 1 :]
        part, position = part + "`", end + 2


def _quoted(part: str) -> str:
    plain = part.replace("_", "").replace("-", "").isalnum()
    return part if plain else "`" + part.replace("`", "``") + "`"


def refuse_name(text: str, why: str) -> NoReturn:
    """Say what a name must look like."""
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"{text!r} is not the name of a table.",
        why=why,
        fix="Write TABLE, NAMESPACE.TABLE or CATALOG.NAMESPACE.TABLE, and put parts "
        "with other characters in backticks.",
        delta_class="PARSE_SYNTAX_ERROR",
        fields={"name": text},
    )
