"""Checkpoints of every kind, read and written, and the hint that names the last one."""
