"""What a table requires of its clients: how its protocol grows, and who may read and write it.

Every line of the log is read from the file that the commit wrote, and every refusal is the error
that a client gets.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from twinlake import ConflictError, Table, UnsupportedFeature
from twinlake.protocol import Client

from .step import Step, calls, facts, grid, prose, run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from twinlake.protocol import Protocol

COLUMNS: Final = "id INT, item STRING, price DECIMAL(10, 2)"
CHANGE_DATA_FEED: Final = {"delta.enableChangeDataFeed": "true"}
DELETION_VECTORS: Final = {"delta.enableDeletionVectors": "true"}

NEW: Final = frozenset({"appendOnly", "invariants"})
OLDER: Final = NEW | {"checkConstraints", "changeDataFeed", "generatedColumns"}
CLIENTS: Final = (
    Client(readers=frozenset(), writers=NEW, name="a new client"),
    Client(readers=frozenset(), writers=OLDER, name="an older client"),
    Client(
        readers=frozenset({"deletionVectors"}),
        writers=OLDER | {"deletionVectors"},
        name="a current client",
    ),
)
LONG: Final = 30


def steps(folder: Path) -> Iterator[Step]:
    """A new table, two features, three clients, two policies, two writers, a restore."""
    path = folder / "orders"
    yield Step(
        name="opening",
        title="What a table requires of its clients",
        is_opening=True,
        data={"path": str(path)},
        parts=[
            prose(
                "A Delta table declares in its log which features a client must support before it "
                "reads or writes. These steps add features to a real table and show which clients "
                "it still admits. No JVM is involved. The lines of the log are read from the files "
                "of the commits; `…` marks a text cut for the screen, empty fields are left out, "
                "and `twinlake log TABLE VERSION --raw` prints every byte."
            ),
            facts({"table": path}),
        ],
    )

    created = Table.create(path, COLUMNS)
    yield Step(
        name="create",
        title="A new table",
        data=commit_data(created, path),
        parts=[
            prose("A table that uses no feature is open to as many clients as possible."),
            calls(f'orders = Table.create("orders", "{COLUMNS}")'),
            log_text(path, created.version),
            prose(
                "Reader version 1 and writer version 2, the lowest of a new table. Writer version "
                "2 stands for two features, appendOnly and invariants: every writer must support "
                "them."
            ),
        ],
    )

    with_feed = created.set_properties(CHANGE_DATA_FEED)
    yield Step(
        name="change_data_feed",
        title="The change data feed",
        data=commit_data(with_feed, path),
        parts=[
            prose("The property requires a feature, so the same commit upgrades the protocol."),
            calls('orders = orders.set_properties({"delta.enableChangeDataFeed": "true"})'),
            log_text(path, with_feed.version),
            facts(changes(created, with_feed)),
            prose(
                "Writer version 4 is the lowest with the change data feed. Legacy versions include "
                "all features of the versions below: version 4 adds checkConstraints and "
                "generatedColumns, which the table does not use. Readers are not affected."
            ),
        ],
    )

    with_vectors = with_feed.set_properties(DELETION_VECTORS)
    yield Step(
        name="deletion_vectors",
        title="Deletion vectors",
        data=commit_data(with_vectors, path),
        parts=[
            prose(
                "No legacy version stands for deletion vectors: the protocol lists them by name."
            ),
            calls('orders = orders.set_properties({"delta.enableDeletionVectors": "true"})'),
            log_text(path, with_vectors.version),
            facts(changes(with_feed, with_vectors)),
            prose(
                "Reader version 3 and writer version 7 are the last versions: from here on the two "
                "lists count. The features that version 4 stood for are now listed among the "
                "writer features. Only deletionVectors is a reader feature too: a reader that "
                "ignores them returns deleted rows."
            ),
        ],
    )

    versions = (created, with_feed, with_vectors)
    yield clients(versions)
    yield policies(versions, folder / "orders_minimal")
    yield two_writers(with_vectors, path)
    yield restore(with_vectors.refresh(), path)


def log_lines(path: Path, version: int) -> list[str]:
    """The lines of a commit, from its file."""
    file = path / "_delta_log" / f"{version:020d}.json"
    return file.read_text(encoding="utf-8").splitlines()


def log_text(path: Path, version: int) -> str:
    """A commit with long texts cut; the protocol is never cut."""
    shown = [f"_delta_log/{version:020d}.json"]
    for line in log_lines(path, version):
        action = json.loads(line)
        if "protocol" not in action:
            line = json.dumps(cut(action), ensure_ascii=False, separators=(",", ":"))
        shown.append(f"  {line}")
    return "\n".join(shown)


def cut(value: Any) -> Any:
    """A value without empty fields, and with its long texts cut."""
    if isinstance(value, dict):
        return {k: cut(v) for k, v in value.items() if v not in (None, {}, [], "{}", "[]")}
    if isinstance(value, str) and len(value) > LONG and not value.startswith('{"delta.'):
        return f"{value[:8]}…"
    return value


def commit_data(table: Table, path: Path) -> dict[str, Any]:
    """A version as data."""
    return {
        "version": table.version,
        "protocol": table.protocol.to_dict(),
        "features": sorted(table.protocol.feature_names),
        "log": [json.loads(line) for line in log_lines(path, table.version)],
    }


def changes(before: Table, after: Table) -> dict[str, str]:
    """What a commit changed in protocol and properties."""
    found = after.diff(before.version)
    return {
        "protocol": f"{versions_text(before.protocol)} -> {versions_text(after.protocol)}",
        "features added": ", ".join(found.features_added),
        **{one.key: f"{one.before or 'not set'} -> {one.after}" for one in found.properties},
    }


def versions_text(protocol: Protocol) -> str:
    """The two versions of a protocol."""
    return f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"


def clients(versions: Sequence[Table]) -> Step:
    """Three clients at the door of three versions."""
    refusals = {
        (client.name, table.version, operation): error
        for client in CLIENTS
        for table in versions
        for operation in ("read", "write")
        if (error := refusal(client, table.protocol, operation)) is not None
    }
    asked = [(table.version, operation) for table in versions for operation in ("read", "write")]
    rows = [
        (client.name, *("refused" if (client.name, *one) in refusals else "yes" for one in asked))
        for client in CLIENTS
    ]
    new = CLIENTS[0].name
    return Step(
        name="clients",
        title="Which clients may read and write",
        data={
            "clients": [
                {
                    "name": client.name,
                    "readers": sorted(client.readers),
                    "writers": sorted(client.writers),
                }
                for client in CLIENTS
            ],
            "refusals": [
                {"client": client, "version": version, **error.to_dict()}
                for (client, version, _), error in refusals.items()
            ],
        },
        parts=[
            prose(
                "A client compares names, not numbers: it must support every feature that the "
                "table requires. On legacy versions these are the features that the numbers stand "
                "for. The new client supports appendOnly and invariants, the older one also the "
                "features of writer version 4, the current one deletion vectors as well."
            ),
            grid("client " + " ".join(f"v{version}_{what}" for version, what in asked), rows),
            prose("The errors of the new client:"),
            *(
                f"version {version}, {operation}:\n{error}"
                for (client, version, operation), error in refusals.items()
                if client == new
            ),
        ],
    )


def refusal(client: Client, protocol: Protocol, operation: str) -> UnsupportedFeature | None:
    """The error that a client gets, if any."""
    check = protocol.check_readable if operation == "read" else protocol.check_writable
    try:
        check(client, table="orders")
    except UnsupportedFeature as error:
        return error
    return None


def policies(bundled: Sequence[Table], path: Path) -> Step:
    """The same features under the policy ``minimal``."""
    created = Table.create(path, COLUMNS, policy="minimal")
    with_feed = created.set_properties(CHANGE_DATA_FEED)
    minimal = (created, with_feed, with_feed.set_properties(DELETION_VECTORS))
    rows = [
        (
            label,
            versions_text(one.protocol),
            versions_text(other.protocol),
            ", ".join(sorted(one.protocol.feature_names - other.protocol.feature_names)),
        )
        for label, one, other in zip(
            ("new table", "change data feed", "deletion vectors"), bundled, minimal, strict=True
        )
    ]
    return Step(
        name="policies",
        title="The same steps with the policy minimal",
        data={
            "bundled": [table.protocol.to_dict() for table in bundled],
            "minimal": [table.protocol.to_dict() for table in minimal],
        },
        parts=[
            prose(
                "The policy `bundled`, used so far, uses legacy versions as long as they suffice. "
                "The policy `minimal` lists features as soon as that requires fewer of them."
            ),
            grid("step bundled minimal not_required_by_minimal", rows),
            prose(
                "With `minimal` the writer features are "
                f"{', '.join(sorted(minimal[-1].protocol.feature_names))}."
            ),
        ],
    )


def two_writers(table: Table, path: Path) -> Step:
    """Two views of one version both change properties; the second to commit fails."""
    first, second = table, table
    winner = first.set_properties({"delta.logRetentionDuration": "interval 60 days"})
    conflict: ConflictError | None = None
    try:
        second.set_properties({"delta.checkpointInterval": "20"})
    except ConflictError as error:
        conflict = error
    retried = second.refresh().set_properties({"delta.checkpointInterval": "20"})
    return Step(
        name="two_writers",
        title="Two concurrent writers",
        data={
            "read_version": table.version,
            "winner": winner.version,
            "error": conflict and {**conflict.to_dict(), "type": type(conflict).__name__},
            "settled": retried.version,
        },
        parts=[
            prose(
                f"Two writers have version {table.version}, and both set a property. The first "
                f"commit becomes version {winner.version}. The second was prepared on metadata "
                "that is no longer current, so it fails:"
            ),
            calls(
                'first.set_properties({"delta.logRetentionDuration": "interval 60 days"})',
                'second.set_properties({"delta.checkpointInterval": "20"})',
            ),
            f"{type(conflict).__name__}:\n{conflict}",
            prose(
                f"Retried on the newest version it becomes version {retried.version}. Both commits "
                "are in the log, and no version was written twice:"
            ),
            "\n".join(sorted(file.name for file in (path / "_delta_log").glob("*.json"))),
        ],
    )


def restore(table: Table, path: Path) -> Step:
    """The metadata of an earlier version, by one more commit."""
    target = 1
    restored = table.restore(target)
    history = [(one.version, one.operation, one.read_version) for one in restored.history()]
    properties = restored.diff(table.version).properties
    return Step(
        name="restore",
        title="An earlier version restored",
        data={
            "restored": target,
            **commit_data(restored, path),
            "properties": dict(restored.properties),
            "history": [[version, operation] for version, operation, _ in history],
        },
        parts=[
            prose("A version is never changed. RESTORE is one more commit:"),
            calls(f"orders = orders.restore({target})"),
            log_text(path, restored.version),
            grid("property before after", [(one.key, one.before, one.after) for one in properties]),
            prose(
                "The metadata is that of version 1. The protocol stays at "
                f"{versions_text(restored.protocol)}: the versions in between require it, and "
                "clients that a lower one admits would misread them. `twinlake alter "
                "--drop-feature` drops features one by one."
            ),
            grid("version operation read_version", history, title="history"),
        ],
    )


if __name__ == "__main__":
    run(steps)
