"""Reading tables: which files of a snapshot a scan needs, and the DataFrame over them.

Scans, file lists, deletion vectors, column mapping on read, partition values, conditions that skip
files, and hashes of what files hold. Rows that are to be written are in ``rows`` and ``files``.
"""
