"""Requests that no client would send: never a 5xx, and no change unless the answer says yes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.rest_catalog import NAMESPACES, rest_caller, schema
from tests.support.scale import scale
from twinlake import Table
from twinlake.rest.resources import ROUTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.rest_catalog import RestCaller

ODD: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**63, 2**70, 1e400, "", "x", "../..", "\x00", "\ud800"),
    *([], {}, [[]], {"": ""}, "n", "t", "main", "long", "struct", "assert-create", "set-location"),
]
#: Requests that are valid, of which parts are replaced.
SEEDS: dict[str, Any] = {
    "createNamespace": {"namespace": ["fuzz"], "properties": {"a": "b"}},
    "updateProperties": {"removals": ["a"], "updates": {"b": "c"}},
    "createTable": {
        "name": "made",
        "schema": schema(),
        "partition-spec": {"spec-id": 0, "fields": []},
        "write-order": {"order-id": 0, "fields": []},
        "stage-create": False,
        "properties": {"format-version": "2"},
    },
    "registerTable": {"name": "r", "metadata-location": "file:///etc", "overwrite": True},
    "renameTable": {
        "source": {"namespace": ["n"], "name": "none"},
        "destination": {"namespace": ["n"], "name": "u"},
    },
    "reportMetrics": {"report-type": "scan-report"},
    "updateTable": {
        "requirements": [
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
            {"type": "assert-current-schema-id", "current-schema-id": 0},
        ],
        "updates": [
            {"action": "add-schema", "schema": schema(("id", "long"), ("x", "int"))},
            {"action": "set-current-schema", "schema-id": -1},
            {
                "action": "add-snapshot",
                "snapshot": {
                    "snapshot-id": 77,
                    "sequence-number": 1,
                    "timestamp-ms": 1,
                    "manifest-list": "file:///etc/passwd",
                    "summary": {"operation": "append"},
                },
            },
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "type": "branch",
                "snapshot-id": 77,
            },
            {"action": "set-properties", "updates": {"a": "b"}},
        ],
    },
}
SEEDS["commitTransaction"] = {
    "table-changes": [{"identifier": {"namespace": ["n"], "name": "t"}, **SEEDS["updateTable"]}]
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCaller]:
    with rest_caller(tmp_path_factory.mktemp("fuzz")) as caller:
        caller.namespace("n")
        caller.table("n/t")
        yield caller


def _parts(document: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where a document can be changed."""
    yield at
    pairs = document.items() if isinstance(document, dict) else []
    for key, value in pairs or (enumerate(document) if isinstance(document, list) else ()):
        yield from _parts(value, (*at, key))


def _replaced(document: Any, at: tuple[Any, ...], value: Any) -> Any:
    if not at:
        return value
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[at[0]] = _replaced(document[at[0]], at[1:], value)
    return copy


@st.composite
def forged(draw: st.DrawFn) -> tuple[Any, str, Any]:
    """A route, its path, and a body of which a few parts are odd."""
    route = draw(st.sampled_from([one for one in ROUTES if one.operation in SEEDS]))
    body: Any = SEEDS[route.operation]
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.sampled_from(list(_parts(body))))
        body = _replaced(body, at, draw(st.sampled_from(ODD) | st.text(max_size=5)))
    names = {"prefix": "lake", "namespace": "n", "table": "t"}
    if draw(st.integers(0, 9)) == 0:
        names[draw(st.sampled_from(sorted(names)))] = draw(st.text(min_size=1, max_size=9))
    path = route.path
    for name, text in names.items():
        encoded = quote(text.encode("utf-8", "surrogatepass"), safe="")
        path = path.replace(f"{{{name}}}", encoded)
    return route, path, body


@settings(
    max_examples=scale(150, 5_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(forged())
def test_forged_requests_are_no_5xx_and_change_nothing_where_they_are_refused(
    server: RestCaller, asked: tuple[Any, str, Any]
) -> None:
    route, path, body = asked
    before = _look(server)
    answer = server.send(route.method, path, _encoded(body))
    assert answer.status_code < 500, (answer.text, body)
    if answer.status_code >= 400:
        assert answer.json()["error"]["type"]
        assert _look(server) == before
    else:
        _restore(server, route.operation)


@settings(max_examples=scale(100, 5_000), deadline=None)
@given(
    st.sampled_from(["GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS", "PATCH", "X"]),
    st.lists(
        st.sampled_from(
            ["v1", "lake", "namespaces", "n", "tables", "t", "%00", "%FF", "%", "..", ""]
        )
        | st.text(max_size=5).map(lambda text: quote(text.encode("utf-8", "replace"), safe="")),
        max_size=8,
    ),
    st.binary(max_size=30),
)
def test_paths_and_bytes_that_mean_nothing_are_no_5xx(
    server: RestCaller, method: str, segments: list[str], body: bytes
) -> None:
    # The client itself refuses a path that begins with two slashes.
    path = "/" + "/".join(segments).lstrip("/")
    if method == "DELETE" and path.rstrip("/").lower().endswith("/t"):
        return
    assert server.send(method, path, body).status_code < 500


def _encoded(body: Any) -> bytes:
    # Python writes what JSON does not have (a lone surrogate, infinity), as an attacker may.
    return json.dumps(body).encode()


def _look(server: RestCaller) -> Any:
    """All that a refused request must leave as it is."""
    found = server.ok("GET", "n/tables/t")
    table = Table.open(found["metadata"]["location"])
    return (
        found,
        table.version,
        server.ok("GET", NAMESPACES),
        server.ok("GET", "n"),
        server.ok("GET", "n/tables"),
        sorted(path.name for path in server.folder.iterdir()),
        sorted(path.name for path in (server.folder / "n").iterdir()),
    )


def _restore(server: RestCaller, operation: str) -> None:
    """Undo what a request did that was valid after all."""
    for one in server.ok("GET", "n/tables")["identifiers"]:
        if one["name"] != "t":
            server.send("DELETE", f"n/tables/{quote(one['name'], safe='')}")
    if operation == "createNamespace":
        for levels in server.ok("GET", NAMESPACES)["namespaces"]:
            server.send("DELETE", quote("\x1f".join(levels), safe=""))
