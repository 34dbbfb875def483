from __future__ import annotations

import pytest

from twinlake.schema import (
    ColumnMappingMode,
    assign_mapping,
    drop_column,
    is_readable_as,
    keeps_columns,
    parse_ddl,
    rename_column,
)

NONE, NAME = ColumnMappingMode.NONE, ColumnMappingMode.NAME


@pytest.mark.parametrize(
    ("written", "read", "expected"),
    [
        ("a INT", "a INT", True),
        ("a INT", "b INT, a INT", True),
        ("a INT, b INT", "a INT", False),
        ("a INT", "A INT", False),
        ("a INT NOT NULL", "a INT", True),
        ("a INT", "a INT NOT NULL", False),
        ("a INT", "a BIGINT", False),
        ("s STRUCT<x: INT>", "s STRUCT<x: INT, y: INT>", True),
        ("s STRUCT<x: INT, y: INT>", "s STRUCT<x: INT>", False),
        ("l ARRAY<STRUCT<x: INT>>", "l ARRAY<STRUCT<x: INT, y: INT>>", True),
        ("l ARRAY<INT>", "l ARRAY<BIGINT>", False),
        ("m MAP<STRING, STRUCT<x: INT>>", "m MAP<STRING, STRUCT<x: INT, y: INT>>", True),
        ("m MAP<INT, INT>", "m MAP<BIGINT, INT>", False),
        ("a INT", "a STRUCT<x: INT>", False),
    ],
)
def test_which_schemas_read_which_files(written: str, read: str, expected: bool) -> None:
    assert is_readable_as(parse_ddl(written), parse_ddl(read)) is expected


def test_renamed_and_dropped_columns_are_found_by_their_names_in_files() -> None:
    plain = parse_ddl("a INT, s STRUCT<x: INT, y: INT>")
    mapped, _ = assign_mapping(plain, name_for=lambda number: f"col-{number}", keep_names=True)
    assert keeps_columns(mapped, NAME, mapped, NAME)
    renamed = rename_column(mapped, ("s", "x"), "z", mode=NAME)
    dropped = drop_column(mapped, ("a",), mode=NAME)
    for changed in (renamed, dropped):
        assert not keeps_columns(mapped, NAME, changed, NAME)
        assert not keeps_columns(plain, NONE, changed, NAME)
    # Added columns are no reason; nor is a table that gets column mapping.
    assert keeps_columns(dropped, NAME, mapped, NAME)
    assert keeps_columns(plain, NONE, mapped, NAME)
    assert not keeps_columns(mapped, NAME, plain, NONE)
    assert keeps_columns(plain, NONE, parse_ddl("b INT"), NONE)
