"""The models that come with twinlake: commits of both formats, and what happens around them.

One folder a format, ``server`` for both at once, ``catalogue`` for configurations and expected
results. How states are searched belongs in ``verify.checker``.
"""

from twinlake.verify.models.delta import DeltaLog
from twinlake.verify.models.iceberg import IcebergV2

__all__ = ["DeltaLog", "IcebergV2"]
