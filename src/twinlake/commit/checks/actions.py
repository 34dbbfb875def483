"""Checks of a commit's actions by kind: how many there are, and whether they can be read again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from twinlake.actions import AddCDCFile, AddFile, action_name, check_readable
from twinlake.commit.checks.check import CheckFailure
from twinlake.commit.conflict.rule import named
from twinlake.errors import CorruptTable
from twinlake.storage import check_new_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from twinlake.commit.checks.check import Draft

__all__ = ["first_version", "readable_actions", "repeated", "single_actions", "system_domains"]

_SYSTEM_DOMAINS: Final = "delta."


def repeated(names: Iterable[str]) -> list[str]:
    """The names that occur more than once."""
    return [name for name, count in Counter(names).items() if count > 1]


def single_actions(draft: Draft) -> Iterator[CheckFailure]:
    """At most one action of a kind that a commit holds once."""
    summary = draft.change.summary
    for name, found in (("metaData", summary.metadatas), ("protocol", summary.protocols)):
        if len(found) > 1:
            yield CheckFailure(message=f"{len(found)} {name} actions; a commit holds at most one")
    if twice := repeated(txn.app_id for txn in summary.transactions):
        yield CheckFailure(message=f"more than one txn for {named(twice, 'application id')}")
    if twice := repeated(domain.domain for domain in summary.domains):
        yield CheckFailure(message=f"more than one domainMetadata for {named(twice, 'domain')}")
    if summary.infos:
        yield CheckFailure(message="a commitInfo action; the transaction writes its own")


def first_version(draft: Draft) -> Iterator[CheckFailure]:
    """Version 0 has metadata and protocol; later ones keep the id of the table."""
    change = draft.change
    if change.version > 0:
        before, after = change.base.metadata.id, change.metadata.id
        # A table that takes the place of another is not the one it was.
        if before != after and not change.operation.is_replace:
            yield CheckFailure(message=f"the table id changes from {before!r} to {after!r}")
        return
    for name, found in (
        ("metaData", change.summary.metadatas),
        ("protocol", change.summary.protocols),
    ):
        if not found:
            yield CheckFailure(message=f"no {name} action; version 0 must hold one")


def system_domains(draft: Draft) -> Iterator[CheckFailure]:
    """Domains of the system are written only by operations that may."""
    foreign = [
        d.domain
        for d in draft.change.summary.domains
        if d.domain.startswith(_SYSTEM_DOMAINS) and d.domain not in draft.system_domains
    ]
    if foreign:
        yield CheckFailure(
            message=f"{named(foreign, 'domain')} belong to the system",
            fix="Use a domain whose name does not start with `delta.`.",
        )


def readable_actions(draft: Draft) -> Iterator[CheckFailure]:
    """Every action can be read again as it is written."""
    for action in draft.change.actions:
        try:
            check_readable(action)
            if isinstance(action, (AddFile, AddCDCFile)):
                check_new_path(action.path)
        except CorruptTable as error:
            yield CheckFailure(message=f"{error.what} {error.why}", code=error.code, fix=error.fix)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            yield CheckFailure(message=f"a malformed {action_name(action)} action ({error})")
