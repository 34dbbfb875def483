"""Delta's error classes: the kind of exception Delta Spark raises for each, and its SQLSTATE.

Written from the behaviour of Delta Spark 4.4.0, for the classes that errors of twinlake have. The
names stand without their prefix ``DELTA_``, by kind and then by SQLSTATE.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ERROR_CLASSES", "ErrorClass", "ExceptionKind", "error_class"]


class ExceptionKind(Enum):
    """What an exception of the JVM arrives as in PySpark."""

    ANALYSIS = auto()  #: ``AnalysisException``
    PARSE = auto()  #: ``ParseException``, which is an ``AnalysisException``
    ARGUMENT = auto()  #: ``IllegalArgumentException``
    UNSUPPORTED = auto()  #: ``UnsupportedOperationException``
    ARITHMETIC = auto()  #: ``ArithmeticException``
    NUMBER = auto()  #: ``NumberFormatException``, which is an ``IllegalArgumentException``
    CONFLICT = auto()  #: a class of ``delta.exceptions``
    RUNTIME = auto()  #: none of PySpark's own: Delta's arrives as a bare ``Py4JJavaError``


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorClass:
    """One error class."""

    name: str
    kind: ExceptionKind
    sql_state: str | None


_DELTA: Mapping[ExceptionKind, Mapping[str, str]] = {
    ExceptionKind.ANALYSIS: {
        "0A000": "ADD_CONSTRAINTS CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED UNSUPPORTED_EXPRESSION",
        "0AKDC": """
            CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA
            NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP
            UNSUPPORTED_DROP_CLUSTERING_COLUMN UNSUPPORTED_DROP_COLUMN
            UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE UNSUPPORTED_DROP_PARTITION_COLUMN
            UNSUPPORTED_NESTED_FIELD_IN_OPERATION UNSUPPORTED_RENAME_COLUMN UNSUPPORTED_SUBQUERY
        """,
        "0AKDE": "CANNOT_DROP_CHECK_CONSTRAINT_FEATURE CANNOT_DROP_GEOSPATIAL_FEATURE",
        "22003": """
            CANNOT_RESTORE_TABLE_VERSION CANNOT_RESTORE_TIMESTAMP_EARLIER
            CANNOT_RESTORE_TIMESTAMP_GREATER VERSION_NOT_FOUND
        """,
        "22005": "COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE FAILED_TO_MERGE_FIELDS",
        "22007": "INVALID_TIMESTAMP_FORMAT",
        "23512": "NEW_CHECK_CONSTRAINT_VIOLATION",
        "42601": """
            CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION CREATE_TABLE_WITH_NON_EMPTY_LOCATION
            MERGE_MISSING_WHEN MERGE_UNRESOLVED_EXPRESSION NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION
            NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION
            NON_LAST_NOT_MATCHED_CLAUSE_OMIT_CONDITION
        """,
        "42613": "CLUSTER_BY_WITH_PARTITIONED_BY",
        "42616": "UNSET_NON_EXISTENT_PROPERTY",
        "42621": """
            AGGREGATE_IN_GENERATED_COLUMN INVALID_GENERATED_COLUMN_REFERENCES
            NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN
        """,
        "42701": "CONFLICT_SET_COLUMN DUPLICATE_COLUMNS_ON_INSERT",
        "42703": "COLUMN_NOT_FOUND_IN_SCHEMA PARTITION_COLUMN_NOT_FOUND",
        "42704": "CONSTRAINT_DOES_NOT_EXIST",
        "42710": "CONSTRAINT_ALREADY_EXISTS",
        "42711": "DUPLICATE_COLUMNS_FOUND",
        "42808": """
            IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED
        """,
        "42816": """
            TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION TIMESTAMP_GREATER_THAN_COMMIT TIMESTAMP_INVALID
        """,
        "42837": "ALTER_TABLE_CHANGE_COL_NOT_SUPPORTED",
        "42846": "UPDATE_SCHEMA_MISMATCH_EXPRESSION",
        "428FT": "CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
        "42903": "AGGREGATION_NOT_SUPPORTED",
        "42908": "SCHEMA_NOT_PROVIDED",
        "42996": "INVALID_PARTITION_COLUMN_TYPE",
        "42K04": "PATH_EXISTS",
        "42K05": "INVALID_CHARACTERS_IN_COLUMN_NAMES",
        "42K09": """
            CONSTRAINT_DATA_TYPE_MISMATCH CONSTRAINT_DEPENDENT_COLUMN_CHANGE
            GENERATED_COLUMNS_DATA_TYPE_MISMATCH GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE
            GENERATED_COLUMNS_EXPR_TYPE_MISMATCH
        """,
        "42KD3": "ADD_COLUMN_PARENT_NOT_STRUCT",
        "42KD6": "MISSING_PARTITION_COLUMN",
        "42KD7": """
            CREATE_TABLE_SCHEME_MISMATCH CREATE_TABLE_WITH_DIFFERENT_CLUSTERING
            CREATE_TABLE_WITH_DIFFERENT_PARTITIONING CREATE_TABLE_WITH_DIFFERENT_PROPERTY
        """,
        "42KDG": "METADATA_MISMATCH",
        "42P01": "MISSING_DELTA_TABLE TABLE_NOT_FOUND",
        "42P07": "TABLE_ALREADY_EXISTS",
        "42P10": "CLUSTERING_COLUMNS_MISMATCH NON_PARTITION_COLUMN_REFERENCE",
        "44000": "REPLACE_WHERE_MISMATCH",
        "F0000": "UNKNOWN_CONFIGURATION",
        "KD005": "NON_PARTITION_COLUMN_ABSENT",
        "KD006": "NO_COMMITS_FOUND",
    },
    ExceptionKind.ARGUMENT: {
        "0AKDC": "TABLE_FOR_PATH_UNSUPPORTED_HADOOP_CONF",
        "22003": "VACUUM_RETENTION_PERIOD_NEGATIVE VACUUM_RETENTION_PERIOD_TOO_SHORT",
        "42616": "ILLEGAL_OPTION",
        "42K06": "PROTOCOL_PROPERTY_NOT_INT",
    },
    ExceptionKind.UNSUPPORTED: {
        "0AKDC": "UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        "21506": "MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        "42809": "CANNOT_MODIFY_APPEND_ONLY",
        "428H2": "IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
        "42939": "CANNOT_MODIFY_TABLE_PROPERTY",
        "42KD4": "BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION",
        "KD00E": "ICEBERG_COMPAT_VIOLATION UNIVERSAL_FORMAT_VIOLATION",
    },
    ExceptionKind.ARITHMETIC: {
        "22003": "CAST_OVERFLOW_IN_TABLE_WRITE",
    },
    ExceptionKind.CONFLICT: {
        "2D521": """
            CONCURRENT_APPEND CONCURRENT_DELETE_DELETE CONCURRENT_DELETE_READ
            CONCURRENT_TRANSACTION CONCURRENT_WRITE METADATA_CHANGED PROTOCOL_CHANGED
        """,
    },
    ExceptionKind.RUNTIME: {
        "0AKDC": """
            FEATURE_DROP_NONREMOVABLE_FEATURE FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE
            UNSUPPORTED_TYPE_CHANGE_IN_SCHEMA
        """,
        "0AKDE": "UNSUPPORTED_FEATURE_STATUS",
        "22000": "ROW_ID_ASSIGNMENT_WITHOUT_STATS",
        "22001": "EXCEED_CHAR_VARCHAR_LIMIT",
        "22KD0": """
            FEATURE_DROP_CHECKPOINT_FAILED FEATURE_DROP_HISTORICAL_VERSIONS_EXIST
            FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD
        """,
        "23001": "VIOLATE_CONSTRAINT_WITH_VALUES",
        "23502": "MISSING_NOT_NULL_COLUMN_VALUE NOT_NULL_CONSTRAINT_VIOLATED",
        "2D521": "DELETION_VECTOR_MISSING_NUM_RECORDS DUPLICATE_ACTIONS_FOUND",
        "40000": "FEATURE_DROP_CONFLICT_REVALIDATION_FAIL",
        "42000": """
            FEATURES_REQUIRE_MANUAL_ENABLEMENT FEATURE_DROP_FEATURE_IS_DELTA_PROPERTY
            FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED
        """,
        "55000": """
            CANNOT_VACUUM_LITE FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION
            FEATURE_DROP_DEPENDENT_FEATURE FEATURE_DROP_FEATURE_NOT_PRESENT
            FEATURE_REQUIRES_HIGHER_READER_VERSION FEATURE_REQUIRES_HIGHER_WRITER_VERSION
            ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION
        """,
        "56038": """
            UNSUPPORTED_FEATURES_FOR_READ UNSUPPORTED_FEATURES_FOR_WRITE
            UNSUPPORTED_FEATURES_IN_CONFIG
        """,
        "KD004": """
            FEATURES_PROTOCOL_METADATA_MISMATCH INVALID_PROTOCOL_DOWNGRADE INVALID_PROTOCOL_VERSION
            MISSING_COMMIT_TIMESTAMP
        """,
        "KD007": "SCHEMA_CHANGED",
        "KD00C": "VERSIONS_NOT_CONTIGUOUS",
        "XXKDS": "STATE_RECOVER_ERROR",
    },
}

#: Classes of Spark itself that stand for errors of ours.
_SPARK: Mapping[ExceptionKind, Mapping[str, str]] = {
    ExceptionKind.ANALYSIS: {
        "42703": "UNRESOLVED_COLUMN UNRESOLVED_COLUMN.WITH_SUGGESTION",
        "42704": "SCHEMA_NOT_FOUND",
        "42P06": "SCHEMA_ALREADY_EXISTS",
        "42711": "COLUMN_ALREADY_EXISTS",
        "42P01": "TABLE_OR_VIEW_NOT_FOUND",
        "42P07": "TABLE_OR_VIEW_ALREADY_EXISTS",
    },
    ExceptionKind.PARSE: {"42601": "PARSE_SYNTAX_ERROR"},
    ExceptionKind.NUMBER: {"22018": "CAST_INVALID_INPUT"},
}


def _rows(table: Mapping[ExceptionKind, Mapping[str, str]], prefix: str) -> list[ErrorClass]:
    return [
        ErrorClass(name=prefix + name, kind=kind, sql_state=state or None)
        for kind, states in table.items()
        for state, names in states.items()
        for name in names.split()
    ]


#: Every class by its full name.
ERROR_CLASSES: Mapping[str, ErrorClass] = {
    row.name: row for row in (*_rows(_DELTA, "DELTA_"), *_rows(_SPARK, ""))
}


def error_class(name: str | None) -> ErrorClass | None:
    """What is known of a class; ``A.B`` is a case of ``A``.

    >>> error_class("DELTA_METADATA_MISMATCH.SCHEMA").sql_state
    '42KDG'
    """
    text = name or ""
    return ERROR_CLASSES.get(text) or ERROR_CLASSES.get(text.partition(".")[0])
