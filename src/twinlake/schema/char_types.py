"""CHAR(n): a string that Spark fills up with spaces to n characters when it reads it.

Delta stores a string, and Spark notes the type as text beside the column, nested types as a whole:
``struct<c:char(5)>``. What files hold is up to the writer: Delta Spark 4.4 appends the value as it
was given, and stores it with its padding only when it writes a row again. VARCHAR(n) is a check of
the length when a value is written, and nothing else.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from twinlake.schema.metadata_keys import CHAR_VARCHAR_KEY

if TYPE_CHECKING:
    from twinlake.schema.types import StructField

__all__ = ["char_as_varchar", "char_length", "char_type"]

#: A quoted name may have anything in it; "varchar" has no word boundary before its "char".
_CHAR: Final = re.compile(r"`(?:[^`]|``)*`|\b(char(?:acter)?)(?=\s*\()", re.IGNORECASE)

_LENGTH: Final = re.compile(r"\s*char(?:acter)?\s*\(\s*(\d+)\s*\)\s*", re.IGNORECASE)


def char_type(field: StructField) -> str | None:
    """The type of a field as Spark spells it, if there is a CHAR in it.

    >>> from twinlake.schema import STRING, StructField
    >>> char_type(StructField("c", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}))
    'char(5)'
    >>> char_type(StructField("v", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "varchar(5)"}))
    """
    spelled = field.metadata.get(CHAR_VARCHAR_KEY)
    if isinstance(spelled, str) and any(found[1] for found in _CHAR.finditer(spelled)):
        return spelled
    return None


def char_length(field: StructField) -> int | None:
    """The length that values of the field are filled up to, if it is a CHAR itself."""
    found = _LENGTH.fullmatch(char_type(field) or "")
    return int(found[1]) if found else None


def char_as_varchar(field: StructField) -> StructField:
    """The field with VARCHAR in the place of CHAR, of the same lengths.

    >>> from twinlake.schema import STRING, StructField
    >>> field = StructField("c", STRING, metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"})
    >>> char_as_varchar(field).metadata["__CHAR_VARCHAR_TYPE_STRING"]
    'varchar(5)'
    """
    spelled = char_type(field)
    if spelled is None:
        return field
    text = _CHAR.sub(lambda found: "varchar" if found[1] else found[0], spelled)
    return field.with_metadata(**{CHAR_VARCHAR_KEY: text})
