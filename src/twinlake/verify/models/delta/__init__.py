"""Models of Delta: the log of the source document, and what that document leaves out.

Here belong the variables, actions and properties of writers, VACUUM, checkpoints, row ids and
isolation on a Delta log alone. Configurations and expected results belong in ``catalogue``.
"""

from twinlake.verify.models.delta.application_ids import ApplicationIds
from twinlake.verify.models.delta.checkpoints import Checkpoints
from twinlake.verify.models.delta.deletion_vectors import ConcurrentVectors
from twinlake.verify.models.delta.isolation import Isolation
from twinlake.verify.models.delta.log_store import LogStore
from twinlake.verify.models.delta.model import DeltaLog
from twinlake.verify.models.delta.row_tracking import DeltaRowTracking
from twinlake.verify.models.delta.vacuum import DeltaVacuum, safe_retention

__all__ = [
    "ApplicationIds",
    "Checkpoints",
    "ConcurrentVectors",
    "DeltaLog",
    "DeltaRowTracking",
    "DeltaVacuum",
    "Isolation",
    "LogStore",
    "safe_retention",
]
