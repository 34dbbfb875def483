"""Verification of commits: a model checker, models of commits, and the shipped code under test.

``checker`` knows nothing of tables; ``models`` describes commits of both formats to it; ``code``
runs the shipped commit path under every interleaving. Comparing the two sides of one stored table
is ``twinlake.table.twin``; what the command line prints is ``twinlake.cli.verify``.

The names exported here are all it takes to write a model of one's own.
"""

from twinlake.verify.checker import (
    CompareAndSwap,
    Failure,
    InitialState,
    Model,
    ModelError,
    Next,
    Result,
    Role,
    action,
    always,
    check,
    eventually,
    sometimes,
    walk,
)

__all__ = [
    "CompareAndSwap",
    "Failure",
    "InitialState",
    "Model",
    "ModelError",
    "Next",
    "Result",
    "Role",
    "action",
    "always",
    "check",
    "eventually",
    "sometimes",
    "walk",
]
