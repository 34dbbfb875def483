"""The application around the handlers: routes, errors, limits, browsers, bodies."""

from __future__ import annotations

import gzip
import json
import logging
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.support.rest_catalog import NAMESPACES, rest_caller, schema
from twinlake.errors import (
    Code,
    CommitUnknown,
    ConflictError,
    StorageError,
    TwinlakeError,
    UserError,
)
from twinlake.rest.error_response import error_response, rest_error
from twinlake.rest.resources import ROUTES
from twinlake.rest.routes import RouteTable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.rest_catalog import RestCaller


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCaller]:
    with rest_caller(tmp_path) as caller:
        yield caller


def test_config_gives_the_prefix_and_every_route_of_the_specification(server: RestCaller) -> None:
    found = server.ok("GET", "/v1/config?warehouse=other")
    assert found["overrides"] == {"prefix": "other", "namespace-separator": "%1F"}
    assert found["idempotency-key-lifetime"] == "PT30M"
    assert "POST /v1/{prefix}/transactions/commit" in found["endpoints"]
    assert all("/health" not in one for one in found["endpoints"])
    assert server.ok("GET", "/v1/config")["overrides"]["prefix"] == "lake"
    assert server.error("GET", "/v1/config?warehouse=none")[:2] == (
        404,
        "NoSuchWarehouseException",
    )
    assert server.error("GET", "/v1/none/namespaces")[:2] == (404, "NoSuchWarehouseException")


def test_warehouses_have_names_of_their_own(server: RestCaller) -> None:
    server.namespace("n")
    server.table("n/t")
    assert server.ok("GET", "/v1/other/namespaces")["namespaces"] == []
    server.ok("POST", "/v1/other/namespaces", {"namespace": ["n"]})
    assert server.error("GET", "/v1/other/namespaces/n/tables/t")[0] == 404


def test_every_route_is_matched_by_its_own_path() -> None:
    table = RouteTable(ROUTES)
    for route in ROUTES:
        path = route.path.replace("{", "").replace("}", "%2F")
        found, parameters = table.match(route.method, path)
        assert found is route
        assert all(value == f"{name}/" for name, value in parameters.items())
    assert len({(r.method, r.path) for r in ROUTES}) == len(ROUTES)
    assert len({r.operation for r in ROUTES}) == len(ROUTES)


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v2/config", "/v1/lake/views", "//", "/v1/lake//tables", "/v1/%FF/x"]
)
def test_unknown_paths_are_404_or_400(server: RestCaller, path: str) -> None:
    assert server.send("GET", path).status_code in (400, 404)


def test_another_method_is_405_and_names_those_that_there_are(server: RestCaller) -> None:
    answer = server.send("PUT", NAMESPACES)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, POST"


ERRORS: list[tuple[TwinlakeError, bool, int, str]] = [
    (UserError(Code.COMPAT, "x"), True, 400, "ValidationException"),
    (UserError(Code.TABLE_EXISTS, "x"), False, 409, "AlreadyExistsException"),
    (ConflictError(Code.CONFLICT_WRITE, "x"), True, 409, "CommitFailedException"),
    (CommitUnknown(Code.COMMIT_UNKNOWN, "x"), True, 500, "CommitStateUnknownException"),
    (StorageError(Code.STORAGE, "x"), False, 500, "InternalServerError"),
    (StorageError(Code.STORAGE, "x"), True, 500, "CommitStateUnknownException"),
    (TwinlakeError(Code.INTERNAL, "x"), True, 500, "CommitStateUnknownException"),
    (TwinlakeError(Code.SERVER_BUSY, "x"), True, 503, "ServiceUnavailableException"),
    (UserError(Code.KEY_REUSED, "x"), True, 422, "UnprocessableEntityException"),
]


@pytest.mark.parametrize(("error", "is_commit", "status", "kind"), ERRORS)
def test_errors_have_the_status_that_clients_act_on(
    error: TwinlakeError, is_commit: bool, status: int, kind: str
) -> None:
    told = rest_error(error, is_commit=is_commit)
    assert (told.status, told.type) == (status, kind)
    answer = error_response(error, is_commit=is_commit)
    assert ("retry-after" in answer.headers) is (status == 503)


def test_every_code_of_a_user_error_is_a_4xx() -> None:
    statuses = {code: rest_error(UserError(code, "x"), is_commit=True).status for code in Code}
    beyond = {code for code, status in statuses.items() if status >= 500}
    assert beyond == {Code.INTERNAL, Code.SERVER_BUSY}


def test_an_error_says_code_rule_and_fix() -> None:
    error = UserError(Code.COMPAT, "No.", why="so", fix="Do that.", rule="IWC1-06")
    message = json.loads(error_response(error).body)["error"]["message"]
    assert message == "TWIN-COMPAT (IWC1-06): No. Why: so. Fix: Do that."


