"""The words of Delta's messages, by error class: programs look for them in the text of an error.

A row is the part of Delta's message that stays the same from one error to the next, with
``{field}`` for values that an error of twinlake carries in its fields. ``|`` separates parts, and a
part whose field an error does not have is left out; ``{field:-}`` asks for a field and does not
show it. Advice is not among them: the error's own why and fix say what to do in twinlake. Checked
against the messages in the jars of Delta Spark 4.4.0 and Spark 4.1.
"""

from __future__ import annotations

from string import Formatter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ERROR_MESSAGES", "message_of"]

_CONFLICT: Final = "Transaction conflict detected"
_ABSENT: Final[tuple[Any, ...]] = (None, "", [], ())
_NOT_SHOWN: Final = "-"

_DELTA: Final[Mapping[str, str]] = {
    "ADD_COLUMN_PARENT_NOT_STRUCT": ("Cannot add |{path} |because its parent is not a StructType."),
    "ADD_CONSTRAINTS": "Please use ALTER TABLE ADD CONSTRAINT to add CHECK constraints.",
    "AGGREGATE_IN_GENERATED_COLUMN": "A generated column cannot use an aggregate expression",
    "AGGREGATION_NOT_SUPPORTED": "Aggregate functions are not supported in the |{place}",
    "ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED": (
        "ALTER TABLE CHANGE COLUMN is not supported for changing column| {path}"
    ),
    "BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION": (
        'Operation "|{operation}|" is not allowed when the table has enabled change data feed '
        "(CDF) and has undergone schema changes using DROP COLUMN or RENAME COLUMN."
    ),
    "CANNOT_DROP_CHECK_CONSTRAINT_FEATURE": "Cannot drop the CHECK constraints table feature.",
    "CANNOT_DROP_GEOSPATIAL_FEATURE": "Cannot drop the geospatial table feature.",
    "CANNOT_MODIFY_APPEND_ONLY": "This table is configured to only allow appends.",
    "CANNOT_MODIFY_TABLE_PROPERTY": (
        "The Delta table configuration |{keys} |cannot be specified by the user"
    ),
    "CANNOT_RESTORE_TABLE_VERSION": (
        "Cannot restore table to version |{version}. |Available versions: [{first}, {last}]."
    ),
    "CANNOT_RESTORE_TIMESTAMP_EARLIER": (
        "Cannot restore table to timestamp |as it is before the earliest version available."
    ),
    "CANNOT_RESTORE_TIMESTAMP_GREATER": (
        "Cannot restore table to timestamp |as it is after the latest version available."
    ),
    "CANNOT_USE_ALL_COLUMNS_FOR_PARTITION": "Cannot use all columns for partition columns",
    "CANNOT_VACUUM_LITE": (
        "VACUUM LITE cannot delete all eligible files as some files are not referenced by the "
        "Delta log."
    ),
    "CAST_OVERFLOW_IN_TABLE_WRITE": (
        "Failed to write a value of |{from} |type into the |{to} |type column |{column} |"
        "due to an overflow."
    ),
    "CDC_START_VERSION_AFTER_LATEST": (
        "Start version |{start} |for change data feed exceeds the latest table version| {latest}"
    ),
    "CHANGE_DATA_FEED_INCOMPATIBLE_DATA_SCHEMA": ("failed because of an incompatible data schema."),
    "CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE": (
        "failed because of an incompatible schema change."
    ),
    "CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED": (
        "CLUSTER BY is not supported because the following column(s): |{columns} |"
        "don't support data skipping."
    ),
    "CLUSTERING_COLUMNS_MISMATCH": (
        "The provided clustering columns do not match the existing table's."
    ),
    "CLUSTER_BY_WITH_PARTITIONED_BY": "Clustering and partitioning cannot both be specified.",
    "COLUMN_NOT_FOUND_IN_SCHEMA": "Couldn't find column |{path}",
    "COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE": "Found nested NullType in column |{columns}",
    "CONCURRENT_APPEND": (
        f"{_CONFLICT}. a concurrent |{{operation}} |added data to table |"
        "{table} |committed at version |{winner}"
    ),
    "CONCURRENT_DELETE_DELETE": (
        f"{_CONFLICT}, a concurrent |{{operation}} |deleted data from table |{{table}} |"
        "(committed at version |{winner}|) that this transaction attempted to delete."
    ),
    "CONCURRENT_DELETE_READ": (
        f"{_CONFLICT}, a concurrent |{{operation}} |deleted data from table |{{table}} |"
        "(committed at version |{winner}|) that this transaction read."
    ),
    "CONCURRENT_TRANSACTION": (
        "ConcurrentTransactionException: This error occurs when multiple streaming queries are "
        "using the same checkpoint to write into this table."
    ),
    "CONCURRENT_WRITE": (
        "ConcurrentWriteException: A concurrent transaction has written new data since the current "
        "transaction read the table."
    ),
    "CONFLICT_SET_COLUMN": "There is a conflict from these SET columns: |{columns}",
    "CONSTRAINT_ALREADY_EXISTS": "Constraint '|{constraint}|' already exists.",
    "CONSTRAINT_DATA_TYPE_MISMATCH": (
        "because this column is referenced by the following check constraint(s):"
    ),
    "CONSTRAINT_DEPENDENT_COLUMN_CHANGE": (
        "Cannot alter column |{columns} |"
        "because this column is referenced by the following check constraint(s):"
    ),
    "CONSTRAINT_DOES_NOT_EXIST": "Cannot drop nonexistent constraint |{constraint}",
    "CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH": (
        "Creating path-based Delta table with a different location isn't supported."
    ),
    "CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION": "Table name or location has to be specified.",
    "CREATE_TABLE_SCHEME_MISMATCH": (
        "The specified schema does not match the existing schema at |{location}"
    ),
    "CREATE_TABLE_WITH_DIFFERENT_CLUSTERING": (
        "The specified clustering columns do not match the existing clustering columns at |"
        "{location}"
    ),
    "CREATE_TABLE_WITH_DIFFERENT_PARTITIONING": (
        "The specified partitioning does not match the existing partitioning at |{location}"
    ),
    "CREATE_TABLE_WITH_DIFFERENT_PROPERTY": (
        "The specified properties do not match the existing properties at |{location}"
    ),
    "CREATE_TABLE_WITH_NON_EMPTY_LOCATION": (
        "The associated location |('{location}') |is not empty and also not a Delta table."
    ),
    "DELETION_VECTOR_MISSING_NUM_RECORDS": (
        "It is invalid to commit files with deletion vectors that are missing the numRecords "
        "statistic."
    ),
    "DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA": "Cannot drop column from a schema with a single column.",
    "DUPLICATE_ACTIONS_FOUND": "was specified several times.",
    "DUPLICATE_COLUMNS_FOUND": "Found duplicate column(s): |{columns}",
    "DUPLICATE_COLUMNS_ON_INSERT": "Duplicate column names in INSERT clause",
    "EXCEED_CHAR_VARCHAR_LIMIT": "exceeds char/varchar type length limitation.",
    "FAILED_RECOGNIZE_PREDICATE": ("Cannot recognize the predicate| '{predicate}'"),
    "FAILED_TO_MERGE_FIELDS": "Failed to merge fields",
    "FEATURES_PROTOCOL_METADATA_MISMATCH": (
        "Unable to operate on this table because the following table features are enabled in "
        "metadata but not listed in protocol: |{features}"
    ),
    "FEATURES_REQUIRE_MANUAL_ENABLEMENT": (
        "Your table schema requires manually enablement of the following table feature(s): |"
        "{features}"
    ),
    "FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION": (
        "Could not drop the Checkpoint Protection feature. "
        "This feature can only be dropped by truncating history."
    ),
    "FEATURE_DROP_CHECKPOINT_FAILED": (
        "Dropping |{feature} |failed due to a failure in checkpoint creation."
    ),
    "FEATURE_DROP_CONFLICT_REVALIDATION_FAIL": (
        "Cannot drop feature because a concurrent transaction modified the table."
    ),
    "FEATURE_DROP_DEPENDENT_FEATURE": (
        "Cannot drop table feature `|{feature}|` because some other features"
    ),
    "FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY": (
        "Cannot drop `|{feature}|` from this table because this is a delta table property and "
        "not a table feature."
    ),
    "FEATURE_DROP_FEATURE_NOT_PRESENT": (
        "Cannot drop |{feature} |from this table because it is not currently present in the "
        "table's protocol."
    ),
    "FEATURE_DROP_HISTORICAL_VERSIONS_EXIST": (
        "Cannot drop |{feature} |because the Delta log contains historical versions that use the "
        "feature."
    ),
    "FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED": (
        "The particular feature does not require history truncation."
    ),
    "FEATURE_DROP_NONREMOVABLE_FEATURE": (
        "Cannot drop |{feature} |because dropping this feature is not supported."
    ),
    "FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE": (
        "Cannot drop |{feature} |because it is not supported by this Delta version."
    ),
    "FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD": (
        "Dropping |{feature} |was partially successful. The feature is now no longer used in the "
        "current version of the table."
    ),
    "FEATURE_REQUIRES_HIGHER_READER_VERSION": (
        "Unable to enable table feature |{feature} |"
        "because it requires a higher reader protocol version| (current {current})"
    ),
    "FEATURE_REQUIRES_HIGHER_WRITER_VERSION": (
        "Unable to enable table feature |{feature} |"
        "because it requires a higher writer protocol version| (current {current})"
    ),
    "GENERATED_COLUMNS_DATA_TYPE_MISMATCH": (
        "because this column is referenced by the following generated column(s):"
    ),
    "GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE": (
        "Cannot alter column |{columns} |"
        "because this column is referenced by the following generated column(s):"
    ),
    "GENERATED_COLUMNS_EXPR_TYPE_MISMATCH": "The expression type of the generated column",
    "ICEBERG_COMPAT_VIOLATION": "The validation of IcebergCompatV|{version} |has failed.",
    "IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED": (
        "Providing values for GENERATED ALWAYS AS IDENTITY column |{columns} |is not supported."
    ),
    "IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE": "is not supported for IDENTITY columns.",
    "IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED": (
        "UPDATE on IDENTITY column |{columns} |is not supported."
    ),
    "ILLEGAL_OPTION": "Invalid value '|{value}|' for option '|{option}|'",
    "INSERT_COLUMN_ARITY_MISMATCH": ("target table has"),
    "INVALID_CDC_RANGE": (
        "CDC range from start |{start} |to end |{end} |was invalid. End cannot be before start."
    ),
    "INVALID_CHARACTERS_IN_COLUMN_NAMES": (
        "Found invalid character(s) among ' ,;{{}}()\\n\\t=' in the column names of your schema."
    ),
    "INVALID_GENERATED_COLUMN_REFERENCES": (
        "A generated column cannot use a non-existent column or another generated column"
    ),
    "INVALID_IDEMPOTENT_WRITES_OPTIONS": ("Invalid options for idempotent Dataframe writes:"),
    "INVALID_PARTITION_COLUMN_TYPE": "as a partition column is not supported.",
    "INVALID_PROTOCOL_DOWNGRADE": "Protocol version cannot be downgraded",
    "INVALID_PROTOCOL_VERSION": (
        'Unsupported Delta protocol version|: table "{table}" |requires reader version |'
        "{min_reader_version} |and writer version |{min_writer_version}"
    ),
    "INVALID_SOURCE_OFFSET_FORMAT": ("The stored source offset format is invalid"),
    "INVALID_TIMESTAMP_FORMAT": (
        "The provided timestamp |{timestamp} |does not match the expected syntax"
    ),
    "LOG_FILE_NOT_FOUND": (
        "Unable to retrieve the delta log files to construct table version |{version}"
    ),
    "MERGE_MISSING_WHEN": "There must be at least one WHEN clause in a MERGE statement.",
    "MERGE_UNRESOLVED_EXPRESSION": (
        "Cannot resolve |{column} |{columns} |in |{place} |given columns"
    ),
    "METADATA_CHANGED": (
        "MetadataChangedException: The metadata of the Delta table |{table} |"
        "has been changed by a concurrent update."
    ),
    "METADATA_MISMATCH": (
        "A metadata mismatch was detected when writing to the Delta table.|"
        "{columns:-} A schema mismatch detected when writing to the Delta table.|"
        "{partitions:-} Partition columns do not match the partition columns of the table."
    ),
    "MISSING_CHANGE_DATA": (
        "Error getting change data for range |[{start} , {end}] |as change data was not recorded "
        "for version"
    ),
    "MISSING_COMMIT_TIMESTAMP": (
        "requires the presence of commitTimestamp in the CommitInfo action."
    ),
    "MISSING_DELTA_TABLE": "`{table}` |is not a Delta table.",
    "MISSING_FILES_UNEXPECTED_VERSION": ("Delta stream cannot resume from version |{version}"),
    "MISSING_NOT_NULL_COLUMN_VALUE": (
        "Column |{columns}|, which has a NOT NULL constraint, is missing from the data being "
        "written into the table."
    ),
    "MULTIPLE_CDC_BOUNDARY": ("arguments provided for CDC read."),
    "MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE": (
        "Cannot perform Merge as multiple source rows matched and attempted to modify the same "
        "target row in the Delta table in possibly conflicting ways."
    ),
    "NEW_CHECK_CONSTRAINT_VIOLATION": (
        "{count} |rows in |{table} |violate the new CHECK constraint| ({expression})"
    ),
    "NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN": (
        "A generated column cannot use a non deterministic expression."
    ),
    "NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED": (
        "Non-deterministic functions are not supported in the |{operation}"
    ),
    "NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION": (
        "When there are more than one MATCHED clauses in a MERGE statement, only the last MATCHED "
        "clause can omit the condition."
    ),
    "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION": (
        "When there are more than one NOT MATCHED BY SOURCE clauses in a MERGE statement, only the "
        "last NOT MATCHED BY SOURCE clause can omit the condition."
    ),
    "NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION": (
        "When there are more than one NOT MATCHED clauses in a MERGE statement, only the last NOT "
        "MATCHED clause can omit the condition"
    ),
    "NON_PARTITION_COLUMN_ABSENT": (
        "Data written into Delta needs to contain at least one non-partitioned column."
    ),
    "NON_PARTITION_COLUMN_REFERENCE": (
        "Predicate references non-partition column| '{columnName}'|. "
        "Only the partition columns may be referenced: |[{columnList}]"
    ),
    "NOT_NULL_CONSTRAINT_VIOLATED": "NOT NULL constraint violated for column: |{expression}.",
    "NO_COMMITS_FOUND": "No commits found at",
    "NO_START_FOR_CDC_READ": ("No startingVersion or startingTimestamp provided for CDC read."),
    "ONEOF_IN_TIMETRAVEL": (
        "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel."
    ),
    "OPERATION_NOT_ALLOWED": (
        "Operation not allowed: |`{operation}` |is not supported for Delta tables"
    ),
    "OPTIMIZE_FULL_NOT_SUPPORTED": (
        "OPTIMIZE FULL is only supported for clustered tables with non-empty clustering columns."
    ),
    "PARTITION_COLUMN_NOT_FOUND": "Partition column |{columns} |not found in schema",
    "PATH_EXISTS": (
        "Cannot write to already existent path |{path} |without setting OVERWRITE = 'true'."
    ),
    "PROTOCOL_CHANGED": (
        "ProtocolChangedException: The protocol version of the Delta table has been changed by a "
        "concurrent update."
    ),
    "PROTOCOL_PROPERTY_NOT_INT": "Protocol property |{properties} |needs to be an integer.",
    "REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA": (
        "RemoveFile created without extended metadata is ineligible for CDC:"
    ),
    "REPLACE_WHERE_MISMATCH": (
        "Written data does not conform to partial table overwrite condition or constraint '|"
        "{predicate}|'."
    ),
    "REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE": (
        "A 'replaceWhere' expression and 'partitionOverwriteMode'='dynamic' cannot both be set in "
        "the DataFrameWriter options."
    ),
    "ROW_ID_ASSIGNMENT_WITHOUT_STATS": "Cannot assign row IDs without row count statistics.",
    "ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION": "Illegal table state was detected.",
    "SCHEMA_CHANGED": "Detected schema change:",
    "SCHEMA_CHANGED_WITH_VERSION": ("Detected schema change in version |{version}:"),
    "SCHEMA_NOT_PROVIDED": "Table schema is not provided.",
    "SHOW_PARTITION_IN_NON_PARTITIONED_TABLE": (
        "SHOW PARTITIONS is not allowed on a table that is not partitioned:"
    ),
    "SOURCE_IGNORE_DELETE": (
        "Detected deleted data |from streaming source at version |{version}|. This is currently "
        "not supported. If you'd like to ignore deletes, set the option 'ignoreDeletes' to 'true'."
    ),
    "SOURCE_TABLE_IGNORE_CHANGES": (
        "Detected a data update |in the source table at version |{version}|. This is currently not "
        "supported. If this is going to happen regularly and you are okay to skip changes, set the "
        "option 'skipChangeCommits' to 'true'."
    ),
    "STARTING_VERSION_AND_TIMESTAMP_BOTH_SET": ("Please either provide"),
    "STATE_RECOVER_ERROR": (
        "of your Delta table could not be recovered while Reconstructing version: |{version}"
    ),
    "STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION": (
        "We've detected one or more non-additive schema change(s)"
    ),
    "STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG": (
        "Streaming read is not supported on tables with read-incompatible schema changes"
    ),
    "TABLE_ALREADY_EXISTS": "Table |{url} |already exists.",
    "TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF": (
        "Currently DeltaTable.forPath only supports hadoop configuration keys starting with"
    ),
    "TABLE_NOT_FOUND": "Delta table |{location} |doesn't exist.",
    "TABLE_ONLY_OPERATION": (
        "is not a Delta table. |{operation} |is only supported for Delta tables."
    ),
    "TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION": (
        "The provided timestamp |is before the earliest version available to this table"
    ),
    "TIMESTAMP_GREATER_THAN_COMMIT": ("Timestamp |is after the table's latest version"),
    "TIMESTAMP_INVALID": (
        "The provided timestamp |({timestamp}) |cannot be converted to a valid timestamp."
    ),
    "TIME_TRAVEL_INVALID_BEGIN_VALUE": ("{option} |needs to be a valid begin value."),
    "UNIVERSAL_FORMAT_VIOLATION": "The validation of Universal Format",
    "UNKNOWN_CONFIGURATION": "Unknown configuration was specified: |{properties}",
    "UNSET_NON_EXISTENT_PROPERTY": (
        "Attempted to unset non-existent property '|{missing}|' in table"
    ),
    "UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP": (
        "ALTER TABLE CHANGE COLUMN is not supported for changing column |{path}"
    ),
    "UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION": (
        "is blocked by the catalog for Catalog-Managed tables."
    ),
    "UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE": (
        "Changing column mapping mode from '|{from}|' to '|{to}|' is not supported."
    ),
    "UNSUPPORTED_DROP_CLUSTERING_COLUMN": (
        "Dropping clustering columns |({columns}) |is not allowed."
    ),
    "UNSUPPORTED_DROP_COLUMN": "DROP COLUMN is not supported for your Delta table.",
    "UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE": (
        "Can only drop nested columns from StructType."
    ),
    "UNSUPPORTED_DROP_PARTITION_COLUMN": "Dropping partition columns |({path}) |is not allowed.",
    "UNSUPPORTED_EXPRESSION": "Unsupported expression type|({expression}) |for",
    "UNSUPPORTED_FEATURES_FOR_READ": (
        'Unsupported Delta read feature: table "|{table}|" requires reader table feature(s) that '
        "are unsupported by Delta Lake"
    ),
    "UNSUPPORTED_FEATURES_FOR_WRITE": (
        'Unsupported Delta write feature: table "|{table}|" requires writer table feature(s) that '
        "are unsupported by Delta Lake"
    ),
    "UNSUPPORTED_FEATURES_IN_CONFIG": (
        "Table features configured in the following Spark configs or Delta table properties are "
        "not recognized by this version of Delta Lake: |{properties}"
    ),
    "UNSUPPORTED_FEATURE_STATUS": "Expecting the status for table feature",
    "UNSUPPORTED_FIELD_UPDATE_NON_STRUCT": (
        "Updating nested fields is only supported for StructType"
    ),
    "UNSUPPORTED_NESTED_FIELD_IN_OPERATION": "Nested field is not supported in the",
    "UNSUPPORTED_RENAME_COLUMN": "Column rename is not supported for your Delta table.",
    "UNSUPPORTED_SCHEMA_DURING_READ": (
        "Delta does not support specifying the schema at read time."
    ),
    "UNSUPPORTED_SUBQUERY": "Subqueries are not supported in the |{place}",
    "UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS": ("Cannot specify time travel in multiple formats."),
    "UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA": (
        "Unable to operate on this table because an unsupported type change was applied."
    ),
    "UPDATE_SCHEMA_MISMATCH_EXPRESSION": "All nested columns must match.",
    "VACUUM_RETENTION_PERIOD_NEGATIVE": "Retention period for Vacuum can't be less than 0 hours.",
    "VACUUM_RETENTION_PERIOD_TOO_SHORT": (
        "The specified VACUUM retention period is too low and may corrupt this Delta table if any "
        "writes are in progress."
    ),
    "VERSIONS_NOT_CONTIGUOUS": "are not contiguous.",
    "VERSION_INVALID": ("The provided version |({version}) |is not a valid version."),
    "VERSION_NOT_FOUND": (
        "Cannot time travel Delta table to version |{version}. |"
        "Available versions: [{earliest}, {latest}]."
    ),
    "VIOLATE_CONSTRAINT_WITH_VALUES": (
        "CHECK constraint |{constraint} |({expression}) |violated by row with values:"
    ),
}

