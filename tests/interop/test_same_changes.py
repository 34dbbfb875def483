"""The same changes here (policy ``minimal``) and in Delta Spark leave the same table behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from twinlake.errors import TwinlakeError
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SEQUENCES: dict[str, list[dict[str, str]]] = {
    "one-by-one": [
        {"delta.appendOnly": "true"},
        {"delta.checkpointInterval": "20"},
        {"delta.enableChangeDataFeed": "true"},
        {"delta.enableInCommitTimestamps": "true"},
        {"delta.columnMapping.mode": "name"},
        {"delta.enableTypeWidening": "true"},
        {"delta.checkpointPolicy": "v2"},
        {"delta.enableDeletionVectors": "true"},
        {"delta.enableRowTracking": "true"},
        {"delta.feature.vacuumProtocolCheck": "supported"},
    ],
    "versions-first": [
        {"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"},
        {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"},
        {"delta.columnMapping.mode": "name"},
        {"delta.enableDeletionVectors": "true", "delta.appendOnly": "true"},
    ],
    "lists-first": [
        {"delta.minReaderVersion": "3", "delta.minWriterVersion": "7"},
        {"delta.enableChangeDataFeed": "true"},
        {"delta.feature.identityColumns": "supported"},
        {"delta.feature.deletionVectors": "supported"},
    ],
}
CREATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "plain": ("id BIGINT", {}),
    "append-only": ("id BIGINT", {"delta.appendOnly": "true"}),
    "not-null": ("id BIGINT NOT NULL", {}),
    "column-mapping": ("id BIGINT", {"delta.columnMapping.mode": "id"}),
    "row-tracking": ("id BIGINT", {"delta.enableRowTracking": "true"}),
    "change-data-feed": ("id BIGINT", {"delta.enableChangeDataFeed": "true"}),
    "timestamp-ntz": ("id BIGINT, at TIMESTAMP_NTZ", {}),
    "generated": ("id BIGINT, twice BIGINT GENERATED ALWAYS AS (id * 2)", {}),
    "identity": ("id BIGINT GENERATED ALWAYS AS IDENTITY, v INT", {}),
    "defaults": (
        "id BIGINT, v INT DEFAULT 7",
        {"delta.feature.allowColumnDefaults": "supported"},
    ),
    "no-defaults": (
        "id BIGINT",
        {"delta.appendOnly": "true", "delta.ignoreProtocolDefaults": "true"},
    ),
    "explicit": ("id BIGINT", {"delta.minReaderVersion": "1", "delta.minWriterVersion": "3"}),
    "many": (
        "id BIGINT, v VARIANT",
        {
            "delta.enableDeletionVectors": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.checkpointPolicy": "v2",
        },
    ),
}


def _listed(properties: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())


def _spark_create(
    spark: SparkSession, path: Path, columns: str, properties: dict[str, str]
) -> Table:
    given = f" TBLPROPERTIES ({_listed(properties)})" if properties else ""
    spark.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta{given}")
    return Table.open(path)


@pytest.mark.parametrize("name", CREATIONS)
def test_new_table_has_the_protocol_of_delta_spark(
    name: str, delta_spark: SparkSession, tmp_path: Path
) -> None:
    columns, properties = CREATIONS[name]
    theirs = _spark_create(delta_spark, tmp_path / "theirs", columns, properties)
    ours = Table.create(tmp_path / "ours", columns, properties=properties, policy="minimal")
    assert_same_metadata(ours, theirs)


def test_new_clustered_table_is_that_of_delta_spark(
    delta_spark: SparkSession, tmp_path: Path
) -> None:
    columns = "id BIGINT, who STRUCT<first: STRING>"
    delta_spark.sql(
        f"CREATE TABLE delta.`{tmp_path / 'theirs'}` ({columns}) USING delta "
        "CLUSTER BY (id, who.first)"
    )
    theirs = Table.open(tmp_path / "theirs")
    ours = Table.create(
        tmp_path / "ours", columns, cluster_by=["id", "who.first"], policy="minimal"
    )
    assert_same_metadata(ours, theirs)
    assert _domains(ours) == _domains(theirs)
    assert ours.detail().clustering_columns == theirs.detail().clustering_columns


def _domains(table: Table) -> dict[str, Any]:
    domains = table.snapshot.domains.values()
    return {domain.domain: json.loads(domain.configuration) for domain in domains}


def assert_same_metadata(ours: Table, theirs: Table) -> None:
    """Protocol, schema, partitioning and properties are equal but for names drawn at random."""
    assert ours.protocol == theirs.protocol
    assert _settled_schema(ours) == _settled_schema(theirs)
    assert ours.metadata.partition_columns == theirs.metadata.partition_columns
    assert _settled(ours) == _settled(theirs)


def _settled(table: Table) -> dict[str, str]:
    # A barrier's version counts the commits before it, and Delta Spark makes some empty ones.
    drawn = ("materialized", "EnablementTimestamp", "requireCheckpointProtectionBeforeVersion")
    return {
        key: "random" if any(name in key for name in drawn) else value
        for key, value in table.properties.items()
    }


def _settled_schema(table: Table) -> Any:
    """The schema with physical names that say no more than that they were drawn."""
    key = "delta.columnMapping.physicalName"

    def settle(value: dict[str, Any]) -> dict[str, Any]:
        return value | {key: "random"} if value.get(key, "").startswith("col-") else value

    return json.loads(table.metadata.schema_string, object_hook=settle)


@pytest.mark.parametrize("name", SEQUENCES)
def test_property_changes_raise_the_protocol_as_in_delta_spark(
    name: str, delta_spark: SparkSession, tmp_path: Path
) -> None:
    theirs_path = tmp_path / "theirs"
    _spark_create(delta_spark, theirs_path, "id BIGINT, name STRING", {})
    ours = Table.create(tmp_path / "ours", "id BIGINT, name STRING", policy="minimal")
    for properties in SEQUENCES[name]:
        delta_spark.sql(
            f"ALTER TABLE delta.`{theirs_path}` SET TBLPROPERTIES ({_listed(properties)})"
        )
        ours = ours.set_properties(properties)
        theirs = Table.open(theirs_path)
        assert (properties, ours.protocol) == (properties, theirs.protocol)
    assert _settled(ours).keys() == _settled(theirs).keys()


Step = tuple[str, "Callable[[Table], Table]"]

CHANGES: dict[str, tuple[str, dict[str, str], list[Step]]] = {
    "constraints": (
        "id BIGINT, name STRING",
        {},
        [
            (
                "ADD CONSTRAINT positive CHECK (id > 0)",
                lambda t: t.add_constraint("positive", "id > 0"),
            ),
            ("ALTER COLUMN id COMMENT 'key'", lambda t: t.alter_column("id", comment="key")),
            ("DROP CONSTRAINT positive", lambda t: t.drop_constraint("positive")),
            ("DROP FEATURE checkConstraints", lambda t: t.drop_feature("checkConstraints")),
        ],
    ),
    "columns": (
        "id BIGINT NOT NULL, who STRUCT<first: STRING, age: INT>, m MAP<STRING, ARRAY<INT>>",
        {},
        [
            (
                "ADD COLUMNS (a INT COMMENT 'it\\'s' FIRST)",
                lambda t: t.add_column("a INT COMMENT 'it\\'s'", first=True),
            ),
            ("ALTER COLUMN id DROP NOT NULL", lambda t: t.alter_column("id", nullable=True)),
            ("ALTER COLUMN a AFTER id", lambda t: t.alter_column("a", after="id")),
            (
                "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
                lambda t: t.set_properties({"delta.columnMapping.mode": "name"}),
            ),
            (
                "ADD COLUMNS (who.city STRING AFTER first)",
                lambda t: t.add_column("who.city STRING", after="first"),
            ),
            (
                "RENAME COLUMN who.first TO given",
                lambda t: t.rename_column("who.first", "given"),
            ),
            ("DROP COLUMN who.age", lambda t: t.drop_column("who.age")),
            ("DROP COLUMNS (a, m)", lambda t: t.drop_column("a", "m")),
            (
                "ADD COLUMNS (s STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>)",
                lambda t: t.add_column("s STRUCT<x: INT, y: ARRAY<STRUCT<z: INT>>>"),
            ),
        ],
    ),
    "widening": (
        "a SMALLINT, m MAP<STRING, INT>, s STRUCT<d: DECIMAL(5,2)>",
        {"delta.enableTypeWidening": "true"},
        [
            ("ALTER COLUMN a TYPE INT", lambda t: t.widen_column("a", "INT")),
            ("ALTER COLUMN a TYPE BIGINT", lambda t: t.widen_column("a", "BIGINT")),
            ("ALTER COLUMN m.value TYPE BIGINT", lambda t: t.widen_column("m.value", "BIGINT")),
            (
                "ALTER COLUMN s.d TYPE DECIMAL(10,4)",
                lambda t: t.widen_column("s.d", "DECIMAL(10,4)"),
            ),
        ],
    ),
    "drops": (
        "id BIGINT",
        {
            "delta.enableDeletionVectors": "true",
            "delta.enableRowTracking": "true",
            "delta.enableInCommitTimestamps": "true",
            "delta.checkpointPolicy": "v2",
        },
        [
            (
                "UNSET TBLPROPERTIES IF EXISTS ('nothing', 'delta.appendOnly')",
                lambda t: t.unset_properties(["nothing", "delta.appendOnly"], if_exists=True),
            ),
            ("DROP FEATURE inCommitTimestamp", lambda t: t.drop_feature("inCommitTimestamp")),
            ("DROP FEATURE deletionVectors", lambda t: t.drop_feature("deletionVectors")),
            ("DROP FEATURE rowTracking", lambda t: t.drop_feature("rowTracking")),
        ],
    ),
}


def _said(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters, but of described columns only which they are and where they were put.

    Delta Spark shortens the types of nested columns, and gives the metadata before the change.
    """
    said = dict(parameters)
    if "column" in said:
        said["column"] = json.loads(said["column"])["name"]
    if "columns" in said and "{" in said["columns"]:
        listed = json.loads(said["columns"])
        said["columns"] = [(c["column"]["name"], c.get("position")) for c in listed]
    return said


