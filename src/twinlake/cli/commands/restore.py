"""``twinlake restore``: restore an earlier version, after a preview of the changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command, yes_option
from twinlake.cli.commands.diff import change_blocks
from twinlake.cli.view import Paragraph, View

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.table import Diff, Table

__all__ = ["restore"]


@command(policy=True)
@click.argument("version", type=click.IntRange(min=0), required=False, metavar="[VERSION]")
@click.option("--timestamp", metavar="TIME", help="The version of that time, instead of VERSION.")
@yes_option("what would change")
def restore(
    output: Output, reference: TableReference, version: int | None, timestamp: str | None, yes: bool
) -> None:
    """Restore the files and metadata of an earlier VERSION.

    Without --yes nothing is written: the command shows what would change. RESTORE is a new commit,
    so it can be undone by another one. It never downgrades the protocol.
    """
    if (version is None) == (timestamp is None):
        raise click.UsageError("Give either VERSION or --timestamp TIME.")
    table = reference.open()
    target = replace(reference, version=version, timestamp=timestamp).open()
    changes = _changes(table, target, reference.policy)
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
        else f"These are the changes from version {table.version} to {target.version}. Nothing was "
        "changed; run the command again with --yes to restore."
    )
    output.show(View(data=data, blocks=[Paragraph(said), *change_blocks(changes)]))


def _changes(table: Table, target: Table, policy: str) -> Diff:
    """The changes of a restore: no feature is dropped, some may have to be added."""
    found = table.diff(table.version, target.version)
    after = table.protocol.upgraded_for(target.metadata, policy=policy)
    gained = after.feature_names - table.protocol.feature_names
    return replace(
        found,
        protocol_after=str(after),
        features_added=tuple(sorted(gained)),
        features_dropped=(),
    )
