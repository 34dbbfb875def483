"""Every rule, in the order of the reports, and the numbers that are no rule here."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from twinlake.compat.registry.iceberg_compat import BASE_ROWS
from twinlake.compat.registry.iceberg_writer_compat import WRITER_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.compat.rule import Rule

__all__ = ["NOT_RULES", "RULES"]

RULES: Final[tuple[Rule, ...]] = tuple(sorted((*BASE_ROWS, *WRITER_ROWS), key=lambda row: row.id))

NOT_RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ICV3-23": "Does not apply: it asks for a session switch of Delta Spark, not for anything "
        "of the table.",
        "IWC1-18": "All rules of icebergCompatV2. They are asked with those of "
        "icebergWriterCompatV1 and appear under their own numbers; where a rule of the writer is "
        "stricter about the same thing, it speaks alone.",
        "IWC3-16": "Does not exist: under icebergCompatV3 row tracking has to be on, which is "
        "ICV3-18.",
        "IWC3-18": "All rules of icebergCompatV3, in the way of IWC1-18.",
    }
)
"""Numbers that have no row of their own, and why."""
