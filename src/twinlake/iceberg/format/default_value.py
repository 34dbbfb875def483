"""The default of a Delta column as Iceberg's ``write-default``.

Delta keeps the SQL text. Only a literal has the same value for every writer; anything else, such as
``current_date()``, has no form in Iceberg. Nor has a timestamp without a zone, which is read in the
zone of each session. There is no ``initial-default`` at all: rows from before the column read as
null in Delta.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Context
from decimal import Decimal as Number
from typing import TYPE_CHECKING, Any, Final

from twinlake.schema import Decimal

if TYPE_CHECKING:
    from twinlake.schema import DataType

__all__ = ["write_default"]

_EXACT: Final = Context(prec=80)
#: Any two: what is not the same in both hangs on the session.
_ZONES: Final = (dt.UTC, dt.timezone(dt.timedelta(hours=1)))


def write_default(text: object, kind: DataType) -> Any:
    """The default that a text spells, in the JSON form of single values; None without one.

    >>> from twinlake.schema import DATE, LONG
    >>> write_default("DATE'2024-02-29'", DATE), write_default("7L", LONG)
    ('2024-02-29', 7)
    """
    # Loads the parser of SQL, which few tables need.
    from twinlake.schema.predicates import parse_constant

    if not isinstance(text, str):
        return None
    value, elsewhere = (parse_constant(text, kind, timezone=zone) for zone in _ZONES)
    if value != elsewhere:
        return None
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case Number() if isinstance(kind, Decimal):
            # The digits after the point give the scale.
            return f"{value.quantize(Number(1).scaleb(-kind.scale), context=_EXACT):f}"
        case bytes():
            return value.hex()
        case dt.datetime():
            return value.isoformat("T", "microseconds")
        case dt.date():
            return value.isoformat()
        case _:
            return None
