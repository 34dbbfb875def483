"""``twinlake diff``: what changed between two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command
from twinlake.cli.text import count_text
from twinlake.cli.view import Fields, Grid, Paragraph, View
from twinlake.log import commit_rows
from twinlake.protocol.properties import redact_property

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.cli.view import Block
    from twinlake.table import Diff

__all__ = ["change_blocks", "diff"]


@command()
@click.argument("v1", type=click.IntRange(min=0))
@click.argument("v2", type=click.IntRange(min=0), required=False)
def diff(output: Output, reference: TableReference, v1: int, v2: int | None) -> None:
    """Show what changed from version V1 to V2 (default: the latest).

    Protocol, features, columns, properties, files, and the commits in between. With V2 below V1
    it shows what restoring V2 would change.
    """
    table = reference.open()
    found = table.diff(v1, v2)
    output.show(
        View(
            data={"location": table.location, **found.to_dict()},
            blocks=[
                Fields((("from", f"version {found.before}"), ("to", f"version {found.after}"))),
                *change_blocks(found),
                *(
                    [Grid.of("version:r time commit engine details", commit_rows(commits))]
                    if (commits := list(found.commits))
                    else []
                ),
            ],
        )
    )


def change_blocks(found: Diff) -> list[Block]:
    """The changes of protocol, columns, properties and files."""
    blocks: list[Block] = []
    # The features added and dropped show the lists.
    old, new = _versions(found.protocol_before), _versions(found.protocol_after)
    protocol = [
        *([("protocol", f"{old} -> {new}")] if old != new else ()),
        *([("features added", ", ".join(found.features_added))] if found.features_added else ()),
        *(
            [("features dropped", ", ".join(found.features_dropped))]
            if found.features_dropped
            else ()
        ),
    ]
    if protocol:
        blocks.append(Fields(tuple(protocol)))
    if found.columns:
        rows = [(c.change, c.path, c.before, c.after) for c in found.columns]
        blocks.append(Grid.of("change column before after", rows))
    if found.properties:
        properties = [
            (p.key, redact_property(p.key, p.before), redact_property(p.key, p.after))
            for p in found.properties
        ]
        blocks.append(Grid.of("property before after", properties))
    if found.files:
        files = [(f.change, f.path, f.size, f.num_records, f.deleted_records) for f in found.files]
        blocks.append(Grid.of("change file size:r rows:r deleted:r", files, note=_totals(found)))
    return blocks or [Paragraph("The versions do not differ.")]


def _versions(protocol: str) -> str:
    reader, writer = protocol.split(",")[:2]
    return f"reader {reader}, writer {writer}"


def _totals(found: Diff) -> str:
    came = sum(change.change == "added" for change in found.files)
    rows = found.rows_added
    described = "rows unknown" if rows is None else f"{rows:+d} rows"
    return f"{count_text(came, 'file')} added, {len(found.files) - came} removed, {described}"
