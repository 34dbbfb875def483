"""Laws of paths and stores."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from twinlake.errors import Code, TwinlakeError
from twinlake.storage import (
    Committed,
    Conflict,
    LocalStore,
    MemoryStore,
    Store,
    decode_path,
    encode_path,
    parse_location,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Callable

SEGMENTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0/"), min_size=1, max_size=12
).filter(lambda name: name not in (".", ".."))
KEYS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)


@given(KEYS)
def test_a_key_survives_the_log(key: str) -> None:
    encoded = encode_path(key)
    assert decode_path(encoded) == key
    store = MemoryStore()
    assert resolve(store, encoded) == (store, key)


@given(KEYS)
def test_encoding_leaves_nothing_that_a_uri_parser_trips_over(key: str) -> None:
    encoded = encode_path(key)
    assert not set(encoded) & set(' "#<>?[\\]^`{|}\x7f')
    assert ":" not in encoded.partition("/")[0]
    assert encoded.count("/") == key.count("/")


@example("\n", "0/\n")
@given(KEYS, KEYS)
def test_an_absolute_path_below_the_root_is_a_key_of_it(root: str, key: str) -> None:
    store = MemoryStore("m").reopen(parse_location("memory://m").url + encode_path(f"/{root}"))
    assert resolve(store, f"{store.url}{encode_path('/' + key)}") == (store, key)


@given(
    st.text(max_size=40)
    | st.lists(st.sampled_from(["..", ".", "", "a", "%2e", "%2F", "file:", "s3:", "//", "%"])).map(
        "/".join
    )
)
def test_no_text_escapes_the_root_or_our_errors(text: str) -> None:
    store = MemoryStore("m").reopen("memory://m/table")
    try:
        _, key = resolve(store, text, allow_outside=False)
    except TwinlakeError as error:
        assert error.code is Code.PATH_UNSAFE
    else:
        assert key
        assert ".." not in key.split("/")
        assert "\0" not in key


@given(st.text(max_size=40))
def test_no_text_breaks_opening(text: str) -> None:
    try:
        place = parse_location(text)
        assert parse_location(place.url) == place
    except TwinlakeError as error:
        assert error.code in (Code.INVALID_ARGUMENT, Code.PATH_UNSAFE)


# Few names that collide, nest and sort awkwardly; none is both a file and a folder.
NAMES = st.sampled_from(["a", "a.b", "b/c", "b/c.d", "b.x", "b0", "d/e/f", "d/e.f", "d/e0", "é/ü"])
BODIES = st.binary(max_size=8)


class StoresAgree(RuleBasedStateMachine):
    """Every store does what a dictionary would."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.model: dict[str, bytes] = {}
        self.stores: list[Store] = [
            LocalStore(self.folder.name, durable=False),
            MemoryStore(),
            MemoryStore("x").reopen("memory://x/y"),
        ]

    def teardown(self) -> None:
        self.folder.cleanup()

    def each(self, call: Callable[[Store], object], expected: object) -> None:
        assert [call(store) for store in self.stores] == [expected] * len(self.stores)

    @rule(key=NAMES, body=BODIES)
    def create(self, key: str, body: bytes) -> None:
        expected = Conflict() if key in self.model else Committed()
        self.each(lambda store: store.create(key, body), expected)
        self.model.setdefault(key, body)

    @rule(key=NAMES, body=BODIES)
    def put(self, key: str, body: bytes) -> None:
        self.each(lambda store: store.put(key, body), None)
        self.model[key] = body

    @rule(keys=st.lists(NAMES, max_size=3))
    def delete(self, keys: list[str]) -> None:
        self.each(lambda store: store.delete(keys), None)
        for key in keys:
            self.model.pop(key, None)

    @rule(key=NAMES, start=st.integers(0, 9), length=st.integers(0, 9))
    def read_range(self, key: str, start: int, length: int) -> None:
        if key in self.model:
            expected = self.model[key][start : start + length]
            self.each(lambda store: store.read_range(key, start, length), expected)

    @rule(folder=st.sampled_from(["", "a", "b", "d", "d/e", "é", "z"]), after=NAMES | st.just(""))
    def list_from(self, folder: str, after: str) -> None:
        prefix = f"{folder}/" if folder else ""
        expected = sorted(key for key in self.model if key.startswith(prefix) and key > after)
        self.each(lambda store: [meta.key for meta in store.list_from(folder, after)], expected)

    @invariant()
    def same_contents(self) -> None:
        expected = {key: len(body) for key, body in self.model.items()}
        self.each(lambda store: {meta.key: meta.size for meta in store.list_from("")}, expected)
        for key, body in self.model.items():
            self.each(lambda store, key=key: store.read(key), body)  # type: ignore[misc]


StoresAgree.TestCase.settings = settings(max_examples=40, stateful_step_count=20)
TestStoresAgree = StoresAgree.TestCase
