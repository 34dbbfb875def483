"""Which tables a statement names, and queries over them that skip files."""
