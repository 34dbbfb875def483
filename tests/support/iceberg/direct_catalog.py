"""PyIceberg's REST catalog on the commit path of the server, without a server in between.

The requests are the very bytes that PyIceberg sends; only the transport is replaced.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pyiceberg.catalog.rest import RestCatalog
from requests import PreparedRequest, Response
from requests.adapters import BaseAdapter

from twinlake.errors import CommitUnknown, ConflictError, TwinlakeError
from twinlake.storage import LocalStore
from twinlake.table.iceberg_commits import IcebergCommits

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from requests import Session

    from twinlake.storage import Store
    from twinlake.table.iceberg_commits import TwinState

__all__ = ["DirectCatalog"]

_TABLES = "/v1/namespaces/n/tables"


class DirectCatalog(RestCatalog):
    """The tables of one folder, as ``n.<name>``."""

    def __init__(self, folder: Path, commits: IcebergCommits | None = None) -> None:
        self.transport = _Transport(folder, commits or IcebergCommits())
        super().__init__("direct", uri="http://direct")

    def _create_session(self) -> Session:
        session = super()._create_session()
        session.mount("http://direct", self.transport)
        return session

    def store(self, name: str) -> Store:
        """The folder of a table."""
        return LocalStore(self.transport.folder / name)


class _Transport(BaseAdapter):
    def __init__(self, folder: Path, commits: IcebergCommits) -> None:
        super().__init__()
        self.folder = folder
        self.commits = commits
        self.sent: list[bytes] = []
        """The bodies of the commit requests, in order."""
        self.before_commit: Callable[[], None] = lambda: None

    def close(self) -> None: ...

    def send(self, request: PreparedRequest, *_: Any, **__: Any) -> Response:
        path = urlsplit(str(request.url)).path
        body = request.body if isinstance(request.body, bytes) else str(request.body or "").encode()
        try:
            return self._response(request, 200, self._answer(str(request.method), path, body))
        except TwinlakeError as error:
            status = {ConflictError: 409, CommitUnknown: 500}
            code = next((n for kind, n in status.items() if isinstance(error, kind)), 400)
            found = {"message": str(error), "type": error.code, "code": code}
            return self._response(request, code, json.dumps({"error": found}).encode())

    def _answer(self, method: str, path: str, body: bytes) -> bytes:
        if path == "/v1/config":
            return b'{"defaults": {}, "overrides": {}}'
        name = unquote(path.removeprefix(_TABLES).strip("/"))
        if method == "GET":
            return self._table(self.commits.load(LocalStore(self.folder / name)))
        if not name:
            document = json.loads(body)
            store = LocalStore(self.folder / document["name"])
            if document.get("stage-create"):
                return b'{"metadata": ' + self.commits.stage(store, body) + b', "config": {}}'
            return self._table(self.commits.create(store, body))
        self.sent.append(body)
        self.before_commit()
        store = LocalStore(self.folder / name)
        if b'"assert-create"' in body:
            return self._table(self.commits.create_staged(store, body))
        return self._table(self.commits.commit(store, body))

    @staticmethod
    def _table(state: TwinState) -> bytes:
        location = json.dumps(state.metadata_location).encode()
        return b'{"metadata-location": ' + location + b', "metadata": ' + state.metadata() + b"}"

    @staticmethod
    def _response(request: PreparedRequest, status: int, content: bytes) -> Response:
        response = Response()
        response.status_code = status
        response.url = str(request.url)
        response.request = request
        response._content = content
        response.headers["Content-Type"] = "application/json"
        return response
