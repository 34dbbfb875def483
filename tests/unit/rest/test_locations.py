"""Locations that requests name: resolved, and within the warehouse before anything is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rest_catalog import rest_caller, schema
from twinlake import Table
from twinlake.errors import TwinlakeError, UserError
from twinlake.rest.location_policy import LocationPolicy, home_location
from twinlake.rest.names import NamespaceName, TableIdentity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.rest_catalog import RestCaller


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RestCaller]:
    with rest_caller(tmp_path, allowed=(tmp_path / "extra",)) as caller:
        caller.namespace("n")
        yield caller


FORGED = [
    "{lake}/../out",
    "{lake}/a/../../out",
    "{lake}/%2e%2e/out",
    "{lake}/%252e%252e/out",
    "{lake}/%25252e%25252e/out",
    "{lake}/..%2fout",
    "{lake}/a%2f..%2f..%2fout",
    "{lake}//out",
    "{lake}/./out",
    "{lake}/..\\out",
    "{lake}/a%00b",
    "{lake}/a\nb",
    "{lake}",
    "{lake}/",
    "{lake}x/t",
    "/etc/passwd",
    "file:///etc",
    "file://evil.host{lake}/t",
    "s3://bucket/t",
    "s3a://{lake}/t",
    "http://127.0.0.1/t",
    "memory://x/t",
    "lake/t",
    "..",
    "{lake}/link/t",
    "{lake}/t/_delta_log",
    "{lake}/t/_delta_log/x",
    "{lake}/_iceberg/t",
    "{lake}/" + "x" * 2000,
    "{lake}/" + "x" * 256,
    "{lake}/" + "ü" * 128,
    "{lake}/file",
    "{lake}/file/t",
    "{lake}/circle",
    "{lake}/circle/t",
    "file://user:secret@host/t",
    "s3://key:secret@bucket/t",
]


@pytest.mark.parametrize("text", FORGED)
def test_a_forged_location_is_refused_and_nothing_is_made(server: RestCaller, text: str) -> None:
    server.folder.mkdir()
    outside = server.folder.parent / "outside"
    outside.mkdir()
    (server.folder / "link").symlink_to(outside)
    (server.folder / "file").touch()
    (server.folder / "circle").symlink_to(server.folder / "circle")
    location = text.replace("{lake}", str(server.folder))
    body = {"name": "t", "schema": schema(), "location": location}
    bodies = {
        "n/tables": body,
        "n/register": {"name": "t", "metadata-location": location},
        "n/tables/t": {
            "requirements": [{"type": "assert-create"}],
            "updates": [
                {"action": "add-schema", "schema": schema()},
                {"action": "set-location", "location": location},
            ],
        },
    }
    for path, asked in bodies.items():
        status, kind, message = server.error("POST", path, asked)
        assert (status, kind, "secret" in message) == (400, "ValidationException", False)
    stage = body | {"stage-create": True}
    assert server.error("POST", "n/tables", stage)[0] == 400
    assert server.ok("GET", "n/tables")["identifiers"] == []
    assert list(outside.iterdir()) == []
    assert {p.name for p in server.folder.iterdir()} == {"link", "file", "circle"}


def test_spellings_of_a_place_in_the_warehouse_are_one(server: RestCaller) -> None:
    place = f"{server.folder}/mine"
    made = server.table("n/t", location=f"file:{place}/")
    assert made["metadata"]["location"] == f"file://{place}"
    for text in (place, f"file://{place}", f"file://localhost{place}", f"FILE:{place}"):
        body = {"name": "u", "metadata-location": text}
        status, _, message = server.error("POST", "n/register", body)
        assert (status, "no table lies in another one" in message) == (400, True)


def test_a_location_with_special_characters_is_literal(server: RestCaller) -> None:
    made = server.table("n/t", location=f"{server.folder}/a b%20c+ü#?")
    assert (server.folder / "a b%20c+ü#?" / "_delta_log").is_dir()
    assert made["metadata"]["location"].endswith("/a b%20c+ü#?")


def test_an_allowed_location_takes_tables(server: RestCaller, tmp_path: Path) -> None:
    made = server.table("n/t", location=str(tmp_path / "extra" / "t"))
    assert Table.open(made["metadata"]["location"]).version == 0


def test_tables_never_overlap(server: RestCaller) -> None:
    server.table("n/t", location=f"{server.folder}/a/t")
    for place in ("a/t", "a/t/in", "a"):
        body = {"name": "u", "schema": schema(), "location": f"{server.folder}/{place}"}
        assert server.error("POST", "n/tables", body)[:2] == (400, "ValidationException")
        assert server.error("POST", "n/tables", body | {"stage-create": True})[0] == 400
    # A dropped table keeps its place for as long as it can be brought back.
    server.ok("DELETE", "n/tables/t")
    assert server.error("POST", "n/tables", body)[0] == 400
    server.table("n/beside", location=f"{server.folder}/a/t2")


def test_no_table_is_made_in_one_that_the_catalog_does_not_know(server: RestCaller) -> None:
    Table.create(server.folder / "plain", "id LONG")
    body = {"name": "t", "schema": schema(), "location": f"{server.folder}/plain/sub/t"}
    status, _, message = server.error("POST", "n/tables", body)
    assert (status, "is around it" in message) == (400, True)


@pytest.mark.parametrize("stage", [False, True])
def test_no_table_is_made_around_one_that_the_catalog_does_not_know(
    server: RestCaller, stage: bool
) -> None:
    Table.create(server.folder / "a" / "b" / "plain", "id LONG")
    body = {"name": "t", "schema": schema(), "location": f"{server.folder}/a"}
    status, _, message = server.error("POST", "n/tables", body | {"stage-create": stage})
    assert (status, "a/b/plain lies in it" in message) == (400, True)
    assert [p.name for p in (server.folder / "a").iterdir()] == ["b"]


@pytest.mark.parametrize("key", ["write.data.path", "write.metadata.path"])
def test_paths_for_writing_are_not_for_clients(server: RestCaller, key: str) -> None:
    body = {"name": "t", "schema": schema(), "properties": {key: "/etc"}}
    assert server.error("POST", "n/tables", body)[0] == 400
    server.table("n/t")
    change = {
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {key: "/etc"}}],
    }
    assert server.error("POST", "n/tables/t", change)[0] == 400


def test_names_that_are_paths_stay_in_the_warehouse(server: RestCaller) -> None:
    server.namespace("../../x/%2e%2e")
    path = quote("../../x/%2e%2e", safe="")
    body = {"name": "../../../../etc/passwd", "schema": schema()}
    made = server.ok("POST", f"{path}/tables", body)
    place = Path(made["metadata"]["location"].removeprefix("file://"))
    assert place.resolve().is_relative_to(server.folder)
    table = quote("../../../../etc/passwd", safe="")
    assert server.send("GET", f"{path}/tables/{table}").status_code == 200


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("s3://b/lake/x", "s3://b/lake/x"),
        ("s3a://b/lake/x/", "s3://b/lake/x"),
        ("S3N://b/lake/a b%20", "s3://b/lake/a%20b%2520"),
        ("s3://b/lake", None),
        ("s3://b/lakes/x", None),
        ("s3://other/lake/x", None),
        ("s3://b/lake/../x", None),
        ("s3://b/lake/%2e%2e/x", None),
        ("s3://b/lake//x", None),
        ("s3://b/lake/x?versionId=1", None),
        ("s3://b/lake/x#y", None),
        ("s3://key:secret@b/lake/x", None),
        ("s3://key:secret@b/lake/../x", None),
        ("s3:b/lake/x", None),
        ("s3:///b/lake/x", None),
        ("gs://b/lake/x", None),
        ("/b/lake/x", None),
    ],
)
def test_locations_in_an_object_store(text: str, url: str | None) -> None:
    policy = LocationPolicy(warehouse=home_location("s3://b/lake"))
    if url is not None:
        assert policy.resolve(text) == url
        return
    with pytest.raises(UserError) as caught:
        policy.resolve(text)
    assert "secret" not in str(caught.value)


def test_a_warehouse_need_not_be_on_a_disk(tmp_path: Path) -> None:
    with rest_caller(tmp_path, warehouse="memory://rest-locations/lake") as server:
        server.namespace("n")
        made = server.table("n/t")
        assert made["metadata"]["location"].startswith("memory://rest-locations/lake/n/t-")
        first = server.send("GET", "n/tables/t")
        assert first.json() == made
        Table.open(made["metadata"]["location"]).append([{"id": 1, "name": "a"}])
        again = server.send("GET", "n/tables/t", headers={"If-None-Match": first.headers["etag"]})
        assert len(again.json()["metadata"]["snapshots"]) == 1
        known = {"If-None-Match": again.headers["etag"]}
        assert server.send("GET", "n/tables/t", headers=known).status_code == 304


HOME = "/lake/w"
PIECES = st.lists(
    st.sampled_from(
        [
            *("..", ".", "/", "//", "a", "%2e", "%2E%2e", "%2f", "%252f", "\\", "%5c", "\x00"),
            *("%00", "file:", "file://", "s3://", "lake", "w", "/lake/w/", "localhost", "?", "#"),
        ]
    ),
    max_size=12,
).map("".join)


@given(PIECES | PIECES.map(lambda text: f"{HOME}/{text}") | st.text(max_size=40))
def test_whatever_resolves_lies_below_the_warehouse(text: str) -> None:
    policy = LocationPolicy(warehouse=home_location(HOME))
    try:
        url = policy.resolve(text)
    except TwinlakeError as error:
        assert isinstance(error, UserError)
        return
    assert url.startswith(f"file://{HOME}/")
    path = Path(url.removeprefix("file://"))
    assert ".." not in path.parts
    # It resolves to itself, so that what is checked is what is used.
    assert policy.resolve(text) == url


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_the_place_of_a_new_table_lies_below_the_warehouse(namespace: str, name: str) -> None:
    policy = LocationPolicy(warehouse=home_location(HOME))
    identity = TableIdentity(NamespaceName((namespace,)), name)
    url = policy.new_root(identity, "0123456789abcdef")
    assert policy.resolve(url.replace("%20", " ")) == url
    assert url.startswith(f"file://{HOME}/")
    assert url.endswith("-01234567")
