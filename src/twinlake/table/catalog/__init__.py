"""Names of tables: the catalog file, and publishing the Iceberg side under a name."""
