"""What workers need to open the store of the driver."""

from __future__ import annotations

import pytest

from twinlake.errors import StorageError
from twinlake.iceberg.catalogs.file_io import pyiceberg_properties
from twinlake.storage import MemoryStore, ObjectStore, Store, StoreConfig, open_store, store_config
from twinlake.table.importing.staged_log import StagedLog

OPTIONS = {"region": "eu-north-1", "access_key_id": "key", "secret_access_key": "not to be shown"}


@pytest.mark.parametrize("staged", [False, True])
def test_settings_of_an_object_store_come_along(staged: bool) -> None:
    store: Store = ObjectStore("s3://bucket/table", options=OPTIONS)
    if staged:
        # A store on top of another one is opened as the one below.
        store = StagedLog(store)
    config = store_config(store)
    assert config == StoreConfig(url="s3://bucket/table", options=OPTIONS)
    assert "not to be shown" not in repr(config)
    again = open_store(config.url, durable=config.durable, options=config.options)
    assert store_config(again) == config
    assert pyiceberg_properties(store)["s3.region"] == "eu-north-1"


def test_a_store_without_settings_is_opened_by_its_url() -> None:
    assert store_config(MemoryStore("one")) == StoreConfig(url="memory://one")


def test_plain_http_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server has its options from nowhere else."""
    settings = {
        "AWS_ENDPOINT": "http://127.0.0.1:1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_REGION": "us-east-1",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    store = open_store("s3://bucket/table", options={"retry_config": {"max_retries": 0}})

    # Nobody listens there, so that it is enough to see that somebody was called.
    with pytest.raises(StorageError, match="error sending request"):
        store.read("key")
