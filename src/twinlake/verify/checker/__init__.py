"""An explicit-state model checker in plain Python.

Here belong the language of models, the search, its reductions, properties and traces. Nothing here
knows of tables, and nothing of twinlake is imported: models belong in ``verify.models``.
"""

from twinlake.verify.checker.model import (
    ActionCheck,
    CompareAndSwap,
    Failure,
    InitialState,
    Model,
    ModelError,
    Next,
    Role,
    action,
    always,
    eventually,
    eventually_always,
    plain,
    sometimes,
)
from twinlake.verify.checker.model_check import check, explore
from twinlake.verify.checker.random_walk import walk
from twinlake.verify.checker.result import Counterexample, Result
from twinlake.verify.checker.scheduled_run import ScheduledRun, ScheduledStep, run_schedule
from twinlake.verify.checker.search import Progress
from twinlake.verify.checker.state_space import Transition
from twinlake.verify.checker.trace import Trace, TraceStep

__all__ = [
    "ActionCheck",
    "CompareAndSwap",
    "Counterexample",
    "Failure",
    "InitialState",
    "Model",
    "ModelError",
    "Next",
    "Progress",
    "Result",
    "Role",
    "ScheduledRun",
    "ScheduledStep",
    "Trace",
    "TraceStep",
    "Transition",
    "action",
    "always",
    "check",
    "eventually",
    "eventually_always",
    "explore",
    "plain",
    "run_schedule",
    "sometimes",
    "walk",
]
