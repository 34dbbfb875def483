"""URLs, paths of the log, and what they resolve to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from twinlake.errors import Code, CorruptTable, TwinlakeError, UserError
from twinlake.storage import (
    LocalStore,
    MemoryStore,
    ObjectStore,
    decode_path,
    encode_path,
    open_store,
    parse_location,
    paths,
    register_scheme,
    resolve,
    schemes,
    store_registry,
)

if TYPE_CHECKING:
    from pathlib import Path

# Printed by java.net.URI, which Delta Spark writes its paths with.
AS_JAVA_ENCODES = [
    ("a b", "a%20b"),
    ("a%b", "a%25b"),
    ("a%20b", "a%2520b"),
    ("h#1", "h%231"),
    ("q?x", "q%3Fx"),
    ("ü", "ü"),
    ("+plus", "+plus"),
    ("k=v/w:z", "k=v/w:z"),
    ("~t*[1]", "~t*%5B1%5D"),
    ("back\\s", "back%5Cs"),
    ('"q"', "%22q%22"),
    ("<x>", "%3Cx%3E"),
    ("^`{|}", "%5E%60%7B%7C%7D"),
    ("😀", "😀"),
    ("nb\u00a0sp", "nb%C2%A0sp"),
    ("ls\u2028x", "ls%E2%80%A8x"),
    ("c\u0085x", "c%C2%85x"),
    ("t\tx", "t%09x"),
    ("!$&'()*,;@", "!$&'()*,;@"),
    ("\u3000", "%E3%80%80"),
    ("\u00ad\ufeff", "\u00ad\ufeff"),
]


@pytest.mark.parametrize(("path", "encoded"), AS_JAVA_ENCODES)
def test_paths_are_encoded_as_java_does(path: str, encoded: str) -> None:
    assert encode_path(path) == encoded
    assert decode_path(encoded) == path


def test_a_colon_in_the_first_segment_does_not_become_a_scheme() -> None:
    assert encode_path("s3:/x:y") == "s3%3A/x:y"
    assert resolve(MemoryStore(), encode_path("s3:/x:y"))[1] == "s3:/x:y"


@pytest.mark.parametrize(
    ("encoded", "decoded"),
    [("a+b", "a+b"), ("%C3%BC", "ü"), ("%2520", "%20"), ("100%", "100%"), ("%zz", "%zz")],
)
def test_decoding_happens_once_and_leaves_what_it_does_not_know(encoded: str, decoded: str) -> None:
    assert decode_path(encoded) == decoded


def test_paths_that_are_not_unicode_are_refused() -> None:
    with pytest.raises(CorruptTable) as corrupt:
        decode_path("a%ffb")
    assert corrupt.value.code is Code.PATH_UNSAFE
    with pytest.raises(UserError) as wrong:
        encode_path("a\udcffb")
    assert wrong.value.code is Code.PATH_UNSAFE


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("/tmp/a b%20c", "file:///tmp/a%20b%2520c"),
        ("/tmp/../tmp/x/", "file:///tmp/x"),
        ("file:/tmp/a%20b", "file:///tmp/a%20b"),
        ("file:///tmp/a%20b/", "file:///tmp/a%20b"),
        ("file://localhost/tmp", "file:///tmp"),
        ("FILE:///tmp", "file:///tmp"),
        ("s3://bucket", "s3://bucket"),
        ("s3a://bucket/a/b/", "s3://bucket/a/b"),
        ("s3n://bucket/a%20b", "s3://bucket/a%20b"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("az://container/a", "az://container/a"),
        ("abfs://c@acc.dfs.core.windows.net/a", "abfss://c@acc.dfs.core.windows.net/a"),
        ("memory://name/x", "memory://name/x"),
    ],
)
def test_places(text: str, url: str) -> None:
    assert parse_location(text).url == url
    assert parse_location(url).url == url


def test_plain_paths_are_taken_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_location("t").url == f"file://{tmp_path}/t"
    # A word and a colon are a plain name unless the word is a scheme we know.
    assert parse_location("12:30").url == f"file://{tmp_path}/12:30"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\0b",
        "file:///a%00b",
        "file://host/share",
        "ftp://host/x",
        "s3://",
        "s3:///x",
        "s3://bucket/a/../b",
        "s3://bucket/a//b",
        "s3://bucket/%ff",
        "s3://KEY:SECRET@bucket/x",
        "s3://SECRET@bucket/x",
        "abfss://c:SECRET@acc.dfs.core.windows.net/x",
        "az://container/x?sig=SECRET",
        "az://container/x#SECRET",
    ],
)
def test_places_that_cannot_be(text: str) -> None:
    with pytest.raises(UserError) as caught:
        open_store(text)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert caught.value.fix
    assert "SECRET" not in f"{caught.value} {caught.value.to_dict()}"


def test_every_kind_opens(tmp_path: Path) -> None:
    local = open_store(tmp_path, durable=False)
    assert isinstance(local, LocalStore)
    assert not local.durable
    assert isinstance(open_store("memory://kinds"), MemoryStore)
    options = {"skip_signature": "true"}
    assert isinstance(open_store("s3a://b/x", options=options), ObjectStore)
    assert isinstance(open_store("gs://b/x", options=options), ObjectStore)
    azure = {**options, "account_name": "acc"}
    assert isinstance(open_store("az://c/x", options=azure), ObjectStore)
    abfss = open_store("abfss://c@acc.dfs.core.windows.net/x", options=options)
    assert isinstance(abfss, ObjectStore)
    assert {"s3", "s3a", "gs", "az", "abfss", "file", "memory"} <= set(schemes())


def test_credentials_show_nowhere() -> None:
    options = {"access_key_id": "SECRET1", "secret_access_key": "SECRET2", "region": "eu"}
    store = open_store("s3://bucket/x", options=options)
    assert "SECRET" not in f"{store.url} {store!r} {store}"
    with pytest.raises(UserError) as caught:
        open_store("s3://bucket/x", options={**options, "no_such_option": "SECRET3"})
    assert "SECRET" not in f"{caught.value} {caught.value.to_dict()}"
    assert "no_such_option" in caught.value.why


def test_a_folder_takes_no_options(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        open_store(tmp_path, options={"region": "eu"})


def test_a_new_scheme_is_one_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "ALIASES", dict(paths.ALIASES))
    monkeypatch.setattr(store_registry, "ALIASES", paths.ALIASES)
    monkeypatch.setattr(store_registry, "_OPENERS", dict(store_registry._OPENERS))
    register_scheme("toy", lambda place, _durable, _options: MemoryStore(place.authority))
    assert open_store("toy://box").url == "memory://box"


@pytest.mark.parametrize(
    ("encoded", "key"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("day=1%20May/x", "day=1 May/x"),
        ("day=a%253Ab/x", "day=a%3Ab/x"),
        ("./a//b/./c", "a/b/c"),
        ("a/../b", "b"),
        ("a/b/../../c", "c"),
        ("time=12:30/x", "time=12:30/x"),
        ("...", "..."),
        ("memory://m/table/x%20y", "x y"),
        ("/table/x", "x"),
        ("/table//x", "x"),
    ],
)
def test_paths_below_the_table(encoded: str, key: str) -> None:
    store = MemoryStore("m").reopen("memory://m/table")
    assert resolve(store, encoded) == (store, key)


@pytest.mark.parametrize(
    "encoded",
    [
        "",
        ".",
        "/",
        "..",
        "../x",
        "a/../../x",
        "%2e%2e/x",
        "a/%2E%2E/%2e./x",
        "..%2Fx",
        "a%00b",
        "a\0b",
        "%ff",
        "memory://m/table/../other",
        "memory://m/table/%2e%2e/other",
        "memory://m",
        "/table/../x",
        "file:///etc/../x",
        "file://host/x",
        "ftp://host/x",
        "http://169.254.169.254/x",
        "s3:///x",
    ],
)
def test_paths_that_escape_are_refused(encoded: str) -> None:
    store = MemoryStore("m").reopen("memory://m/table")
    with pytest.raises(CorruptTable) as caught:
        resolve(store, encoded)
    assert caught.value.code is Code.PATH_UNSAFE
    assert caught.value.fields["path"] == encoded


@pytest.mark.parametrize("encoded", ["memory://m/tablet/x", "memory://n/table/x", "/elsewhere/x"])
def test_absolute_paths_elsewhere_open_their_own_store_unless_forbidden(encoded: str) -> None:
    store = MemoryStore("m").reopen("memory://m/table")
    other, key = resolve(store, encoded)
    assert other is not store
    assert key.endswith("/x")
    with pytest.raises(CorruptTable):
        resolve(store, encoded, allow_outside=False)


def test_absolute_paths_of_a_folder(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "a b", durable=False)
    for form in (f"file:{tmp_path}/a%20b/x%2520y", f"file://{tmp_path}/a%20b/x%2520y"):
        assert resolve(store, form) == (store, "x%20y")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x y").write_bytes(b"there")
    other, key = resolve(store, f"file:{tmp_path}/other/x%20y")
    assert other.read(key) == b"there"
    assert isinstance(other, LocalStore)
    assert not other.durable


def test_absolute_paths_of_a_bucket_keep_its_settings_and_connections() -> None:
    store = open_store("s3://bucket/table", options={"skip_signature": "true"})
    assert resolve(store, "s3a://bucket/table/a%20b") == (store, "a b")
    other, key = resolve(store, "s3://other/x/y")
    assert (other.url, key) == ("s3://other", "x/y")
    assert resolve(store, "s3n://other/z")[0] is other


def test_errors_are_ours_whatever_the_text() -> None:
    store = MemoryStore()
    for text in ("%", "://", ":", "a:", "//host/x", "file:", "s3:", "\n", "\udcff", os.sep * 3):
        try:
            resolve(store, text)
        except TwinlakeError as error:
            assert error.code is Code.PATH_UNSAFE
