"""``twinlake restore``: back to an earlier version, after a look at what that changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command
from twinlake.cli.commands.diff import change_blocks
from twinlake.cli.view import Prose, View

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.table import Table
    from twinlake.table.diff import Diff

__all__ = ["restore"]


@command(policy=True)
@click.argument("version", type=click.IntRange(min=0), required=False, metavar="[VERSION]")
@click.option("--timestamp", metavar="TIME", help="The version of that time, instead of VERSION.")
@click.option("--yes", is_flag=True, help="Do it. Without this, only tell what would change.")
def restore(
    output: Output, place: Place, version: int | None, timestamp: str | None, yes: bool
) -> None:
    """Make files and metadata those of an earlier VERSION again.

    Without --yes nothing is written: the command tells what would change. Restoring is a new
    commit, so it can itself be undone. The protocol never comes down this way.
    """
    if (version is None) == (timestamp is None):
        raise click.UsageError("Give VERSION or --timestamp TIME, one of them.")
    table = place.open()
    target = replace(place, version=version, timestamp=timestamp).open()
    changes = _changes(table, target, place.policy)
    after = table.restore(target.version) if yes else None
    data = {
        "location": table.location,
        "restored": yes,
        "from": table.version,
        "to": target.version,
        "version": after.version if after else None,
        "changes": {k: v for k, v in changes.to_dict().items() if k not in ("before", "after")},
        "warnings": [str(warning) for warning in after.warnings] if after else [],
    }
    said = (
        f"Version {after.version} has the files and the metadata of version {target.version}."
        if after
        else f"This is what going from version {table.version} back to {target.version} would "
        "change. Nothing was written; run it again with --yes to do it."
    )
    output.show(View(data=data, blocks=[Prose(said), *change_blocks(changes)]))


def _changes(table: Table, target: Table, policy: str) -> Diff:
    """The difference as restoring makes it: features stay, and may have to come back."""
    found = table.diff(table.version, target.version)
    after = table.protocol.upgraded_for(target.metadata, policy=policy)
    gained = after.feature_names - table.protocol.feature_names
    return replace(
        found,
        protocol_after=str(after),
        features_added=tuple(sorted(gained)),
        features_dropped=(),
    )