_SPARK: Final[Mapping[str, str]] = {
    "ALL_PARTITION_COLUMNS_NOT_ALLOWED": "Cannot use all columns for partition columns.",
    "CAST_INVALID_INPUT": (
        "The value |{value} |of the type |cannot be cast to |{type} |because it is malformed."
    ),
    "COLUMN_ALREADY_EXISTS": "The column |{columns} |already exists.",
    "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE": (
        "The streaming query was reading from an unexpected Delta table"
    ),
    "DIVIDE_BY_ZERO": "Division by zero.",
    "EXPECT_TABLE_NOT_VIEW": ("expects a table but |{view} |is a view."),
    "FIELD_ALREADY_EXISTS": ("because |{columns} |already exists in"),
    "GENERATED_COLUMN_WITH_DEFAULT_VALUE": (
        "A column cannot have both a default value and a generation expression"
    ),
    "IDENTITY_COLUMN_WITH_DEFAULT_VALUE": (
        "A column cannot have both a default value and an identity column specification"
    ),
    "INCORRECT_NUMBER_OF_ARGUMENTS": ("requires at least"),
    "INSERT_COLUMN_ARITY_MISMATCH": ("Cannot write to |{table}, |the reason is"),
    "INVALID_DEFAULT_VALUE": (
        "because the destination column or variable |{column} |has a DEFAULT value| {default}"
    ),
    "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR": (
        "The time travel timestamp expression |{expression} |is invalid."
    ),
    "PARSE_EMPTY_STATEMENT": ("Syntax error, unexpected empty statement."),
    "PARSE_SYNTAX_ERROR": "Syntax error at or near| {excerpt}",
    "PATH_NOT_FOUND": ("Path does not exist: |{path}"),
    "SCHEMA_ALREADY_EXISTS": "Cannot create schema |{namespace} |because it already exists.",
    "SCHEMA_NOT_EMPTY": "Cannot drop a schema |{namespace} |because it contains objects.",
    "SCHEMA_NOT_FOUND": "The schema |{namespace} |cannot be found.",
    "TABLE_OR_VIEW_ALREADY_EXISTS": (
        "Cannot create table or view |{table} |because it already exists."
    ),
    "TABLE_OR_VIEW_NOT_FOUND": "The table or view |{table} |cannot be found.",
    "UNBOUND_SQL_PARAMETER": ("Found the unbound parameter: |{name}"),
    "UNRESOLVED_COLUMN": (
        "A column, variable, or function parameter with name |`{column}` |`{path}` |"
        "cannot be resolved."
    ),
    "UNSUPPORTED_FEATURE": ("The feature is not supported"),
}

