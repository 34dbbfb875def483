"""Real manifests and manifest lists with bytes and fields changed at random.

Whatever comes of it is a commit on which both sides agree, or a refusal without a trace.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.iceberg.outside_writer import (
    OutsideWriter,
    column,
    entry,
    log_of,
)
from tests.support.scale import scale
from twinlake.errors import CompatViolation, ConflictError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = (column(1, "id", "long", required=True), column(2, "s", "string"))
KINDS = (UserError, CompatViolation, ConflictError)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> OutsideWriter:
    writer = OutsideWriter(tmp_path_factory.mktemp("forged") / "t").create(*COLUMNS)
    writer.append([{"id": 1}, {"id": 2}])
    return writer


def changed_bytes(data: bytes, draw: Callable[[st.SearchStrategy[Any]], Any]) -> bytes:
    found = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        # Lengths differ from run to run, and what is drawn must not depend on them.
        at = draw(st.integers(0, 1 << 20)) % len(found)
        match draw(st.sampled_from(("flip", "set", "cut", "insert"))):
            case "flip":
                found[at] ^= 1 << draw(st.integers(0, 7))
            case "set":
                found[at] = draw(st.integers(0, 255))
            case "cut":
                del found[at : at + draw(st.integers(1, 20))]
            case _:
                found[at:at] = draw(st.binary(min_size=1, max_size=20))
        if not found:
            break
    return bytes(found)


def tried(writer: OutsideWriter, updates: list[Any]) -> None:
    """Send a request that may pass; put the log back if it does."""
    before = log_of(writer.folder)
    try:
        writer.send(updates)
    except KINDS:
        assert log_of(writer.folder) == before
        return
    # What passed was as good as the real one, and the next example needs the table as it was.
    for name in log_of(writer.folder).keys() - before.keys():
        (writer.folder / "_delta_log" / name).unlink()
    shutil.rmtree(writer.folder / "_iceberg")
    assert writer.main is not None


@settings(
    max_examples=scale(60, 2000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_changed_bytes(table: OutsideWriter, data: st.DataObject) -> None:
    added = table.manifest(
        [entry(table.write([{"id": 7}]))], codec=data.draw(st.sampled_from(("null", "deflate")))
    )
    listed = table.manifest_list([*table.listed(), added], codec="null")
    location = data.draw(st.sampled_from((added["manifest_path"], listed)))
    path = Path(location.removeprefix("file://"))
    path.write_bytes(changed_bytes(path.read_bytes(), data.draw))
    tried(table, table.to_main(table.snapshot(listed)))


NUMBERS = st.one_of(st.integers(-3, 3), st.integers(-(1 << 63), (1 << 63) - 1))
FIELDS = {
    "content": st.integers(-1, 3),
    "file_format": st.sampled_from(("parquet", "PARQUET", "orc", "", "\0")),
    "record_count": NUMBERS,
    "file_size_in_bytes": NUMBERS,
    "file_path": st.text(max_size=20),
    "key_metadata": st.one_of(st.none(), st.binary(max_size=3)),
    "referenced_data_file": st.one_of(st.none(), st.text(max_size=5)),
    "content_offset": st.one_of(st.none(), NUMBERS),
    "content_size_in_bytes": st.one_of(st.none(), NUMBERS),
    **{
        name: st.lists(
            st.fixed_dictionaries(
                {"key": st.integers(-1, 4), "value": st.binary(max_size=9)}
                if "bounds" in name
                else {"key": st.integers(-1, 4), "value": NUMBERS}
            ),
            max_size=3,
        )
        for name in ("null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    },
}


@settings(
    max_examples=scale(60, 2000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_changed_fields(table: OutsideWriter, data: st.DataObject) -> None:
    """Fields of the entry, its status, and the kind of its manifest."""
    names = data.draw(st.sets(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=3))
    file = table.write([{"id": 7}]) | {name: data.draw(FIELDS[name], name) for name in names}
    made = entry(
        file,
        data.draw(st.sampled_from((1, 1, 1, 0, 2, 9))),
        snapshot_id=data.draw(st.one_of(st.none(), NUMBERS)),
        sequence_number=data.draw(st.one_of(st.none(), NUMBERS)),
    )
    row = table.manifest([made], content=data.draw(st.sampled_from((0, 0, 1))))
    operation = data.draw(st.sampled_from(("append", "overwrite", "delete", "replace")))
    listed = table.manifest_list([*table.listed(), row])
    tried(table, table.to_main(table.snapshot(listed, operation)))
