"""Sessions in which Iceberg Spark itself makes and changes tables, beside Delta Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["iceberg_session"]


def iceberg_session(spark: SparkSession, folder: Path) -> SparkSession:
    """A new session whose catalog ``lake`` is a Hadoop catalog of Iceberg's at a folder."""
    session = spark.newSession()
    catalog = "spark.sql.catalog.lake"
    session.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
    session.conf.set(f"{catalog}.type", "hadoop")
    session.conf.set(f"{catalog}.warehouse", str(folder))
    # Other sessions change the tables, too.
    session.conf.set(f"{catalog}.cache-enabled", "false")
    return session
