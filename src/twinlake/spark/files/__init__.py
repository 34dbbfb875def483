"""Writers of data files on Spark: ``file_writer`` chooses between Spark's own and Arrow's.

Arrow's runs in Python workers and is that of ``twinlake.files``, with the layout of files and the
reader. Few rows are written without a job (``small_writer``). What rows have to be before they are
written is in ``rows``; which files a commit adds and removes is in ``dml``.
"""
