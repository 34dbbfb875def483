"""Tables over HTTP: made, staged, loaded, registered, renamed, dropped."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.rest_catalog import rest_caller, schema
from tests.support.scale import scale
from twinlake import Table
from twinlake.errors import Code, CommitUnknown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.rest_catalog import RestCaller


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCaller]:
    with rest_caller(tmp_path) as caller:
        caller.namespace("n")
        yield caller


def _delta(made: dict[str, Any]) -> Table:
    return Table.open(made["metadata"]["location"])


def _set(**properties: str) -> dict[str, Any]:
    return {
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": properties}],
    }


def test_a_created_table_is_a_delta_table_with_writer_compat(server: RestCaller) -> None:
    made = server.table("n/T", properties={"owner": "ann"})
    table = _delta(made)
    assert made["metadata"]["properties"]["owner"] == "ann"
    assert "icebergWriterCompatV1" in (table.protocol.writer_features or ())
    assert table.metadata.id == made["metadata"]["table-uuid"]
    assert server.ok("GET", "N/tables/t") == made
    assert server.ok("GET", "n/tables")["identifiers"] == [{"namespace": ["n"], "name": "T"}]
    assert server.error("POST", "n/tables", {"name": "t", "schema": schema()})[:2] == (
        409,
        "AlreadyExistsException",
    )


def test_a_refused_creation_leaves_nothing(server: RestCaller) -> None:
    body = {"name": "t", "schema": schema(("t", "time"))}
    status, kind, message = server.error("POST", "n/tables", body)
    assert (status, kind) == (400, "ValidationException")
    assert message.startswith("TWIN-COMPAT")
    assert "Fix:" in message
    assert server.ok("GET", "n/tables")["identifiers"] == []
    assert server.send("HEAD", "n/tables/t").status_code == 404
    assert not list(server.folder.rglob("*.json"))
    assert server.error("POST", "m/tables", body)[:2] == (404, "NoSuchNamespaceException")


def test_staging_stores_nothing_and_its_commit_makes_the_table(server: RestCaller) -> None:
    body = {"name": "t", "schema": schema(), "stage-create": True}
    staged = server.ok("POST", "n/tables", body)
    assert "metadata-location" not in staged
    assert server.ok("GET", "n/tables")["identifiers"] == []
    assert not server.folder.exists()
    metadata = staged["metadata"]
    commit = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": metadata["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "set-location", "location": metadata["location"]},
        ],
    }
    made = server.ok("POST", "n/tables/t", commit)
    assert made["metadata"]["table-uuid"] == metadata["table-uuid"]
    assert made["metadata"]["location"] == metadata["location"]
    commit["updates"][0] = {"action": "assign-uuid", "uuid": str(uuid.uuid4())}
    assert server.error("POST", "n/tables/t", commit)[:2] == (409, "CommitFailedException")
    commit["updates"][-1] = {"action": "set-location", "location": "/etc/elsewhere"}
    assert server.error("POST", "n/tables/u", commit)[0] == 400
    assert server.ok("GET", "n/tables")["identifiers"] == [{"namespace": ["n"], "name": "t"}]


def test_etags_differ_by_version_and_snapshots_and_give_304(server: RestCaller) -> None:
    server.table("n/t")
    everything = server.send("GET", "n/tables/t")
    refs = server.send("GET", "n/tables/t?snapshots=refs")
    assert everything.headers["etag"] != refs.headers["etag"]
    known = {"If-None-Match": everything.headers["etag"]}
    answer = server.send("GET", "n/tables/t", headers=known)
    assert (answer.status_code, answer.content) == (304, b"")
    assert answer.headers["etag"] == everything.headers["etag"]
    assert server.send("GET", "n/tables/t?snapshots=refs", headers=known).status_code == 200
    changed = server.send("POST", "n/tables/t", _set(a="1"))
    assert changed.headers["etag"] != everything.headers["etag"]
    fresh = server.send("GET", "n/tables/t", headers=known)
    assert fresh.status_code == 200
    assert fresh.json()["metadata"]["properties"]["a"] == "1"
    assert server.send("GET", "n/tables/t?snapshots=some").status_code == 400


def test_a_delta_commit_is_seen_by_the_next_load(server: RestCaller) -> None:
    made = server.table("n/t")
    before = server.send("GET", "n/tables/t").headers["etag"]
    _delta(made).append([{"id": 1, "name": "a"}])
    answer = server.send("GET", "n/tables/t", headers={"If-None-Match": before})
    assert answer.status_code == 200
    assert len(answer.json()["metadata"]["snapshots"]) == 1


def test_bodies_are_packed_both_ways(server: RestCaller) -> None:
    import gzip

    body = gzip.compress(json.dumps({"name": "t", "schema": schema()}).encode())
    made = server.send("POST", "n/tables", body, {"Content-Encoding": "gzip"})
    assert made.status_code == 200
    plain = server.send("GET", "n/tables/t", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    for _ in range(2):
        _delta(plain.json()).append([{"id": 1, "name": "a"}])
    packed = server.send("GET", "n/tables/t", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.json()["metadata"]["snapshots"]) == 2


def test_unknown_updates_and_requirements_are_400(server: RestCaller) -> None:
    server.table("n/t")
    bodies: list[Any] = [
        {"requirements": [], "updates": [{"action": "do-magic"}]},
        {"requirements": [{"type": "assert-magic"}], "updates": []},
        {"updates": {}},
        [],
        "x",
    ]
    for body in bodies:
        assert server.error("POST", "n/tables/t", body)[:2] == (400, "ValidationException")
    stale = {"requirements": [{"type": "assert-table-uuid", "uuid": str(uuid.uuid4())}]}
    assert server.error("POST", "n/tables/t", stale | {"updates": []})[:2] == (
        409,
        "CommitFailedException",
    )
    assert server.error("POST", "n/tables/none", _set(a="1"))[:2] == (404, "NoSuchTableException")


def test_a_commit_with_a_key_happens_once(server: RestCaller) -> None:
    made = server.table("n/t")
    key = {"Idempotency-Key": str(uuid.uuid4())}
    answers = [server.send("POST", "n/tables/t", _set(a="1"), key) for _ in range(2)]
    assert [one.status_code for one in answers] == [200, 200]
    assert _delta(made).version == 1
    reused = server.send("POST", "n/tables/t", _set(a="2"), key)
    assert (reused.status_code, reused.json()["error"]["type"]) == (
        422,
        "UnprocessableEntityException",
    )


def test_a_creation_with_a_key_happens_once(server: RestCaller) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = {"name": "t", "schema": schema()}
    first, again = (server.send("POST", "n/tables", body, key) for _ in range(2))
    assert first.json() == again.json()
    assert server.send("POST", "n/tables", body).status_code == 409


@pytest.mark.parametrize("keys", [("k", "k"), (None, None), ("k", "l")])
def test_a_creation_that_was_cut_short_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: tuple[str | None, str | None]
) -> None:
    """The server that had begun it was killed; nobody waits for it, and no name is taken by it."""
    body = {"name": "t", "schema": schema()}
    headers = [{} if key is None else {"Idempotency-Key": key} for key in keys]

    def cut_short(*_: Any, **__: Any) -> None:
        raise CommitUnknown(Code.COMMIT_UNKNOWN, "The server was killed.")

    with rest_caller(tmp_path) as server:
        server.namespace("n")
        with monkeypatch.context() as patch:
            patch.setattr("twinlake.table.iceberg_commits.commit_loop.create_table", cut_short)
            assert server.send("POST", "n/tables", body, headers[0]).status_code == 500
        assert server.send("HEAD", "n/tables/t").status_code == 404
        elsewhere = {**body, "location": f"{server.folder}/elsewhere"}
        assert server.send("POST", "n/tables", elsewhere).status_code == 409
        refused = {**body, "schema": schema(("t", "time"))}
        assert server.send("POST", "n/tables", refused).status_code == 400

        made = server.send("POST", "n/tables", body, headers[1])

        assert (made.status_code, _delta(made.json()).version) == (200, 0)
        assert server.ok("GET", "n/tables/t") == made.json()
        assert len(server.ok("GET", "n/tables")["identifiers"]) == 1
        assert len(list((server.folder / "n").iterdir())) == 1


def test_creations_of_one_table_at_two_servers(tmp_path: Path) -> None:
    """One makes it; the other is refused, or is answered the same where it has the same key."""
    with rest_caller(tmp_path) as one, rest_caller(tmp_path) as two:
        one.namespace("n")
        for number in range(scale(6, 100)):
            body = {"name": f"t{number}", "schema": schema()}
            key = {"Idempotency-Key": str(uuid.uuid4())} if number % 2 else {}
            with ThreadPoolExecutor(2) as pool:
                asked = [pool.submit(c.send, "POST", "n/tables", body, key) for c in (one, two)]
                answers = [future.result() for future in asked]
            statuses = sorted(answer.status_code for answer in answers)
            assert statuses == ([200, 200] if key else [200, 409]), [a.text for a in answers]
            told = {a.json()["metadata"]["table-uuid"] for a in answers if a.status_code == 200}
            assert told == {one.ok("GET", f"n/tables/t{number}")["metadata"]["table-uuid"]}
        assert len(list((one.folder / "n").iterdir())) == scale(6, 100)


def test_a_rename_keeps_the_place_and_the_rows(server: RestCaller) -> None:
    made = server.table("n/t")
    server.namespace("m")
    body = {
        "source": {"namespace": ["N"], "name": "T"},
        "destination": {"namespace": ["m"], "name": "New"},
    }
    server.ok("POST", "/v1/lake/tables/rename", body)
    assert server.ok("GET", "m/tables/new") == made
    assert server.error("GET", "n/tables/t")[:2] == (404, "NoSuchTableException")
    assert server.error("POST", "/v1/lake/tables/rename", body)[0] == 404
    server.table("n/t")
    assert server.error("POST", "/v1/lake/tables/rename", body)[:2] == (
        409,
        "AlreadyExistsException",
    )
    body["destination"]["namespace"] = ["none"]
    assert server.error("POST", "/v1/lake/tables/rename", body)[:2] == (
        404,
        "NoSuchNamespaceException",
    )


def test_a_folder_with_a_log_is_registered_and_forgotten_again(server: RestCaller) -> None:
    made = server.table("n/t")
    place = made["metadata"]["location"]
    gone = server.ok("POST", "n/tables/t/unregister")
    assert gone["metadata-location"] == made["metadata-location"]
    assert server.send("HEAD", "n/tables/t").status_code == 404
    for location in (place, made["metadata-location"]):
        found = server.ok("POST", "n/register", {"name": "u", "metadata-location": location})
        assert found["metadata"]["table-uuid"] == made["metadata"]["table-uuid"]
        server.ok("POST", "n/tables/u/unregister")
    nothing = {"name": "v", "metadata-location": str(server.folder / "none")}
    assert server.error("POST", "n/register", nothing)[:2] == (400, "ValidationException")


def test_a_table_without_a_compat_feature_is_refused_by_name_of_the_fix(
    server: RestCaller,
) -> None:
    Table.create(server.folder / "plain", "id LONG")
    body = {"name": "p", "metadata-location": str(server.folder / "plain")}
    status, kind, message = server.error("POST", "n/register", body)
    assert (status, kind) == (400, "ValidationException")
    assert "twinlake upgrade" in message
    assert server.ok("GET", "n/tables")["identifiers"] == []


def test_register_over_another_table_needs_overwrite(server: RestCaller) -> None:
    one, two = server.table("n/one"), server.table("n/two")
    server.ok("POST", "n/tables/two/unregister")
    body = {"name": "one", "metadata-location": two["metadata"]["location"]}
    assert server.error("POST", "n/register", body)[:2] == (409, "AlreadyExistsException")
    found = server.ok("POST", "n/register", body | {"overwrite": True})
    assert found["metadata"]["table-uuid"] == two["metadata"]["table-uuid"]
    assert _delta(one).version == 0


def test_a_transaction_of_one_table_is_a_commit(server: RestCaller) -> None:
    made = server.table("n/t")
    change = {"identifier": {"namespace": ["n"], "name": "t"}, **_set(a="1")}
    answer = server.send("POST", "/v1/lake/transactions/commit", {"table-changes": [change]})
    assert (answer.status_code, answer.content) == (204, b"")
    assert _delta(made).version == 1
    bodies: list[Any] = [{"table-changes": [change, change]}, {"table-changes": []}, {}]
    for body in bodies:
        assert server.error("POST", "/v1/lake/transactions/commit", body)[0] == 400
    assert _delta(made).version == 1


def test_a_table_whose_folder_is_gone_is_no_table(server: RestCaller) -> None:
    import shutil

    made = server.table("n/t")
    shutil.rmtree(made["metadata"]["location"].removeprefix("file://"))
    assert server.error("GET", "n/tables/t")[:2] == (404, "NoSuchTableException")
    assert server.error("POST", "n/tables/t", _set(a="1"))[:2] == (404, "NoSuchTableException")


def test_reports_of_clients_are_counted(server: RestCaller) -> None:
    server.table("n/t")
    report = {"report-type": "scan-report", "table-name": "t"}
    answer = server.send("POST", "n/tables/t/metrics", report)
    assert (answer.status_code, answer.content) == (204, b"")
    assert server.error("POST", "n/tables/none/metrics", report)[0] == 404
    assert server.error("POST", "n/tables/t/metrics", {})[0] == 400
    server.ok("POST", "n/tables/t/metrics", {"report-type": 'x"} 1\n'})
    text = server.send("GET", "/metrics").text
    assert 'twinlake_client_reports_total{kind="scan-report"' in text
    assert 'kind="other"' in text


def test_registering_and_forgetting_with_a_key_happen_once(server: RestCaller) -> None:
    made = server.table("n/t")
    keys = [{"Idempotency-Key": str(uuid.uuid4())} for _ in range(4)]
    gone = [server.send("POST", "n/tables/t/unregister", headers=keys[0]) for _ in range(2)]
    assert [one.status_code for one in gone] == [200, 200]
    assert gone[0].json() == gone[1].json() == made
    body = {"name": "u", "metadata-location": made["metadata"]["location"]}
    back = [server.send("POST", "n/register", body, keys[1]) for _ in range(2)]
    assert [one.status_code for one in back] == [200, 200]
    move = {
        "source": {"namespace": ["n"], "name": "u"},
        "destination": {"namespace": ["n"], "name": "v"},
    }
    for _ in range(2):
        assert server.send("POST", "/v1/lake/tables/rename", move, keys[2]).status_code == 204
    for _ in range(2):
        assert server.send("DELETE", "n/tables/v", headers=keys[3]).status_code == 204
    # The key is of the request, and the request has a query.
    other = server.send("DELETE", "n/tables/v?purgeRequested=true", headers=keys[3])
    assert other.status_code == 422
    assert server.send("DELETE", "n/tables/v").status_code == 404
