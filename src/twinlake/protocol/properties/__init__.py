"""Table properties: the registry of those that are known, their values and their checks."""
