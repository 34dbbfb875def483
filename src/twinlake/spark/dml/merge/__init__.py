"""MERGE: its builder, the resolution of its expressions and clauses, the join, and its execution.

What MERGE shares with DELETE and UPDATE is in ``dml.row_change``.
"""
