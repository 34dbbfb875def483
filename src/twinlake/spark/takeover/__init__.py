"""The takeover: PySpark's own calls, handed to twinlake where they name its formats or its tables.

``patches`` replaces a few public attributes of PySpark's classes and puts them back; the readers
and writers here are what those return meanwhile. They remember what they are told and make Spark's
own only when a call turns out to be Spark's, so that other formats see the very calls that they saw
before. ``state`` says which sessions are served.
"""

from twinlake.spark.takeover.begin import begin, end

__all__ = ["begin", "end"]
