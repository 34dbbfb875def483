"""What the Iceberg specification defines: manifests, metadata files, single values, schemas.

Pure: bytes and values in, bytes and values out. What depends on the history of a Delta table
belongs to ``derive``, what reads or writes files to ``sync``.
"""
