"""Why a request is not committed, as errors: it can never be, or not on this version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.errors import Code, ConflictError, UserError, listed

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["refuse", "requirement_failed"]


def requirement_failed(reasons: Iterable[str]) -> ConflictError:
    """The error for a request that was built on another state of the table."""
    return ConflictError(
        Code.CONFLICT_REQUIREMENT,
        "The table has changed since the request was built.",
        why=listed(reasons) + ".",
        fix="Refresh the table and commit again.",
    )


def refuse(reasons: Iterable[str]) -> None:
    """Refuse a request for all that is against it."""
    found = list(reasons)
    if found:
        raise UserError(
            Code.COMPAT,
            "The table cannot take this commit.",
            why=listed(found) + ".",
            fix="Leave these out of the commit, or write them through twinlake.",
            fields={"problems": found},
        )
