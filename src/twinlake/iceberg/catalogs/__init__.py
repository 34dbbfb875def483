"""Catalogs in which the Iceberg side of a table has a name."""
