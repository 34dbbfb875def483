"""How the values of a table are put into words, the same in every command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.cli.masking import masked

if TYPE_CHECKING:
    from twinlake.log import CommitRecord, Snapshot
    from twinlake.protocol import Protocol

__all__ = [
    "commit_details",
    "commit_rows",
    "counted",
    "moment",
    "protocol_text",
    "readability",
    "shortened",
]

_DULL: Final[tuple[Any, ...]] = (None, "", "false", [], {})
_DETAIL_WIDTH: Final = 160


def moment(ms: int | None) -> str | None:
    """A time as ISO text in UTC; one word, for awk's sake."""
    from twinlake.log import render_timestamp

    return render_timestamp(ms) if ms else None


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "file"), counted(2, "file")
    ('1 file', '2 files')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def shortened(text: str, width: int) -> str:
    """Text that is too long, cut with a mark.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def protocol_text(protocol: Protocol) -> str:
    """The versions, and the lists where there are any.

    >>> from twinlake.protocol import Protocol
    >>> protocol_text(Protocol(1, 2))
    'reader 1, writer 2'
    """
    return f"reader {protocol.min_reader_version}, writer {protocol.min_writer_version}"


def commit_details(record: CommitRecord) -> str:
    """What a commit did, from its parameters and metrics, in one line."""
    parts = [
        *_said(masked(record.operation_parameters)),
        *(f"{key}={value}" for key, value in record.operation_metrics.items() if value != "0"),
    ]
    return shortened("; ".join(parts), _DETAIL_WIDTH)


def _said(parameters: Mapping[str, Any]) -> list[str]:
    found = []
    for key, raw in parameters.items():
        value = _decoded(raw)
        if value in _DULL:
            continue
        text = _flat(value)
        found.append(text if key == "properties" else f"{key}={text}")
    return found


def _decoded(value: Any) -> Any:
    """Delta writes parameters as JSON within JSON."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value) if value[:1] in ("{", "[", '"') else value
    except msgspec.DecodeError:
        return value


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        if value.keys() == {"column"}:
            return _flat(value["column"])
        if value.keys() >= {"name", "type"}:
            return f"{value['name']} {_flat(value['type'])}"
        return ", ".join(f"{key}={_flat(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_flat(item) for item in value)
    return str(value)


def commit_rows(records: list[CommitRecord]) -> list[tuple[object, ...]]:
    """Rows for a grid of commits."""
    return [
        (r.version, moment(r.timestamp), r.operation, r.engine_info, commit_details(r))
        for r in records
    ]


def readability(snapshot: Snapshot) -> dict[str, Any]:
    """What keeps twinlake from reading or writing the table, by name."""
    from twinlake.protocol import read_blockers, write_blockers

    return {
        "read_blocked_by": list(read_blockers(snapshot.protocol)),
        "write_blocked_by": list(write_blockers(snapshot.protocol, metadata=snapshot.metadata)),
    }
