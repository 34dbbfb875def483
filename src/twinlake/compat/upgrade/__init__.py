"""The plan that takes a table to a compat feature: steps, costs, the metadata in between."""

from twinlake.compat.upgrade.physical_names import Renaming, id_mismatches, renaming
from twinlake.compat.upgrade.plan_text import moment_text, step_lines
from twinlake.compat.upgrade.step_metadata import (
    converted,
    metadata_for_files,
    switched,
    with_compat_enabled,
    with_uniform,
)
from twinlake.compat.upgrade.target_metadata import GIVE_UP_KEYS, has_same_layout

__all__ = [
    "GIVE_UP_KEYS",
    "Renaming",
    "converted",
    "has_same_layout",
    "id_mismatches",
    "metadata_for_files",
    "moment_text",
    "renaming",
    "step_lines",
    "switched",
    "with_compat_enabled",
    "with_uniform",
]
