"""Writing data files: the writers, and what they are given."""
