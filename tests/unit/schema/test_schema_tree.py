"""A schema as a tree, at a terminal and in a notebook."""

from __future__ import annotations

import pytest

from tests.support.notebook_page import HOSTILE, NotebookPage
from twinlake._html import SHOWN
from twinlake.schema import INTEGER, Struct, StructField, parse_ddl


def test_nested_columns_are_branches() -> None:
    ddl = (
        "id BIGINT NOT NULL COMMENT 'the key', tags ARRAY<STRING>, code VARCHAR(3), "
        "m MAP<STRING, STRUCT<n: INT NOT NULL, list: ARRAY<STRUCT<x: DATE>>>>"
    )
    assert repr(parse_ddl(ddl)).splitlines() == [
        "Struct",
        "├── id BIGINT NOT NULL COMMENT 'the key'",
        "├── tags ARRAY<STRING>",
        "├── code VARCHAR(3)",
        "└── m MAP",
        "    ├── key STRING",
        "    └── value STRUCT",
        "        ├── n INT NOT NULL",
        "        └── list ARRAY",
        "            └── element STRUCT",
        "                └── x DATE",
    ]
    assert repr(Struct()) == "Struct"
    found = NotebookPage(parse_ddl(ddl))
    assert "4 columns" in found.text
    assert "COMMENT 'the key'" in found.text


@pytest.mark.parametrize("place", ["name", "comment"])
def test_names_and_comments_cannot_play_with_the_page(place: str) -> None:
    evil = f"{HOSTILE}\x1b\n"
    name, comment = (evil, "") if place == "name" else ("a", evil)
    schema = Struct((StructField(name, INTEGER, metadata={"comment": comment}),))
    assert HOSTILE[:8] in NotebookPage(schema).text
    assert len(repr(schema).splitlines()) == 2
    assert all(line.isprintable() for line in repr(schema).splitlines())


def test_many_columns_are_folded() -> None:
    schema = Struct(tuple(StructField(f"c{n}", INTEGER) for n in range(SHOWN + 3)))
    found = NotebookPage(schema)
    assert "3 more" in found.text
    assert f"c{SHOWN + 2}" in found.text
