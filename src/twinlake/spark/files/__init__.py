"""Data files: the readers and writers of single files, and the layout that all of them follow.

``file_writer`` chooses between Spark's writer and Arrow's. ``arrow_files``, ``arrow_reader``,
``arrow_types``, ``file_layout`` and ``file_target`` import no PySpark. What rows have to be before
they are written is in ``rows``; which files a commit adds and removes is in ``dml``.
"""
