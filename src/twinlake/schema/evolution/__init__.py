"""Changing a schema: single steps, merging on write, widening, and the rules of every change."""
