"""Disk full, read-only folder, denied permission without Spark: a commit is one or it is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.small_disk import child_prefix
from tests.support.spark.child_drivers import bare_environment, run_child

if TYPE_CHECKING:
    from pathlib import Path

REASONS = {
    "full": "the disk is full",
    "one page left": "the disk is full",
    "read-only": "the file system is read-only",
    "closed": "permission denied",
}


@pytest.mark.slow
def test_blocked_operations_name_the_obstacle_and_the_next_ones_work(tmp_path: Path) -> None:
    found = run_child(
        "blocked commits",
        tmp_path,
        {},
        environment=bare_environment(tmp_path),
        prefix=child_prefix(tmp_path),
    )
    assert len(found["blocked"]) == 6 * len(REASONS)
    for step in found["blocked"]:
        reason = REASONS[step["obstacle"]]
        if step["step"] == "command" and step["result"].startswith("1 "):
            assert step["result"].startswith("1 TWIN-STORAGE"), step
            assert reason in step["result"]
            assert step["commits"] == 0
        elif "result" in step:
            # A page was enough for the commit; then it is there.
            assert step["obstacle"] == "one page left", step
            assert step["commits"] == (step["step"] in ("command", "commit")), step
            assert "Traceback" not in str(step["result"])
        else:
            assert (step.get("error"), step.get("why")) == ("StorageError", reason), step
            assert step["fix"]
            assert step["commits"] == 0
    assert found["rows"] == [[number, number] for number in range(2, 6)]
    assert [step.get("result") for step in found["after"]][:2] == [0, 0], found["after"]
    assert "result" in found["after"][2], found["after"]
    assert found["temporary"] == []
