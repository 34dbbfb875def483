"""Rows of a table without Spark: reading them, and the operations that change them in this process.

How a single file is read and written belongs to ``twinlake.files``, which files a change adds and
removes to ``twinlake.commit.plans``.
"""
