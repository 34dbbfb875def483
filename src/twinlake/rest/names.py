"""Names of namespaces and tables: their levels, their spelling in a URL, and what finds them.

A name keeps its case and is found without it. Levels may hold dots, slashes and spaces; the unit
separator, which no name can hold, parts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SEPARATOR", "NamespaceName", "TableIdentity", "check_name", "fold"]

SEPARATOR: Final = "\x1f"
_LONGEST: Final = 255
_DEEPEST: Final = 32


def fold(name: str) -> str:
    """What finds a name: names that differ only in case are one."""
    return name.lower()


def check_name(name: str) -> str:
    """The name itself, if namespaces and tables may have it.

    >>> check_name("Q1/2026 (draft).v2")
    'Q1/2026 (draft).v2'
    """
    why = ""
    if not name:
        why = "it is empty"
    elif len(name) > _LONGEST:
        why = f"it has more than {_LONGEST} characters"
    elif not name.isprintable():
        why = "it has control or invisible characters"
    elif name in (".", "..") or name != name.strip():
        why = "it is a dot or two, or begins or ends with a space"
    if why:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{name[:_LONGEST]!r} cannot be a name.",
            why=why,
            fix="Choose a name of 1 to 255 printable characters.",
            fields={"name": name[:_LONGEST]},
        )
    return name


@dataclass(frozen=True, slots=True)
class NamespaceName:
    """A namespace by its levels, from the outermost on."""

    levels: tuple[str, ...]

    @classmethod
    def of(cls, levels: Sequence[str]) -> NamespaceName:
        """The name with these levels; ``UserError`` where one cannot be a name."""
        if not levels or len(levels) > _DEEPEST:
            raise UserError(
                Code.INVALID_ARGUMENT,
                "The namespace has no levels." if not levels else "The namespace is too deep.",
                why=f"a namespace has 1 to {_DEEPEST} levels",
                fix="Name a namespace with fewer levels." if levels else "Name a namespace.",
            )
        return cls(tuple(check_name(level) for level in levels))

    @classmethod
    def parse(cls, text: str) -> NamespaceName:
        r"""A name as URLs have it, decoded.

        >>> str(NamespaceName.parse("sales\x1fEU"))
        'sales.EU'
        """
        return cls.of(text.split(SEPARATOR))

    @property
    def key(self) -> str:
        """What finds it."""
        return fold(self.text)

    @property
    def text(self) -> str:
        """Its levels with the separator between them."""
        return SEPARATOR.join(self.levels)

    @property
    def parent(self) -> NamespaceName | None:
        """The namespace it is in."""
        return NamespaceName(self.levels[:-1]) if len(self.levels) > 1 else None

    def __str__(self) -> str:
        return ".".join(self.levels)


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """A table by its namespace and its name."""

    namespace: NamespaceName
    name: str

    @classmethod
    def of(cls, levels: Sequence[str], name: str) -> TableIdentity:
        """The table of that name; ``UserError`` where it cannot be one."""
        return cls(NamespaceName.of(levels), check_name(name))

    @property
    def key(self) -> str:
        """What finds it in its namespace."""
        return fold(self.name)

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"
