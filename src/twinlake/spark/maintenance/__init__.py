"""OPTIMIZE, REORG and the rewriting of files without changing a row."""
