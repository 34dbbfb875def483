"""Files in which another writer noted texts and bytes as views."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from twinlake import Table
from twinlake.files.view_types import plain_type

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


def test_other_types_are_left_as_they_are() -> None:
    for kind in (pa.int32(), pa.list_view(pa.string()), pa.large_list(pa.int8()), pa.string()):
        assert plain_type(kind) == kind
