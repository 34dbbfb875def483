"""Column paths: text and look-up."""

from __future__ import annotations

import pytest

from twinlake.errors import Code, UserError
from twinlake.schema import (
    ColumnPath,
    field_at,
    parse_ddl,
    parse_path,
    render_path,
    render_type,
    resolve_path,
)

SCHEMA = parse_ddl(
    "id INT NOT NULL, Addr STRUCT<Street: STRING, zip: INT NOT NULL>, "
    "m MAP<STRUCT<k: INT>, ARRAY<STRUCT<`x.y`: DATE>>>"
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a", ("a",)),
        ("m.value.w", ("m", "value", "w")),
        ("a.`b.c`", ("a", "b.c")),
        ("`a``b`", ("a`b",)),
        ("my col", ("my col",)),
        ("größe", ("größe",)),
    ],
)
def test_paths_are_read(source: str, expected: ColumnPath) -> None:
    assert parse_path(source) == expected
    assert parse_path(render_path(expected)) == expected


@pytest.mark.parametrize("source", ["", ".", "a.", ".a", "a..b", "`a", "``", "`a`b", "a`b`", " "])
def test_bad_paths_are_refused(source: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_path(source)
    assert caught.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("path", "resolved", "kind", "nullable"),
    [
        ("ID", "id", "INT", False),
        ("addr.street", "Addr.Street", "STRING", True),
        ("addr.ZIP", "Addr.zip", "INT", False),
        ("m.KEY", "m.key", "STRUCT<k: INT>", False),
        ("m.key.k", "m.key.k", "INT", True),
        ("m.value.element.`X.Y`", "m.value.element.`x.y`", "DATE", True),
        ("m.value.element", "m.value.element", "STRUCT<`x.y`: DATE>", True),
    ],
)
def test_columns_are_found(path: str, resolved: str, kind: str, nullable: bool) -> None:
    field = field_at(SCHEMA, parse_path(path))
    assert (render_type(field.type), field.nullable) == (kind, nullable)
    assert render_path(resolve_path(SCHEMA, parse_path(path))) == resolved


@pytest.mark.parametrize(
    "path",
    [(), ("x",), ("id", "x"), ("addr", "zipp"), ("m", "values"), ("m", "value", "k"), ("",)],
    ids=str,
)
def test_missing_columns_are_reported(path: ColumnPath) -> None:
    with pytest.raises(UserError) as caught:
        field_at(SCHEMA, path)
    assert caught.value.code is Code.COLUMN_NOT_FOUND


def test_near_misses_are_offered() -> None:
    with pytest.raises(UserError) as caught:
        field_at(SCHEMA, ("addr", "zipp"))
    assert "zip" in caught.value.fix