@pytest.mark.parametrize("name", CHANGES)
def test_same_changes_leave_the_same_table(
    name: str, delta_spark: SparkSession, tmp_path: Path
) -> None:
    columns, properties, steps = CHANGES[name]
    path = tmp_path / "theirs"
    _spark_create(delta_spark, path, columns, properties)
    ours = Table.create(tmp_path / "ours", columns, properties=properties, policy="minimal")
    for text, step in steps:
        delta_spark.sql(f"ALTER TABLE delta.`{path}` {text}")
        ours, theirs = step(ours), Table.open(path)
        assert_same_metadata(ours, theirs)
        # Whoever filters history by operation or reads a parameter finds the same names.
        mine, other = ours.history(1)[0], theirs.history(1)[0]
        assert mine.operation == other.operation
        assert _said(mine.operation_parameters) == _said(other.operation_parameters)
    assert _domains(ours) == _domains(theirs)


@pytest.mark.parametrize(
    ("text", "step", "reason"),
    [
        (
            "ADD COLUMNS (at TIMESTAMP_NTZ)",
            lambda t: t.add_column("at TIMESTAMP_NTZ"),
            "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
        ),
        (
            "DROP COLUMN name",
            lambda t: t.drop_column("name"),
            "DELTA_UNSUPPORTED_DROP_COLUMN",
        ),
        (
            "RENAME COLUMN name TO other",
            lambda t: t.rename_column("name", "other"),
            "DELTA_UNSUPPORTED_RENAME_COLUMN",
        ),
        (
            "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id')",
            lambda t: t.set_properties({"delta.columnMapping.mode": "id"}),
            "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        ),
        (
            "SET TBLPROPERTIES ('delta.constraints.c' = 'id > 0')",
            lambda t: t.set_properties({"delta.constraints.c": "id > 0"}),
            "DELTA_ADD_CONSTRAINTS",
        ),
        (
            "SET TBLPROPERTIES ('delta.notThere' = '1')",
            lambda t: t.set_properties({"delta.notThere": "1"}),
            "DELTA_UNKNOWN_CONFIGURATION",
        ),
        (
            "SET TBLPROPERTIES ('delta.feature.notThere' = 'supported')",
            lambda t: t.set_properties({"delta.feature.notThere": "supported"}),
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        ),
        (
            "DROP FEATURE appendOnly",
            lambda t: t.drop_feature("appendOnly"),
            "DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE",
        ),
        (
            "DROP FEATURE rowTracking",
            lambda t: t.drop_feature("rowTracking"),
            "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
        ),
        (
            "DROP CONSTRAINT nobody",
            lambda t: t.drop_constraint("nobody"),
            "DELTA_CONSTRAINT_DOES_NOT_EXIST",
        ),
    ],
)
def test_both_refuse_for_the_same_reason(
    text: str,
    step: Callable[[Table], Table],
    reason: str,
    refusing: tuple[Path, Path],
    delta_spark: SparkSession,
) -> None:
    path, ours = refusing
    with pytest.raises(Exception) as theirs:
        delta_spark.sql(f"ALTER TABLE delta.`{path}` {text}")
    with pytest.raises(TwinlakeError) as refused:
        step(Table.open(ours, policy="minimal"))
    assert f"[{reason}" in str(theirs.value)
    assert refused.value.delta_class == reason


@pytest.fixture(scope="module")
def refusing(
    delta_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """A plain table of theirs and one of ours; no refused change touches them."""
    folder = tmp_path_factory.mktemp("refusing")
    columns = "id BIGINT, name STRING"
    _spark_create(delta_spark, folder / "theirs", columns, {})
    Table.create(folder / "ours", columns, policy="minimal")
    return folder / "theirs", folder / "ours"
