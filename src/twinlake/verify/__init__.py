"""Verified commits: a model checker, and models of how tables are committed to."""

from twinlake.verify.checker import Result, check, walk

__all__ = ["Result", "check", "walk"]
