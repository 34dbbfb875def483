"""Every conflict rule: when it refuses, what it says, and what it carries over instead."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.commit.making import (
    CONTEXT,
    SCHEMA,
    add,
    base,
    change,
    domain,
    dv,
    features,
    metadata,
    remove,
    winner,
)
from twinlake.actions import Action, AddFile, DomainMetadata, SetTransaction
from twinlake.commit import (
    RULES,
    Base,
    Change,
    Conflicting,
    Context,
    IsolationLevel,
    ReadSet,
    Rebased,
    Winner,
    assemble,
    check_all_conflicts,
    check_conflicts,
)
from twinlake.commit.row_tracking import ROW_TRACKING_DOMAIN
from twinlake.errors import (
    Code,
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    ConflictError,
    MetadataChangedException,
    ProtocolChangedException,
)
from twinlake.protocol import Metadata, Protocol
from twinlake.schema import parse_schema
from twinlake.schema.predicates import Column, Comparison, Expr, Literal, Op
from twinlake.schema.types import LONG, STRING

if TYPE_CHECKING:
    from collections.abc import Mapping

GOLDEN = Path(__file__).with_name("golden_conflicts.txt")
IN_A: Expr = Comparison(Op.EQ, Column(("p",), STRING), Literal("a", STRING))
X_IS_1: Expr = Comparison(Op.EQ, Column(("x",), LONG), Literal(1, LONG))
COLUMN_MAPPING = {"appendOnly", "columnMapping", "invariants"}
ROWS = base(protocol=features("rowTracking", "domainMetadata"), row_id_mark=99)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A case in which the rule must refuse."""

    id: str
    rule: str
    ours: Change
    winner: Winner
    error: type[ConflictError]
    overlap: tuple[str, ...]
    context: Context = field(default=CONTEXT)


