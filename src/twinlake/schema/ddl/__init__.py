"""DDL text in Spark's dialect, to schema values and back."""
