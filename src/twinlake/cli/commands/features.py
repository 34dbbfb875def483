"""``twinlake features``: the table features there are, and those of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command
from twinlake.cli.view import Facts, Grid, Heading, Prose, View
from twinlake.cli.wording import protocol_text
from twinlake.errors import Code, UserError

if TYPE_CHECKING:
    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.cli.view import Block
    from twinlake.protocol import Feature
    from twinlake.table import Table

__all__ = ["features"]


@command(table="optional", time_travel=True)
@click.option("--explain", metavar="NAME", help="All there is to say about one feature.")
def features(output: Output, place: Place | None, explain: str | None) -> None:
    """The table features there are; with a PATH, those of the table.

    For a table it tells of each feature where its support comes from, whether it is in use and by
    what, and what twinlake can do with it. Support alone can keep out clients that lack the
    feature, in use or not. For a feature of Iceberg compatibility --explain lists its rules, and
    with a PATH where the table stands with each.
    """
    table = place.open_metadata() if place else None
    if explain is not None:
        output.show(_explained(_known(explain), table))
    elif table is not None:
        output.show(_of_table(table))
    else:
        output.show(_registry())


def _known(name: str) -> Feature:
    from difflib import get_close_matches

    from twinlake.protocol import FEATURES, find_feature

    found = find_feature(name)
    if found is None:
        near = get_close_matches(name, FEATURES, n=1)
        raise UserError(
            Code.FEATURE_UNKNOWN,
            f"There is no table feature {name!r}.",
            why=f"the nearest name is {near[0]}" if near else "no known name is like it",
            fix="Run `twinlake features` for all names.",
            fields={"feature": name},
        )
    return found


def _record(feature: Feature) -> dict[str, Any]:
    from twinlake.protocol import CLIENT_FEATURES

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
        return "refuses"
    return "reads, writes" if record["twinlake_writes"] else "reads"


def _registry() -> View:
    from twinlake.protocol import FEATURES

    records = [_record(feature) for feature in FEATURES.values()]
    rows = [
        (r["name"], r["kind"], _ability(r), r["switched_on_by"], r["requires"]) for r in records
    ]
    return View(
        data={"features": records},
        blocks=[Grid.of("feature for twinlake switched_on_by requires", rows)],
    )


def _state(name: str, table: Table) -> dict[str, Any]:
    """Whether the table supports and uses a feature, and since when that is so."""
    from twinlake.protocol import FEATURES, active_features, write_blockers

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
    from twinlake.protocol import read_blockers

    return read_blockers(table.protocol)


def _use(name: str, *, supported: bool, active: bool) -> str | None:
    from twinlake.protocol import FEATURES

    feature = FEATURES.get(name)
    switch = feature.auto_text.replace("`", "") if feature else ""
    if feature is None:
        return "not known here, so taken to be in use"
    if active:
        return switch or "has no switch: support is use"
    return f"not used: it would take {switch}" if supported and switch else None


def _of_table(table: Table) -> View:
    names = sorted(table.protocol.feature_names)
    states = [_state(name, table) for name in names]
    rows = [
        (s["name"], "in use" if s["active"] else "supported", s["support"], _obstacle(s), s["use"])
        for s in states
    ]
    protocol = table.protocol
    blocks: list[Block] = [
        Facts(
            (
                ("location", table.location),
                ("version", str(table.version)),
                ("protocol", protocol_text(protocol)),
            )
        ),
        Grid.of("feature state support twinlake why", rows)
        if rows
        else Prose("The table needs no feature at all."),
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
    return "cannot write" if state["blocks_writing"] else "fine"


def _explained(feature: Feature, table: Table | None) -> View:
    from twinlake.cli.compat_view import rule_grid, rule_records
    from twinlake.compat import COMPATS
    from twinlake.protocol import dependency_closure

    record = _record(feature)
    closure = sorted(dependency_closure([feature.name]) - {feature.name})
    removal = feature.removal
    dropping = "cannot be dropped"
    if removal is not None:
        dropping = removal.never or f"can be dropped; first: {removal.work}"
        if removal.only_with_truncation:
            dropping += ", with --truncate-history only"
    versions = f"reader {record['min_reader_version']}, writer {record['min_writer_version']}"
    facts = [
        ("for", f"{record['kind']}s".replace("reader and", "readers and")),
        ("at least", versions + (" (a legacy feature)" if feature.legacy else "")),
        ("requires", ", ".join(closure) or "nothing else"),
        ("switched on by", record["switched_on_by"] or f"alter --add-feature {feature.name}"),
        ("dropping", dropping),
        ("twinlake", _ability(record)),
        ("found in", f"{feature.where} ({feature.status})"),
    ]
    data: dict[str, Any] = {**record, "requires_all": closure, "dropping": dropping}
    if table is not None:
        state = _state(feature.name, table)
        data["table"] = {"location": table.location, "version": table.version, **state}
        facts.append(("here", _here(state)))
    blocks: list[Block] = [Heading(feature.name), Prose(feature.description), Facts(tuple(facts))]
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
