"""Every model that comes with twinlake, with its configurations and what each must show."""

from twinlake.verify.models.catalogue.delta import ON_LOGS
from twinlake.verify.models.catalogue.iceberg import ON_TABLES
from twinlake.verify.models.catalogue.rows import (
    CONTROL,
    DELTA,
    FINDING,
    ICEBERG,
    KINDS,
    MUTANT,
    SAFE,
    Case,
    Extension,
    case,
)
from twinlake.verify.models.catalogue.server import THROUGH_SERVER
from twinlake.verify.models.catalogue.upkeep import AROUND_TABLES

__all__ = [
    "CATALOGUE",
    "CONTROL",
    "DELTA",
    "FINDING",
    "ICEBERG",
    "KINDS",
    "MUTANT",
    "SAFE",
    "Case",
    "Extension",
    "case",
]

CATALOGUE: tuple[Extension, ...] = (*ON_TABLES, *AROUND_TABLES, *THROUGH_SERVER, *ON_LOGS)
