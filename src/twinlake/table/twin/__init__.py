"""``verify_twin``: both sides of a table, read independently and compared.

The Iceberg side is never read by a reader of ours.
"""

from twinlake.table.twin.canonical_locations import canonical_location, location_of_url
from twinlake.table.twin.content_hash import hash_python_rows

__all__ = [
    "canonical_location",
    "hash_python_rows",
    "location_of_url",
]
