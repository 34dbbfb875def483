"""Requests to catalog servers: tables loaded, unchanged ones, and appends of PyIceberg."""

from __future__ import annotations

import http.client
import json
import shutil
import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from benchmarks.iceberg_tables import plain_schema, rows_of
from benchmarks.jobs.iceberg import PEER_MODULES
from benchmarks.jobs.interface import Outcome

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from benchmarks.rest_servers import Server

MODULES = (*PEER_MODULES, "benchmarks.rest_servers", "pyiceberg.catalog.rest")


class _OnServer:
    """A server that runs from the setup to the check, with a namespace ``n``."""

    modules: tuple[str, ...] = MODULES
    server: Server

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.scratch = Path(spec["scratch"])
        self.stack = ExitStack()

    def start(self) -> AbstractContextManager[Server]:
        """Run the server."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start the server."""
        import atexit

        from benchmarks.rest_servers import loopback_up

        loopback_up()
        # Where the job fails before its end, too.
        atexit.register(self.stack.close)
        self.server = self.stack.enter_context(self.start())
        config = self.request("GET", self._path("/v1/config"))
        prefix = json.loads(config.body)["overrides"].get("prefix")
        self.root = "/v1" if prefix is None else f"/v1/{quote(prefix, safe='')}"
        self.request("POST", f"{self.root}/namespaces", {"namespace": ["n"]})

    def _path(self, path: str) -> str:
        named = self.server.warehouse
        return path if named is None else f"{path}?warehouse={named}"

    def register(self, metadata: str) -> None:
        """Make a table known, as ``n.t``."""
        body = {"name": "t", "metadata-location": metadata}
        self.request("POST", f"{self.root}/namespaces/n/register", body)

    def request(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """One request that has to succeed."""
        connection = http.client.HTTPConnection(self.server.url.partition("//")[2], timeout=60)
        given = {"Content-Type": "application/json", **(headers or {})}
        data = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise ValueError(f"{method} {path}: {answer.status} {text[:2_000].decode()}")
        return Reply(answer.status, text, answer.headers.get("ETag"))


class Reply:
    """What a server answers."""

    def __init__(self, status: int, body: bytes, etag: str | None) -> None:
        self.status = status
        self.body = body
        self.etag = etag


class _Ours:
    scratch: Path

    def start(self) -> AbstractContextManager[Server]:
        from benchmarks.rest_servers import our_server

        return our_server(self.scratch)


class _Theirs:
    scratch: Path

    def start(self) -> AbstractContextManager[Server]:
        from benchmarks.rest_servers import reference_server

        return reference_server(self.scratch)


class _Loads(_OnServer):
    """The same table, loaded again and again by the compiled client."""

    kinds: ClassVar[dict[str, dict[str, str]]] = {
        "plain": {},
        "packed": {"Accept-Encoding": "gzip"},
    }

    def setup(self) -> None:
        self.begin()
        from twinlake import Table

        # Below the warehouse of our server; the other one takes what lies anywhere.
        place = self.scratch / "warehouse" / "table"
        shutil.copytree(Path(self.spec["path"], "_delta_log"), place / "_delta_log")
        synced = Table.open(place, durable=False).iceberg.sync()
        self.register(synced.metadata_location)
        self.path = f"{self.root}/namespaces/n/tables/t"
        self.reply = self.request("GET", self.path)
        self.wanted = {name: dict(headers) for name, headers in self.kinds.items()}
        self.wanted["unchanged"] = {"If-None-Match": self.reply.etag or ""}
        for name in self.wanted:
            self.load(name, self.spec["warm"])

    def load(self, name: str, requests: int) -> dict[str, Any]:
        from benchmarks.rest_servers import load

        url = f"{self.server.url}{self.path}"
        found = load(Path(self.spec["client"]), url, requests, self.wanted[name])
        expected = 304 if name == "unchanged" else 200
        if found["reply"]["status"] != expected:
            raise ValueError(f"{name}: {found}")
        return found

    def run(self) -> dict[str, float]:
        metrics: dict[str, float] = {}
        for name in self.wanted:
            before = self.server.cpu_seconds()
            found = self.load(name, self.spec["requests"])
            used = self.server.cpu_seconds() - before
            metrics |= {
                name: used / self.spec["requests"],
                f"{name} median": found["median"],
                f"{name} a second": found["requests"] / found["seconds"],
            }
        return metrics

    def check(self, result: dict[str, float]) -> Outcome:
        metadata = json.loads(self.reply.body)["metadata"]
        facts = {
            "snapshots": len(metadata["snapshots"]),
            "current": metadata["current-snapshot-id"],
            "records": metadata["snapshots"][-1]["summary"]["total-records"],
        }
        result |= self.server.memory_mb()
        notes = {"bytes": len(self.reply.body)}
        self.stack.close()
        return Outcome(facts=facts, metrics=result, notes=notes)


class OurLoads(_Ours, _Loads):
    """``twinlake serve``."""


class ReferenceLoads(_Theirs, _Loads):
    """Iceberg's reference server."""


class _Appends(_OnServer):
    """Appends of a few rows by PyIceberg, one after the other."""

    def setup(self) -> None:
        self.begin()
        self.prepare()
        self.table = self.catalog().create_table("n.t", plain_schema())
        self.rows()

    def prepare(self) -> None:
        """What there is to do before the table is made."""

    def rows(self) -> None:
        import pyarrow as pa

        count: int = self.spec["appends"]
        self.new = [pa.table(rows_of(number), schema=plain_schema()) for number in range(count)]
        # What is imported late, compiled or connected is so by now.
        for _ in range(self.spec["warm"]):
            self.table.append(self.new[0])

    def catalog(self) -> Any:
        from pyiceberg.catalog import load_catalog

        return load_catalog("bench", **self.server.properties)

    def cpu_seconds(self) -> float:
        return self.server.cpu_seconds()

    def run(self) -> dict[str, float]:
        seconds = []
        before = self.cpu_seconds()
        for rows in self.new:
            start = time.perf_counter()
            self.table.append(rows)
            seconds.append(time.perf_counter() - start)
        used = self.cpu_seconds() - before
        return {"latency": statistics.median(seconds), "server": used / len(self.new)}

    def check(self, result: dict[str, float]) -> Outcome:
        snapshots = self.catalog().load_table("n.t").metadata.snapshots
        rows = self.catalog().load_table("n.t").scan(selected_fields=("id",)).to_arrow()
        facts = {
            "snapshots": len(snapshots),
            "records": len(rows),
            "sum": sum(rows["id"].to_pylist()),
        }
        if self.spec.get("without facts"):
            facts = {}
        self.stack.close()
        return Outcome(facts=facts, metrics=result)


class OurAppends(_Ours, _Appends):
    """Through ``twinlake serve``."""


class ReferenceAppends(_Theirs, _Appends):
    """Through Iceberg's reference server."""


class SqlAppends(_Appends):
    """By PyIceberg's own catalog in SQLite, without a server."""

    modules = PEER_MODULES

    def begin(self) -> None:
        self._catalog().create_namespace("n")

    def _catalog(self) -> Any:
        from pyiceberg.catalog.sql import SqlCatalog

        uri, place = f"sqlite:///{self.scratch}/catalog.db", f"file://{self.scratch}/warehouse"
        return SqlCatalog("bench", uri=uri, warehouse=place)

    def catalog(self) -> Any:
        return self._catalog()

    def cpu_seconds(self) -> float:
        return 0.0


class CommitsToLargeTable(_Ours, _OnServer):
    """Appends to a table that has many files already."""

    def setup(self) -> None:
        self.begin()
        place = self.scratch / "warehouse" / "table"
        shutil.copytree(Path(self.spec["path"], "_delta_log"), place / "_delta_log")
        self.register(f"file://{place}")
        from pyiceberg.catalog import load_catalog

        self.table = load_catalog("bench", **self.server.properties).load_table("n.t")
        self.before = self._files()
        self.step()

    def _files(self) -> int:
        snapshot = self.table.current_snapshot()
        assert snapshot is not None and snapshot.summary is not None
        return int(snapshot.summary["total-data-files"] or 0)

    def step(self) -> tuple[float, float]:
        import pyarrow as pa

        schema = plain_schema().append(pa.field("part", pa.string()))
        rows = rows_of(0)
        new = pa.table({**rows, "part": ["p"] * len(rows["id"])}, schema=schema)
        before, start = self.server.cpu_seconds(), time.perf_counter()
        self.table.append(new)
        seconds = time.perf_counter() - start
        return seconds, self.server.cpu_seconds() - before

    def run(self) -> dict[str, float]:
        taken = [self.step() for _ in range(self.spec["appends"])]
        return {
            "latency": statistics.median(seconds for seconds, _ in taken),
            # One in several merges manifests and pays for the others.
            "server": statistics.mean(used for _, used in taken),
        }

    def check(self, result: dict[str, float]) -> Outcome:
        result |= self.server.memory_mb()
        facts = {"files added": self._files() - self.before}
        self.stack.close()
        return Outcome(facts=facts, metrics=result)
