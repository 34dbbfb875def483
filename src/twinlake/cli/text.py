"""Values of a table as text, the same in every command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.cli.redaction import redact
from twinlake.log import render_timestamp
from twinlake.protocol import read_blockers, write_blockers

if TYPE_CHECKING:
    from twinlake.log import CommitRecord, Snapshot
    from twinlake.protocol import Protocol

__all__ = [
    "commit_details",
    "commit_rows",
    "count_text",
    "protocol_text",
    "readability",
    "time_text",
    "truncate",
]

_EMPTY: Final[tuple[Any, ...]] = (None, "", "false", [], {})
_DETAIL_WIDTH: Final = 160


def time_text(ms: int | None) -> str | None:
    """A time as ISO text in UTC, without a blank, so that awk counts one column."""
    return render_timestamp(ms) if ms else None


def count_text(number: int, noun: str) -> str:
    """A number with its noun.

    >>> count_text(1, "file"), count_text(2, "file")
    ('1 file', '2 files')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def truncate(text: str, width: int) -> str:
    """Text cut to a width, with a mark where it was cut.

    >>> truncate("abcdef", 4)
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
    """The parameters and metrics of a commit in one line."""
    parts = [
        *_parameter_texts(redact(record.operation_parameters)),
        *(f"{key}={value}" for key, value in record.operation_metrics.items() if value != "0"),
    ]
    return truncate("; ".join(parts), _DETAIL_WIDTH)


def _parameter_texts(parameters: Mapping[str, Any]) -> list[str]:
    found = []
    for key, raw in parameters.items():
        value = _decoded(raw)
        if value in _EMPTY:
            continue
        text = _value_text(value)
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


def _value_text(value: Any) -> str:
    if isinstance(value, Mapping):
        if value.keys() == {"column"}:
            return _value_text(value["column"])
        if value.keys() >= {"name", "type"}:
            return f"{value['name']} {_value_text(value['type'])}"
        return ", ".join(f"{key}={_value_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(_value_text(item) for item in value)
    return str(value)


def commit_rows(records: list[CommitRecord]) -> list[tuple[object, ...]]:
    """Rows for a grid of commits."""
    return [
        (r.version, time_text(r.timestamp), r.operation, r.engine_info, commit_details(r))
        for r in records
    ]


def readability(snapshot: Snapshot) -> dict[str, Any]:
    """The features that block twinlake from reading or writing the table."""
    return {
        "read_blocked_by": list(read_blockers(snapshot.protocol)),
        "write_blocked_by": list(write_blockers(snapshot.protocol, metadata=snapshot.metadata)),
    }
