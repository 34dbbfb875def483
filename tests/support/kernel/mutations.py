"""How to break each rule of a compat feature, and how to come close without breaking it.

A mutation is aimed at one rule: ``base-07`` is rule 07 of icebergCompatV2 or V3, ``writer-07`` that
of the two writer features. What a mutation does to the verdict is not written here; the Java kernel
says it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.support.kernel.drafts import (
    MODE,
    Draft,
    new_field,
)
from twinlake.compat import COMPATS

__all__ = ["MUTATIONS", "OFF", "ON", "Mutation", "mutations_for", "rule_id", "set_switch"]

Apply = Callable[[random.Random, Draft], None]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to touch a draft, and the rule it is about."""

    aim: str
    name: str
    apply: Apply
    versions: tuple[int, ...] = (2, 3)
    writers: tuple[bool, ...] = (False, True)
    is_change: bool = False
    """Whether it needs the table as it was before."""
    leaves: bool = False
    """Whether the feature is disabled, so that nothing else is asked of the table."""

    def fits(self, feature: str) -> bool:
        """Whether the feature has that rule."""
        compat = COMPATS[feature]
        return compat.version in self.versions and compat.is_writer in self.writers

    def __repr__(self) -> str:
        return f"{self.aim}:{self.name}"


MUTATIONS: Final[list[Mutation]] = []


def rule_id(aim: str, feature: str) -> str:
    """The id of the rule under the feature."""
    compat = COMPATS[feature]
    family, _, digits = aim.partition("-")
    if family == "base":
        return f"{COMPATS[compat.base or feature].prefix}-{digits}"
    return f"{compat.prefix}-{digits}"


def mutations_for(feature: str) -> tuple[Mutation, ...]:
    """Those that fit the feature."""
    return tuple(mutation for mutation in MUTATIONS if mutation.fits(feature))


def aimed_at(
    aim: str,
    versions: tuple[int, ...] = (2, 3),
    writers: tuple[bool, ...] = (False, True),
    leaves: bool = False,
) -> Callable[[Apply], Apply]:
    """Register a mutation under its own name."""

    def register(apply: Apply) -> Apply:
        owners = writers if aim.startswith("base") else (True,)
        is_change = apply.__module__.endswith("kernel.changes")
        MUTATIONS.append(Mutation(aim, apply.__name__, apply, versions, owners, is_change, leaves))
        return apply

    return register


# -- the protocol ---------------------------------------------------------------------------------


@aimed_at("base-01")
@aimed_at("writer-03")
def base_feature_missing(rng: random.Random, draft: Draft) -> None:
    draft.drop_feature(draft.base)


@aimed_at("base-01")
def base_feature_in_lower_case(rng: random.Random, draft: Draft) -> None:
    draft.drop_feature(draft.base)
    draft.add_feature(draft.base.lower())


@aimed_at("base-01")
@aimed_at("writer-02")
@aimed_at("writer-03")
def legacy_protocol(rng: random.Random, draft: Draft) -> None:
    draft.reader, draft.writer = 2, rng.choice((5, 6))
    draft.reader_features = draft.writer_features = None


@aimed_at("base-01")
@aimed_at("base-02")
@aimed_at("writer-01")
@aimed_at("writer-02")
@aimed_at("writer-03")
def nothing_wrong(rng: random.Random, draft: Draft) -> None:
    """The compliant table as it is, in one of the two spellings of its protocol."""
    if rng.random() < 0.5:
        draft.use_reader_lists()


@aimed_at("base-02")
@aimed_at("writer-01")
def reader_too_low(rng: random.Random, draft: Draft) -> None:
    draft.reader, draft.reader_features = 1, None


@aimed_at("base-02")
@aimed_at("writer-01")
def mapping_missing_from_the_reader_list(rng: random.Random, draft: Draft) -> None:
    draft.use_reader_lists().discard("columnMapping")


@aimed_at("base-02")
def mapping_missing_from_the_writer_list(rng: random.Random, draft: Draft) -> None:
    draft.drop_feature("columnMapping")


