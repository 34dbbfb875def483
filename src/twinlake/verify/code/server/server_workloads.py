"""Workloads in which Iceberg clients commit through servers, beside Delta writers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinlake.protocol import keys
from twinlake.verify.code.server.client_statements import (
    REQUEST,
    ClientAppend,
    ClientDelete,
    ClientUpdate,
    DeliverRequest,
    FindSnapshot,
    PrepareRequest,
)
from twinlake.verify.code.server.delta_changes import AddColumn, SetProperty
from twinlake.verify.code.statements import Append, Delete, Optimize, Update
from twinlake.verify.code.workload import TableSetup, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.verify.code.statements import Statement

__all__ = ["SERVER_SETUPS", "server_workloads"]

_COMMON: Final = (
    (keys.COLUMN_MAPPING_MODE, "id"),
    (keys.ENABLE_IN_COMMIT_TIMESTAMPS, "true"),
    (keys.ICEBERG_SYNC, "commit"),
)
_FORMAT_2: Final = TableSetup(
    name="server-v2",
    twin=True,
    properties=(*_COMMON, (keys.ENABLE_ICEBERG_WRITER_COMPAT_V1, "true")),
)
_FORMAT_3: Final = TableSetup(
    name="server-v3",
    twin=True,
    properties=(
        *_COMMON,
        (keys.ENABLE_ICEBERG_WRITER_COMPAT_V3, "true"),
        (keys.ENABLE_DELETION_VECTORS, "true"),
    ),
)
SERVER_SETUPS: Final = (_FORMAT_2, _FORMAT_3)
"""Tables as a server creates them: of format 2, and of format 3."""

_NEW: Final = (("a", 7, "P"),)
_MORE: Final = (("b", 9, "Q"),)
_CLIENT: Final = ClientAppend(_NEW)


def server_workloads() -> Iterator[Workload]:
    """All of them, in the group ``server``."""
    yield from _appends()
    yield from _row_changes()
    yield from _deliveries()


def _appends() -> Iterator[Workload]:
    yield _workload("clients", "two clients append by two servers", _CLIENT, ClientAppend(_MORE))
    others: tuple[tuple[str, str, Statement], ...] = (
        ("append", "a Delta writer appends", Append(_MORE)),
        ("delete", "a Delta writer deletes", Delete("a", 1)),
        ("property", "a Delta writer sets a property", SetProperty()),
        ("schema", "a Delta writer adds a column", AddColumn()),
    )
    for name, title, other in others:
        yield _workload(
            f"client-{name}",
            f"a client appends while {title}",
            _CLIENT,
            other,
            metadata=name in ("property", "schema"),
        )
    yield _workload(
        "client-resend",
        "a client that lost the answer sends its append again while a Delta writer appends",
        ClientAppend(_NEW, loses_reply=True),
        Append(_MORE),
    )


def _row_changes() -> Iterator[Workload]:
    yield _workload(
        "client-overwrite",
        "a client updates by copy-on-write while a Delta writer updates another row of the file",
        ClientUpdate("a", 1, "P"),
        Update("a", 2, "Q"),
    )
    yield _workload(
        "client-vectors",
        "a client deletes a row by a vector while a Delta writer deletes another of the file",
        ClientDelete("a", 1),
        Delete("a", 2),
        table=_FORMAT_3,
    )
    yield _workload(
        "client-two-vectors",
        "a client deletes two rows by two vectors of one file while a Delta writer appends",
        ClientDelete("a", 1, also=2),
        Append(_MORE),
        table=_FORMAT_3,
    )
    yield _workload(
        "client-anomaly",
        "a client deletes a row that a Delta writer updates between its scan and its commit",
        ClientDelete("a", 1, refreshes=True),
        Update("a", 1, "Q"),
        table=_FORMAT_3,
    )
    yield _workload(
        "client-gone-file",
        "a client deletes from a file that a Delta writer replaces after the scan",
        ClientDelete("a", 1, refreshes=True),
        Optimize(),
        table=_FORMAT_3,
    )


def _deliveries() -> Iterator[Workload]:
    yield _workload(
        "request-twice",
        "one request reaches two servers at once",
        DeliverRequest(_NEW),
        DeliverRequest(_NEW),
        prepared=True,
    )
    yield _workload(
        "column-twice",
        "one request that adds a column, and so has no snapshot id, reaches two servers at once",
        DeliverRequest(),
        DeliverRequest(),
        prepared=True,
        metadata=True,
    )
    yield _workload(
        "request-late",
        "a client looks for its snapshot while its request is still under way",
        DeliverRequest(_NEW),
        FindSnapshot(_NEW),
        prepared=True,
    )


def _workload(
    name: str,
    title: str,
    one: Statement,
    other: Statement,
    *,
    table: TableSetup = _FORMAT_2,
    metadata: bool = False,
    prepared: bool = False,
) -> Workload:
    return Workload(
        name=name,
        title=title,
        group="server",
        layout=table,
        actors=(("w0", one), ("w1", other)),
        before=((PrepareRequest(() if metadata else _NEW), 1),) if prepared else (),
        requires_commit=not (prepared and metadata),
        changes_table=metadata,
        shared_tag=REQUEST if prepared else "",
    )
