"""``sql``: statements of SQL on tables by name or path."""

from twinlake.spark.statements.concern import may_concern
from twinlake.spark.statements.execution import sql, sql_rows

__all__ = ["may_concern", "sql", "sql_rows"]
