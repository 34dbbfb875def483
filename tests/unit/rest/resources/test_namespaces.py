"""Namespaces: nesting, names in any case, properties, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.support.rest_catalog import NAMESPACES, rest_caller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.rest_catalog import RestCaller


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCaller]:
    with rest_caller(tmp_path) as caller:
        yield caller


def test_names_keep_their_case_and_are_found_without_it(server: RestCaller) -> None:
    server.namespace("Sales")
    assert server.ok("GET", "sALES") == {"namespace": ["Sales"], "properties": {}}
    assert server.error("POST", NAMESPACES, {"namespace": ["SALES"]})[:2] == (
        409,
        "AlreadyExistsException",
    )
    server.namespace("sales", "Eu")
    # The outer levels are spelled as they were made.
    assert server.ok("GET", f"{NAMESPACES}?parent=SALES")["namespaces"] == [["Sales", "Eu"]]


@pytest.mark.parametrize("name", ["a.b", "a/b", "a b", "ü+%", "100%25", 'q"`', "日本"])
def test_names_may_hold_what_a_url_has_to_encode(server: RestCaller, name: str) -> None:
    server.namespace(name)
    server.namespace(name, "x/y")
    path = f"{quote(name, safe='')}%1F{quote('x/y', safe='')}"
    assert server.ok("GET", path)["namespace"] == [name, "x/y"]
    assert server.ok("GET", NAMESPACES)["namespaces"] == [[name]]
    server.ok("DELETE", path)
    server.ok("DELETE", quote(name, safe=""))
    assert server.ok("GET", NAMESPACES)["namespaces"] == []


@pytest.mark.parametrize("name", ["", ".", "..", " x", "a\x1fb", "a\nb", "x" * 256, "\ud800"])
def test_what_cannot_be_a_name_is_refused(server: RestCaller, name: str) -> None:
    body = ('{"namespace": ["' + name.encode("unicode_escape").decode() + '"]}').encode()
    body = body.replace(b"\\x", b"\\u00")
    assert server.send("POST", NAMESPACES, body).status_code == 400
    assert server.ok("GET", NAMESPACES)["namespaces"] == []


def test_a_missing_parent_or_namespace_is_404(server: RestCaller) -> None:
    missing = (404, "NoSuchNamespaceException")
    assert server.error("POST", NAMESPACES, {"namespace": ["a", "b"]})[:2] == missing
    assert server.error("GET", "a")[:2] == missing
    assert server.error("DELETE", "a")[:2] == missing
    assert server.error("GET", f"{NAMESPACES}?parent=a")[:2] == missing
    assert server.error("POST", "a/properties", {"updates": {"k": "v"}})[:2] == missing
    assert server.error("GET", "a/tables")[:2] == missing
    answer = server.send("HEAD", "a")
    assert (answer.status_code, answer.content) == (404, b"")


def test_a_namespace_that_holds_something_stays(server: RestCaller) -> None:
    server.namespace("a")
    server.namespace("a", "b")
    assert server.error("DELETE", "a")[:2] == (409, "NamespaceNotEmptyException")
    server.ok("DELETE", "a%1Fb")
    server.table("a/t")
    status, kind, message = server.error("DELETE", "A")
    assert (status, kind) == (409, "NamespaceNotEmptyException")
    assert "table t" in message
    server.ok("DELETE", "a/tables/t")
    server.ok("DELETE", "a")


def test_properties_are_set_and_removed(server: RestCaller) -> None:
    server.ok("POST", NAMESPACES, {"namespace": ["n"], "properties": {"a": "1", "b": "2"}})
    asked = {"removals": ["b", "none"], "updates": {"a": "3", "c": "4"}}
    assert server.ok("POST", "N/properties", asked) == {
        "updated": ["a", "c"],
        "removed": ["b"],
        "missing": ["none"],
    }
    assert server.ok("GET", "n")["properties"] == {"a": "3", "c": "4"}
    both = {"removals": ["a"], "updates": {"a": "5"}}
    assert server.error("POST", "n/properties", both)[:2] == (422, "UnprocessableEntityException")
    assert server.ok("GET", "n")["properties"] == {"a": "3", "c": "4"}


def test_lists_come_in_pages(server: RestCaller) -> None:
    for number in range(5):
        server.namespace(f"N{number}")
    everything = server.ok("GET", NAMESPACES)
    assert len(everything["namespaces"]) == 5
    assert everything["next-page-token"] is None
    found, token = [], ""
    for _ in range(3):
        page = server.ok("GET", f"{NAMESPACES}?pageSize=2&pageToken={token}")
        found += page["namespaces"]
        token = page["next-page-token"]
    assert token is None
    assert found == everything["namespaces"]
    for query in ("pageSize=0", "pageSize=-1", "pageSize=x", "pageSize=1&pageToken=%F0"):
        assert server.send("GET", f"{NAMESPACES}?{query}").status_code == 400


def test_a_request_sent_again_with_its_key_changes_nothing(server: RestCaller) -> None:
    key = {"Idempotency-Key": "019a9b0e-0000-7000-8000-000000000001"}
    body = {"namespace": ["n"], "properties": {"a": "1"}}
    first = server.send("POST", NAMESPACES, body, key)
    again = server.send("POST", NAMESPACES, body, key)
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    other = server.send("POST", NAMESPACES, {"namespace": ["m"]}, key)
    assert (other.status_code, other.json()["error"]["type"]) == (
        422,
        "UnprocessableEntityException",
    )
    assert server.send("POST", NAMESPACES, body).status_code == 409
