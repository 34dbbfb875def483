"""The rules of icebergCompatV1, V2 and V3."""

from __future__ import annotations

from typing import Final

from twinlake.compat.profiles import kernel, spark
from twinlake.compat.registry.rule_group import KERNEL, SPARK, SPEC, rows
from twinlake.compat.rule import Rule, Scope, Trait
from twinlake.compat.rules import change, protocol, schema
from twinlake.compat.rules import file as files
from twinlake.compat.rules import footer as footers
from twinlake.compat.rules import property as properties
from twinlake.errors import (
    how_to_add_feature,
    how_to_drop_feature,
    how_to_give_up,
    how_to_purge,
    how_to_restore,
    how_to_set,
    how_to_upgrade,
)
from twinlake.protocol import features, keys

__all__ = ["BASE_ROWS"]

_ALL: Final = "ICV1 ICV2 ICV3"
_REWRITE: Final = (
    "Run `twinlake upgrade PATH --yes` or `Table.upgrade(FEATURE, spark=spark)`: it rewrites the "
    "files that do not fit."
)

_PROTOCOL: Final = (
    *rows(
        "01",
        _ALL,
        "The protocol is on writer version 7 and lists the feature",
        protocol.feature_is_listed_on_version_seven,
        reason="The listed feature keeps out writers that would break it unknowingly.",
        fix="Set the property of the version to `true`; that adds the feature to the protocol.",
        subclass="MISSING_REQUIRED_TABLE_FEATURE",
    ),
    *rows(
        "02",
        _ALL,
        "Column mapping is supported",
        protocol.column_mapping_is_supported,
        reason="Iceberg finds columns by id, and column mapping is what gives them ids.",
        fix=f"Run {how_to_add_feature(features.COLUMN_MAPPING)}.",
        subclass="MISSING_REQUIRED_TABLE_FEATURE",
        profiles={KERNEL: kernel.column_mapping_is_readable},
    ),
    *rows(
        "03",
        _ALL,
        "Column mapping is in mode name or id",
        properties.mode_is("name", "id"),
        reason="Without mapping the columns have no ids.",
        fix=f"Run {how_to_set(keys.COLUMN_MAPPING_MODE, 'name')}; new tables may take `id`.",
        subclass="WRONG_REQUIRED_TABLE_PROPERTY",
        profiles={
            SPARK: spark.mode_is("name", "id"),
            KERNEL: kernel.mode_is("name", "id"),
        },
    ),
    *rows(
        "04",
        _ALL,
        "No other version is enabled",
        properties.other_versions_are_off,
        reason="The versions ask for contradicting things.",
        fix="Set the property of the other version to `false` in the same call.",
        subclass="VERSION_MUTUAL_EXCLUSIVE",
    ),
    *rows(
        "05",
        "ICV1 ICV2",
        "Deletion vectors are not in use",
        {
            "ICV1": protocol.deletion_vectors_are_unsupported,
            "ICV2": protocol.deletion_vectors_are_off,
        },
        reason="Iceberg v2 cannot read Delta's deletion vectors: deleted rows would come back.",
        fix=f"Run {how_to_set(keys.ENABLE_DELETION_VECTORS, 'false')}, then {how_to_purge()}.",
        subclass="DELETION_VECTORS_SHOULD_BE_DISABLED",
        profiles={
            SPARK: spark.deletion_vectors_are_and_were_off,
            KERNEL: kernel.deletion_vectors_are_unsupported,
        },
        traits=(Trait.NAMES_FEATURE,),
    ),
    *rows(
        "06",
        "ICV1 ICV2",
        "No live file has a deletion vector",
        files.files_have_no_vectors,
        reason="Rows that a deletion vector hides would come back on the Iceberg side.",
        fix=f"Run {how_to_purge()}.",
        scope=Scope.COMMIT,
        subclass="DELETION_VECTORS_NOT_PURGED",
        # Delta Spark has the name of this error and nothing that raises it.
        profiles={SPARK: None, KERNEL: None},
    ),
)