REFUSALS = [
    Refusal(
        id="protocol-unsupported",
        rule="OCC-01",
        ours=change(add("n", "a")),
        winner=winner(
            Protocol(3, 7, {"timestampNanos"}, {"timestampNanos"}), operation="UPGRADE PROTOCOL"
        ),
        error=ProtocolChangedException,
        overlap=("3,7,[timestampNanos],[timestampNanos]",),
    ),
    Refusal(
        id="protocol-on-both-sides",
        rule="OCC-01",
        ours=change(Protocol(1, 3), operation="UPGRADE PROTOCOL"),
        winner=winner(Protocol(1, 4), operation="UPGRADE PROTOCOL"),
        error=ProtocolChangedException,
        overlap=("1,4",),
    ),
    Refusal(
        id="protocol-feature-dropped",
        rule="OCC-01",
        ours=change(add("n", "a"), on=base(protocol=Protocol(1, 3))),
        winner=winner(Protocol(1, 2), operation="DROP FEATURE"),
        error=ProtocolChangedException,
        overlap=("checkConstraints",),
    ),
    Refusal(
        id="protocol-exclusive-feature-added",
        rule="OCC-01",
        ours=change(add("n", "a")),
        winner=winner(Protocol(1, 3), operation="ADD CONSTRAINT"),
        error=ProtocolChangedException,
        overlap=("checkConstraints",),
    ),
    Refusal(
        id="drop-feature-without-revalidation",
        rule="OCC-01b",
        ours=change(Protocol(1, 2), operation="DROP FEATURE"),
        winner=winner(add("n", "a"), blind=True),
        error=ConflictError,
        overlap=(),
    ),
    Refusal(
        id="drop-feature-revalidation-fails",
        rule="OCC-01b",
        ours=change(Protocol(1, 2), operation="DROP FEATURE"),
        winner=winner(add("n", "a"), blind=True),
        error=ConflictError,
        overlap=(),
        context=replace(CONTEXT, revalidate=lambda _ours, _winner: "2 files have vectors."),
    ),
    Refusal(
        id="metadata-on-both-sides",
        rule="OCC-02",
        ours=change(metadata({"a": "1"}, parts=["p"]), operation="SET TBLPROPERTIES"),
        winner=winner(metadata({"b": "2"}, parts=["p"]), operation="SET TBLPROPERTIES"),
        error=MetadataChangedException,
        overlap=("b set to 2",),
    ),
    Refusal(
        id="metadata-of-the-winner",
        rule="OCC-02",
        ours=change(add("n", "a")),
        winner=winner(
            metadata({"delta.appendOnly": "true", "k": "v" * 60}, parts=["p"]),
            operation="SET TBLPROPERTIES",
        ),
        error=MetadataChangedException,
        overlap=("delta.appendOnly set to true", f"k set to {'v' * 37}..."),
    ),
    Refusal(
        id="metadata-feature-not-yet-supported",
        rule="OCC-02",
        ours=change(add("n", "a")),
        winner=winner(metadata({"delta.enableDeletionVectors": "true"}, parts=["p"])),
        error=MetadataChangedException,
        overlap=("delta.enableDeletionVectors set to true before deletionVectors was supported",),
    ),
    Refusal(
        id="metadata-property-removed",
        rule="OCC-02",
        ours=change(
            add("n", "a"), on=base(meta=metadata({"delta.enableRowTracking": "true"}, parts=["p"]))
        ),
        winner=winner(metadata(parts=["p"]), operation="UNSET TBLPROPERTIES"),
        error=MetadataChangedException,
        overlap=("delta.enableRowTracking removed",),
    ),
    Refusal(
        id="metadata-column-added",
        rule="OCC-02",
        ours=change(add("n", "a")),
        winner=winner(
            replace(
                metadata(parts=["p"]),
                schema_string=SCHEMA.replace(
                    '"fields": [',
                    '"fields": [{"name":"y","type":"long","nullable":true,"metadata":{}},',
                ),
            ),
            operation="ADD COLUMNS",
        ),
        error=MetadataChangedException,
        overlap=("column y added",),
    ),
    Refusal(
        id="domain-on-both-sides",
        rule="OCC-03",
        ours=change(domain("delta.clustering"), domain("mine"), operation="CLUSTER BY"),
        winner=winner(domain("delta.clustering"), operation="CLUSTER BY"),
        error=ConcurrentTransactionException,
        overlap=("delta.clustering",),
    ),
    Refusal(
        id="domain-read",
        rule="OCC-03",
        ours=change(add("n", "a"), reads=ReadSet(domains=frozenset({"mine"}))),
        winner=winner(domain("mine", removed=True)),
        error=ConcurrentTransactionException,
        overlap=("mine",),
    ),
    Refusal(
        id="application-read",
        rule="OCC-04",
        ours=change(add("n", "a"), reads=ReadSet(app_ids=frozenset({"stream"}))),
        winner=winner(SetTransaction(app_id="stream", version=8), operation="STREAMING UPDATE"),
        error=ConcurrentTransactionException,
        overlap=("stream",),
    ),
    Refusal(
        id="application-written",
        rule="OCC-04",
        ours=change(add("n", "a"), SetTransaction(app_id="stream", version=8)),
        winner=winner(SetTransaction(app_id="stream", version=8), operation="STREAMING UPDATE"),
        error=ConcurrentTransactionException,
        overlap=("stream",),
    ),
    Refusal(
        id="append-into-read-partition",
        rule="OCC-07",
        ours=change(remove("old"), operation="DELETE", reads=ReadSet(predicates=(IN_A,))),
        winner=winner(*(add(f"n{i}", "a") for i in range(5)), add("other", "b"), operation="MERGE"),
        error=ConcurrentAppendException,
        overlap=("n0", "n1", "n2", "n3", "n4"),
    ),
    Refusal(
        id="append-and-data-predicate",
        rule="OCC-07",
        ours=change(remove("old"), operation="UPDATE", reads=ReadSet(predicates=(X_IS_1,))),
        winner=winner(add("n", "b"), operation="UPDATE", blind=False),
        error=ConcurrentAppendException,
        overlap=("n",),
    ),
    Refusal(
        id="append-and-whole-table",
        rule="OCC-07",
        ours=change(
            metadata({"c": "1"}, parts=["p"]),
            operation="ADD CONSTRAINT",
            reads=ReadSet(whole_table=True),
        ),
        winner=winner(add("n", "b"), blind=True),
        error=ConcurrentAppendException,
        overlap=("n",),
    ),
    Refusal(
        id="append-of-the-same-path",
        rule="OCC-07",
        ours=change(add("n", "a", deletion_vector=dv("one"))),
        winner=winner(add("n", "a"), blind=True),
        error=ConcurrentAppendException,
        overlap=("n",),
    ),
    Refusal(
        id="removed-what-was-read",
        rule="OCC-08",
        ours=change(add("n", "a"), operation="MERGE", reads=ReadSet(files=frozenset({"f1", "f2"}))),
        winner=winner(
            remove("f1", data_change=False), remove("f9", data_change=False), operation="OPTIMIZE"
        ),
        error=ConcurrentDeleteReadException,
        overlap=("f1",),
    ),
    Refusal(
        id="removed-and-whole-table",
        rule="OCC-08",
        ours=change(add("n", "a"), operation="MERGE", reads=ReadSet(whole_table=True)),
        winner=winner(remove("f1"), operation="DELETE"),
        error=ConcurrentDeleteReadException,
        overlap=("f1",),
    ),
    Refusal(
        id="removed-on-both-sides",
        rule="OCC-09",
        ours=change(remove("f1"), remove("f2"), operation="DELETE"),
        winner=winner(remove("f1"), remove("f2"), operation="DELETE"),
        error=ConcurrentDeleteDeleteException,
        overlap=("f1", "f2"),
    ),
    Refusal(
        id="two-vectors-on-one-file",
        rule="OCC-09",
        ours=change(remove("f"), add("f", "a", deletion_vector=dv("mine")), operation="UPDATE"),
        winner=winner(
            remove("f", deletion_vector=dv("old")),
            domain("mine"),
            operation="DELETE",
        ),
        error=ConcurrentDeleteDeleteException,
        overlap=("f",),
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_rule_refuses_and_says_why(case: Refusal) -> None:
    outcome = check_conflicts(case.ours, case.winner, case.context)
    assert isinstance(outcome, Conflicting), outcome
    error = outcome.to_error()
    assert type(error) is case.error
    assert error.rule == case.rule == outcome.rule.id
    assert error.winner == case.winner.version == 5
    assert error.fields["operation"] == case.winner.operation
    assert tuple(error.fields["overlap"]) == case.overlap
    assert error.delta_class is not None
    text = str(error)
    assert f"version 5 ({case.winner.operation})" in text
    assert case.ours.operation.name in text
    assert error.why
    assert error.fix


def test_every_refusing_rule_has_a_case() -> None:
    moving = {"OCC-05", "OCC-06", "OCC-10"}
    assert {case.rule for case in REFUSALS} | moving == {rule.id for rule in RULES}


def test_wording_is_the_golden_one() -> None:
    """One file holds the wording, so that a reviewer sees the text change."""
    parts = []
    for case in REFUSALS:
        outcome = check_conflicts(case.ours, case.winner, case.context)
        assert isinstance(outcome, Conflicting)
        error = outcome.to_error()
        parts.append(
            f"[{case.id}] {case.rule} {type(error).__name__} {error.delta_class}\n{error}\n"
        )
    text = "\n".join(parts)
    if not GOLDEN.exists():
        GOLDEN.write_text(text)
        pytest.fail(f"{GOLDEN.name} was missing and has been written; look at it and commit it")
    assert text == GOLDEN.read_text()


def test_rules_stand_in_the_order_of_delta() -> None:
    assert [rule.id for rule in RULES] == [
        "OCC-01", "OCC-01b", "OCC-02", "OCC-03", "OCC-04", "OCC-05", "OCC-06", "OCC-07", "OCC-08",
        "OCC-09", "OCC-10",
    ]  # fmt: skip


def moved(ours: Change, *winners: Winner, context: Context = CONTEXT) -> Change:
    outcome = check_all_conflicts(ours, winners, context)
    assert isinstance(outcome, Rebased), outcome
    return outcome.change


def body_of(ours: Change) -> tuple[Action, ...]:
    return assemble(ours, txn_id="id", engine_info="test").actions


# Rebases


def test_protocol_of_the_winner_is_adopted() -> None:
    after = moved(change(add("n", "a")), winner(Protocol(2, 7, None, COLUMN_MAPPING)))
    assert after.base.protocol.is_supported("columnMapping")
    assert after.version == 6


def test_feature_drop_follows_a_winner_without_traces() -> None:
    ours = change(Protocol(1, 2), operation="DROP FEATURE")
    assert moved(ours, winner(operation="Empty Commit")).version == 6
    fits = replace(CONTEXT, revalidate=lambda _ours, _winner: None)
    assert moved(ours, winner(add("n", "a"), blind=True), context=fits).version == 6


def test_feature_drop_protects_history_up_to_where_it_lands() -> None:
    key = "delta.requireCheckpointProtectionBeforeVersion"
    ours = change(
        metadata({key: "5"}, parts=["p"]),
        features("checkpointProtection"),
        operation="DROP FEATURE",
    )
    after = moved(ours, winner(operation="Empty Commit"))
    written = next(a for a in body_of(after) if isinstance(a, Metadata))
    assert written.configuration[key] == "6"


def schema_with(field_metadata: Mapping[str, object]) -> str:
    parsed = json.loads(SCHEMA)
    parsed["fields"][1]["metadata"] = field_metadata
    return json.dumps(parsed)


IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1, "delta.identity.highWaterMark": 5}


@pytest.mark.parametrize(
    ("before", "after", "protocol"),
    [
        (
            replace(metadata(), schema_string=schema_with(IDENTITY)),
            replace(
                metadata(),
                schema_string=schema_with({**IDENTITY, "delta.identity.highWaterMark": 9}),
            ),
            Protocol(1, 6),
        ),
        (
            metadata(),
            metadata(
                {
                    "delta.enableRowTracking": "true",
                    "delta.rowTracking.materializedRowIdColumnName": "_row-id",
                    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-version",
                }
            ),
            features("rowTracking", "domainMetadata"),
        ),
        (
            metadata(),
            replace(
                metadata(
                    {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
                ),
                schema_string=schema_with(
                    {"delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "x"}
                ),
            ),
            Protocol(2, 5),
        ),
        (
            metadata({"delta.enableDeletionVectors": "false"}),
            metadata({"delta.enableDeletionVectors": "true"}),
            features(reader=["deletionVectors"]),
        ),
        (
            metadata(),
            metadata({"delta.checkpointPolicy": "v2"}),
            features(reader=["v2Checkpoint"]),
        ),
        (
            metadata(),
            metadata(
                {
                    "delta.enableInCommitTimestamps": "true",
                    "delta.inCommitTimestampEnablementVersion": "5",
                    "delta.inCommitTimestampEnablementTimestamp": "77",
                }
            ),
            features("inCommitTimestamp"),
        ),
        (metadata(), metadata({"io.unitycatalog.tableId": "abc"}), Protocol(1, 2)),
        (metadata(), metadata(), Protocol(1, 2)),
    ],
    ids=[
        "identity-watermark",
        "row-tracking",
        "column-mapping-by-name",
        "deletion-vectors",
        "v2-checkpoints",
        "in-commit-timestamps",
        "catalog-id",
        "the-same-again",
    ],
)
def test_allowed_metadata_of_the_winner_is_adopted(
    before: object, after: object, protocol: Protocol
) -> None:
    state = Base(version=4, protocol=protocol, metadata=before)  # type: ignore[arg-type]
    assert moved(change(add("n"), on=state), winner(after)).base.metadata is after  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "protocol", "obstacle"),
    [
        ({}, {"delta.columnMapping.mode": "id"}, Protocol(2, 5), "delta.columnMapping.mode"),
        (
            {"delta.columnMapping.mode": "id"},
            {"delta.columnMapping.mode": "name"},
            Protocol(2, 5),
            "delta.columnMapping.mode",
        ),
        (
            {"delta.enableDeletionVectors": "true"},
            {"delta.enableDeletionVectors": "false"},
            features(reader=["deletionVectors"]),
            "delta.enableDeletionVectors",
        ),
        (
            {"delta.checkpointPolicy": "v2"},
            {"delta.checkpointPolicy": "classic"},
            features(reader=["v2Checkpoint"]),
            "delta.checkpointPolicy",
        ),
    ],
    ids=["to-id-mode", "id-to-name", "vectors-off", "classic-checkpoints"],
)
def test_other_values_of_allowed_properties_are_refused(
    before: dict[str, str], after: dict[str, str], protocol: Protocol, obstacle: str
) -> None:
    state = base(meta=metadata(before), protocol=protocol)
    outcome = check_conflicts(change(add("n"), on=state), winner(metadata(after)), CONTEXT)
    assert isinstance(outcome, Conflicting)
    assert obstacle in outcome.clash.why


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA.replace("long", "integer"),
        SCHEMA.replace('"x"', '"y"'),
        schema_with({"comment": "changed"}),
        schema_with({"delta.columnMapping.id": 2}),
    ],
    ids=["type", "name", "comment", "mapping-without-mode"],
)
def test_schema_changes_of_the_winner_are_refused(schema: str) -> None:
    after = replace(metadata(parts=["p"]), schema_string=schema)
    outcome = check_conflicts(change(add("n", "a")), winner(after), CONTEXT)
    assert isinstance(outcome, Conflicting)
    assert outcome.rule.id == "OCC-02"


