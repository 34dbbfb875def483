"""Names through a server: what is asked of it, and what its answers become."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from twinlake.errors import Code, StorageError, TwinlakeError, UserError
from twinlake.table import Catalog, open_names
from twinlake.table.catalog.server_catalog import ServerCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = {"overrides": {"prefix": "my lake"}}
TABLES = "/v1/my%20lake/namespaces"


class Stub:
    """A server that answers what it was told to."""

    def __init__(self) -> None:
        self.answers: dict[str, tuple[int, Any]] = {"/v1/config": (200, CONFIG)}
        self.asked: list[tuple[str, str, Any]] = []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                body = json.loads(self.rfile.read(size)) if size else None
                stub.asked.append((self.command, self.path, body))
                status, found = stub.answers.get(self.path, (404, {}))
                data = found if isinstance(found, bytes) else json.dumps(found).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

            do_GET = do_HEAD = do_POST = _answer

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def stub() -> Iterator[Stub]:
    made = Stub()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def test_a_url_means_a_server_and_a_path_a_file(tmp_path: Path) -> None:
    assert isinstance(open_names("http://127.0.0.1:8181"), ServerCatalog)
    assert isinstance(open_names("https://host/"), ServerCatalog)
    assert isinstance(open_names(str(tmp_path / "names.db")), Catalog)


def test_a_name_becomes_the_location_of_the_table(stub: Stub) -> None:
    location = {"metadata": {"location": "s3://b/a b/100%"}}
    stub.answers[f"{TABLES}/n%20s%1Finner/tables/t%2F1?snapshots=refs"] = (200, location)
    names = open_names(f"{stub.url}/")
    assert names.locate("`N s`.inner.`T/1`".replace("`N s`.inner", "twinlake.`N s`.inner")) == (
        "s3://b/a%20b/100%25"
    )
    assert names.locate("delta.`/data/t`") == "file:///data/t"
    with pytest.raises(UserError) as caught:
        names.locate("n.none")
    assert caught.value.code is Code.TABLE_NOT_FOUND


def test_the_warehouse_comes_from_the_url_or_the_name(stub: Stub) -> None:
    for warehouse in ("one", "two"):
        config = {"overrides": {"prefix": warehouse}}
        stub.answers[f"/v1/config?warehouse={warehouse}"] = (200, config)
        stub.answers[f"/v1/{warehouse}/namespaces/default/tables/t"] = (204, b"")
    names = open_names(f"{stub.url}?warehouse=one")
    assert names.exists("t")
    assert names.exists("two.default.t")
    assert not names.exists("none_there")
    assert [path for method, path, _ in stub.asked if method == "HEAD"] == [
        "/v1/one/namespaces/default/tables/t",
        "/v1/two/namespaces/default/tables/t",
        "/v1/one/namespaces/default/tables/none_there",
    ]
    with pytest.raises(UserError, match="is not the name of a table"):
        names.exists("three.default.t")


def test_a_table_is_registered_by_its_literal_location(stub: Stub) -> None:
    stub.answers[f"{TABLES}/n/register"] = (200, {})
    names = open_names(stub.url)
    assert str(names.register("N.T", "s3://b/a%20b")) == "twinlake.n.t"
    body = {"name": "t", "metadata-location": "s3://b/a b"}
    assert stub.asked[-1] == ("POST", f"{TABLES}/n/register", body)
    with pytest.raises(UserError, match="There is no namespace m"):
        names.register("m.t", "s3://b/t")


def test_namespaces_are_walked(stub: Stub) -> None:
    stub.answers[f"{TABLES}"] = (200, {"namespaces": [["A"], ["b c"]]})
    stub.answers[f"{TABLES}?parent=A"] = (200, {"namespaces": [["A", "x"]]})
    for parent in ("b%20c", "A%1Fx"):
        stub.answers[f"{TABLES}?parent={parent}"] = (200, {"namespaces": []})
    assert open_names(stub.url).namespaces() == ("a", "a.x", "b c")


@pytest.mark.parametrize(
    ("status", "answer", "kind", "text"),
    [
        (500, {"error": {"message": "broken"}}, StorageError, "broken"),
        (503, b"busy", StorageError, "cannot be used"),
        (200, b"<html>", StorageError, "cannot be used"),
        (400, {"error": {"message": "TWIN-PATH-UNSAFE: no."}}, UserError, "TWIN-PATH-UNSAFE"),
        (409, {"error": {"message": "there"}}, UserError, "there"),
        (401, {}, StorageError, "it answers 401"),
    ],
)
def test_other_answers_are_errors_with_a_fix(
    stub: Stub, status: int, answer: Any, kind: type[TwinlakeError], text: str
) -> None:
    stub.answers[f"{TABLES}/n/register"] = (status, answer)
    with pytest.raises(kind) as caught:
        open_names(stub.url).register("n.t", "/data/t")
    assert text in f"{caught.value}"
    assert caught.value.fix
    assert (caught.value.code is Code.TABLE_EXISTS) is (status == 409)


def test_a_server_that_is_not_there_is_said_to_be(stub: Stub) -> None:
    with pytest.raises(StorageError, match="cannot be used"):
        open_names("http://127.0.0.1:1").exists("t")
    stub.answers["/v1/config"] = (404, {})
    with pytest.raises(UserError, match="is not the name of a table"):
        open_names(stub.url).exists("t")
