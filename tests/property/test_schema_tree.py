"""Every schema can be shown as a tree."""

from __future__ import annotations

from hypothesis import given

from tests.support.notebook_page import NotebookPage
from tests.support.schema_strategies import schemas
from twinlake.schema import Struct, walk_fields


@given(schemas())
def test_every_schema_has_a_tree_that_names_all_its_columns(schema: Struct) -> None:
    assert len(repr(schema).splitlines()) > len(list(walk_fields(schema)))
    NotebookPage(schema)