@aimed_at("base-02")
@aimed_at("writer-01")
def mapping_missing_everywhere(rng: random.Random, draft: Draft) -> None:
    mapping_missing_from_the_reader_list(rng, draft)
    mapping_missing_from_the_writer_list(rng, draft)


@aimed_at("writer-03")
def writer_feature_missing(rng: random.Random, draft: Draft) -> None:
    draft.drop_feature(draft.feature)


@aimed_at("writer-10")
def feature_that_is_allowed(rng: random.Random, draft: Draft) -> None:
    draft.add_feature(
        rng.choice(
            ("appendOnly", "domainMetadata", "inCommitTimestamp", "timestampNtz", "typeWidening")
        )
    )


@aimed_at("writer-10")
def feature_of_another_list(rng: random.Random, draft: Draft) -> None:
    draft.add_feature(
        rng.choice(
            (
                "deletionVectors", "materializePartitionColumns", "geospatial", "variantShredding",
                "variantShredding-preview", "variantType-preview", "icebergCompatV2",
                "icebergWriterCompatV1", "icebergCompatV3", "icebergWriterCompatV3",
            )
        )
    )  # fmt: skip


@aimed_at("writer-10")
def feature_only_the_kernel_allows(rng: random.Random, draft: Draft) -> None:
    draft.add_feature(
        rng.choice(("checkpointProtection", "typeWidening-preview", "catalogManaged"))
    )


@aimed_at("writer-10")
def feature_nobody_knows(rng: random.Random, draft: Draft) -> None:
    draft.add_feature(rng.choice(("icebergCompatV1", "timestampNanos", "somethingNew", "x")))


@aimed_at("writer-10")
def feature_in_lower_case(rng: random.Random, draft: Draft) -> None:
    draft.add_feature(rng.choice(("domainmetadata", "appendonly", "checkpointprotection")))


@aimed_at("writer-17")
def feature_of_types_and_defaults(rng: random.Random, draft: Draft) -> None:
    draft.add_feature(
        rng.choice(("allowColumnDefaults", "collations", "collations-preview", "variantType"))
    )


@aimed_at("writer-17")
def default_without_its_feature(rng: random.Random, draft: Draft) -> None:
    draft.add_column(new_field("dflt", "integer", CURRENT_DEFAULT="7"))


# -- switches -------------------------------------------------------------------------------------


@aimed_at("base-03")
@aimed_at("writer-05")
def mode_spelled_otherwise(rng: random.Random, draft: Draft) -> None:
    draft.configuration[MODE] = rng.choice(("ID", "Id", "iD"))


@aimed_at("base-03")
def either_mode(rng: random.Random, draft: Draft) -> None:
    draft.configuration[MODE] = rng.choice(("name", "Name", "id", "NAME"))


@aimed_at("base-03")
@aimed_at("writer-05")
def no_mode(rng: random.Random, draft: Draft) -> None:
    if rng.random() < 0.5:
        draft.configuration[MODE] = rng.choice(("none", "None"))
    else:
        draft.configuration.pop(MODE, None)


@aimed_at("base-03")
@aimed_at("writer-05")
def mode_nobody_knows(rng: random.Random, draft: Draft) -> None:
    draft.configuration[MODE] = rng.choice(("ids", "", " id", "position"))


@aimed_at("writer-05")
def name_mode(rng: random.Random, draft: Draft) -> None:
    draft.configuration[MODE] = rng.choice(("name", "NAME"))


@aimed_at("writer-05")
@aimed_at("writer-04")
def right_values(rng: random.Random, draft: Draft) -> None:
    draft.configuration[f"delta.enableIcebergCompatV{draft.version}"] = rng.choice(
        ("true", "TRUE", "True")
    )


@aimed_at("writer-04")
def base_switched_off(rng: random.Random, draft: Draft) -> None:
    key = f"delta.enableIcebergCompatV{draft.version}"
    if rng.random() < 0.3:
        draft.configuration.pop(key, None)
    else:
        draft.configuration[key] = rng.choice(("false", "yes", "1", "", "FALSE", " true"))


