"""The compat features as their documents describe them: samples, vectors, rules that meet."""

from __future__ import annotations

import pytest

from tests.unit.compat.rule_cases import TOLD_ONCE
from tests.unit.compat.rule_tables import (
    MODE,
    PREFIXES,
    TRACKING,
    VECTORS,
    mapped,
    state,
    struct,
    table,
)
from twinlake.compat import Profile, State, Subject, evaluate_rules, find_compat, rules_of
from twinlake.protocol import Metadata, Protocol, dependency_closure
from twinlake.schema import (
    BYTE,
    LONG,
    PHYSICAL_NAME_KEY,
    STRING,
    VARIANT,
    VOID,
    Array,
    Map,
    Struct,
    StructField,
)

WRITER = find_compat("icebergWriterCompatV1")

SAMPLE = """
{
  "type": "struct",
  "fields": [
    {"name": "a", "type": "integer", "nullable": false, "metadata": {
      "delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}},
    {"name": "b", "type": "string", "nullable": false, "metadata": {
      "delta.columnMapping.id": 2, "delta.columnMapping.physicalName": "col-2"}}
  ]
}
"""
FEATURES = {"columnMapping", "icebergCompatV2", "icebergWriterCompatV1"}


def sample(schema: str = SAMPLE, *features: str, config: dict[str, str] | None = None) -> Subject:
    """The compliant schema of the document, with nothing but what the rules ask for."""
    on = {MODE: "id", "delta.enableIcebergCompatV2": "true", WRITER.key: "true", **(config or {})}
    return Subject(
        after=State(
            metadata=Metadata(schema_string=schema, configuration=on),
            protocol=Protocol(2, 7, None, FEATURES | set(features)),
        )
    )


def broken(subject: Subject, prefix: str = "IWC1", profile: Profile = Profile.SPEC) -> list[str]:
    """The rules a table breaks, once for each finding."""
    report = evaluate_rules(subject, PREFIXES[prefix], profile=profile)
    return [violation.rule for violation in report.violations]


def test_a7_a8_the_features_that_a_compat_feature_requires() -> None:
    assert dependency_closure({"icebergWriterCompatV1"}) == FEATURES
    assert dependency_closure({"icebergWriterCompatV3"}) == {
        "icebergWriterCompatV3", "icebergCompatV3", "columnMapping", "rowTracking",
        "domainMetadata",
    }  # fmt: skip


@pytest.mark.parametrize("profile", Profile)
def test_a11_the_sample_of_the_document_passes_with_its_not_null_columns(profile: Profile) -> None:
    assert broken(sample(), profile=profile) == []
    # Delta Spark lists invariants for NOT NULL columns; that makes none of them active.
    assert broken(sample(SAMPLE, "invariants"), profile=profile) == []


def test_a12_another_physical_name_breaks_one_rule() -> None:
    report = evaluate_rules(sample(SAMPLE.replace('"col-2"', '"col-abc"')), WRITER)
    (violation,) = report.violations
    assert (violation.rule, violation.path) == ("IWC1-06", "b")
    assert (violation.found, violation.wanted) == ("col-abc", "col-2")


def test_a13_row_tracking_may_be_listed_but_not_in_use() -> None:
    """The older draft refused the mere name; the newer one asks whether it is in use."""
    assert broken(sample(SAMPLE, "rowTracking", "domainMetadata")) == []
    assert broken(sample(SAMPLE, "rowTracking", "domainMetadata", config={TRACKING: "false"})) == []
    active = sample(SAMPLE, "rowTracking", "domainMetadata", config={TRACKING: "true"})
    assert broken(active) == ["IWC1-16"]


def test_a14_the_rule_about_map_keys_that_the_older_draft_lacks() -> None:
    def column(key: Struct, value: Struct) -> Struct:
        return mapped(struct(m=Map(key, value)))

    one, two = struct(s=STRING), struct(s=STRING, t=LONG)
    before = state("IWC1", column(one, one), raw=True)
    into_key = table("IWC1", column(two, one), raw=True, before=before)
    # Ids of the fields behind the new one move, too; all of it is inside the key or the value.
    report = evaluate_rules(into_key, WRITER)
    assert {v.rule for v in report.violations} == {"IWC1-09"}
    assert "m.key.t" in {v.path for v in report.violations}
    old = column(one, one).fields[0]
    assert isinstance(old.type, Map) and isinstance(old.type.value, Struct)
    more = StructField(
        "t", LONG, metadata={"delta.columnMapping.id": 9, PHYSICAL_NAME_KEY: "col-9"}
    )
    taller = Map(old.type.key, Struct((*old.type.value.fields, more)))
    wider = Struct((StructField("m", taller, metadata=old.metadata),))
    assert broken(table("IWC1", wider, raw=True, before=before)) == []


