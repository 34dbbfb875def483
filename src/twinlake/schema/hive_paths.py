"""Hive-style folders: names like ``day=2024-01-01/city=a%2Fb`` for partition values.

These names are for the file system; a path in the log is URI-encoded once more on top of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "HIVE_NULL",
    "escape_path_name",
    "parse_partition_path",
    "render_partition_path",
    "unescape_path_name",
]

HIVE_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
"""The folder name of a null; it has this meaning in folders only, never in the log."""

# The set Spark escapes: control characters and what file systems or URIs give a meaning to.
_UNSAFE: Final = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")


def escape_path_name(name: str) -> str:
    """A column name or value as part of a folder name.

    >>> escape_path_name("a/b=1")
    'a%2Fb%3D1'
    """
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", name)


def unescape_path_name(name: str) -> str:
    """The text that :func:`escape_path_name` escaped; stray percent signs stay."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)


def render_partition_path(values: Mapping[str, str | None]) -> str:
    """The folder of a file with these partition strings, in the order of the mapping.

    >>> render_partition_path({"day": "2024-01-01", "city": None})
    'day=2024-01-01/city=__HIVE_DEFAULT_PARTITION__'
    """
    return "/".join(
        f"{escape_path_name(name)}={escape_path_name(value) if value else HIVE_NULL}"
        for name, value in values.items()
    )


def parse_partition_path(path: str) -> dict[str, str | None]:
    """The partition strings in the folders of a path; other folders and the file are skipped.

    >>> parse_partition_path("day=2024-01-01/city=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
    {'day': '2024-01-01', 'city': None}
    """
    found: dict[str, str | None] = {}
    for part in path.split("/"):
        name, equals, value = part.partition("=")
        if name and equals:
            text = unescape_path_name(value)
            found[unescape_path_name(name)] = None if text in ("", HIVE_NULL) else text
    return found
