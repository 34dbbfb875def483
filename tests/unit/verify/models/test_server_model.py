"""Iceberg commits through servers on a Delta log: what the catalogue's rows do not say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from twinlake.verify import Result, check
from twinlake.verify.checker import ModelError, explore
from twinlake.verify.models import IcebergV2
from twinlake.verify.models.catalogue import CATALOGUE
from twinlake.verify.models.iceberg.snapshot_scan import scan
from twinlake.verify.models.iceberg.values import IcebergDataFile, PositionDeleteFile, Writer
from twinlake.verify.models.server import (
    ServerCommits,
    TwinTableCleanup,
    compare_file_checks,
    safe_wait,
)
from twinlake.verify.models.server.clients import SINCE_BASE
from twinlake.verify.models.server.translation import delta_rows, replay, translate, view
from twinlake.verify.models.server.values import CREATED, AddedFile, RemovedFile, ServerLogEntry

TWO = ("jack", "sarah")
RED, BLUE = ("jack", "red", "A"), ("sarah", "blue", "A")


def run(model: ServerCommits, **options: Any) -> Result:
    return check(model, symmetry=True, reduction=True, **options)


def direct(**parameters: Any) -> ServerCommits:
    wanted: dict[str, Any] = {
        "delta_clients": 1,
        "max_delta_ops": 1,
        "max_write_ops": 1,
        "stored_ids": ("jack",),
        "fix": "A",
    }
    return ServerCommits(**{**wanted, **parameters})


def logs_of(model: ServerCommits, *, reduced: bool) -> set[Any]:
    space, _ = explore(model, symmetry=reduced, reduction=reduced)
    return set(space.shared[space.variables.index("log")].values)


# --- the anomaly, end to end ------------------------------------------------------------------


def test_anomaly_through_a_server_is_the_one_without() -> None:
    served, alone = run(ServerCommits()), check(IcebergV2())
    assert served.violated == alone.violated == "ConsistentRead"
    assert served.violations[0].message == alone.violations[0].message
    assert served.trace is not None
    steps = [step.action for step in served.trace.steps]
    assert steps.count("PutEntry") == 3
    assert steps[-1] == "PutEntry"
    # The server found the requirements of all three met.
    checks = [
        one
        for step in served.trace.steps
        if step.action == "CheckRequirements"
        for one in step.checks
    ]
    assert len(checks) == 6
    assert all(one.passed for one in checks)


def test_what_masks_the_anomaly() -> None:
    found = {
        (one.drop_emptied, one.rows_in_file, one.file_check): (one.is_masked, one.steps)
        for one in compare_file_checks()
    }
    assert found == {
        (False, 1, "none"): (False, 21),
        (False, 1, "base"): (False, 21),
        (False, 1, "scan"): (True, None),
        (False, 2, "none"): (False, 14),
        (False, 2, "base"): (False, 14),
        (False, 2, "scan"): (True, None),
        (True, 1, "none"): (True, None),
        (True, 1, "base"): (True, None),
        (True, 1, "scan"): (True, None),
        (True, 2, "none"): (False, 14),
        (True, 2, "base"): (False, 14),
        (True, 2, "scan"): (True, None),
    }


@pytest.mark.parametrize(
    ("model", "broken"),
    [
        (
            direct(writers=1, mutant="retries-put"),
            {"RequirementsHeld", "LogIsValid", "ConsistentRead"},
        ),
        # Delta's check of files keeps the rows right, and does not make up for the requirements.
        (direct(writers=1, mutant="retries-put", file_check=SINCE_BASE), {"RequirementsHeld"}),
        (
            ServerCommits(fix="A", mutant="cached-view"),
            {"RequirementsHeld", "ConsistentRead"},
        ),
        (ServerCommits(fix="A", servers=2, mutant="local-ids"), {"ServersShowTheSame"}),
        (
            ServerCommits(fix="A", writers=1, max_write_ops=1, faults=1, mutant="no-key"),
            {"CommittedExactlyOnce", "SnapshotIdsNameOneVersion", "TranslationKeepsTheRows"},
        ),
        (
            ServerCommits(
                fix="A",
                writers=1,
                max_write_ops=1,
                col1_values=TWO,
                stored_ids=TWO,
                mutant="two-vectors",
            ),
            {"BothFacesReadTheSame", "TranslationKeepsTheRows", "LogIsValid"},
        ),
    ],
    ids=[
        "retries put",
        "retries put, files checked",
        "cached view",
        "local ids",
        "no key",
        "two vectors",
    ],
)
def test_all_that_a_mutant_breaks(model: ServerCommits, broken: set[str]) -> None:
    result = run(model, stop_at_first=False)
    assert {name for name, verdict in result.verdicts.items() if verdict == "violated"} == broken


# --- the reductions -----------------------------------------------------------------------------

SMALL = {
    "one server": ServerCommits(fix="A", max_write_ops=2),
    "two servers": ServerCommits(fix="A", servers=2, max_write_ops=2, stored_ids=("jack",)),
    "direct": direct(servers=2),
    "faults": ServerCommits(fix="A", servers=2, writers=1, max_write_ops=1, faults=2),
}


@pytest.mark.parametrize("name", SMALL)
def test_reductions_keep_verdicts_and_logs(name: str) -> None:
    model = SMALL[name]
    assert run(model).verdicts == check(model).verdicts
    assert logs_of(model, reduced=True) == logs_of(model, reduced=False)


# --- the two readings of a log ------------------------------------------------------------------


def test_view_of_a_version_never_changes() -> None:
    logs = logs_of(direct(max_write_ops=2, writers=1), reduced=True)
    assert len(logs) > 50
    for log in logs:
        for length in range(1, len(log)):
            assert view(log)[:length] == view(log[:length])
    # Both kinds of commit are in there, and commits that make no snapshot.
    kinds = {(entry.key is None, entry.makes_snapshot) for log in logs for entry in log[2:]}
    assert kinds == {(True, True), (True, False), (False, True)}


def vector(path: str, *positions: int) -> ServerLogEntry:
    """An entry that gives a file of the version before a vector."""
    file = IcebergDataFile(path, (RED, BLUE))
    return ServerLogEntry(
        "overwrite",
        adds=(AddedFile(file, frozenset(positions)),),
        removes=(RemovedFile(path, frozenset(positions[:-1])),),
    )


STORED = (
    CREATED,
    ServerLogEntry("append", adds=(AddedFile(IcebergDataFile("data-0", (RED, BLUE))),)),
)


@pytest.mark.parametrize(
    ("log", "rows"),
    [
        ((CREATED,), []),
        (STORED, [RED, BLUE]),
        (
            (
                *STORED,
                ServerLogEntry("append", adds=(AddedFile(IcebergDataFile("data-1", (RED,))),)),
            ),
            [RED, RED, BLUE],
        ),
        ((*STORED, vector("data-0", 0)), [BLUE]),
        ((*STORED, vector("data-0", 0), vector("data-0", 0, 1)), []),
        ((*STORED, ServerLogEntry("metadata", schema=1)), [RED, BLUE]),
        ((*STORED, ServerLogEntry("delete", removes=(RemovedFile("data-0"),))), []),
    ],
    ids=["created", "stored", "twice", "vector", "two vectors", "metadata", "removed"],
)
def test_both_readings_of_a_log(log: tuple[ServerLogEntry, ...], rows: list[Any]) -> None:
    assert delta_rows(log) == rows
    found = [row for _, rows_ in scan(view(log)[-1]) for _, row in rows_]
    assert sorted(found) == rows


def test_metadata_commits_make_no_snapshot_and_leave_a_gap() -> None:
    log = (*STORED, ServerLogEntry("metadata", schema=1), vector("data-0", 0))
    table = view(log)
    assert [version.snapshot_id for version in table] == [0, 1, 1, 3]
    assert [version.sequence_number for version in table] == [0, 1, 1, 3]


def test_delete_files_unite_with_the_vector_of_their_file() -> None:
    client = Writer(
        deletes=(("data-0", 1),), delete_files=(PositionDeleteFile("delete-1.0", (("data-0", 1),)),)
    )
    log = (*STORED, vector("data-0", 0))
    adds, removes = translate(log, client)
    assert removes == (RemovedFile("data-0", frozenset((0,))),)
    assert [add.vector for add in adds] == [frozenset((0, 1))]
    assert replay((*log, ServerLogEntry("overwrite", adds, removes)))["data-0"].vector == {0, 1}
    assert translate(log, client, drop_emptied=True) == ((), removes)


# --- the rest -------------------------------------------------------------------------------------


@pytest.mark.parametrize("longest", [0, 1, 2])
def test_files_must_wait_one_tick_longer_than_anyone_takes(longest: int) -> None:
    assert safe_wait(longest=longest) == longest + 1


def test_traces_are_json() -> None:
    rows = [row for row in CATALOGUE if row.name.startswith("server")]
    assert len(rows) == 4
    for row in rows:
        for mutant in row.mutants[:2]:
            printed = json.loads(json.dumps(row.run(mutant).to_dict()))
            assert printed["violated"] == mutant.violates
            assert printed["trace"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"mutant": "typo"}, "is no mutant"),
        ({"file_check": "typo"}, "file_check='typo' is none of"),
        ({"delta_operations": ("MERGE",)}, "'MERGE' is none of"),
        ({"servers": 0}, "servers must be at least 1"),
        ({"identity": "faithful"}, "canonical identity only"),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        ServerCommits(**wrong)


def test_unknown_mutant_of_cleaning_is_refused() -> None:
    with pytest.raises(ModelError, match="is no mutant"):
        TwinTableCleanup(mutant="typo")
