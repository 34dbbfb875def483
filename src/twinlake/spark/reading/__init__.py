"""Reading: exactly the files of a snapshot through Spark's own Parquet reader."""
