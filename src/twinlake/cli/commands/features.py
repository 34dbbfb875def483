"""``twinlake features``: the table features there are, and those of a table."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command
from twinlake.cli.compat_view import rule_grid, rule_records
from twinlake.cli.text import protocol_text
from twinlake.cli.view import Fields, Grid, Heading, Paragraph, View
from twinlake.compat import COMPATS
from twinlake.errors import Code, UserError
from twinlake.protocol import (
    CLIENT_FEATURES,
    FEATURES,
    active_features,
    dependency_closure,
    find_feature,
    read_blockers,
    write_blockers,
)

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.cli.view import Block
    from twinlake.protocol import Feature
    from twinlake.table import Table

__all__ = ["features"]


@command(table="optional", time_travel=True)
@click.option("--explain", metavar="NAME", help="Describe one feature.")
def features(output: Output, reference: TableReference | None, explain: str | None) -> None:
    """List the table features; with a PATH, those of the table.

    For a table: where each feature is supported, whether it is in use and why, and whether twinlake
    can read and write it. A client that lacks a supported feature is refused even if the feature is
    not in use. For a compat feature --explain lists its rules, with a PATH the state of the table.
    """
    table = reference.open_metadata() if reference else None
    if explain is not None:
        output.show(_explained(_known(explain), table))
    elif table is not None:
        output.show(_of_table(table))
    else:
        output.show(_registry())


def _known(name: str) -> Feature:
    found = find_feature(name)
    if found is None:
        near = get_close_matches(name, FEATURES, n=1)
        raise UserError(
            Code.FEATURE_UNKNOWN,
            f"There is no table feature {name!r}.",
            why=f"the closest name is {near[0]}" if near else "no name is similar",
            fix="Run `twinlake features` for all names.",
            fields={"feature": name},
        )
    return found


def _record(feature: Feature) -> dict[str, Any]:
    return {
        "name": feature.name,
        "kind": "reader and writer" if feature.is_reader else "writer",
        "min_reader_version": max(feature.min_reader, 1),
        "min_writer_version": feature.min_writer,
        "legacy": feature.legacy,
        "requires": list(feature.requires),
        "switched_on_by": feature.auto_text.replace("`", "") or None,
        "droppable": feature.removal is not None and not feature.removal.never,
        "twinlake_reads": feature.name in CLIENT_FEATURES.readers if feature.is_reader else True,
        "twinlake_writes": feature.name in CLIENT_FEATURES.writers,
        "status": feature.status,
        "description": feature.description,
    }


def _ability(record: dict[str, Any]) -> str:
    if not record["twinlake_reads"]:
        return "unsupported"
    return "reads, writes" if record["twinlake_writes"] else "reads"


def _registry() -> View:
    records = [_record(feature) for feature in FEATURES.values()]
    rows = [
        (r["name"], r["kind"], _ability(r), r["switched_on_by"], r["requires"]) for r in records
    ]
    return View(
        data={"features": records},
        blocks=[Grid.of("feature for twinlake switched_on_by requires", rows)],
    )


def _state(name: str, table: Table) -> dict[str, Any]:
    """Whether the table supports and uses a feature, and why."""
    protocol = table.protocol
    supported = protocol.is_supported(name)
    active = supported and (
        name not in FEATURES or name in active_features(table.metadata, protocol.feature_names)
    )
    listed = [
        side
        for side, names in (
            ("readerFeatures", protocol.reader_features),
            ("writerFeatures", protocol.writer_features),
        )
        if names and name in names
    ]
    if listed:
        support = f"listed in {' and '.join(listed)}"
    elif supported:
        support = f"implied by {protocol_text(protocol)}"
    else:
        support = None
    blocking = write_blockers(protocol, metadata=table.metadata)
    return {
        "name": name,
        "known": name in FEATURES,
        "supported": supported,
        "active": active,
        "support": support,
        "use": _use(name, supported=supported, active=active),
        "blocks_reading": name in _read_blockers(table),
        "blocks_writing": name in blocking,
    }


def _read_blockers(table: Table) -> tuple[str, ...]:
    return read_blockers(table.protocol)


def _use(name: str, *, supported: bool, active: bool) -> str | None:
    feature = FEATURES.get(name)
    switch = feature.auto_text.replace("`", "") if feature else ""
    if feature is None:
        return "unknown, so considered in use"
    if active:
        return switch or "in use wherever it is supported"
    return f"not in use: it requires {switch}" if supported and switch else None


def _of_table(table: Table) -> View:
    names = sorted(table.protocol.feature_names)
    states = [_state(name, table) for name in names]
    rows = [
        (s["name"], "in use" if s["active"] else "supported", s["support"], _obstacle(s), s["use"])
        for s in states
    ]
    protocol = table.protocol
    blocks: list[Block] = [
        Fields(
            (
                ("location", table.location),
                ("version", str(table.version)),
                ("protocol", protocol_text(protocol)),
            )
        ),
        Grid.of("feature state support twinlake why", rows)
        if rows
        else Paragraph("The table requires no feature."),
    ]
    return View(
        data={
            "location": table.location,
            "version": table.version,
            "min_reader_version": protocol.min_reader_version,
            "min_writer_version": protocol.min_writer_version,
            "features": states,
        },
        blocks=blocks,
    )


def _obstacle(state: dict[str, Any]) -> str:
    if state["blocks_reading"]:
        return "cannot read"
    return "cannot write" if state["blocks_writing"] else "supported"


def _explained(feature: Feature, table: Table | None) -> View:
    record = _record(feature)
    closure = sorted(dependency_closure([feature.name]) - {feature.name})
    removal = feature.removal
    dropping = "cannot be dropped"
    if removal is not None:
        dropping = removal.never or f"can be dropped; first: {removal.pre_downgrade}"
        if removal.only_with_truncation:
            dropping += ", with --truncate-history only"
    versions = f"reader {record['min_reader_version']}, writer {record['min_writer_version']}"
    details = [
        ("for", f"{record['kind']}s".replace("reader and", "readers and")),
        ("requires versions", versions + (" (a legacy feature)" if feature.legacy else "")),
        ("requires", ", ".join(closure) or "nothing else"),
        ("switched on by", record["switched_on_by"] or f"alter --add-feature {feature.name}"),
        ("dropping", dropping),
        ("twinlake", _ability(record)),
        ("specified in", f"{feature.where} ({feature.status})"),
    ]
    data: dict[str, Any] = {**record, "requires_all": closure, "dropping": dropping}
    if table is not None:
        state = _state(feature.name, table)
        data["table"] = {"location": table.location, "version": table.version, **state}
        details.append(("here", _here(state)))
    blocks: list[Block] = [
        Heading(feature.name),
        Paragraph(feature.description),
        Fields(tuple(details)),
    ]
    if feature.name in COMPATS:
        data["rules"] = records = rule_records(
            COMPATS[feature.name], table.check(feature.name) if table is not None else None
        )
        blocks.append(rule_grid(records))
    return View(data=data, blocks=blocks)


def _here(state: dict[str, Any]) -> str:
    if not state["supported"]:
        return "not supported"
    return f"{'in use' if state['active'] else 'supported'}: {state['support']}" + (
        f"; {state['use']}" if state["use"] else ""
    )
