"""Paths of files as the log spells them: one canonical form to compare by, and which to refuse."""
