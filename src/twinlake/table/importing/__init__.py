"""Iceberg tables that become twinlake tables in place."""
