"""Properties of what servers answered and showed to Iceberg clients, against the log alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from twinlake.iceberg.derive import snapshot_id
from twinlake.verify.code.client_data import AnswerKind
from twinlake.verify.code.execution import RunFailure, is_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from twinlake.verify.code.client_data import SentRequest
    from twinlake.verify.code.execution import Execution
    from twinlake.verify.code.log_replay import LogVersion

__all__ = ["check_exchanges"]

_KEY_TAG: Final = "twinlake.iceberg.idempotencyKey"


@dataclass(frozen=True, slots=True)
class _Version:
    """What the log says that concerns clients, worked out without the code under test."""

    key: str
    """The idempotency key of the request that it was made for."""
    own_snapshot: int | None
    """The id of the snapshot that it makes; None where it changes no file."""
    main: int | None
    """The id of the snapshot that is current in it."""
    schema: str


def check_exchanges(run: Execution, versions: Sequence[LogVersion]) -> Iterator[RunFailure]:
    """What is wrong with answers and with what was shown; nothing where no client took part."""
    exchanges = {
        name: engine.exchange for name, engine in zip(run.workload.names, run.engines, strict=True)
    }
    answers = [
        (name, request, kind)
        for name, exchange in exchanges.items()
        for request, kind in exchange.answers
    ]
    shown = [(name, pair) for name, one in exchanges.items() for pair in sorted(one.shown)]
    if not answers and not shown:
        return
    log = _read_log(run.bodies, versions, {one.key: one for _, one, _ in answers})
    for name, (version, found) in shown:
        if version < len(log) and log[version].own_snapshot != found:
            yield RunFailure(
                "SnapshotIdsAgree",
                f"{name} was shown snapshot {found} for version {version}, which has "
                f"{log[version].own_snapshot}",
                {"actor": name, "version": version, "actual": found},
            )
    for name, request, kind in answers:
        yield from _check_answer(name, request, kind, log)


def _check_answer(
    name: str, request: SentRequest, kind: AnswerKind, log: Sequence[_Version]
) -> Iterator[RunFailure]:
    for number, version in enumerate(log):
        failed = _failed(request, log[number - 1], log[request.base]) if number else ()
        if version.key == request.key and failed:
            yield RunFailure(
                "RequirementsHeld",
                f"{name} is in the log at version {number}, and {failed[0]}",
                {"actor": name, "key": request.key, "version": number, "failed": list(failed)},
            )
    if kind is AnswerKind.CONFLICT and not any(
        _failed(request, version, log[request.base]) for version in log[request.base :]
    ):
        yield RunFailure(
            "RefusalIsNoConflict",
            f"{name} was told to refresh, though its requirements held in every version from "
            f"{request.base} on",
            {"actor": name, "key": request.key, "versions": [request.base, len(log) - 1]},
        )


def _failed(request: SentRequest, version: _Version, base: _Version) -> tuple[str, ...]:
    """The requirements of a request that a version does not meet."""
    found = []
    if version.main != request.requires:
        found.append(f"main was at {version.main} and not at {request.requires}")
    if version.schema != base.schema:
        found.append("the schema was another one")
    return tuple(found)


def _read_log(
    bodies: Mapping[str, bytes],
    versions: Sequence[LogVersion],
    requests: Mapping[str, SentRequest],
) -> list[_Version]:
    found: list[_Version] = []
    main: int | None = None
    commits = sorted(key for key in bodies if is_commit(key))
    for key, version in zip(commits, versions, strict=True):
        actions = [msgspec.json.decode(line) for line in bodies[key].splitlines()]
        name = next((_request_key(one["commitInfo"]) for one in actions if "commitInfo" in one), "")
        own = None
        if any("add" in one or "remove" in one for one in actions):
            asked = requests.get(name)
            table = version.metadata["id"]
            own = asked.snapshot_id if asked else snapshot_id(table, version.number)
            main = own
        found.append(_Version(name, own, main, version.metadata["schemaString"]))
    return found


def _request_key(info: Mapping[str, Any]) -> str:
    key: str = (info.get("tags") or {}).get(_KEY_TAG, "")
    return key
