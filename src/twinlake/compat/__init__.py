"""IcebergCompat and IcebergWriterCompat: rules, reports, fixes. Pure."""

from twinlake.compat.compat_feature import (
    COMPATS,
    VERSION_TAG,
    Compat,
    enabled_compats,
    find_compat,
)
from twinlake.compat.enablement import (
    COMPAT_KEYS,
    UNIFORM_KEY,
    completed,
    is_uniform,
    makes_promises,
    names_by_id,
    needs_nested_ids,
    refuse_bare_uniform,
)
from twinlake.compat.evaluation import judge, refusal, rules_of
from twinlake.compat.registry.all_rules import NOT_RULES, RULES
from twinlake.compat.report import Report
from twinlake.compat.rule import PROFILE_KEY, Profile, Rule, Scope, Violation, profile_of
from twinlake.compat.subject import FileFooter, State, Subject
from twinlake.compat.upgrade.plan import Plan
from twinlake.compat.upgrade.planner import plan_upgrade
from twinlake.compat.upgrade.step import (
    Cost,
    FileFacts,
    Goal,
    HistoryFacts,
    Step,
    StepKind,
    StepState,
    UpgradeMode,
)

__all__ = [
    "COMPATS",
    "COMPAT_KEYS",
    "NOT_RULES",
    "PROFILE_KEY",
    "RULES",
    "UNIFORM_KEY",
    "VERSION_TAG",
    "Compat",
    "Cost",
    "FileFacts",
    "FileFooter",
    "Goal",
    "HistoryFacts",
    "Plan",
    "Profile",
    "Report",
    "Rule",
    "Scope",
    "State",
    "Step",
    "StepKind",
    "StepState",
    "Subject",
    "UpgradeMode",
    "Violation",
    "completed",
    "enabled_compats",
    "find_compat",
    "is_uniform",
    "judge",
    "makes_promises",
    "names_by_id",
    "needs_nested_ids",
    "plan_upgrade",
    "profile_of",
    "refusal",
    "refuse_bare_uniform",
    "rules_of",
]
