"""What is refused before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tests.unit.commit.making import add, base, change, domain, dv, features, metadata, remove
from twinlake.actions import AddCDCFile, CommitInfo, SetTransaction
from twinlake.commit import CHECKS, Change, Draft, run_checks
from twinlake.errors import Code, UserError
from twinlake.protocol import Metadata, Protocol

PLAIN = base(meta=metadata())
DVS = base(meta=metadata(), protocol=features(reader=["deletionVectors"]))
NEW = base(version=-1, meta=Metadata(), protocol=Protocol(1, 1))


def mapped() -> Metadata:
    text = metadata(parts=["p"]).schema_string.replace(
        '"name": "p", "type": "string", "nullable": true, "metadata": {}',
        '"name": "p", "type": "string", "nullable": true, "metadata": '
        '{"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}',
    )
    return replace(metadata({"delta.columnMapping.mode": "name"}, parts=["p"]), schema_string=text)


def partitioned(kind: str) -> Metadata:
    plain = metadata(parts=["p"])
    text = plain.schema_string.replace('"type": "string"', f'"type": "{kind}"')
    return replace(plain, schema_string=text)


@dataclass(frozen=True, kw_only=True)
class Case:
    id: str
    check: str
    draft: Draft
    text: str
    code: Code = Code.COMMIT_INVALID


def case(
    id: str, check: str, ours: Change, text: str, code: Code = Code.COMMIT_INVALID, **draft: object
) -> Case:
    return Case(
        id=id,
        check=check,
        draft=Draft(change=ours, **draft),  # type: ignore[arg-type]
        text=text,
        code=code,
    )


CASES = [
    *(
        case(
            f"statistics-{name}",
            "CMT-18",
            change(add("f", stats=text), on=PLAIN),
            "statistics of 1 file: f",
        )
        for name, text in {
            "null": "null",
            "list": "[]",
            "text": '"{}"',
            "number": "5",
            "cut": '{"numRecords":1',
            "two": '{"numRecords":1}{"numRecords":2}',
            "not-json": "nonsense",
            "count-as-text": '{"numRecords":"1"}',
            "count-as-fraction": '{"numRecords":1.5}',
            "count-negative": '{"numRecords":-1}',
            "bounds-as-list": '{"minValues":[]}',
            "nulls-as-number": '{"nullCount":0}',
            "tight-as-text": '{"tightBounds":"true"}',
            "deep": "[" * 100_000,
        }.items()
    ),
    *(
        case(
            f"partition-{kind}-{text}",
            "CMT-19",
            change(add("f", partition_values={"p": text}), on=base(meta=partitioned(kind))),
            f"{text!r} is no value of partition column p",
        )
        for kind, text in [
            ("integer", "x"),
            ("byte", "200"),
            ("date", "2024-13-01"),
            ("boolean", "yes"),
            ("timestamp", "noon"),
            ("decimal(3,1)", "1000"),
            ("double", "1,5"),
        ]
    ),
    case(
        "sync-without-an-iceberg-side",
        "CMT-20",
        change(metadata({"twinlake.iceberg.sync": "commit"}), on=PLAIN),
        "twinlake.iceberg.sync does nothing",
        Code.PROPERTY_INVALID,
    ),
    case("two-metadata", "CMT-01", change(metadata(), metadata(), on=PLAIN), "2 metaData"),
    case("two-protocols", "CMT-01", change(Protocol(1, 2), Protocol(1, 2), on=PLAIN), "2 protocol"),
    case(
        "two-txn",
        "CMT-01",
        change(*(SetTransaction(app_id="s", version=v) for v in (1, 2)), on=PLAIN),
        "1 application id: s",
    ),
    case(
        "two-domains",
        "CMT-01",
        change(domain("d"), domain("d"), on=base(protocol=features("domainMetadata"))),
        "1 domain: d",
    ),
    case("own-commit-info", "CMT-01", change(CommitInfo(), on=PLAIN), "commitInfo"),
    case("new-without-metadata", "CMT-02", change(Protocol(1, 2), on=NEW), "no metaData"),
    case("new-without-protocol", "CMT-02", change(metadata(), on=NEW), "no protocol"),
    case("id-changes", "CMT-02", change(replace(metadata(), id="other"), on=PLAIN), "the table id"),
    case("add-twice", "CMT-03", change(add("f"), add("f"), on=PLAIN), "more than one add"),
    case(
        "add-twice-other-vector",
        "CMT-03",
        change(add("f"), add("f", deletion_vector=dv("d")), on=DVS),
        "more than one add of 1 path: f",
    ),
    case("remove-twice", "CMT-03", change(remove("f"), remove("f"), on=PLAIN), "one remove"),
    case("add-and-remove", "CMT-03", change(remove("f"), add("f"), on=PLAIN), "same 1 file: f"),
    case(
        "live-under-another-vector",
        "CMT-04",
        change(add("f", deletion_vector=dv("d")), on=DVS),
        "twice",
        live={"f": ("f", None)},
    ),
    case(
        "removes-another-vector-than-the-live-one",
        "CMT-04",
        change(remove("f", deletion_vector=dv("x")), add("f", deletion_vector=dv("d")), on=DVS),
        "twice",
        live={"f": ("f", None)},
    ),
    case(
        "append-only",
        "CMT-05",
        change(remove("f"), remove("g"), on=base(meta=metadata({"delta.appendOnly": "true"}))),
        "2 files: f, g",
        Code.APPEND_ONLY,
    ),
    case(
        "cdc-data-change",
        "CMT-06",
        change(AddCDCFile(path="c", partition_values={}, size=1, data_change=True), on=PLAIN),
        "change data 1 file: c",
    ),
    case(
        "optimize-changes-rows",
        "CMT-06",
        change(add("f"), operation="OPTIMIZE", on=PLAIN),
        "OPTIMIZE must not change rows",
    ),
    case(
        "pair-disagrees",
        "CMT-06",
        change(remove("f", data_change=False), add("f", deletion_vector=dv("d")), on=DVS),
        "disagree",
    ),
    case("partition-missing", "CMT-07", change(add("f")), "no value for p on 1 file: f"),
    case(
        "partition-extra",
        "CMT-07",
        change(add("f", partition_values={"p": "1", "q": "2"})),
        "a value for q",
    ),
    case(
        "partition-by-logical-name",
        "CMT-07",
        change(add("f", "a"), on=base(meta=mapped(), protocol=Protocol(2, 5))),
        "no value for col-1 and a value for p",
    ),
    case(
        "vector-without-count",
        "CMT-08",
        change(add("f", rows=None, deletion_vector=dv("d")), on=DVS),
        "numRecords",
    ),
    case(
        "row-tracking-without-count",
        "CMT-08",
        change(
            add("f", rows=None),
            add("g", stats="{}"),
            add("h", stats='{"numRecords":null}'),
            on=base(meta=metadata(), protocol=features("rowTracking", "domainMetadata")),
        ),
        "3 files: f, g, h",
    ),
    case(
        "vector-without-feature",
        "CMT-09",
        change(add("f", deletion_vector=dv("d")), on=PLAIN),
        "deletionVectors is not supported",
        Code.FEATURE_MISMATCH,
    ),
    case(
        "domain-without-feature",
        "CMT-09",
        change(domain("d"), on=PLAIN),
        "domainMetadata is not supported",
        Code.FEATURE_MISMATCH,
    ),
    case(
        "system-domain",
        "CMT-10",
        change(domain("delta.clustering"), on=base(protocol=features("domainMetadata"))),
        "delta.clustering",
    ),
    case(
        "steering-property",
        "CMT-11",
        change(metadata({"delta.minReaderVersion": "1"}), on=PLAIN),
        "never stored",
        Code.PROPERTY_INVALID,
    ),
    case(
        "two-features-gone",
        "CMT-12",
        change(Protocol(1, 1), operation="DROP FEATURE", on=PLAIN),
        "2 features: appendOnly, invariants",
        Code.FEATURE_DROP,
    ),
    case(
        "feature-gone-by-the-way",
        "CMT-12",
        change(Protocol(1, 2), on=base(meta=metadata(), protocol=Protocol(1, 3))),
        "would drop 1 feature: checkConstraints",
        Code.FEATURE_DROP,
    ),
    case(
        "row-tracking-without-backfill",
        "CMT-13",
        change(
            metadata({"delta.enableRowTracking": "true"}),
            on=base(meta=metadata(), protocol=features("rowTracking", "domainMetadata")),
        ),
        "3 files have no row ids",
        Code.FEATURE_ENABLE,
        untracked_files=3,
    ),
    case(
        "row-tracking-suspended",
        "CMT-13",
        change(
            metadata({"delta.enableRowTracking": "true", "delta.rowTrackingSuspended": "true"}),
            on=base(meta=metadata(), protocol=features("rowTracking", "domainMetadata")),
        ),
        "enabled and suspended",
        Code.PROPERTY_INVALID,
    ),
    case(
        "path-leaves-the-table",
        "CMT-14",
        change(add("%2e%2e/f"), on=PLAIN),
        "leave the root",
        Code.PATH_UNSAFE,
    ),
    case("number-too-wide", "CMT-14", change(add("f", size=2**63), on=PLAIN), "malformed add"),
    case("wrong-type", "CMT-14", change(add("f", tags={"a": 7}), on=PLAIN), "malformed add"),
    case("not-json", "CMT-14", change(SetTransaction(app_id="s", version=2**70)), "malformed txn"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_draft_is_refused(case: Case) -> None:
    with pytest.raises(UserError) as caught:
        run_checks(case.draft)
    error = caught.value
    assert error.rule == case.check
    assert error.code is case.code
    assert case.text in error.why
    assert [v["check"] for v in error.fields["violations"]] == [case.check]


def test_every_check_has_a_case() -> None:
    # CMT-15 raises an error of its own kind, the others have rules of their own; each has a
    # module of its own.
    others = {"CMT-15", "CMT-16", "CMT-17"}
    assert {case.check for case in CASES} | others == {check.id for check in CHECKS}


GOOD = {
    "statistics-absent": Draft(change=change(add("f", stats=None), on=PLAIN)),
    "statistics-nested": Draft(
        change=change(add("f", stats='{"minValues":{"s":{"a":1}},"more":[1]}'), on=PLAIN)
    ),
    "statistics-of-a-live-file": Draft(
        change=change(add("f", stats="null"), on=PLAIN), live={"f": ("f", None)}
    ),
    "partition-of-its-type": Draft(
        change=change(
            add("f", partition_values={"p": "2024-02-29"}), on=base(meta=partitioned("date"))
        )
    ),
    "partition-empty": Draft(
        change=change(add("f", partition_values={"p": ""}), on=base(meta=partitioned("integer")))
    ),
    "partition-of-a-live-file": Draft(
        change=change(add("f", partition_values={"p": "x"}), on=base(meta=partitioned("integer"))),
        live={"f": ("f", None)},
    ),
    "append": Draft(change=change(add("f", "a"))),
    "vector-update": Draft(
        change=change(remove("f"), add("f", deletion_vector=dv("d")), on=DVS),
        live={"f": ("f", None)},
    ),
    "refresh-of-a-live-file": Draft(change=change(add("f"), on=PLAIN), live={"f": ("f", None)}),
    "null-partition": Draft(change=change(add("f", partition_values={"p": None}))),
    "physical-partition-name": Draft(
        change=change(
            add("f", partition_values={"col-1": "a"}),
            on=base(meta=mapped(), protocol=Protocol(2, 5)),
        )
    ),
    "append-only-compaction": Draft(
        change=change(
            remove("f", data_change=False),
            add("g", data_change=False),
            operation="OPTIMIZE",
            on=base(meta=metadata({"delta.appendOnly": "true"})),
        )
    ),
    "append-only-switched-on-now": Draft(
        change=change(metadata({"delta.appendOnly": "true"}), remove("f"), on=PLAIN)
    ),
    "drop-one-feature": Draft(
        change=change(
            Protocol(1, 2),
            operation="DROP FEATURE",
            on=base(meta=metadata(), protocol=Protocol(1, 3)),
        )
    ),
    "system-domain-allowed": Draft(
        change=change(domain("delta.clustering"), on=base(protocol=features("domainMetadata"))),
        system_domains=frozenset({"delta.clustering"}),
    ),
    "recommit-without-count-keeps-ids": Draft(
        change=change(
            add("f", rows=None, base_row_id=3),
            on=base(
                meta=metadata(),
                protocol=features("rowTracking", "domainMetadata"),
                row_id_mark=9,
            ),
        )
    ),
}


@pytest.mark.parametrize("draft", GOOD.values(), ids=GOOD.keys())
def test_draft_is_fine(draft: Draft) -> None:
    run_checks(draft)


def test_all_findings_are_reported_together() -> None:
    ours = change(add("f"), add("f"), remove("g"), remove("g"), domain("delta.x"), on=PLAIN)
    with pytest.raises(UserError) as caught:
        run_checks(Draft(change=ours))
    found = {v["check"] for v in caught.value.fields["violations"]}
    assert found == {"CMT-03", "CMT-09", "CMT-10"}
    assert caught.value.code is Code.COMMIT_INVALID
