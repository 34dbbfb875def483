"""The plan that takes a table to a compat feature: steps, costs, the metadata in between."""