def test_row_tracking_domain_never_conflicts() -> None:
    mark = domain(ROW_TRACKING_DOMAIN, '{"rowIdHighWaterMark":149}')
    ours = change(add("n", "a", rows=20), on=ROWS)
    after = moved(ours, winner(add("m", "a", base_row_id=100), mark, blind=True))
    actions = body_of(after)
    written = next(a for a in actions if isinstance(a, AddFile))
    assert (written.base_row_id, written.default_row_commit_version) == (150, 6)
    stated = next(a for a in actions if isinstance(a, DomainMetadata))
    assert json.loads(stated.configuration) == {"rowIdHighWaterMark": 169}


def test_recommitted_files_keep_their_row_ids_over_a_winner() -> None:
    old = add("f", "a", base_row_id=30, default_row_commit_version=2, data_change=False)
    fresh = add("g", "a", base_row_id=100, default_row_commit_version=5, data_change=False)
    mark = domain(ROW_TRACKING_DOMAIN, '{"rowIdHighWaterMark":149}')
    after = moved(change(old, fresh, on=ROWS, operation="OPTIMIZE"), winner(mark))
    written = [a for a in body_of(after) if isinstance(a, AddFile)]
    assert [(a.base_row_id, a.default_row_commit_version) for a in written] == [(30, 2), (150, 6)]


