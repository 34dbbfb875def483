"""``DeltaTable`` and its builders, by the names of ``delta.tables``."""