def test_a15_partition_columns_of_a_replaced_table() -> None:
    before = state("ICV2", struct(part_a=LONG, v=LONG), partitions=["part_a"])
    other = table(
        "ICV2", struct(part_b=LONG, v=LONG), partitions=["part_b"], before=before, replaces=True
    )
    same = table(
        "ICV2", struct(part_a=STRING, v=LONG), partitions=["part_a"], before=before, replaces=True
    )
    assert broken(other, "ICV2") == ["ICV2-09"]
    assert broken(same, "ICV2") == []


# -- the base ---------------------------------------------------------------------------


def test_a_writer_feature_evaluates_the_rules_of_its_base() -> None:
    """That is what IWC1-18 and IWC3-18 say; they have no rows of their own."""
    for writer, base in (("IWC1", "ICV2"), ("IWC3", "ICV3")):
        ids = [rule.id for rule in rules_of(PREFIXES[writer])]
        assert {rule.id for rule in rules_of(PREFIXES[base])} < set(ids)
        assert f"{writer}-18" not in ids
    vectors = table("IWC1", add=["deletionVectors"], config={VECTORS: "true"})
    # Two things to do: switch them off, and drop the feature.
    assert broken(vectors) == ["IWC1-10", "ICV2-05"]
    assert broken(table("IWC1", config={"delta.enableIcebergCompatV1": "true"})) == ["ICV2-04"]


@pytest.mark.parametrize("name", TOLD_ONCE)
def test_one_thing_is_told_once(name: str) -> None:
    subject, rules = TOLD_ONCE[name]
    assert broken(subject, name.split()[0]) == rules


@pytest.mark.parametrize(
    ("subject", "rules"),
    [
        (table("IWC1", config={MODE: "none"}), ["IWC1-05"]),
        (table("IWC1", protocol=Protocol(1, 7, None, FEATURES)), ["ICV2-02"]),
        (table("IWC1", without=["icebergCompatV2"]), ["ICV2-01"]),
        (table("IWC1", without=["icebergWriterCompatV1"]), ["IWC1-03"]),
        (table("IWC1", add=["variantType"]), ["IWC1-10"]),
    ],
    ids=str,
)
def test_the_kernel_evaluates_the_base_first(subject: Subject, rules: list[str]) -> None:
    assert broken(subject, profile=Profile.KERNEL) == rules


def test_everything_wrong_is_told_at_once() -> None:
    bad = table(
        "IWC1",
        struct(a=BYTE, s=struct(b=VOID), m=Map(BYTE, Array(VARIANT))),
        config={MODE: "name", TRACKING: "true", "delta.constraints.c": "a > 0"},
        add=["deletionVectors", "collations"],
    )
    report = evaluate_rules(bad, WRITER)
    assert [(v.rule, v.path) for v in report.violations] == [
        ("IWC1-05", MODE),
        ("IWC1-07", "a"),
        ("IWC1-07", "m.key"),
        ("IWC1-08", "s.b"),
        ("IWC1-08", "m.value.element"),
        ("IWC1-10", "deletionVectors"),
        ("IWC1-13", "delta.constraints.c"),
        ("IWC1-16", TRACKING),
        ("IWC1-17", "collations"),
    ]


def test_the_fix_says_how_a_feature_leaves() -> None:
    names = ["checkpointProtection", "materializePartitionColumns", "geospatial", "fromTheFuture"]
    fixes = {
        v.path: v.fix
        for v in evaluate_rules(table("IWC1", add=[*names, "collations"]), WRITER).violations
    }
    assert "--drop-feature checkpointProtection --truncate-history`" in fixes[names[0]]
    assert fixes[names[1]].endswith("--drop-feature materializePartitionColumns`.")
    assert "not known" in fixes["fromTheFuture"]
    assert "cannot be dropped" in fixes["collations"]


# -- disabling a feature -------------------------------------------------------------------------


def test_disabling_evaluates_only_the_rules_about_it() -> None:
    on = state("IWC1")
    off = {WRITER.key: "false", "delta.enableIcebergCompatV2": "false", MODE: "name"}
    leaving = table("IWC1", struct(a=BYTE), config=off, before=on)
    assert broken(leaving) == []
    assert broken(leaving, profile=Profile.KERNEL) == ["IWC1-19"]
    assert broken(leaving, "ICV2") == []


def test_the_third_version_cannot_be_given_up_under_either_name() -> None:
    third = find_compat("icebergCompatV3")
    writer = find_compat("icebergWriterCompatV3")
    on = state("IWC3")
    both = table("IWC3", config={third.key: None, writer.key: None}, before=on)
    assert broken(both, "IWC3") == ["ICV3-20"]
    assert broken(both, "ICV3") == ["ICV3-20"]
    only_writer = table("IWC3", config={writer.key: None}, before=on)
    assert broken(only_writer, "IWC3") == []
    assert broken(only_writer, "ICV3") == []
    only_base = table("IWC3", config={third.key: None}, before=on)
    assert broken(only_base, "IWC3") == ["IWC3-04", "ICV3-20"]


def test_a_table_without_the_feature_is_checked_in_full() -> None:
    off = {WRITER.key: "false"}
    subject = table("IWC1", struct(a=BYTE), config=off, before=state("IWC1", config=off))
    assert broken(subject) == ["IWC1-07"]