def test_backfill_leaves_out_files_the_winner_touched() -> None:
    ours = change(
        *(add(name, "a", data_change=False) for name in ("f", "g", "h")),
        operation="ROW TRACKING BACKFILL",
        on=ROWS,
        reads=ReadSet(files=frozenset({"f", "g", "h"})),
    )
    after = moved(
        ours, winner(remove("f"), add("g", "a", deletion_vector=dv("d")), operation="UPDATE")
    )
    assert [a.path for a in after.summary.adds] == ["h"]
    assert after.reads.files == frozenset({"h"})


def test_backfill_that_won_does_not_disturb_readers() -> None:
    ours = change(remove("f"), operation="DELETE", reads=ReadSet(whole_table=True))
    won = winner(add("g", "a", data_change=False), operation="ROW TRACKING BACKFILL", blind=False)
    assert moved(ours, won).version == 6


def test_replacing_a_table_takes_new_domains_away() -> None:
    ours = change(metadata(parts=["p"]), operation="REPLACE TABLE")
    after = moved(ours, winner(domain("mine", '{"a":1}'), domain("gone", removed=True)))
    assert [(d.domain, d.configuration, d.removed) for d in after.summary.domains] == [
        ("mine", '{"a":1}', True)
    ]


def test_recorded_type_changes_move_with_the_commit() -> None:
    changes = [
        {"fromType": "integer", "toType": "long", "tableVersion": 5},
        {"fromType": "short", "toType": "integer", "tableVersion": 2},
    ]
    meta = replace(metadata(parts=["p"]), schema_string=schema_with({"delta.typeChanges": changes}))
    after = moved(change(meta, operation="CHANGE COLUMN"), winner(add("n", "a"), blind=True))
    fields = json.loads(after.metadata.schema_string)["fields"]
    assert [c["tableVersion"] for c in fields[1]["metadata"]["delta.typeChanges"]] == [6, 2]
    assert parse_schema(after.metadata.schema_string)


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"), [(500, 900, 901), (900, 500, 900), (7, 7, 8)]
)
def test_in_commit_timestamp_is_later_than_the_winner(
    mine: int, theirs: int, expected: int
) -> None:
    state = base(
        meta=metadata({"delta.enableInCommitTimestamps": "true"}),
        protocol=features("inCommitTimestamp"),
        timestamp_ms=5,
    )
    after = moved(change(add("n"), on=state, timestamp_ms=mine), winner(stamp=theirs))
    info = body_of(after)[0]
    assert getattr(info, "in_commit_timestamp", None) == expected


