"""MERGE: its builder, its clauses as columns, and the rows they change."""
