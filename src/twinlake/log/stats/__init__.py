"""The statistics of data files as the log holds them: JSON text, struct columns, typed columns."""
