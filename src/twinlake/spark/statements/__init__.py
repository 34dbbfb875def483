"""``sql``: statements of SQL on tables by name or path."""

from twinlake.spark.statements.concern import may_concern
from twinlake.spark.statements.execution import sql

__all__ = ["may_concern", "sql"]
