"""From Delta commits to Iceberg snapshots, as functions of values.

Pure: what has to be read or written comes in through a port. Reading the log and storing what comes
out belong to ``sync``.
"""
