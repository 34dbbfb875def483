"""A hand-fused search of the Iceberg model: what the derived reduction must come out as.

Start, read and write are one step, metadata and commit are another, writers are sorted, and the
three idle places are one. All of it is written down here by hand; nothing is derived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from twinlake.verify.models import IcebergV2
from twinlake.verify.models.iceberg.values import EMPTY, Table, Writer

IDLE = Writer()
Fused = tuple[Table, tuple[int, int], tuple[int], frozenset[str], tuple[Writer, ...]]


class Found(NamedTuple):
    states: int
    tables: frozenset[Table]
    moves: int | None


def only(steps: Iterator[Any]) -> Any:
    (step,) = steps
    return step


def starts(model: IcebergV2, state: Fused) -> Iterator[tuple[Writer, Any, Any]]:
    table, started, _, inserting, _ = state
    opened = [
        *model.start_insert_operation(IDLE, table, started, inserting),
        *model.start_delete_operation(IDLE, table, started),
        *model.start_update_operation(IDLE, table, started),
        *model.start_compaction_operation(IDLE, table, started),
    ]
    for one in opened:
        writer = one.actor
        if writer.state == "READ_DATA_FILES":
            writer = only(model.read_data_files(writer, table)).actor
        writer = only(model.write_data_files(writer)).actor
        yield writer, one.shared["started"], one.shared.get("inserting", inserting)


def successors(model: IcebergV2, state: Fused) -> Iterator[Fused]:
    table, started, aborted, inserting, writers = state
    for index, writer in enumerate(writers):
        others = (*writers[:index], *writers[index + 1 :])
        if writer == IDLE:
            for opened, now, ids in starts(model, state):
                yield canonical(table, now, aborted, ids, (*others, opened))
            continue
        for one in model.abort(writer, table, aborted):
            given_up = one.shared["aborted"]
            yield canonical(table, started, given_up, inserting, (*others, IDLE))
        for ready in model.write_metadata_files(writer, table):
            done = only(model.commit(ready.actor, table, inserting)).shared
            ids = done.get("inserting", inserting)
            yield canonical(done["table"], started, aborted, ids, (*others, IDLE))


def canonical(
    table: Any, started: Any, aborted: Any, inserting: Any, writers: tuple[Writer, ...]
) -> Fused:
    return table, started, aborted, inserting, tuple(sorted(writers, key=repr))


def search(model: IcebergV2, *, stop: bool = True) -> Found:
    first: Fused = ((EMPTY,), (0, 0), (0,), frozenset(), (IDLE,) * model.writers)
    depth = {first: 0}
    queue = deque([first])
    while queue:
        state = queue.popleft()
        for after in successors(model, state):
            if after in depth:
                continue
            depth[after] = depth[state] + 1
            if stop and model.consistent_read(after[0]) is not None:
                return Found(len(depth), frozenset(one[0] for one in depth), depth[after])
            queue.append(after)
    return Found(len(depth), frozenset(one[0] for one in depth), None)
