"""``verify_twin``: both sides of a table, read independently and compared.

The Iceberg side is never read by a reader of ours.
"""
