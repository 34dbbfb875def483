"""A retry budget: a writer gives up after so many failed swaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from twinlake.verify.checker import ActionCheck, Failure, ModelError, Next, action, always
from twinlake.verify.models.iceberg.model import IcebergV2
from twinlake.verify.models.iceberg.operations import CANONICAL, Aborted
from twinlake.verify.models.iceberg.values import (
    ABORTED,
    COMMITTED,
    INSERT,
    NEVER,
    WRITE_METADATA_FILES,
    Table,
    Writer,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

__all__ = ["RetryBudget"]

#: Mutants: when the budget is spent the metadata is written without comparing; a retry does not
#: validate again; failed swaps are not counted.
FORCES_LAST_SWAP, VALIDATES_ONCE = "forces-last-swap", "validates-once"
RETRIES_FOREVER = "retries-forever"

SPENT = "SPENT"


@dataclass(frozen=True, kw_only=True)
class RetryBudget(IcebergV2):
    """The base model with writers that try to commit a limited number of times."""

    title: ClassVar[str] = "Iceberg v2 with a retry budget"
    mutants: ClassVar[tuple[str | None, ...]] = (
        None,
        FORCES_LAST_SWAP,
        VALIDATES_ONCE,
        RETRIES_FOREVER,
    )

    #: How many swaps of one operation may fail; one more ends it.
    max_retries: int = 1
    identity: str = CANONICAL

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.identity != CANONICAL:
            raise ModelError("a retry budget is modelled in canonical identity only")

    def retry(self, writer: Writer) -> Writer:
        """Count the failed swap; begin another attempt, or give up."""
        failed = writer.failed_swaps + 1
        if failed > self.max_retries and self.mutant != RETRIES_FOREVER:
            return writer._replace(state=SPENT, failed_swaps=failed)
        return super().retry(writer)._replace(failed_swaps=failed)

    @action(at=SPENT, writes=("aborted", "inserting", "table"))
    def give_up(
        self, writer: Writer, table: Table, aborted: Aborted, inserting: frozenset[str]
    ) -> Iterator[Next]:
        """End the operation; its swaps have failed, so none of its files is in use."""
        shared: dict[str, Hashable] = {}
        if writer.sql_op == INSERT:
            shared["inserting"] = inserting - {writer.row_history[0][0][0]}
        if self.mutant == FORCES_LAST_SWAP:
            # What the register held meanwhile is overwritten: the new version follows the base.
            forced = self.build((*table[:-1], table[writer.base]), writer._replace(base=NEVER))
            shared["table"] = (*table, forced)
            yield Next(Writer(state=COMMITTED), shared, {"version": len(table), "forced": True})
            return
        shared["aborted"] = (aborted[0] + 1,)
        yield Next(Writer(state=ABORTED), shared, {"failed swaps": writer.failed_swaps})

    def _validate(self, table: Table, writer: Writer) -> tuple[ActionCheck, ...]:
        if self.mutant == VALIDATES_ONCE and writer.failed_swaps:
            return ()
        return super()._validate(table, writer)

    @always
    def retries_stay_within_the_budget(self, actor: Writer) -> Failure | None:
        """No operation tries to commit more often than it may."""
        if actor.failed_swaps > self.max_retries and actor.state == WRITE_METADATA_FILES:
            return Failure(f"an operation goes on after {actor.failed_swaps} failed swaps")
        return None
