"""Every rule, in the order of the reports, and the numbers that are no rule here."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from twinlake.compat.registry.iceberg_compat import BASE_ROWS
from twinlake.compat.registry.iceberg_writer_compat import WRITER_ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from twinlake.compat.rule import Rule, Trait

__all__ = ["NOT_RULES", "RULES", "RULES_BY_ID", "rules_with"]

RULES: Final[tuple[Rule, ...]] = tuple(sorted((*BASE_ROWS, *WRITER_ROWS), key=lambda row: row.id))
RULES_BY_ID: Final[Mapping[str, Rule]] = MappingProxyType({rule.id: rule for rule in RULES})

NOT_RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ICV3-23": "Does not apply: it asks for a session switch of Delta Spark, not for anything "
        "of the table.",
        "IWC1-18": "All rules of icebergCompatV2. They are evaluated with those of "
        "icebergWriterCompatV1 and appear under their own numbers; where a rule of the writer is "
        "stricter about the same thing, only that one is reported.",
        "IWC3-16": "Does not exist: under icebergCompatV3 row tracking has to be on, which is "
        "ICV3-18.",
        "IWC3-18": "All rules of icebergCompatV3, in the way of IWC1-18.",
    }
)
"""Numbers that have no row of their own, and why."""


@cache
def rules_with(trait: Trait) -> frozenset[str]:
    """The ids of the rules that have the trait."""
    return frozenset(rule.id for rule in RULES if trait in rule.traits)
