"""Which changes of columns a stream goes past."""

from __future__ import annotations

import pytest

from twinlake.errors import UserError
from twinlake.protocol import Metadata
from twinlake.schema import parse_ddl, render_schema
from twinlake.spark.streaming.schema_change import StreamSchemaChange
from twinlake.spark.streaming.source_options import SourceOptions

BEFORE = "id INT, name STRING, place STRUCT<city: STRING, zip: INT>, tags ARRAY<INT>"


def metadata(ddl: str) -> Metadata:
    return Metadata(schema_string=render_schema(parse_ddl(ddl)))


@pytest.mark.parametrize(
    ("after", "change"),
    [
        (BEFORE, StreamSchemaChange()),
        (f"{BEFORE}, n INT", StreamSchemaChange(added=("n",))),
        (
            "id INT, name STRING, place STRUCT<city: STRING, zip: INT, at: DATE>, tags ARRAY<INT>",
            StreamSchemaChange(added=("place.at",)),
        ),
        (
            "id INT, place STRUCT<city: STRING, zip: INT>, tags ARRAY<INT>",
            StreamSchemaChange(dropped=("name",)),
        ),
        (
            "id BIGINT, name STRING, place STRUCT<city: STRING, zip: INT>, tags ARRAY<BIGINT>",
            StreamSchemaChange(retyped=("id", "tags")),
        ),
        (
            "name STRING, id INT, place STRUCT<zip: INT, city: STRING>, tags ARRAY<INT>",
            StreamSchemaChange(),
        ),
    ],
)
def test_changes_of_columns(after: str, change: StreamSchemaChange) -> None:
    assert StreamSchemaChange.between(metadata(BEFORE), metadata(after)) == change


@pytest.mark.parametrize(
    ("change", "option", "refused"),
    [
        (StreamSchemaChange(added=("a",)), None, False),
        (StreamSchemaChange(dropped=("a",)), None, True),
        (StreamSchemaChange(dropped=("a",)), "allowSourceColumnDrop", False),
        (StreamSchemaChange(renamed=("a",)), None, True),
        (StreamSchemaChange(renamed=("a",)), "allowSourceColumnDrop", True),
        (StreamSchemaChange(renamed=("a",)), "allowSourceColumnRename", False),
        (StreamSchemaChange(retyped=("a",)), None, True),
        (StreamSchemaChange(retyped=("a",)), "allowSourceColumnTypeChange", False),
    ],
)
def test_what_is_refused(change: StreamSchemaChange, option: str | None, refused: bool) -> None:
    options = SourceOptions.parse({option: "always"} if option else {})
    if not refused:
        change.check(3, options)
        return
    with pytest.raises(UserError, match=r"Version 3 .* a is"):
        change.check(3, options)
