"""Views and runs: in files of other writers, and in any array."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.data_files import add_of
from twinlake import Table
from twinlake.files.view_types import plain_array, plain_type

VIEWS = {
    "s": pa.string_view(),
    "b": pa.binary_view(),
    "l": pa.list_(pa.string_view()),
    "r": pa.struct([("a", pa.string_view()), ("n", pa.int32())]),
    "m": pa.map_(pa.string_view(), pa.binary_view()),
}
ROWS: dict[str, list[Any]] = {
    "s": ["a", None, "long enough to lie outside of the view"],
    "b": [b"x", b"", None],
    "l": [["q", None], None, []],
    "r": [{"a": "x", "n": 1}, None, {"a": None, "n": 2}],
    "m": [[("k", b"v")], [], None],
}


def test_views_are_read_filtered_and_changed(tmp_path: Path) -> None:
    import deltalake

    ddl = "s STRING, b BINARY, l ARRAY<STRING>, r STRUCT<a: STRING, n: INT>, m MAP<STRING, BINARY>"
    Table.create(tmp_path, ddl)
    data = pa.table({name: pa.array(ROWS[name], kind) for name, kind in VIEWS.items()})
    deltalake.write_deltalake(tmp_path, data, mode="append")
    (file,) = tmp_path.glob("*.parquet")
    # Without views in the file the test would show nothing.
    assert pq.read_schema(file).field("s").type == pa.string_view()

    table = Table.open(tmp_path)
    wanted = {**ROWS, "m": [[("k", b"v")], [], None]}
    assert table.to_arrow().to_pydict() == wanted
    assert table.to_arrow(columns=["s"], where="r.n = 2").to_pydict() == {"s": [ROWS["s"][2]]}
    assert table.to_arrow(where="s = 'a'").num_rows == 1

    table = table.update({"s": "'z'"}, where="s = 'a'")
    assert table.to_arrow(columns=["b"], where="s = 'z'").to_pydict() == {"b": [b"x"]}
    assert table.delete("s IS NULL").count() == 2


def test_lists_as_views_are_read(tmp_path: Path) -> None:
    t = Table.create(tmp_path, "l ARRAY<ARRAY<STRING>>")
    values = [[["a", None], None], None, [], [["long enough to lie outside"]]]
    kind = pa.list_view(pa.large_list_view(pa.string_view()))
    pq.write_table(pa.table({"l": pa.array(values, kind)}), tmp_path / "part.parquet")
    assert pa.types.is_list_view(pq.read_schema(tmp_path / "part.parquet").field("l").type)
    t = t.commit("WRITE", [add_of(tmp_path, "part.parquet")], parameters={"mode": "Append"})
    assert t.to_arrow()["l"].to_pylist() == values
    assert t.to_arrow(where="l IS NOT NULL").num_rows == 3


_TEXTS: list[Any] = ["a", None, "", "long enough to lie outside of the view"]
_LISTS: list[Any] = [["a"], None, [], ["b", None]]
_PAIRS: list[Any] = [["a", "b"], None, ["c", None]]
_RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4, 5], pa.int32()), _TEXTS[:3])


@pytest.mark.parametrize(
    "array",
    [
        pa.array(_TEXTS, pa.string_view()),
        pa.array([b"a", None, b"\xff"], pa.binary_view()),
        pa.array(_LISTS, pa.list_view(pa.string())),
        pa.array(_LISTS, pa.large_list_view(pa.string_view())),
        pa.array(_LISTS, pa.list_(pa.string_view())),
        pa.array(_LISTS, pa.large_list(pa.string_view())),
        pa.array(_PAIRS, pa.list_(pa.string_view(), 2)),
        pa.array([[[1], None], None], pa.list_view(pa.list_view(pa.int8()))),
        pa.array([{"s": "a"}, None, {"s": None}], pa.struct([("s", pa.string_view())])),
        pa.array([[("k", "v")], None, []], pa.map_(pa.string_view(), pa.string_view())),
        pa.DictionaryArray.from_arrays([0, None, 2, 0], pa.array(_TEXTS, pa.string_view())),
        _RUNS,
        pa.RunEndEncodedArray.from_arrays([1, 3], pa.array([["a"], None], pa.list_(pa.string()))),
        pa.RunEndEncodedArray.from_arrays([1, 3], pa.array(["a", None], pa.string_view())),
    ],
    ids=lambda array: str(array.type),
)
def test_values_stay_the_same_in_plain_types(array: pa.Array) -> None:
    for start in range(len(array) + 1):
        part = array.slice(start, 2)
        plain = plain_array(part)
        plain.validate(full=True)
        assert plain.type == plain_type(array.type)
        assert plain.to_pylist() == part.to_pylist()
    # Arrow's kernels take what comes out.
    assert plain_array(array).take(pa.array([0])).to_pylist() == array[:1].to_pylist()


def test_other_types_are_left_as_they_are() -> None:
    for kind in (pa.int32(), pa.large_list(pa.int8()), pa.string(), pa.list_(pa.int8(), 2)):
        assert plain_type(kind) == kind
        array = pa.nulls(1, kind)
        assert plain_array(array) is array
