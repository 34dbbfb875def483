"""The Python data source ``twinlake``: tables through ``format("twinlake")``.

It reads and writes in Spark's Python workers, on classic and on Spark Connect sessions. ``scan``
and ``write`` are several times faster; this is for code that can only name a format.
"""

from twinlake.spark.data_source.options import FORMAT
from twinlake.spark.data_source.registration import register

__all__ = ["FORMAT", "register"]
