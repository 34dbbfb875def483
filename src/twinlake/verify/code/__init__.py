"""The shipped commit path under every interleaving of its storage calls, with faults.

Here belong workloads, the actors and the store that hold real code at each storage call, the
reduction of schedules, and the properties of a run. Abstract models belong in ``verify.models``.
"""

from twinlake.verify.code.exploration import Exploration, explore, replay, sample, shrink, sweep
from twinlake.verify.code.model_replay import ModelReplay, model_replays
from twinlake.verify.code.run_trace import Replay, RunViolation
from twinlake.verify.code.schedule import Schedule, parse_schedule
from twinlake.verify.code.storage_call import FAULTS, FaultName, PlacedFault
from twinlake.verify.code.workload import Workload
from twinlake.verify.code.workloads import GROUPS, WORKLOADS, find_workload

__all__ = [
    "FAULTS",
    "GROUPS",
    "WORKLOADS",
    "Exploration",
    "FaultName",
    "ModelReplay",
    "PlacedFault",
    "Replay",
    "RunViolation",
    "Schedule",
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
