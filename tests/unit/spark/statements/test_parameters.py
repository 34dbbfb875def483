"""Where the values of markers go; literals themselves are Spark's."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from twinlake.errors import UserError
from twinlake.spark.statements.syntax import parameters


@pytest.mark.parametrize(
    ("text", "args", "wanted"),
    [
        ("a = :x", {"x": 1}, "a = <1>"),
        ("a = :x AND b = :X", {"x": 1}, "a = <1> AND b = :X"),
        ("':x' \":x\" `:x` -- :x", {"x": 1}, "':x' \":x\" `:x` -- :x"),
        ("a::INT, v:x, s(1):x", {"INT": 1, "x": 2}, "a::INT, v:x, s(1):x"),
        ("STRUCT<a: INT>", {"INT": 1}, "STRUCT<a: INT>"),
        ("/* ? */ a = ? AND '?' = ?", [1, "two"], "/* ? */ a = <1> AND '?' = <two>"),
        ("𝄞 = ?", [1], "𝄞 = <1>"),
        ("a = ?", None, "a = ?"),
    ],
)
def test_values_go_where_their_markers_are(
    text: str, args: Any, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters, "_literal", lambda _, value: f"<{value}>")
    nobody: Any = None
    assert parameters.bound(nobody, text, args) == wanted


def test_too_few_values_are_refused() -> None:
    nobody: Any = None
    with pytest.raises(UserError, match="2 markers and 1 values"):
        list(parameters._positional("? ?", [1]))
    assert parameters.bound(nobody, "?", None) == "?"
