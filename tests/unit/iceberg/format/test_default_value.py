"""Defaults of Delta columns: literals in Iceberg's JSON, and nothing for the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V3, agree, opened, twin
from twinlake.errors import CompatViolation
from twinlake.iceberg.format.default_value import write_default
from twinlake.iceberg.format.schema import iceberg_schema
from twinlake.protocol import Metadata
from twinlake.schema import Struct, assign_mapping, parse_ddl, parse_type, render_schema

_EXISTS = '"nullable":true,"metadata":{"EXISTS_DEFAULT":"5",'


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("1", "INT", 1),
        ("-1", "BIGINT", -1),
        ("7L", "BIGINT", 7),
        ("CAST(3 AS INT)", "SMALLINT", 3),
        ("0.5", "FLOAT", 0.5),
        ("0.1", "DOUBLE", 0.1),
        ("5", "DOUBLE", 5.0),
        ("1.5", "DECIMAL(12,3)", "1.500"),
        ("12345678901234567890.5", "DECIMAL(38,10)", "12345678901234567890.5000000000"),
        ("'1.5'", "DECIMAL(38,10)", "1.5000000000"),
        ("' 12 '", "INT", 12),
        ("true", "BOOLEAN", True),
        ("'it''s'", "STRING", "it's"),
        ("''", "STRING", ""),
        ("X'00ff'", "BINARY", "00ff"),
        ("DATE'2024-02-29'", "DATE", "2024-02-29"),
        ("CAST('2024-02-29' AS DATE)", "DATE", "2024-02-29"),
        ("TIMESTAMP'2024-01-01 01:00:00+01:00'", "TIMESTAMP", "2024-01-01T00:00:00.000000+00:00"),
        (
            "TIMESTAMP_NTZ'2024-01-01 00:00:00.000001'",
            "TIMESTAMP_NTZ",
            "2024-01-01T00:00:00.000001",
        ),
    ],
)
def test_literals(text: str, kind: str, expected: Any) -> None:
    found = write_default(text, parse_type(kind))
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("NULL", "INT"),
        ("current_date()", "DATE"),
        ("current_timestamp", "TIMESTAMP"),
        # In the zone of whoever writes.
        ("TIMESTAMP'2024-01-01 00:00:00'", "TIMESTAMP"),
        ("DATE'2024-01-01'", "TIMESTAMP"),
        ("uuid()", "STRING"),
        ("1 + 1", "INT"),
        ("other", "STRING"),
        ("1.5", "INT"),
        ("300", "TINYINT"),
        ("'many'", "INT"),
        ("'NaN'", "DECIMAL(4,2)"),
        ("1.2345", "DECIMAL(4,2)"),
        ("CAST('NaN' AS DOUBLE)", "DOUBLE"),
        ("1e400", "DOUBLE"),
        ("array(1)", "ARRAY<INT>"),
        ("'", "STRING"),
        ("", "STRING"),
    ],
)
def test_what_is_no_literal_of_the_type_gives_none(text: str, kind: str) -> None:
    assert write_default(text, parse_type(kind)) is None


def mapped(ddl: str) -> Metadata:
    schema = parse_ddl(ddl)
    assert isinstance(schema, Struct)
    found, _ = assign_mapping(schema, name_for=lambda number: f"col-{number}", nested_ids=True)
    return Metadata(id="t", schema_string=render_schema(found))


def test_format_3_has_the_defaults_that_are_literals() -> None:
    metadata = mapped("a INT DEFAULT 7, b DATE DEFAULT current_date(), c STRING")

    fields = iceberg_schema(metadata, format_version=3).to_dict()["fields"]

    assert [field.get("write-default") for field in fields] == [7, None, None]
    assert not any("initial-default" in field for field in fields)
    assert iceberg_schema(metadata, format_version=3) != iceberg_schema(
        mapped("a INT DEFAULT 8, b DATE, c STRING"), format_version=3
    )


def test_format_2_needs_none_of_them() -> None:
    assert iceberg_schema(mapped("a INT DEFAULT 7, b DATE DEFAULT current_date()")) == (
        iceberg_schema(mapped("a INT, b DATE"))
    )


@pytest.mark.parametrize("version", [2, 3])
def test_values_for_files_that_lack_the_column_are_refused(version: int) -> None:
    metadata = mapped("a INT, s STRUCT<b: INT>")
    text = metadata.schema_string.replace('"nullable":true,"metadata":{', _EXISTS)

    with pytest.raises(CompatViolation) as refused:
        iceberg_schema(replace(metadata, schema_string=text), format_version=version)

    assert [text.split()[0] for text in refused.value.fields["problems"]] == ["a", "s.b", "s"]


def test_a_table_with_defaults_opens_and_reads(tmp_path: Path) -> None:
    properties = {**V3, "delta.feature.allowColumnDefaults": "supported"}
    ddl = "id INT, n DECIMAL(9,2) DEFAULT 1.5, at TIMESTAMP DEFAULT TIMESTAMP'2024-01-01T00:00:00Z'"
    table = twin(tmp_path, ddl, properties=properties)
    table = append(table, tmp_path, [{"id": 1}])

    agree(table, tmp_path)

    schema = opened(tmp_path).schema()
    assert [field.write_default is None for field in schema.fields] == [True, False, False]
    assert not any(field.initial_default for field in schema.fields)
