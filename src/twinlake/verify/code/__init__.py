"""The shipped commit path under every interleaving of its storage calls, with faults."""

from twinlake.verify.code.calls import FAULTS, FaultName, Placed
from twinlake.verify.code.counterexamples import ModelReplay, model_replays
from twinlake.verify.code.exploring import Exploration, explore, replay, sample, shrink, sweep
from twinlake.verify.code.schedules import Schedule, parse_schedule
from twinlake.verify.code.telling import Replay, Violation
from twinlake.verify.code.workload import Workload
from twinlake.verify.code.workloads import GROUPS, WORKLOADS, find_workload

__all__ = [
    "FAULTS",
    "GROUPS",
    "WORKLOADS",
    "Exploration",
    "FaultName",
    "ModelReplay",
    "Placed",
    "Replay",
    "Schedule",
    "Violation",
    "Workload",
    "explore",
    "find_workload",
    "model_replays",
    "parse_schedule",
    "replay",
    "sample",
    "shrink",
    "sweep",
]
