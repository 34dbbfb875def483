"""What a server answers when the table cannot be shown any more after a commit was made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from twinlake.actions import CommitInfo, encode_lines
from twinlake.log import commit_key
from twinlake.protocol import keys
from twinlake.storage import Committed
from twinlake.verify.code import WORKLOADS, sample
from twinlake.verify.code.row_engine import RowEffect
from twinlake.verify.code.table_changes import Intent

if TYPE_CHECKING:
    from twinlake.verify.code.row_engine import RowEngine, Rows, StatementResult


OFF = dict.fromkeys((keys.ENABLE_ICEBERG_WRITER_COMPAT_V1, keys.ENABLE_ICEBERG_COMPAT_V2), "false")


@dataclass(frozen=True, slots=True)
class SwitchOff:
    """Another writer takes the compat features from the table, which twinlake refuses to do."""

    name: str = "switch off"

    @property
    def intent(self) -> Intent:
        return Intent(settings=OFF)

    def run(self, engine: RowEngine) -> StatementResult:
        snapshot = engine.load()
        engine.effect = RowEffect(read_version=snapshot.version)
        now = engine.runtime.clock.now_ms()
        info = CommitInfo(
            timestamp=now,
            in_commit_timestamp=max(now, snapshot.timestamp_ms + 1),
            operation="SET TBLPROPERTIES",
            operation_parameters={},
            user_metadata=engine.tag,
        )
        metadata = snapshot.metadata.with_configuration(OFF)
        version = snapshot.version + 1
        outcome = engine.store.create(commit_key(version), encode_lines([info, metadata]))
        return version if isinstance(outcome, Committed) else None

    def apply(self, rows: Rows) -> Rows:
        return rows


def test_what_was_committed_is_not_refused_because_it_cannot_be_shown() -> None:
    real = WORKLOADS["client-property"]
    actors = (real.actors[0], ("w1", SwitchOff()))
    workload = replace(real, name="client-switched-off", actors=actors)
    found = sample(workload, runs=80, faults=0, stop_at=80)
    # Nobody converts a version without the features, so that the Iceberg side stays behind.
    assert {one.property for one in found.violations} == {"IcebergIsInSync"}
    assert "w0 unknown; w1 committed" in found.outcomes
