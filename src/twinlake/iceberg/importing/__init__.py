"""Existing Iceberg tables, read so that a Delta log can be written for them.

Reads metadata files and manifests of other writers. Writing the log belongs to ``table.importing``.
"""
