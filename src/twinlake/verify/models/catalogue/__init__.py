"""Every model that comes with twinlake, with its configurations and their expected results.

Here belong parameters, expected violations, state counts and what each case is there for: data that
the command line, the tests and the reference page read. Actions and properties belong beside this
folder.
"""

from twinlake.verify.models.catalogue.delta import DELTA_MODELS
from twinlake.verify.models.catalogue.iceberg import ICEBERG_MODELS
from twinlake.verify.models.catalogue.iceberg_maintenance import ICEBERG_MAINTENANCE_MODELS
from twinlake.verify.models.catalogue.model_case import (
    CONTROL,
    DELTA,
    FINDING,
    ICEBERG,
    KINDS,
    MUTANT,
    SAFE,
    ModelCase,
    ModelSuite,
    case,
)
from twinlake.verify.models.catalogue.purpose import counterpart_of, purpose_of
from twinlake.verify.models.catalogue.server import SERVER_MODELS

__all__ = [
    "CATALOGUE",
    "CONTROL",
    "DELTA",
    "FINDING",
    "ICEBERG",
    "KINDS",
    "MUTANT",
    "SAFE",
    "ModelCase",
    "ModelSuite",
    "case",
    "counterpart_of",
    "purpose_of",
]

CATALOGUE: tuple[ModelSuite, ...] = (
    *ICEBERG_MODELS,
    *ICEBERG_MAINTENANCE_MODELS,
    *SERVER_MODELS,
    *DELTA_MODELS,
)
