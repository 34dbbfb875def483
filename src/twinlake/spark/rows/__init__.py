"""Rows before they are written: schema evolution, casts, defaults, identity values, constraints.

Everything here maps a frame to a frame or a schema to a schema. Nothing here writes files or
commits.
"""
