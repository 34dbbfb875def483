"""An explicit-state model checker in plain Python; it knows nothing of tables."""

from twinlake.verify.checker.checking import check, explore
from twinlake.verify.checker.follow import Followed, Planned, follow
from twinlake.verify.checker.model import (
    Check,
    Failure,
    Model,
    ModelError,
    Next,
    Role,
    Start,
    Swap,
    action,
    always,
    eventually_always,
    sometimes,
)
from twinlake.verify.checker.result import Result, Violated
from twinlake.verify.checker.search import Progress
from twinlake.verify.checker.space import Outcome
from twinlake.verify.checker.trace import Trace, TraceStep
from twinlake.verify.checker.walk import walk

__all__ = [
    "Check",
    "Failure",
    "Followed",
    "Model",
    "ModelError",
    "Next",
    "Outcome",
    "Planned",
    "Progress",
    "Result",
    "Role",
    "Start",
    "Swap",
    "Trace",
    "TraceStep",
    "Violated",
    "action",
    "always",
    "check",
    "eventually_always",
    "explore",
    "follow",
    "sometimes",
    "walk",
]