#: The words of every class by its full name.
ERROR_MESSAGES: Final[Mapping[str, str]] = {
    **{f"DELTA_{name}": text for name, text in _DELTA.items()},
    **_SPARK,
}


def message_of(name: str | None, fields: Mapping[str, Any]) -> str:
    """What Delta says of an error of this class, or nothing; ``A.B`` is a case of ``A``.

    >>> message_of("DELTA_VERSION_NOT_FOUND", {"version": 9, "earliest": 0, "latest": 3})
    'Cannot time travel Delta table to version 9. Available versions: [0, 3].'
    >>> message_of("DELTA_PATH_EXISTS", {})
    "Cannot write to already existent path without setting OVERWRITE = 'true'."
    """
    text = name or ""
    template = ERROR_MESSAGES.get(text) or ERROR_MESSAGES.get(text.partition(".")[0], "")
    parts = (_filled(part, fields) for part in template.split("|"))
    return "".join(part for part in parts if part is not None).strip()


def _filled(part: str, fields: Mapping[str, Any]) -> str | None:
    """A part with its values; None where one is missing."""
    text = ""
    for words, name, shown, _ in Formatter().parse(part):
        text += words
        if name is not None:
            value = fields.get(name)
            if value in _ABSENT:
                return None
            text += "" if shown == _NOT_SHOWN else _text(value)
    return text


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