_COLUMNS: Final = (
    *rows(
        "07",
        "ICV1",
        "No column is an array, a map or void",
        schema.no_collections,
        reason="The first version does not give ids to elements, keys and values.",
        fix="Drop the column, or use `icebergCompatV2`.",
        subclass="UNSUPPORTED_DATA_TYPE",
    ),
    *rows(
        "07",
        "ICV2 ICV3",
        "Every type is one that Iceberg has",
        {"ICV2": schema.allowed_types(2), "ICV3": schema.allowed_types(3)},
        reason="There is no Iceberg type to map it to.",
        fix="Drop the column or change its type.",
        subclass="UNSUPPORTED_DATA_TYPE",
        own={
            "ICV2": {KERNEL: kernel.types_are_known(2)},
            "ICV3": {KERNEL: kernel.types_are_known(3)},
        },
    ),
    *rows(
        "08",
        "ICV2 ICV3",
        "Partition columns have types that Iceberg partitions by",
        schema.partition_types,
        reason="Iceberg keeps partition values in their binary form, and has none for other types.",
        fix="Partition the table by another column.",
        subclass="UNSUPPORTED_PARTITION_DATA_TYPE",
        profiles={KERNEL: kernel.partition_types},
    ),
    *rows(
        "13",
        "ICV2 ICV3",
        "Every column, element, key and value has an id of its own",
        schema.ids_are_whole,
        reason="Iceberg finds elements, keys and values by id, too.",
        fix=f"Run {how_to_upgrade(features.ICEBERG_COMPAT_V2)}: it gives ids to the columns.",
        subclass="WRONG_REQUIRED_TABLE_PROPERTY",
        profiles={KERNEL: kernel.mapping_is_not_halved},
    ),
    *rows(
        "15",
        _ALL,
        "Recorded type changes are ones that Iceberg can do",
        schema.type_changes_suit_iceberg,
        reason="Old files hold the old type, and Iceberg readers cannot promote it.",
        fix=f"Run {how_to_drop_feature(features.TYPE_WIDENING)}: with a SparkSession it rewrites "
        "the files that hold the old type.",
        subclass="UNSUPPORTED_TYPE_WIDENING",
        profiles={KERNEL: kernel.type_changes_suit_iceberg},
    ),
    *rows(
        "16",
        "ICV1 ICV2",
        "No column is a geometry or a geography",
        schema.no_geospatial,
        reason="Iceberg has shapes from its third version on.",
        fix="Drop the column, or use `icebergCompatV3`.",
        subclass="UNSUPPORTED_DATA_TYPE",
    ),
    *rows(
        "17",
        _ALL,
        "No column is an interval",
        schema.no_intervals,
        reason="Iceberg has no intervals.",
        fix="Drop the column or store it as a number.",
        subclass="UNSUPPORTED_DATA_TYPE",
    ),
    *rows(
        "27",
        _ALL,
        "No column is a CHAR",
        schema.no_char,
        reason="Spark fills up CHAR values with spaces when it reads them, and Iceberg readers do "
        "not: a file that holds 'ab' has 'ab   ' on one side only.",
        fix="Make the column VARCHAR or STRING. For a table with rows run "
        f"{how_to_give_up('char')}: it rewrites the files with the spaces, and cannot be done "
        "in place.",
        subclass="UNSUPPORTED_DATA_TYPE",
        # Neither of them looks at it, and Delta Spark appends CHAR values without padding.
        profiles={SPARK: None, KERNEL: None},
        gives_up="char",
    ),
    *rows(
        "28",
        _ALL,
        "No column has a value for the rows of files that lack it",
        schema.no_existence_defaults,
        reason="Spark reads EXISTS_DEFAULT where a file lacks the column, Iceberg reads null.",
        fix=_REWRITE,
        # The protocol does not know the key; Delta Spark 4 never writes it, and reads it.
        profiles={SPARK: None, KERNEL: None},
    ),
)

_THIRD: Final = (
    *rows(
        "18",
        "ICV3",
        "Row tracking is on",
        properties.row_tracking_is_on,
        reason="Iceberg v3 keeps an id and a last change for every row.",
        fix=f"Run {how_to_set(keys.ENABLE_ROW_TRACKING, 'true')}; existing files get "
        "row ids first.",
        subclass="WRONG_REQUIRED_TABLE_PROPERTY",
        profiles={KERNEL: kernel.row_tracking_is_on},
    ),
    *rows(
        "19",
        "ICV3",
        "The version is enabled before row tracking",
        change.row_tracking_comes_later,
        reason="Delta Spark cannot carry row ids that are older than the Iceberg metadata, and the "
        "kernel enables the version for new tables only; the protocol asks for neither.",
        fix=f"Run {how_to_set(keys.ENABLE_ROW_TRACKING, 'false')} first, or check with "
        "the profile `spec`.",
        scope=Scope.CHANGE,
        subclass="WRONG_REQUIRED_TABLE_PROPERTY",
        profiles={SPEC: None, KERNEL: kernel.enabled_at_creation},
    ),
    *rows(
        "20",
        "ICV3",
        "The version stays enabled",
        change.third_version_stays_on,
        reason="What it wrote, row ids and deletion vectors, cannot be read as an older Iceberg.",
        fix="Leave the property `true`, or copy the rows to a new table.",
        scope=Scope.CHANGE,
        subclass="WRONG_REQUIRED_TABLE_PROPERTY",
        profiles={KERNEL: kernel.stays_enabled},
        traits=(Trait.ON_DISABLE,),
    ),
    *rows(
        "21",
        "ICV3",
        "Column defaults are literals of their type",
        schema.defaults_are_literals,
        reason="Iceberg stores the value of a default, not an expression.",
        fix="Write the default value as a literal, or remove it.",
        profiles={KERNEL: kernel.defaults_are_literals},
        gives_up="defaults",
    ),
    *rows(
        "22",
        "ICV3",
        "Row ids in files carry the field ids that Iceberg reserves for them",
        footers.row_tracking_ids,
        reason="Iceberg readers find the ids of rows by these two numbers.",
        fix=_REWRITE,
        scope=Scope.FOOTER,
        subclass="FILES_NOT_ICEBERG_COMPAT",
        profiles={KERNEL: None},
    ),
)

