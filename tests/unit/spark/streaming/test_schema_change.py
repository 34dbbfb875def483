"""Which changes of columns a stream goes past."""

from __future__ import annotations

import pytest

from twinlake.errors import UserError
from twinlake.protocol import Metadata
from twinlake.schema import parse_ddl, render_schema
from twinlake.spark.streaming.schema_change import SchemaChange
from twinlake.spark.streaming.source_options import SourceOptions

BEFORE = "id INT, name STRING, place STRUCT<city: STRING, zip: INT>, tags ARRAY<INT>"


def metadata(ddl: str) -> Metadata:
    return Metadata(schema_string=render_schema(parse_ddl(ddl)))


@pytest.mark.parametrize(
    ("after", "change"),
    [
        (BEFORE, SchemaChange()),
        (f"{BEFORE}, n INT", SchemaChange(added=("n",))),
        (
            "id INT, name STRING, place STRUCT<city: STRING, zip: INT, at: DATE>, tags ARRAY<INT>",
            SchemaChange(added=("place.at",)),
        ),
        (
            "id INT, place STRUCT<city: STRING, zip: INT>, tags ARRAY<INT>",
            SchemaChange(dropped=("name",)),
        ),
        (
            "id BIGINT, name STRING, place STRUCT<city: STRING, zip: INT>, tags ARRAY<BIGINT>",
            SchemaChange(retyped=("id", "tags")),
        ),
        (
            "name STRING, id INT, place STRUCT<zip: INT, city: STRING>, tags ARRAY<INT>",
            SchemaChange(),
        ),
    ],
)
def test_changes_of_columns(after: str, change: SchemaChange) -> None:
    assert SchemaChange.between(metadata(BEFORE), metadata(after)) == change


@pytest.mark.parametrize(
    ("change", "option", "refused"),
    [
        (SchemaChange(added=("a",)), None, False),
        (SchemaChange(dropped=("a",)), None, True),
        (SchemaChange(dropped=("a",)), "allowSourceColumnDrop", False),
        (SchemaChange(renamed=("a",)), None, True),
        (SchemaChange(renamed=("a",)), "allowSourceColumnDrop", True),
        (SchemaChange(renamed=("a",)), "allowSourceColumnRename", False),
        (SchemaChange(retyped=("a",)), None, True),
        (SchemaChange(retyped=("a",)), "allowSourceColumnTypeChange", False),
    ],
)
def test_what_is_refused(change: SchemaChange, option: str | None, refused: bool) -> None:
    options = SourceOptions.parse({option: "always"} if option else {})
    if not refused:
        change.check(3, options)
        return
    with pytest.raises(UserError, match=r"Version 3 .* a is"):
        change.check(3, options)
