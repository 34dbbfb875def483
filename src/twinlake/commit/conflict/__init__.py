"""Conflict rules: when a transaction that lost a version must fail, and when it may follow."""
