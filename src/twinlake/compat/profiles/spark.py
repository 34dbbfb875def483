"""The rules as Delta Spark reads them, where it differs from the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.compat.rule import Finding
from twinlake.compat.rules.property import mode_finding
from twinlake.protocol import features, keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from twinlake.compat.rule import Case, Check

__all__ = ["deletion_vectors_are_and_were_off", "mode_is"]


def mode_is(*modes: str) -> Check:
    """Column mapping is in one of the modes."""

    def check(case: Case) -> Iterator[Finding]:
        """The mode in any case of its letters."""
        if case.subject.metadata.get(keys.COLUMN_MAPPING_MODE).lower() not in modes:
            yield mode_finding(case, modes)

    return check


def deletion_vectors_are_and_were_off(case: Case) -> Iterator[Finding]:
    """Not enabled now, nor before the commit: a concurrent writer may be adding some."""
    subject = case.subject
    for when, state in (("now", subject.after), ("before", subject.before)):
        if (
            state is not None
            and state.protocol.is_supported(features.DELETION_VECTORS)
            and state.metadata.flag(keys.ENABLE_DELETION_VECTORS)
        ):
            yield Finding(
                path=keys.ENABLE_DELETION_VECTORS,
                found=f"true {when}",
                wanted="false",
                message=f"deletion vectors are enabled ({when}), "
                f"which {case.compat} does not allow",
            )