_CHANGES: Final = tuple(
    rows(
        "09",
        _ALL,
        "Partition columns keep their names and their order",
        change.partition_names_stay,
        reason="The Iceberg side has the partitions of the old files under the old names.",
        fix="Keep the partition columns, or create a new table.",
        scope=Scope.CHANGE,
        subclass="REPLACE_TABLE_CHANGE_PARTITION_NAMES",
        # The kernel has a place for this check and nothing in it.
        profiles={KERNEL: None},
    )
)

_FILES: Final = (
    *rows(
        "10",
        _ALL,
        "Statistics of every added file have numRecords",
        files.files_have_row_counts,
        reason="Iceberg manifests need the number of rows of every file.",
        fix="Write statistics, also where `delta.dataSkippingNumIndexedCols` is `0`.",
        scope=Scope.COMMIT,
        profiles={KERNEL: kernel.files_have_statistics},
    ),
    *rows(
        "11",
        _ALL,
        "Files hold the partition columns",
        {
            "ICV1": footers.partitions_come_last,
            "ICV2": footers.partitions_are_in_the_files,
            "ICV3": footers.partitions_are_in_the_files,
        },
        reason="Iceberg reads partition columns from the files like any other.",
        fix=_REWRITE,
        scope=Scope.FOOTER,
        subclass="FILES_NOT_ICEBERG_COMPAT",
        profiles={KERNEL: None},
        traits=(Trait.PROJECTED,),
    ),
    *rows(
        "12",
        "ICV2 ICV3",
        "Files hold timestamps as 64-bit numbers",
        footers.no_int96,
        reason="Iceberg has no 96-bit timestamps.",
        fix=_REWRITE,
        scope=Scope.FOOTER,
        subclass="FILES_NOT_ICEBERG_COMPAT",
        profiles={KERNEL: None},
        traits=(Trait.STORED_VALUES,),
    ),
    *rows(
        "14",
        _ALL,
        "Every node of a file has the field id of its column",
        footers.field_ids_are_right,
        reason="Iceberg finds columns in files by field id, and by nothing else.",
        fix=_REWRITE,
        scope=Scope.FOOTER,
        subclass="FILES_NOT_ICEBERG_COMPAT",
        profiles={KERNEL: None},
        traits=(Trait.NAME_MAPPED,),
    ),
    *rows(
        "24",
        _ALL,
        "Files hold as many rows as their statistics say",
        footers.row_counts_agree,
        reason="The number in the manifest is the one that Iceberg answers count(*) with.",
        fix=_REWRITE,
        scope=Scope.FOOTER,
        subclass="FILES_NOT_ICEBERG_COMPAT",
        profiles={KERNEL: None},
    ),
    *rows(
        "25",
        _ALL,
        "The footer of every file can be read",
        footers.footers_are_readable,
        reason="Nothing can be checked of a file whose footer cannot be read.",
        fix=f"Restore the file from a backup, or run {how_to_restore()} with a version "
        "that does not need it.",
        scope=Scope.FOOTER,
        subclass="FILES_NOT_ICEBERG_COMPAT",
        profiles={KERNEL: None},
        traits=(Trait.UNREADABLE,),
    ),
    *rows(
        "26",
        _ALL,
        "Dates and timestamps before 1900 are in the proleptic Gregorian calendar",
        footers.no_legacy_calendar,
        reason="Spark reads 1500-03-01 of its legacy calendar where Iceberg reads 1500-03-11.",
        fix=_REWRITE,
        scope=Scope.FOOTER,
        subclass="FILES_NOT_ICEBERG_COMPAT",
        # Neither of them looks at the calendar of files.
        profiles={SPARK: None, KERNEL: None},
        traits=(Trait.STORED_VALUES,),
    ),
    *rows(
        "29",
        _ALL,
        "Files hold the values of their partition",
        footers.partition_values_agree,
        reason="Delta readers take partition columns from the log, Iceberg readers from the file.",
        fix=_REWRITE,
        scope=Scope.FOOTER,
        subclass="FILES_NOT_ICEBERG_COMPAT",
        # Neither of them compares the two.
        profiles={SPARK: None, KERNEL: None},
    ),
)

BASE_ROWS: Final[tuple[Rule, ...]] = (*_PROTOCOL, *_COLUMNS, *_THIRD, *_CHANGES, *_FILES)
