"""The sixteen ways a conditional write was seen to lie, through a real client and server.

Four faults, each alone and with a rival already there, each with and without the client
library's own retries. The store may answer that it does not know; it must never claim a
commit that is not there. Publishing must then find the truth in all sixteen.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.support.servers.fault_proxy import COMMIT_FAULTS, FaultKind, FaultProxy
from twinlake.commit.commit_write import CommitWritten, Lost, write_commit
from twinlake.errors import Code, CommitUnknown, StorageError
from twinlake.runtime import RandomIds, SystemClock
from twinlake.storage import Committed, Conflict, ObjectStore, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.servers.object_server import ObjectServer

KEY = "_delta_log/00000000000000000007.json"
RIVAL = b'{"commitInfo":{"txnId":"rival"}}\n'

faults = pytest.mark.parametrize("fault", COMMIT_FAULTS, ids=str)
rivals = pytest.mark.parametrize("rival", [False, True], ids=["alone", "with a rival"])
retries = pytest.mark.parametrize("retries", [0, 3], ids=["no retries", "client retries"])


@pytest.fixture(scope="module")
def proxy(object_server: ObjectServer) -> Iterator[FaultProxy]:
    with FaultProxy(object_server.port) as proxy:
        yield proxy


def stores(
    server: ObjectServer, proxy: FaultProxy, retries: int
) -> tuple[ObjectStore, ObjectStore]:
    """One place, seen through the proxy and directly."""
    url = server.url(f"t-{uuid.uuid4()}")
    through = ObjectStore(url, options=server.options_at(proxy.port), create_retries=retries)
    proxy.disarm()
    return through, ObjectStore(url, options=server.options)


def ours() -> bytes:
    return b'{"commitInfo":{"txnId":"%s"}}\n' % str(uuid.uuid4()).encode()


@faults
@rivals
@retries
def test_a_store_never_claims_a_commit_that_is_not_there(
    object_server: ObjectServer, proxy: FaultProxy, fault: FaultKind, rival: bool, retries: int
) -> None:
    store, direct = stores(object_server, proxy, retries)
    if rival:
        direct.put(KEY, RIVAL)
    body = ours()
    proxy.arm(fault)
    outcome = store.create(KEY, body)
    assert proxy.armed == 0
    held = direct.read(KEY) if direct.head(KEY) else None
    if outcome == Committed():
        assert held == body
    if retries == 0:
        # Honest: only the server's own refusal is a conflict, anything else is unknown.
        expected = Conflict if fault is FaultKind.CONFLICT_409 else Unknown
        assert isinstance(outcome, expected)
        if isinstance(outcome, Unknown):
            assert outcome.refusal is None
    if rival:
        assert held == RIVAL
    elif fault.value.stores:
        assert held == body


@faults
@rivals
@retries
def test_writing_a_commit_finds_the_truth(
    object_server: ObjectServer, proxy: FaultProxy, fault: FaultKind, rival: bool, retries: int
) -> None:
    store, direct = stores(object_server, proxy, retries)
    if rival:
        direct.put(KEY, RIVAL)
    body = ours()
    proxy.arm(fault)
    result = write_commit(store, KEY, body, clock=SystemClock(), ids=RandomIds())
    assert proxy.armed == 0
    if rival:
        assert isinstance(result, Lost)
        assert result.winner == RIVAL
        assert direct.read(KEY) == RIVAL
    else:
        assert isinstance(result, CommitWritten)
        assert direct.read(KEY) == body
    assert [meta.key for meta in direct.list_from("")] == [KEY]


@pytest.mark.parametrize("fault", [FaultKind.FAIL_500, FaultKind.DROP], ids=str)
def test_failures_without_an_effect_are_tried_again(
    object_server: ObjectServer, proxy: FaultProxy, fault: FaultKind
) -> None:
    store, direct = stores(object_server, proxy, 0)
    body = ours()
    proxy.arm(fault, times=2)
    result = write_commit(store, KEY, body, clock=SystemClock(), ids=RandomIds())
    assert result == CommitWritten(attempts=3)
    assert direct.read(KEY) == body


def test_a_server_that_never_answers_leaves_the_commit_unknown(
    object_server: ObjectServer, proxy: FaultProxy
) -> None:
    store, direct = stores(object_server, proxy, 0)
    proxy.arm(FaultKind.DROP, times=3)
    with pytest.raises(CommitUnknown) as caught:
        write_commit(
            store, KEY, ours(), clock=SystemClock(), ids=RandomIds(), attempts=3, commit_id="c1"
        )
    assert caught.value.fields["key"] == KEY
    assert caught.value.fields["commit_id"] == "c1"
    assert direct.head(KEY) is None


def test_reads_are_retried_by_the_client(object_server: ObjectServer, proxy: FaultProxy) -> None:
    store, _ = stores(object_server, proxy, 0)
    store.put(KEY, b"x")
    proxy.arm(FaultKind.FAIL_500, times=2, method="GET")
    assert store.read(KEY) == b"x"
    proxy.arm(FaultKind.FAIL_500)
    store.put(KEY, b"y")
    assert store.read(KEY) == b"y"
    assert proxy.armed == 0


@pytest.mark.parametrize(
    "fault", [kind for kind in FaultKind if kind is not FaultKind.CONFLICT_409], ids=str
)
def test_deletes_are_retried_by_the_client(
    object_server: ObjectServer, proxy: FaultProxy, fault: FaultKind
) -> None:
    store, direct = stores(object_server, proxy, 0)
    direct.put("a", b"1")
    direct.put("b", b"2")
    proxy.arm(fault, method="POST")
    store.delete(["a", "b"])
    assert proxy.armed == 0
    assert list(direct.list_from("")) == []


def test_a_refused_delete_names_the_key(object_server: ObjectServer, proxy: FaultProxy) -> None:
    store, direct = stores(object_server, proxy, 0)
    direct.put("a", b"1")
    proxy.arm(FaultKind.CONFLICT_409, method="POST")
    with pytest.raises(StorageError) as caught:
        store.delete(["a"])
    assert caught.value.fields["key"] == "a"
    assert direct.read("a") == b"1"


def test_one_missing_object_does_not_keep_others_from_deletion(object_server: ObjectServer) -> None:
    """Azure deletes 256 objects by one request, and the client fails it for one that is missing."""
    store = ObjectStore(object_server.url(f"t-{uuid.uuid4()}"), options=object_server.options)
    present = [f"{number:03d}" for number in range(300)]
    for key in present:
        store.put(key, b"")
    store.delete(["missing", *present])
    assert list(store.list_from("")) == []


def test_wrong_credentials_are_a_refusal_and_show_no_secret(object_server: ObjectServer) -> None:
    (secret,) = object_server.wrong_secret.values()
    options = {**object_server.options, **object_server.wrong_secret}
    store = ObjectStore(object_server.url("t"), options=options)
    outcome = store.create(KEY, b"x")
    assert isinstance(outcome, Unknown)
    assert outcome.refusal is not None
    with pytest.raises(StorageError) as caught:
        write_commit(store, KEY, b"x", clock=SystemClock(), ids=RandomIds())
    for call in (lambda: store.read(KEY), lambda: list(store.list_from(""))):
        with pytest.raises(StorageError):
            call()
    assert caught.value.code is Code.STORAGE
    assert "credentials" in caught.value.fix
    assert secret not in f"{caught.value} {caught.value.to_dict()}"


def test_a_missing_bucket_is_not_a_missing_object(object_server: ObjectServer) -> None:
    store = ObjectStore(
        object_server.url("t", bucket="no-such-bucket"), options=object_server.options
    )
    for call in (
        lambda: store.read(KEY),
        lambda: list(store.list_from("")),
        lambda: write_commit(store, KEY, b"x", clock=SystemClock(), ids=RandomIds()),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.code is Code.STORAGE
        assert "bucket" in caught.value.fix
