"""Commits as their ``commitInfo`` describes them; for people with credentials masked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.log.timestamps import render_timestamp
from twinlake.protocol.properties import redact

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["COMMIT_HEADER", "CommitHistory", "CommitRecord", "commit_rows"]

COMMIT_HEADER: Final = ("version", "time", "commit", "engine", "details")
_EMPTY: Final[tuple[Any, ...]] = (None, "", "false", [], {})
_WIDTH: Final = 160
_LINES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CommitRecord:
    """One version and what its commit says of itself; None where it says nothing."""

    version: int
    timestamp: int
    operation: str | None = None
    operation_parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    operation_metrics: Mapping[str, Any] = field(default_factory=dict, hash=False)
    user_id: str | None = None
    user_name: str | None = None
    read_version: int | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    engine_info: str | None = None
    user_metadata: str | None = None
    txn_id: str | None = None
    tags: Mapping[str, Any] | None = field(default=None, hash=False)
    in_commit_timestamp: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain data."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}

    def __repr__(self) -> str:
        return f"<CommitRecord {_line(self)}>"

    def _repr_html_(self) -> str:
        from twinlake._html import fields as rows
        from twinlake._html import page

        shown = redact({**self.to_dict(), "timestamp": _time(self)})
        return page(
            f"Version {self.version}",
            rows(
                (name, "; ".join(_parameter_texts(v)) if isinstance(v, Mapping) else v)
                for name, v in shown.items()
            ),
        )


class CommitHistory(list[CommitRecord]):
    """The commits of a table, newest first: a list that shows as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        lines = [f"<CommitHistory of {len(self)} commit{'' if len(self) == 1 else 's'}>"]
        lines += [f"  {_line(record)}" for record in self[:_LINES]]
        if len(self) > _LINES:
            lines.append(f"  … and {len(self) - _LINES:,} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from twinlake._html import grid, page

        count = f"{len(self):,} commit{'' if len(self) == 1 else 's'}"
        return page(count, grid(COMMIT_HEADER, commit_rows(self)))


def _time(record: CommitRecord) -> str | None:
    return render_timestamp(record.timestamp) if record.timestamp else None


def _line(record: CommitRecord) -> str:
    """A commit in one line; whatever the log holds, it stays one."""
    from twinlake._html import visible

    parts = (record.version, _time(record), record.operation, _details(record))
    return visible("  ".join(str(part) for part in parts if part not in (None, "")))


def _details(record: CommitRecord) -> str:
    """The parameters and metrics of a commit in one line."""
    parts = [
        *_parameter_texts(redact(record.operation_parameters)),
        *(f"{key}={value}" for key, value in record.operation_metrics.items() if value != "0"),
    ]
    text = "; ".join(parts)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"


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


def commit_rows(records: Iterable[CommitRecord]) -> list[tuple[object, ...]]:
    """Version, time, operation, engine and details of each commit."""
    return [(r.version, _time(r), r.operation, r.engine_info, _details(r)) for r in records]
