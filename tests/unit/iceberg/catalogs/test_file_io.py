"""Settings of S3 are said once: in twinlake's words to PyIceberg, and back from a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from twinlake.iceberg.catalogs.file_io import pyiceberg_properties, settings_of, store_options
from twinlake.iceberg.importing.metadata import key_or_url
from twinlake.storage import LocalStore, MemoryStore, open_store

if TYPE_CHECKING:
    from pathlib import Path

_KEYS = {"access_key_id": "who", "secret_access_key": "what"}


@pytest.mark.parametrize(
    ("options", "properties"),
    [
        ({}, {}),
        (
            {"endpoint": "http://h:1", "region": "r", "allow_http": True, **_KEYS},
            {
                "s3.endpoint": "http://h:1",
                "s3.region": "r",
                "s3.access-key-id": "who",
                "s3.secret-access-key": "what",
            },
        ),
        (
            {"aws_endpoint_url": "https://h", "AWS_DEFAULT_REGION": "r", "aws_session_token": "t"},
            {"s3.endpoint": "https://h", "s3.region": "r", "s3.session-token": "t"},
        ),
        (
            {"skip_signature": True, "virtual_hosted_style_request": "false"},
            {"s3.anonymous": "true", "s3.force-virtual-addressing": "false"},
        ),
    ],
    ids=["nothing", "the usual", "other names", "flags"],
)
def test_pyiceberg_is_told_what_the_store_was(
    options: dict[str, Any], properties: dict[str, str]
) -> None:
    store = open_store("s3://bucket/t", options=options)
    assert pyiceberg_properties(store) == properties


@pytest.mark.parametrize(
    ("properties", "options"),
    [
        ({"uri": "sqlite://", "warehouse": "s3://b"}, {}),
        (
            {
                "s3.endpoint": "http://h:1",
                "client.region": "r",
                "s3.access-key-id": "who",
                "client.secret-access-key": "what",
            },
            {"endpoint": "http://h:1", "region": "r", "allow_http": "true", **_KEYS},
        ),
        ({"s3.region": "own", "client.region": "all"}, {"region": "own"}),
        ({"s3.endpoint": "https://h"}, {"endpoint": "https://h"}),
    ],
    ids=["nothing", "the usual", "the special one counts", "encrypted"],
)
def test_a_store_is_told_what_the_catalog_knows(
    properties: dict[str, str], options: dict[str, str]
) -> None:
    assert store_options("s3://b/t", properties) == options
    store = open_store("s3://b/t", options=options)
    assert settings_of(store) == (options or None)


def test_other_places_have_no_settings_of_s3(tmp_path: Path) -> None:
    for store in (LocalStore(tmp_path), MemoryStore(), open_store("gs://b/t")):
        assert pyiceberg_properties(store) == {}
        assert settings_of(store) is None
        assert store_options(store.url, {"s3.region": "r"}) == {}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://b/t/x y.parquet", ("x%20y.parquet", True)),
        ("s3://b/other/100%.parquet", ("s3://b/other/100%25.parquet", False)),
        ("abfss://c@a.dfs.core.windows.net/x y", ("abfss://c@a.dfs.core.windows.net/x%20y", False)),
        ("/elsewhere/x y", ("file:///elsewhere/x%20y", False)),
    ],
)
def test_paths_of_files_are_literal(path: str, expected: tuple[str, bool]) -> None:
    assert key_or_url("s3://b/t", path) == expected