def test_provenance_of_timestamps_moves_with_the_commit() -> None:
    on = metadata({"delta.enableInCommitTimestamps": "true"}, parts=["p"])
    ours = change(on, features("inCommitTimestamp"), timestamp_ms=50, operation="SET TBLPROPERTIES")
    after = moved(ours, winner(add("n", "a"), blind=True, modified_ms=80))
    info, _protocol, written = body_of(after)
    assert getattr(info, "in_commit_timestamp", None) == 81
    configuration = getattr(written, "configuration", {})
    assert configuration["delta.inCommitTimestampEnablementVersion"] == "6"
    assert configuration["delta.inCommitTimestampEnablementTimestamp"] == "81"


# Levels


@pytest.mark.parametrize(
    ("level", "blind", "passes"),
    [
        (IsolationLevel.WRITE_SERIALIZABLE, True, True),
        (IsolationLevel.WRITE_SERIALIZABLE, False, False),
        (IsolationLevel.WRITE_SERIALIZABLE, None, False),
        (IsolationLevel.SERIALIZABLE, True, False),
        (IsolationLevel.SERIALIZABLE, False, False),
        (IsolationLevel.SNAPSHOT, False, True),
    ],
)
def test_appends_by_level(level: IsolationLevel, blind: bool | None, passes: bool) -> None:
    ours = change(
        remove("f"), operation="DELETE", isolation=level, reads=ReadSet(predicates=(IN_A,))
    )
    outcome = check_conflicts(ours, winner(add("n", "a"), blind=blind), CONTEXT)
    assert isinstance(outcome, Rebased) is passes


def test_metadata_changes_are_checked_against_blind_appends() -> None:
    reads = ReadSet(predicates=(IN_A,))
    ours = change(metadata({"a": "1"}, parts=["p"]), reads=reads, operation="ADD CONSTRAINT")
    assert isinstance(
        check_conflicts(ours, winner(add("n", "a"), blind=True), CONTEXT), Conflicting
    )


def test_appends_to_other_partitions_pass() -> None:
    ours = change(remove("f"), operation="DELETE", reads=ReadSet(predicates=(IN_A,)))
    assert moved(ours, winner(add("n", "b"), add("m", None, partition_values={"p": None})))


def test_winners_are_followed_one_after_the_other() -> None:
    ours = change(remove("f"), operation="DELETE", reads=ReadSet(files=frozenset({"f"})))
    first, second = winner(add("n", "a")), winner(remove("f"), version=6, operation="DELETE")
    outcome = check_all_conflicts(ours, [first, second], CONTEXT)
    assert isinstance(outcome, Conflicting)
    assert outcome.winner.version == 6
    assert outcome.to_error().code is Code.CONFLICT_DELETE_READ
