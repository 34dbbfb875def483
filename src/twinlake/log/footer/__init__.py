"""Parquet footers of data files: columns, row counts, statistics, calendars."""
