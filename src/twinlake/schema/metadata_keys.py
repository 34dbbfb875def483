"""The keys of field metadata that Delta and Spark give a meaning to.

And the keys of table properties that the rules of a schema mention.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CHAR_VARCHAR_KEY",
    "COLLATIONS_KEY",
    "COLUMN_MAPPING_MODE",
    "COMMENT_KEY",
    "CURRENT_DEFAULT_KEY",
    "ENABLE_TYPE_WIDENING",
    "EXISTS_DEFAULT_KEY",
    "GENERATION_EXPRESSION_KEY",
    "IDENTITY_EXPLICIT_KEY",
    "IDENTITY_HIGH_WATER_MARK_KEY",
    "IDENTITY_START_KEY",
    "IDENTITY_STEP_KEY",
    "INVARIANTS_KEY",
    "MAX_COLUMN_ID",
    "TYPE_CHANGES_KEY",
]

COMMENT_KEY: Final = "comment"
CHAR_VARCHAR_KEY: Final = "__CHAR_VARCHAR_TYPE_STRING"
COLLATIONS_KEY: Final = "__COLLATIONS"
CURRENT_DEFAULT_KEY: Final = "CURRENT_DEFAULT"
EXISTS_DEFAULT_KEY: Final = "EXISTS_DEFAULT"
GENERATION_EXPRESSION_KEY: Final = "delta.generationExpression"
INVARIANTS_KEY: Final = "delta.invariants"
IDENTITY_START_KEY: Final = "delta.identity.start"
IDENTITY_STEP_KEY: Final = "delta.identity.step"
IDENTITY_HIGH_WATER_MARK_KEY: Final = "delta.identity.highWaterMark"
IDENTITY_EXPLICIT_KEY: Final = "delta.identity.allowExplicitInsert"
TYPE_CHANGES_KEY: Final = "delta.typeChanges"

COLUMN_MAPPING_MODE: Final = "delta.columnMapping.mode"
MAX_COLUMN_ID: Final = "delta.columnMapping.maxColumnId"
ENABLE_TYPE_WIDENING: Final = "delta.enableTypeWidening"
