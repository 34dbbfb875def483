"""The blocks that pages for notebooks are made of."""

from __future__ import annotations

import pytest

from tests.support.notebook_page import HOSTILE, NotebookPage
from twinlake._html import FOLDED, SHOWN, Html, Node, fields, grid, page, prose, text, tree


class _Shown:
    def __init__(self, *blocks: object) -> None:
        self._blocks = blocks

    def _repr_html_(self) -> str:
        return page("title", *self._blocks)


def shown(*blocks: object) -> NotebookPage:
    return NotebookPage(_Shown(*blocks))


@pytest.mark.parametrize(
    "block",
    [
        HOSTILE,
        prose(f"Run `{HOSTILE}` now."),
        prose(f"`{HOSTILE}"),
        fields([(HOSTILE, HOSTILE)]),
        grid([HOSTILE], [(HOSTILE,)]),
        tree([Node(HOSTILE, HOSTILE, (Node(HOSTILE, HOSTILE),))]),
    ],
)
def test_text_is_escaped_in_every_block(block: object) -> None:
    assert HOSTILE in shown(block).text.replace("  ", " ")


def test_titles_are_escaped() -> None:
    assert "<script" not in page(HOSTILE)


def test_characters_that_nobody_sees_are_spelled_out() -> None:
    assert text("a\x1b[2Jb\u202ec") == "a\\x1b[2Jb\\u202ec"
    assert text("two\nlines") == "two<br>lines"


def test_markup_is_escaped_once() -> None:
    assert text(text("<")) == Html("&lt;")


def test_short_lists_are_not_folded() -> None:
    found = shown(grid(["n"], [(n,) for n in range(SHOWN)]))
    assert "details" not in found.tags
    assert len(found.rows) == SHOWN + 1


@pytest.mark.parametrize("more", [0, 7])
def test_long_lists_are_folded_and_longer_ones_cut(more: int) -> None:
    folded = shown(grid(["n"], [(n,) for n in range(SHOWN + 5)], more=more))
    assert folded.tags.count("details") == 1
    assert f"{5 + more} more" in folded.text
    assert [str(SHOWN + 4)] in folded.rows
    cut = shown(grid(["n"], [(n,) for n in range(SHOWN + FOLDED + 5)], more=more))
    assert f"{FOLDED + 5 + more:,} more" in cut.text
    assert f"and {5 + more} more, not listed" in cut.text
    assert len(cut.rows) == SHOWN + FOLDED + 2


def test_rows_that_are_only_counted_are_mentioned() -> None:
    assert "and 3 more" in shown(grid(["n"], [(1,)], more=3)).text


def test_lists_without_rows_and_names_without_values_are_left_out() -> None:
    found = shown(grid(["n"], []), fields([("a", None), ("b", ""), ("c", 0)]))
    assert found.rows == [["c", "0"]]
    assert shown(fields([("a", None)])).rows == []


def test_trees_fold_what_is_deep() -> None:
    leaf = Node("leaf", "INT")
    html = tree([Node("a", "STRUCT", (Node("b", "STRUCT", (Node("c", "STRUCT", (leaf,)),)),))])
    assert html.count("<details open>") == 2
    assert html.count("<details>") == 1
