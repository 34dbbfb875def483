"""The parts of ``twinlake demo``, each a view made by doing what it tells.

Nothing here is a fixture: every line of the log is read back from the file it landed in, and
every refusal is the error that a client would get.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.cli.output import error_lines
from twinlake.cli.spark_story import spark_story
from twinlake.cli.verify.story import verify_story
from twinlake.cli.view import Facts, Grid, Heading, Lines, Prose, View
from twinlake.cli.wording import protocol_text
from twinlake.errors import ConflictError, UnsupportedFeature
from twinlake.protocol import Client
from twinlake.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from twinlake.cli.view import Block
    from twinlake.protocol import Protocol

__all__ = ["story"]

_COLUMNS: Final = "id INT, item STRING, price DECIMAL(10, 2)"
_CHANGE_FEED: Final = {"delta.enableChangeDataFeed": "true"}
_DELETION_VECTORS: Final = {"delta.enableDeletionVectors": "true"}
_LONG: Final = 30

_BEGINNER: Final = frozenset({"appendOnly", "invariants"})
_CLIENTS: Final = (
    Client(readers=frozenset(), writers=_BEGINNER, name="a new client"),
    Client(
        readers=frozenset(),
        writers=_BEGINNER | {"checkConstraints", "changeDataFeed", "generatedColumns"},
        name="an older client",
    ),
    Client(
        readers=frozenset({"deletionVectors"}),
        writers=_BEGINNER
        | {"checkConstraints", "changeDataFeed", "generatedColumns", "deletionVectors"},
        name="a current client",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chapter:
    """One change of the table, and what is said about it."""

    key: str
    title: str
    code: str
    before: str
    after: str


_CREATE: Final = _Chapter(
    key="create",
    title="1. A new table",
    code=f'orders = Table.create("orders", "{_COLUMNS}")',
    before="A table that uses nothing special should be open to as many clients as can be.",
    after="Reader version 1 and writer version 2, the lowest that a new table gets. Writer "
    "version 2 stands for two features, appendOnly and invariants: every writer must know them.",
)
_FEED: Final = _Chapter(
    key="change_data_feed",
    title="2. The change data feed",
    code='orders = orders.set_properties({"delta.enableChangeDataFeed": "true"})',
    before="Setting this property asks writers for something new, so the same commit raises the "
    "protocol.",
    after="Writer version 4 is the first that knows the change data feed. Legacy versions are "
    "bundles, each with all that came before: version 4 brings checkConstraints and "
    "generatedColumns along, which nobody asked for. Readers notice nothing.",
)
_VECTORS: Final = _Chapter(
    key="deletion_vectors",
    title="3. Deletion vectors",
    code='orders = orders.set_properties({"delta.enableDeletionVectors": "true"})',
    before="Deletion vectors are newer than the numbered versions: they are listed by name.",
    after="Reader version 3 and writer version 7 are the last numbers there will be: from here on "
    "the two lists say what counts. What version 4 stood for is now spelled out among the writer "
    "features. Only deletionVectors concerns readers too, since a reader that ignored them would "
    "bring deleted rows back.",
)


def story(folder: Path, *, kept: bool, rows: bool = True) -> Iterator[View]:
    """The parts in order; the tables are made in ``folder``. ``rows``: also those on Spark."""
    path = folder / "orders"
    yield _opening(path)
    created = Table.create(path, _COLUMNS)
    yield _chapter(_CREATE, None, created, path)
    fed = created.set_properties(_CHANGE_FEED)
    yield _chapter(_FEED, created, fed, path)
    marked = fed.set_properties(_DELETION_VECTORS)
    yield _chapter(_VECTORS, fed, marked, path)
    stages = (created, fed, marked)
    yield _clients(stages)
    yield _policies(stages, folder / "orders_minimal")
    settled, view = _two_writers(marked, path)
    yield view
    yield _restoring(settled, path)
    if rows:
        yield from spark_story(folder)
    yield from verify_story(folder, first=17 if rows else 8)
    yield _ending(path, kept=kept)


def _opening(path: Path) -> View:
    return View(
        data={"step": "opening", "path": str(path)},
        blocks=[
            Heading("What a table asks of its clients"),
            Prose(
                "A Delta table says in its log what a client must understand before it may read "
                "or write. This is how that grows, on a real table, and who is let in after each "
                "step. No JVM is involved. The lines of the log are read from the files as they "
                "land; `…` marks a text cut for the screen, empty parts are left out, and "
                "`twinlake log TABLE VERSION --raw` has every byte."
            ),
            Facts((("table", str(path)),)),
        ],
    )


def _chapter(chapter: _Chapter, before: Table | None, table: Table, path: Path) -> View:
    lines = _landed(path, table.version)
    changes: list[tuple[str, str]] = []
    if before is not None:
        found = table.diff(before.version)
        changes = [
            ("protocol", f"{protocol_text(before.protocol)} -> {protocol_text(table.protocol)}"),
            ("features added", ", ".join(found.features_added)),
            *((p.key, f"{p.before or 'not set'} -> {p.after}") for p in found.properties),
        ]
    blocks: list[Block] = [
        Heading(chapter.title),
        Prose(chapter.before),
        Lines((f">>> {chapter.code}",), style="bold"),
        Lines((f"_delta_log/{table.version:020d}.json", *map(_on_screen, lines))),
        *([Facts(tuple(changes))] if changes else []),
        Prose(chapter.after),
    ]
    return View(
        data={
            "step": chapter.key,
            "version": table.version,
            "protocol": table.protocol.to_dict(),
            "features": sorted(table.protocol.feature_names),
            "log": [msgspec.json.decode(line) for line in lines],
        },
        blocks=blocks,
    )


def _landed(path: Path, version: int) -> list[str]:
    """The lines of a commit, from the file itself."""
    file = path / "_delta_log" / f"{version:020d}.json"
    return file.read_text(encoding="utf-8").splitlines()


def _on_screen(line: str) -> str:
    """A line of the log with long texts cut; the protocol is never cut."""
    action = msgspec.json.decode(line)
    return "  " + (line if "protocol" in action else msgspec.json.encode(_cut(action)).decode())


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        # What is empty says nothing and takes room.
        return {k: _cut(v) for k, v in value.items() if v not in (None, {}, [], "{}", "[]")}
    if isinstance(value, str) and len(value) > _LONG and not value.startswith('{"delta.'):
        return f"{value[:8]}…"
    return value


def _clients(stages: tuple[Table, ...]) -> View:
    rows = [
        (
            client.name,
            *(
                verdict
                for table in stages
                for verdict in (_may(client, table.protocol, "read"), _may(client, table.protocol))
            ),
        )
        for client in _CLIENTS
    ]
    told = [
        {"client": client.name, "version": table.version, **refusal.to_dict()}
        for client in _CLIENTS
        for table in stages
        for operation in ("read", "write")
        if (refusal := _refusal(client, table.protocol, operation)) is not None
    ]
    beginner = _CLIENTS[0]
    quoted: list[Block] = []
    for table, operation in ((stages[1], "write"), (stages[2], "read"), (stages[2], "write")):
        refusal = _refusal(beginner, table.protocol, operation)
        if refusal is not None:
            lines = error_lines(refusal)
            quoted.append(Lines((f"version {table.version}, {operation}:", *lines)))
    header = "client " + " ".join(f"v{t.version}_{o}" for t in stages for o in ("read", "write"))
    return View(
        data={
            "step": "clients",
            "clients": [
                {
                    "name": client.name,
                    "readers": sorted(client.readers),
                    "writers": sorted(client.writers),
                }
                for client in _CLIENTS
            ],
            "refusals": told,
        },
        blocks=[
            Heading("4. Who is let in"),
            Prose(
                "A client compares names, not numbers: what the table needs must be among what it "
                "supports. On legacy versions the needs are the features that the numbers stand "
                "for. The new client supports appendOnly and invariants and nothing else, the "
                "older one also the features of writer version 4, the current one deletion "
                "vectors as well."
            ),
            Grid.of(header, rows),
            Prose("This is what the new client is told:"),
            *quoted,
        ],
    )


def _refusal(client: Client, protocol: Protocol, operation: str) -> UnsupportedFeature | None:
    check = protocol.check_readable if operation == "read" else protocol.check_writable
    try:
        check(client, table="orders")
    except UnsupportedFeature as error:
        return error
    return None


def _may(client: Client, protocol: Protocol, operation: str = "write") -> str:
    return "refused" if _refusal(client, protocol, operation) else "yes"


def _policies(stages: tuple[Table, ...], path: Path) -> View:
    created = Table.create(path, _COLUMNS, policy="minimal")
    fed = created.set_properties(_CHANGE_FEED)
    minimal = (created, fed, fed.set_properties(_DELETION_VECTORS))
    labels = ("new table", "change data feed", "deletion vectors")
    rows = [
        (label, _versions(a.protocol), _versions(b.protocol), _spared(a.protocol, b.protocol))
        for label, a, b in zip(labels, stages, minimal, strict=True)
    ]
    return View(
        data={
            "step": "policies",
            "bundled": [table.protocol.to_dict() for table in stages],
            "minimal": [table.protocol.to_dict() for table in minimal],
        },
        blocks=[
            Heading("5. The same steps, naming only what is needed"),
            Prose(
                "The policy `bundled`, used so far, stays with the numbered versions for as long "
                "as they will do. The policy `minimal` goes over to lists sooner and asks for less."
            ),
            Grid.of("step bundled minimal not_asked_of_clients", rows),
            Prose(f"minimal ends with writer features {', '.join(_writers(minimal[-1]))}."),
        ],
    )


def _versions(protocol: Protocol) -> str:
    return f"({protocol.min_reader_version}, {protocol.min_writer_version})"


def _spared(bundled: Protocol, minimal: Protocol) -> str:
    return ", ".join(sorted(bundled.feature_names - minimal.feature_names))


def _writers(table: Table) -> list[str]:
    return sorted(table.protocol.feature_names)


def _two_writers(table: Table, path: Path) -> tuple[Table, View]:
    """Two values of one version both change properties; the second to commit loses."""
    first, second = table, table
    won = first.set_properties({"delta.logRetentionDuration": "interval 60 days"})
    lost: ConflictError | None = None
    try:
        second.set_properties({"delta.checkpointInterval": "20"})
    except ConflictError as error:
        lost = error
    settled = won.refresh().set_properties({"delta.checkpointInterval": "20"})
    view = View(
        data={
            "step": "two_writers",
            "read_version": table.version,
            "winner": won.version,
            "error": lost and {**lost.to_dict(), "type": type(lost).__name__},
            "settled": settled.version,
        },
        blocks=[
            Heading("6. Two writers at once"),
            Prose(
                f"Two writers hold version {table.version}, and both set a property. The first "
                f"commit becomes version {won.version}. The second was planned on a table that is "
                "no more, so it is refused rather than merged by guessing:"
            ),
            Lines(
                (
                    '>>> first.set_properties({"delta.logRetentionDuration": "interval 60 days"})',
                    '>>> second.set_properties({"delta.checkpointInterval": "20"})',
                ),
                style="bold",
            ),
            Lines(
                (f"{type(lost).__name__}:", *error_lines(lost)) if lost else ("no conflict",),
            ),
            Prose(
                f"Run again on the newer version it becomes version {settled.version}. Both "
                "commits are in the log, and no version was written twice:"
            ),
            Lines(tuple(sorted(file.name for file in (path / "_delta_log").glob("*.json")))),
        ],
    )
    return settled, view


def _restoring(table: Table, path: Path) -> View:
    target = 1
    restored = table.restore(target)
    back = restored.diff(table.version)
    lines = _landed(path, restored.version)
    rows = [
        (r.version, r.operation, "" if r.read_version is None else r.read_version)
        for r in restored.history()
    ]
    return View(
        data={
            "step": "restore",
            "restored": target,
            "version": restored.version,
            "protocol": restored.protocol.to_dict(),
            "properties": dict(restored.properties),
            "log": [msgspec.json.decode(line) for line in lines],
            "history": [[version, operation] for version, operation, _ in rows],
        },
        blocks=[
            Heading("7. Going back"),
            Prose("Nothing is ever undone in place. Going back is one more commit:"),
            Lines((f">>> orders = orders.restore({target})",), style="bold"),
            Lines((f"_delta_log/{restored.version:020d}.json", *map(_on_screen, lines))),
            Grid.of("property before after", [(p.key, p.before, p.after) for p in back.properties]),
            Prose(
                "The metadata is that of version 1 again. The protocol stays at "
                f"{protocol_text(restored.protocol)}: the versions in between still need it, and "
                "lowering it would let in clients that misread them. Features leave one by one, "
                "with `twinlake alter --drop-feature`."
            ),
            Grid.of("version:r operation on_version", rows, title="history"),
        ],
    )


def _ending(path: Path, *, kept: bool) -> View:
    place = str(path) if kept else "DIR/orders"
    commands = (
        f"twinlake show {place}",
        f"twinlake features {place}",
        f"twinlake diff {place} 0 2",
        f"twinlake log {place} 2",
        f"twinlake restore {place} 0",
        "twinlake features --explain deletionVectors",
        "twinlake verify iceberg --html anomaly.html",
    )
    first = () if kept else ("twinlake demo --keep DIR",)
    return View(
        data={"step": "next", "kept": kept, "commands": [*first, *commands]},
        blocks=[
            Heading("Where to look next"),
            Prose(
                "The tables are still there; look around with:"
                if kept
                else "The tables are gone with their folder. To keep them and look around:"
            ),
            Lines(tuple(f"  {line}" for line in (*first, *commands))),
        ],
    )
