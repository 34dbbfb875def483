"""VACUUM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from twinlake.errors import Code, UnsupportedFeature, UserError
from twinlake.spark.delta_settings import RETENTION_CHECK, retention_check
from twinlake.spark.read.file_list import hadoop_root

if TYPE_CHECKING:
    from typing import Literal

    from pyspark.sql import DataFrame

    from twinlake.spark.statements.queries.statement import SparkStatement
    from twinlake.spark.statements.syntax.cursor import NameParts, TokenCursor

__all__ = ["VacuumStatement"]

_TOO_SHORT: Final = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumStatement:
    """``VACUUM table [FULL | LITE] [USING INVENTORY ...] [RETAIN n HOURS] [DRY RUN]``."""

    table: NameParts
    mode: Literal["full", "lite"] = "full"
    inventory: bool = False
    hours: float | None = None
    dry_run: bool = False

    @classmethod
    def parse(cls, cursor: TokenCursor) -> Self | None:
        """The statement, if it is one; its parts come in any order."""
        if not cursor.take("VACUUM"):
            return None
        table = cursor.table()
        lite = inventory = dry_run = False
        hours = None
        while not cursor.at_end:
            if cursor.take("LITE"):
                lite = True
            elif cursor.take("USING", "INVENTORY"):
                inventory = True
                if cursor.sees("("):
                    cursor.bracketed_text()
                else:
                    cursor.name()
            elif cursor.take("RETAIN"):
                hours = cursor.number()
                cursor.expect("HOURS")
            elif cursor.take("DRY", "RUN"):
                dry_run = True
            elif not cursor.take("FULL"):
                cursor.refuse("expected LITE, FULL, RETAIN n HOURS or DRY RUN")
        mode: Literal["full", "lite"] = "lite" if lite else "full"
        return cls(table=table, mode=mode, inventory=inventory, hours=hours, dry_run=dry_run)

    def run(self, statement: SparkStatement) -> DataFrame:
        """The files that would go, or the folder of the table."""
        if self.inventory:
            raise UnsupportedFeature(
                Code.NOT_YET,
                "VACUUM USING INVENTORY is not supported yet.",
                why="twinlake lists the folder of the table itself",
                fix="Leave USING INVENTORY out.",
                fields={"name": "VACUUM USING INVENTORY"},
            )
        spark = statement.spark
        table = statement.names.require(self.table, "VACUUM").open(spark)
        try:
            done = table.vacuum(
                self.hours,
                dry_run=self.dry_run,
                mode=self.mode,
                enforce_retention=retention_check(spark),
                spark=spark,
            )
        except UserError as error:
            if error.delta_class == _TOO_SHORT:
                error.fix = (
                    "Keep the files for longer. Only if nobody reads or writes the table, switch "
                    f"the check off: `SET {RETENTION_CHECK} = false`."
                )
            raise
        root = hadoop_root(table.location)
        # Delta lists folders that would go as well.
        gone = [f"{root}/{path}" for path in (*done.files, *done.directories)]
        shown = gone if self.dry_run else [root]
        return statement.rows([(path,) for path in shown], "path STRING")
