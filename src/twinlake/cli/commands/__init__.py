"""The commands, in the order in which help lists them, with the first sentence of their help."""

from typing import Final

__all__ = ["COMMANDS"]

COMMANDS: Final = {
    "show": ("show:show", "Show a table on one screen."),
    "schema": ("schema:schema", "Show the columns of a table as a tree."),
    "head": ("head:head", "Show the first rows of a table."),
    "query": ("query:query", "Run a SELECT on a table by DuckDB."),
    "sql": ("sql:sql", "Run one statement of SQL on tables by Spark."),
    "stats": ("stats:stats", "Show file sizes, rows and value ranges of a table."),
    "history": ("history:history", "List the commits of a table, newest first."),
    "files": ("files:files", "List the live files of a table with their statistics."),
    "features": ("features:features", "List the table features; with a PATH, those of the table."),
    "check": ("check:check", "Check a table against the rules of Iceberg compatibility."),
    "upgrade": ("upgrade:upgrade", "Upgrade a table to an Iceberg compat feature, step by step."),
    "diff": ("diff:diff", "Show what changed from version V1 to V2 (default: the latest)."),
    "log": ("log:log", "Show the actions of a commit, or the files of the log."),
    "append": (
        "append:append",
        "Append the rows of a Parquet, CSV or JSON lines FILE to a table.",
    ),
    "alter": ("alter:alter", "Change properties, columns, constraints, features, protocol."),
    "restore": ("restore:restore", "Restore the files and metadata of an earlier VERSION."),
    "optimize": ("optimize:optimize", "Compact small files into larger ones."),
    "reorg": ("reorg:reorg", "Rewrite files that have deleted rows or dropped columns."),
    "vacuum": ("vacuum:vacuum", "Delete files that no version within the retention needs."),
    "sync": ("sync:sync", "Bring the Iceberg metadata of tables up to their Delta logs."),
    "verify-twin": (
        "verify_twin:verify_twin",
        "Compare the Delta and the Iceberg side of a table.",
    ),
    "import": ("import_:import_command", "Make a twinlake table of an Iceberg table, in place."),
    "serve": ("serve:serve", "Serve tables to Iceberg clients as an Iceberg REST catalog."),
    "catalog": ("catalog:catalog", "Manage the names of `twinlake serve`."),
    "verify": ("verify:verify", "Check models of commits, and the code that commits."),
    "demo": ("demo:demo", "Run the examples on real tables and show each step."),
    "completion": ("completion:completion", "Print the completion script of a shell."),
}
