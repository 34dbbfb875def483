"""Types, fields and everything one can say about a schema without opening a file.

Schema JSON is the text Spark uses too: ``parse_schema(frame.schema.json())`` and
``StructType.fromJson(json.loads(render_schema(schema)))`` convert both ways.

Predicates are loaded when first asked for, because their parser is not cheap to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from twinlake.schema.arrow import (
    PARQUET_FIELD_ID,
    field_to_arrow,
    from_arrow,
    to_arrow,
    type_to_arrow,
)
from twinlake.schema.checks import (
    FORBIDDEN_CHARACTERS,
    SchemaViolation,
    check_schema,
    schema_violations,
)
from twinlake.schema.ddl import (
    parse_ddl,
    parse_field_ddl,
    parse_type,
)
from twinlake.schema.ddl_text import (
    render_ddl,
    render_type,
)
from twinlake.schema.evolution import (
    add_column,
    drop_column,
    move_column,
    rename_column,
    set_comment,
    set_nullable,
    widen_column,
)
from twinlake.schema.hive_paths import (
    HIVE_NULL,
    escape_path_name,
    parse_partition_path,
    render_partition_path,
    unescape_path_name,
)
from twinlake.schema.json_codec import (
    MAX_PRECISION,
    parse_schema,
    render_schema,
    schema_from_dict,
    schema_to_dict,
    type_from_json,
    type_to_json,
)
from twinlake.schema.mapping import (
    ID_KEY,
    MAX_COLUMN_ID_KEY,
    MODE_KEY,
    NESTED_IDS_KEY,
    PHYSICAL_NAME_KEY,
    ColumnMappingMode,
    assign_mapping,
    field_id,
    highest_id,
    logical_path,
    mapping_problems,
    nested_ids,
    physical_name,
    physical_path,
    physical_schema,
    strip_mapping,
)
from twinlake.schema.merge import (
    merge_schemas,
)
from twinlake.schema.metadata_keys import (
    CHAR_VARCHAR_KEY,
    COLLATIONS_KEY,
    COMMENT_KEY,
    CURRENT_DEFAULT_KEY,
    EXISTS_DEFAULT_KEY,
    GENERATION_EXPRESSION_KEY,
    IDENTITY_EXPLICIT_KEY,
    IDENTITY_HIGH_WATER_MARK_KEY,
    IDENTITY_START_KEY,
    IDENTITY_STEP_KEY,
    INVARIANTS_KEY,
    TYPE_CHANGES_KEY,
)
from twinlake.schema.parquet_nodes import LegacyColumn, ParquetNode, Repetition, walk_nodes
from twinlake.schema.partition_values import (
    has_zone,
    is_binary_text,
    parse_partition_value,
    partition_array,
    render_partition_value,
)
from twinlake.schema.paths import (
    change_field,
    change_type,
    field_at,
    parse_path,
    quote_name,
    render_path,
    resolve_path,
    type_at,
)
from twinlake.schema.types import (
    BINARY,
    BOOLEAN,
    BYTE,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    LONG,
    MAX_DEPTH,
    PRIMITIVE_NAMES,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    Array,
    ColumnPath,
    DataType,
    Decimal,
    Geography,
    Geometry,
    Interval,
    Map,
    Primitive,
    Struct,
    StructField,
    UserDefined,
    map_fields,
    walk_fields,
    walk_types,
)
from twinlake.schema.widening import (
    TypeChange,
    can_widen,
    check_type_changes,
    type_changes,
    unsupported_type_changes,
    with_type_change,
)

if TYPE_CHECKING:
    from twinlake.schema.predicates import (
        Expr,
        FileStats,
        evaluate_on,
        is_partition_only,
        parse_predicate,
        prune,
        split_conjuncts,
    )

__all__ = [
    "BINARY",
    "BOOLEAN",
    "BYTE",
    "CHAR_VARCHAR_KEY",
    "COLLATIONS_KEY",
    "COMMENT_KEY",
    "CURRENT_DEFAULT_KEY",
    "DATE",
    "DOUBLE",
    "EXISTS_DEFAULT_KEY",
    "FLOAT",
    "FORBIDDEN_CHARACTERS",
    "GENERATION_EXPRESSION_KEY",
    "HIVE_NULL",
    "IDENTITY_EXPLICIT_KEY",
    "IDENTITY_HIGH_WATER_MARK_KEY",
    "IDENTITY_START_KEY",
    "IDENTITY_STEP_KEY",
    "ID_KEY",
    "INTEGER",
    "INVARIANTS_KEY",
    "LONG",
    "MAX_COLUMN_ID_KEY",
    "MAX_DEPTH",
    "MAX_PRECISION",
    "MODE_KEY",
    "NESTED_IDS_KEY",
    "PARQUET_FIELD_ID",
    "PHYSICAL_NAME_KEY",
    "PRIMITIVE_NAMES",
    "SHORT",
    "STRING",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "TYPE_CHANGES_KEY",
    "VARIANT",
    "VOID",
    "Array",
    "ColumnMappingMode",
    "ColumnPath",
    "DataType",
    "Decimal",
    "Expr",
    "FileStats",
    "Geography",
    "Geometry",
    "Interval",
    "LegacyColumn",
    "Map",
    "ParquetNode",
    "Primitive",
    "Repetition",
    "SchemaViolation",
    "Struct",
    "StructField",
    "TypeChange",
    "UserDefined",
    "add_column",
    "assign_mapping",
    "can_widen",
    "change_field",
    "change_type",
    "check_schema",
    "check_type_changes",
    "drop_column",
    "escape_path_name",
    "evaluate_on",
    "field_at",
    "field_id",
    "field_to_arrow",
    "from_arrow",
    "has_zone",
    "highest_id",
    "is_binary_text",
    "is_partition_only",
    "logical_path",
    "map_fields",
    "mapping_problems",
    "merge_schemas",
    "move_column",
    "nested_ids",
    "parse_ddl",
    "parse_field_ddl",
    "parse_partition_path",
    "parse_partition_value",
    "parse_path",
    "parse_predicate",
    "parse_schema",
    "parse_type",
    "partition_array",
    "physical_name",
    "physical_path",
    "physical_schema",
    "prune",
    "quote_name",
    "rename_column",
    "render_ddl",
    "render_partition_path",
    "render_partition_value",
    "render_path",
    "render_schema",
    "render_type",
    "resolve_path",
    "schema_from_dict",
    "schema_to_dict",
    "schema_violations",
    "set_comment",
    "set_nullable",
    "split_conjuncts",
    "strip_mapping",
    "to_arrow",
    "type_at",
    "type_changes",
    "type_from_json",
    "type_to_arrow",
    "type_to_json",
    "unescape_path_name",
    "unsupported_type_changes",
    "walk_fields",
    "walk_nodes",
    "walk_types",
    "widen_column",
    "with_type_change",
]

_PREDICATES = frozenset(
    (
        "Expr",
        "FileStats",
        "evaluate_on",
        "is_partition_only",
        "parse_predicate",
        "prune",
        "split_conjuncts",
    )
)


if not TYPE_CHECKING:  # a checker takes the imports above and then notices misspelt names

    def __getattr__(name: str) -> Any:
        if name not in _PREDICATES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("twinlake.schema.predicates"), name)