@aimed_at("base-03")
@aimed_at("base-18", versions=(3,))
@aimed_at("writer-04")
@aimed_at("writer-05")
def left_out_of_a_new_table(rng: random.Random, draft: Draft) -> None:
    """What is not set when a table is created, somebody may set by himself."""
    draft.creates = True
    keys = [MODE, "delta.enableRowTracking"]
    if draft.is_writer:
        keys.append(f"delta.enableIcebergCompatV{draft.version}")
    for key in rng.sample(keys, rng.randint(1, len(keys))):
        draft.configuration.pop(key, None)


@aimed_at("base-04")
def another_version_as_well(rng: random.Random, draft: Draft) -> None:
    others = [n for n in (1, 2, 3) if n != draft.version]
    for n in rng.sample(others, rng.randint(1, 2)):
        draft.configuration[f"delta.enableIcebergCompatV{n}"] = rng.choice(("true", "TRUE"))


@aimed_at("base-04")
def another_version_off(rng: random.Random, draft: Draft) -> None:
    others = [n for n in (1, 2, 3) if n != draft.version]
    for n in others:
        draft.configuration[f"delta.enableIcebergCompatV{n}"] = rng.choice(
            ("false", "yes", "", "on", "true ")
        )


def set_switch(draft: Draft, key: str, value: str | None) -> None:
    if value is None:
        draft.configuration.pop(key, None)
    else:
        draft.configuration[key] = value


ON: Final = ("true", "TRUE", "True")
OFF: Final = ("false", "yes", "", "1", "FALSE", None, "t")


@aimed_at("writer-12")
def change_feed_on(rng: random.Random, draft: Draft) -> None:
    draft.configuration["delta.enableChangeDataFeed"] = rng.choice(ON)


@aimed_at("writer-12")
def change_feed_off(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("changeDataFeed")
    set_switch(draft, "delta.enableChangeDataFeed", rng.choice(OFF))


@aimed_at("writer-13")
def constraint(rng: random.Random, draft: Draft) -> None:
    name = rng.choice(("positive", "A", "x.y", ""))
    draft.configuration[f"delta.constraints.{name}"] = rng.choice(("id > 0", "true", ""))


@aimed_at("writer-13")
def nearly_a_constraint(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("checkConstraints")
    draft.configuration[
        rng.choice(("delta.constraint.x", "constraints.x", "delta.constraints", "my.constraints.x"))
    ] = "id > 0"


@aimed_at("writer-16", versions=(2,))
def row_tracking_on(rng: random.Random, draft: Draft) -> None:
    draft.configuration["delta.enableRowTracking"] = rng.choice(ON)
    if rng.random() < 0.5:
        draft.add_feature("rowTracking")


@aimed_at("writer-16", versions=(2,))
def row_tracking_supported(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("rowTracking")
    set_switch(draft, "delta.enableRowTracking", rng.choice(OFF))


@aimed_at("base-18", versions=(3,))
def row_tracking_off(rng: random.Random, draft: Draft) -> None:
    set_switch(draft, "delta.enableRowTracking", rng.choice(OFF))


@aimed_at("base-18", versions=(3,))
def row_tracking_spelled_otherwise(rng: random.Random, draft: Draft) -> None:
    draft.configuration["delta.enableRowTracking"] = rng.choice(ON)


@aimed_at("base-18", versions=(3,))
def row_tracking_unsupported(rng: random.Random, draft: Draft) -> None:
    draft.drop_feature("rowTracking")


@aimed_at("base-05", versions=(2,))
def vectors_supported(rng: random.Random, draft: Draft) -> None:
    draft.add_feature("deletionVectors")
    set_switch(draft, "delta.enableDeletionVectors", rng.choice((*ON, *OFF)))


@aimed_at("base-05", versions=(2,))
def vectors_only_writers_are_told_of(rng: random.Random, draft: Draft) -> None:
    vectors_supported(rng, draft)
    draft.use_reader_lists().discard("deletionVectors")


@aimed_at("base-05", versions=(2,))
def vectors_only_in_the_property(rng: random.Random, draft: Draft) -> None:
    draft.configuration["delta.enableDeletionVectors"] = rng.choice(("true", "false"))
