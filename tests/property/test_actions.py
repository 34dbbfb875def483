"""Actions go through their values without loss, whatever fields a writer made up."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twinlake.actions import decode_lines, encode_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.text("abcXYZ_.-", min_size=1, max_size=8)
STRINGS = st.dictionaries(st.text(max_size=5), st.none() | st.text(max_size=5), max_size=3)
KNOWN: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "add": {
        "path": st.text(min_size=1, max_size=20),
        "partitionValues": STRINGS,
        "size": st.integers(0, 2**63 - 1),
        "modificationTime": st.integers(-(2**63), 2**63 - 1),
        "dataChange": st.booleans(),
        "stats": st.text(max_size=10),
        "tags": STRINGS,
    },
    "remove": {
        "path": st.text(min_size=1, max_size=20),
        "dataChange": st.booleans(),
        "deletionTimestamp": st.integers(0, 2**63 - 1),
        "size": st.integers(0, 2**63 - 1),
    },
    "txn": {"appId": st.text(max_size=8), "version": st.integers(-(2**63), 2**63 - 1)},
    "domainMetadata": {
        "domain": st.text(max_size=8),
        "configuration": st.text(max_size=8),
        "removed": st.booleans(),
    },
}


@st.composite
def lines(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(sorted(KNOWN)))
    known = {key: draw(value) for key, value in KNOWN[name].items()}
    foreign = draw(st.dictionaries(NAMES.filter(lambda key: key not in known), JSON, max_size=3))
    return {name: {**foreign, **known}}


@given(st.lists(lines(), max_size=5))
def test_decode_and_encode_is_the_identity(written: list[dict[str, Any]]) -> None:
    text = "\n".join(json.dumps(line) for line in written).encode()
    actions = list(decode_lines(text, source="x.json"))
    read = [json.loads(line) for line in encode_lines(actions).splitlines()]
    assert read == written


@given(NAMES.map("future".__add__), JSON.filter(lambda value: value is not None))
def test_unknown_actions_are_carried_whole(name: str, value: Any) -> None:
    line = json.dumps({name: value}).encode()
    assert json.loads(encode_lines(decode_lines(line, source="x.json"))) == {name: value}