#: Without the time of packing: every process of a parallel run must collect the same tests.
PACKED: Final = gzip.compress(b'{"namespace": ["a"]}', mtime=0)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"", {}),
        (b"{", {}),
        (b"\xff\xfe", {}),
        (b"[" * 100_000, {}),
        (b'{"namespace":' * 50_000, {}),
        (b'{"namespace": [1]}', {}),
        (b'{"namespace": "a"}', {}),
        (b'{"namespace": [' + b'"a",' * 99 + b'"a"]}', {}),
        (b"x", {"Content-Encoding": "gzip"}),
        (b"x", {"Content-Encoding": "br"}),
        (PACKED[:-1], {"Content-Encoding": "gzip"}),
        (PACKED + b"x", {"Content-Encoding": "gzip"}),
        (b'{"namespace": ["a"]}', {"Idempotency-Key": ""}),
        (b'{"namespace": ["a"]}', {"Idempotency-Key": "x" * 500}),
    ],
)
def test_malformed_bodies_are_400_and_change_nothing(
    server: RestCaller, body: bytes, headers: dict[str, str]
) -> None:
    answer = server.send("POST", NAMESPACES, body, headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "ValidationException"
    assert server.ok("GET", NAMESPACES)["namespaces"] == []


def test_bodies_beyond_the_limit_are_refused_packed_or_not(tmp_path: Path) -> None:
    with rest_caller(tmp_path, body_bytes=1000) as server:
        for body, headers in (
            (b" " * 1001, {}),
            (gzip.compress(b" " * 10_000_000), {"Content-Encoding": "gzip"}),
        ):
            answer = server.send("POST", NAMESPACES, body, headers)
            assert (answer.status_code, "too large" in answer.text) == (400, True)
        server.namespace("n")


def test_more_requests_than_the_limit_get_503_with_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, waiting = threading.Event(), threading.Semaphore(0)

    def slow(*_: Any) -> bool:
        waiting.release()
        assert go.wait(20)
        return True

    with rest_caller(tmp_path, requests=2, threads=2) as server:
        monkeypatch.setattr("twinlake.rest.catalog.Namespaces.exists", slow)

        def free() -> None:
            for _ in range(2):
                waiting.acquire(timeout=20)
            go.set()

        helper = threading.Thread(target=free)
        helper.start()
        answers = server.send_all(
            *[("HEAD", f"{NAMESPACES}/n", None)] * 4, ("GET", "/health", None)
        )
        helper.join()
        assert sorted(one.status_code for one in answers) == [200, 204, 204, 503, 503]
        assert {a.headers.get("retry-after") for a in answers if a.status_code == 503} == {"1"}
        assert server.send("HEAD", f"{NAMESPACES}/n").status_code == 204


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://127.0.0.1:8181"},
        {"Origin": "null"},
        {"Host": "rebound.example"},
        {"Host": "127.0.0.1.example:8181"},
        {"Host": ""},
    ],
)
def test_pages_in_a_browser_are_refused(server: RestCaller, headers: dict[str, str]) -> None:
    answer = server.send("POST", NAMESPACES, {"namespace": ["n"]}, headers)
    assert answer.status_code == 400
    assert server.ok("GET", NAMESPACES)["namespaces"] == []


@pytest.mark.parametrize("host", ["localhost", "localhost:8181", "[::1]:8181", "127.0.0.9"])
def test_loopback_names_are_served(server: RestCaller, host: str) -> None:
    assert server.send("GET", NAMESPACES, headers={"Host": host}).status_code == 200


def test_a_bug_is_a_500_without_its_details(
    server: RestCaller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("secret")

    server.namespace("n")
    monkeypatch.setattr("twinlake.rest.served_tables.decode_create", broken)
    monkeypatch.setattr("twinlake.rest.catalog.Namespaces.load", broken)
    status, kind, message = server.error("GET", "n")
    assert (status, kind, "secret" in message) == (500, "InternalServerError", False)
    assert "secret" in caplog.text
    # Of a commit nobody can say then whether it happened.
    assert server.error("POST", "n/tables", {"name": "t", "schema": schema()})[:2] == (
        500,
        "CommitStateUnknownException",
    )


def test_the_access_log_has_neither_queries_nor_headers(
    server: RestCaller, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "twinlake.access"):
        server.send("GET", "/v1/config?token=secret", headers={"Authorization": "Bearer secret"})
    assert "GET /v1/config" in caplog.text
    assert "secret" not in caplog.text


def test_health_readiness_and_counts(server: RestCaller) -> None:
    assert server.ok("GET", "/health") == {"status": "ok"}
    assert server.ok("GET", "/ready") == {"status": "ready", "warehouses": ["lake", "other"]}
    server.error("GET", "none")
    text = server.send("GET", "/metrics").text
    assert 'twinlake_requests_total{operation="loadNamespaceMetadata",status="404"' in text
    assert 'le="+Inf"' in text


def test_readiness_fails_with_the_database(server: RestCaller, tmp_path: Path) -> None:
    for file in tmp_path.glob("server.db*"):
        file.write_bytes(b"not a database")
    answer = server.send("GET", "/ready")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
