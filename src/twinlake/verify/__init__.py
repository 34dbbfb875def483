"""Verification of commits: a model checker, models of commits, and the shipped code under test.

``checker`` knows nothing of tables; ``models`` describes commits of both formats to it; ``code``
runs the shipped commit path under every interleaving. Comparing the two sides of one stored table
is ``twinlake.table.twin``; what the command line prints is ``twinlake.cli.verify``.
"""

from twinlake.verify.checker import Result, check, walk

__all__ = ["Result", "check", "walk"]
