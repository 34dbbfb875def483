"""What fails after a commit is never a refusal: a client would delete files that the log names."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from twinlake.errors import Code, CommitUnknown, CorruptTable
from twinlake.storage import MemoryStore
from twinlake.table.iceberg_commits import IcebergCommits
from twinlake.table.iceberg_commits.twin_state import load_state

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}
CREATE = json.dumps({"name": "t", "schema": SCHEMA}).encode()
STAGED = json.dumps(
    {
        "requirements": [{"type": "assert-create"}],
        "updates": [{"action": "add-schema", "schema": SCHEMA}],
    }
).encode()
CHANGE = json.dumps({"updates": [{"action": "set-properties", "updates": {"a": "1"}}]}).encode()


@pytest.mark.parametrize(
    ("change", "loads", "version"),
    [
        (lambda commits, store: commits.create(store, CREATE), 0, 0),
        (lambda commits, store: commits.create_staged(store, STAGED), 0, 0),
        (lambda commits, store: commits.commit(store, CHANGE), 1, 1),
    ],
    ids=["create", "create_staged", "commit"],
)
def test_a_table_that_cannot_be_read_after_a_commit_leaves_the_outcome_open(
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[IcebergCommits, MemoryStore], Any],
    loads: int,
    version: int,
) -> None:
    commits, store = IcebergCommits(), MemoryStore("after-commit")
    if version:
        commits.create(store, CREATE)
    done = 0

    def load(*arguments: Any) -> Any:
        nonlocal done
        done += 1
        if done > loads:
            raise CorruptTable(Code.STORAGE, "It was changed each time.")
        return load_state(*arguments)

    monkeypatch.setattr("twinlake.table.iceberg_commits.commit_loop.load_state", load)
    with pytest.raises(CommitUnknown, match="The commit was made"):
        change(commits, store)
    monkeypatch.undo()
    assert commits.load(store).version == version
    assert commits.load(store).snapshot.version == version
