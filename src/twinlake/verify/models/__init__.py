"""The models that come with twinlake."""

from twinlake.verify.models.delta import DeltaLog
from twinlake.verify.models.iceberg import IcebergV2

__all__ = ["DeltaLog", "IcebergV2"]
