"""The metadata file as text: the long lists in it are carried on, not parsed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.data_files import append
from tests.support.iceberg.both_sides import V2, V3, iceberg_rows, opened, twin
from twinlake.iceberg.format.table_metadata import decode_metadata, encode_metadata
from twinlake.iceberg.format.unparsed_list import NO_ENTRIES, RawEntries
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TEXTS = (
    st.text()
    | st.text('{}[],:"\\ a')
    | st.sampled_from(['},{"', '"},{"a":"', "},{", ",},{", '],"snapshot-log":[', "\\", "é🦆"])
)
_MEMBERS = st.dictionaries(
    _TEXTS, _TEXTS | st.integers() | st.dictionaries(_TEXTS, _TEXTS), max_size=4
)
# As in Iceberg, the first key is a name.
_OBJECTS = st.builds(lambda first, rest: {"snapshot-id": first, **rest}, st.integers(), _MEMBERS)


@given(
    old=st.lists(_OBJECTS),
    new=st.lists(_OBJECTS),
    gone=st.integers(0, 8),
    around=st.binary(),
    short=st.sampled_from([0, 30, 1 << 16]),
)
def test_objects_come_out_as_they_went_in(
    old: list[Any], new: list[Any], gone: int, around: bytes, short: int
) -> None:
    stretch = msgspec.json.encode(old)[1:-1]
    texts = RawEntries.within(around + stretch + around, len(around), len(around) + len(stretch))
    with patch("twinlake.iceberg.format.unparsed_list._SHORT", short):
        for one in new:
            texts = texts.followed_by(msgspec.json.encode(one))
    objects = [*old, *new]
    assert [json.loads(text) for text in texts] == objects
    assert bool(texts) == bool(objects)
    left = texts.without_first(gone)
    assert [json.loads(text) for text in left] == objects[gone:]
    for some, wanted in ((texts, objects), (left, objects[gone:])):
        assert json.loads(b"[" + b"".join(some.pieces()) + b"]") == wanted
        if wanted:
            assert json.loads(some.last) == wanted[-1]


def test_what_holds_a_text() -> None:
    texts = RawEntries.within(b'x{"id":7,"a":1},{"id":8}', 1, 16)
    assert texts.holds(b'{"id":7,')
    assert not texts.holds(b'{"id":8')
    assert texts.followed_by(b'{"id":9}').holds(b'{"id":9')
    assert not NO_ENTRIES.holds(b"x")


def _file(folder: Path, version: int) -> str:
    """The metadata file after two commits, as text."""
    table = twin(folder, "id INT, p INT", "p", properties=V3 if version == 3 else V2)
    for at in range(2):
        table = append(table, folder, [{"id": at, "p": at}])
        table.iceberg.sync()
    return (folder / f"_iceberg/metadata/v{table.version}.metadata.json").read_text()


_NAMES = ("},{", "x},{", '},{"', '"},{"snapshot-id":1', '],"snapshot-log":[', "\\", '{[\\"é🦆')


def _written_by(folder: Path, version: int, engine: str) -> None:
    """Put the name of another engine into a commit."""
    commit = folder / f"_delta_log/{version:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("commitInfo", {}).update(engineInfo=engine)
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("engine", _NAMES)
def test_conversion_goes_on_after_any_engine_name(tmp_path: Path, engine: str) -> None:
    twin(tmp_path, "id INT", properties=V2)
    for at in range(3):
        table = append(Table.open(tmp_path), tmp_path, [{"id": at}])
        _written_by(tmp_path, table.version, engine)
        Table.open(tmp_path).iceberg.sync()
    snapshots = opened(tmp_path).snapshots()
    assert [one.summary and one.summary["engine-name"] for one in snapshots] == [engine] * 3
    assert len(iceberg_rows(tmp_path)) == 3


def _moved(text: str, key: str, place: int) -> str:
    keys = list(json.loads(text).items())
    (found,) = (item for item in keys if item[0] == key)
    keys.remove(found)
    keys.insert(place, found)
    return json.dumps(dict(keys))


_WAYS: dict[str, Callable[[str], str]] = {
    "as it was": lambda text: text,
    "with white space": lambda text: json.dumps(json.loads(text), indent=2),
    "without any": lambda text: json.dumps(json.loads(text), separators=(",", ":")),
    "snapshots first": lambda text: _moved(text, "snapshots", 0),
    "the log of metadata last": lambda text: _moved(text, "metadata-log", 99),
    "properties last": lambda text: _moved(text, "properties", 99),
    "keys that we do not know": lambda text: json.dumps({**json.loads(text), "more": [{}]}),
}


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("version", [2, 3])
def test_files_are_read_however_they_are_written(tmp_path: Path, way: str, version: int) -> None:
    text = _file(tmp_path, version)
    other = decode_metadata(_WAYS[way](text).encode())
    own = decode_metadata(text.encode())
    assert [one.snapshot_id for one in own.snapshots()] == [
        one["snapshot-id"] for one in json.loads(text)["snapshots"]
    ]
    assert list(other.snapshots()) == list(own.snapshots())
    assert other.oldest == own.oldest
    assert other.current == own.current
    assert (
        json.loads(b"".join(encode_metadata(other)))
        == json.loads(b"".join(encode_metadata(own)))
        == json.loads(text)
    )


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-1],
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"snapshots":[', '"snapshots":null,"x":['),
        lambda text: text.replace('"format-version":', '"format-version":"x'),
        lambda _: '{"snapshots":[],"snapshot-log":[]}',
        lambda _: "[]",
        lambda _: "",
    ],
)
def test_what_is_no_metadata_file_is_told_as_such(
    tmp_path: Path, damage: Callable[[str], str]
) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_metadata(damage(_file(tmp_path, 2)).encode())
