"""IcebergCompat and IcebergWriterCompat: rules, reports, fixes. Pure."""

from twinlake.compat.column_mapping import with_column_mapping, with_mapping_of
from twinlake.compat.compat_feature import (
    COMPATS,
    VERSION_TAG,
    Compat,
    enabled_compats,
    find_compat,
)
from twinlake.compat.enablement import (
    COMPAT_KEYS,
    has_compat_keys,
    is_uniform,
    require_compat_for_uniform,
    with_compat_properties,
)
from twinlake.compat.evaluation import divergent_files, evaluate_rules, refusal, rules_of
from twinlake.compat.registry.all_rules import NOT_RULES, RULES, rules_with
from twinlake.compat.report import Report, report_groups, report_summary
from twinlake.compat.rule import PROFILE_KEY, Profile, Rule, Scope, Trait, Violation, profile_of
from twinlake.compat.rules.schema import collations_of
from twinlake.compat.subject import FileFooter, State, Subject
from twinlake.compat.upgrade.plan import Plan
from twinlake.compat.upgrade.planner import plan_upgrade
from twinlake.compat.upgrade.step import (
    Cost,
    FileSummary,
    Goal,
    HistoryTruncation,
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
    "VERSION_TAG",
    "Compat",
    "Cost",
    "FileFooter",
    "FileSummary",
    "Goal",
    "HistoryTruncation",
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
    "Trait",
    "UpgradeMode",
    "Violation",
    "collations_of",
    "divergent_files",
    "enabled_compats",
    "evaluate_rules",
    "find_compat",
    "has_compat_keys",
    "is_uniform",
    "plan_upgrade",
    "profile_of",
    "refusal",
    "report_groups",
    "report_summary",
    "require_compat_for_uniform",
    "rules_of",
    "rules_with",
    "with_column_mapping",
    "with_compat_properties",
    "with_mapping_of",
]
