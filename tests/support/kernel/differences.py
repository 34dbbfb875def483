"""Where profile ``spec`` parts from the Java kernel, one entry for each known difference.

An entry says which rules it is about, who is the stricter, and what a table has to look like for it
to apply; the test asserts that there is no other difference and that each of these occurs. The ids
``gap-n`` are things the kernel leaves out or does not offer, ``measured-n`` are habits of its code
that were found by calling it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.support.kernel.drafts import ID, PHYSICAL, Draft
from tests.support.kernel.mutations import rule_id
from tests.support.kernel.shapes import (
    Test,
    default_only_java_takes,
    default_only_sql_takes,
    has_field_with,
    has_incomplete_ids,
    identity_goes_unseen,
    is_enabled_now,
    is_left_to_the_kernel,
    is_on,
    marked,
    mode_in_other_case,
    only_comments_change,
    only_in_collections,
    partitions_by_a_capital,
    supports,
    writer_feature_is_toggled,
    writers_only,
)
from twinlake.compat import COMPATS

__all__ = ["DIFFERENCES", "Difference", "differences_between"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One known difference."""

    id: str
    says: str
    aims: tuple[str, ...]
    stricter: str
    """The profile that minds: ``spec`` or ``kernel``."""
    applies: Test
    told_as: tuple[str, ...] = ()
    """Where both refuse and only name different rules: what the other one calls it."""

    def explains(self, rule: str, stricter: str, other: frozenset[str], draft: Draft) -> bool:
        """Whether it is the reason why one profile minds the rule and the other does not."""
        if stricter != self.stricter or rule not in _ids(self.aims, draft):
            return False
        if self.told_as and other.isdisjoint(_ids(self.told_as, draft)):
            return False
        return self.applies(draft)


def _ids(aims: tuple[str, ...], draft: Draft) -> set[str]:
    known = (aim for aim in aims if draft.is_writer or not aim.startswith("writer"))
    return {rule_id(aim, draft.feature) for aim in known}


def differences_between(
    draft: Draft, spec: frozenset[str], kernel: frozenset[str]
) -> Iterator[tuple[str, Difference | None]]:
    """Every rule that only one of the profiles minds, with the entry that explains it."""
    for stricter, mine, other in (("spec", spec, kernel), ("kernel", kernel, spec)):
        for rule in sorted(mine - other):
            known = (d for d in DIFFERENCES if d.explains(rule, stricter, other, draft))
            yield rule, next(known, None)


DIFFERENCES: Final = (
    Difference(
        "measured-01",
        "The kernel's check sets what a new table leaves open; here that is done before the check.",
        ("base-03", "base-18", "writer-04", "writer-05"),
        "spec",
        is_left_to_the_kernel,
    ),
    *(
        Difference(
            f"measured-02{letter}",
            "The kernel asks the base feature first and names features once, so some rules for "
            "writers never speak and others say it for them.",
            aims,
            stricter,
            lambda draft: draft.is_writer,
            told_as,
        )
        for letter, aims, stricter, told_as in (
            ("a", ("writer-01",), "spec", ("base-02",)),
            ("b", ("writer-02", "writer-03"), "spec", ("base-01",)),
            ("c", ("writer-08",), "spec", ("base-07", "base-16", "base-17")),
            ("d", ("writer-17",), "spec", ("writer-10",)),
            ("e", ("writer-10",), "kernel", ("writer-17",)),
        )
    ),
    Difference(
        "measured-04a",
        "The kernel takes column mapping for supported when readers are told of it; that writers "
        "are not told of it goes unseen.",
        ("base-02",),
        "spec",
        lambda draft: not supports(draft, "columnMapping"),
    ),
    Difference(
        "measured-04b",
        "The kernel takes features of readers and writers for supported when readers are told of "
        "them; that only writers are told of them goes unseen.",
        ("base-05", "base-15"),
        "spec",
        lambda draft: writers_only(
            draft, "deletionVectors", "typeWidening", "typeWidening-preview"
        ),
    ),
    Difference(
        "measured-05",
        "The kernel compares the mode of column mapping in any case; the protocol writes it small.",
        ("base-03", "writer-05"),
        "spec",
        mode_in_other_case,
    ),
    Difference(
        "measured-06",
        "The kernel refuses a change when deletion vectors were supported before it, even if they "
        "no longer are.",
        ("base-05",),
        "kernel",
        lambda draft: supports(draft.before, "deletionVectors"),
    ),
    Difference(
        "gap-11",
        "The kernel refuses deletion vectors when they are merely supported; the protocol asks "
        "only that they are off.",
        ("base-05",),
        "kernel",
        lambda draft: (
            supports(draft, "deletionVectors") and not is_on(draft, "delta.enableDeletionVectors")
        ),
    ),
    Difference(
        "measured-07",
        "Text with a collation is a string to the kernel; Iceberg has no such type.",
        ("base-07", "writer-08"),
        "spec",
        lambda draft: any(marked(draft, "__COLLATIONS")),
    ),
    Difference(
        "measured-08",
        "The kernel looks for partition columns by their names in lower case, exactly, so it does "
        "not find one with a capital letter.",
        ("base-08",),
        "kernel",
        partitions_by_a_capital,
    ),
    Difference(
        "measured-09",
        "The kernel has an empty check for other partition columns.",
        ("base-09",),
        "spec",
        lambda draft: draft.before is not None and draft.before.partitions != draft.partitions,
    ),
    Difference(
        "measured-10",
        "The kernel does not check ids: missing ones it fills in, clashes it does not see.",
        ("base-13",),
        "spec",
        has_incomplete_ids,
    ),
    Difference(
        "measured-13a",
        "A field with neither id nor physical name is a new one to the kernel: it gets both.",
        ("writer-06",),
        "spec",
        lambda draft: has_field_with(draft, set(), {ID, PHYSICAL}),
    ),
    Difference(
        "measured-13b",
        "An id without a physical name is refused by the kernel, whatever features the table has.",
        ("base-13",),
        "kernel",
        lambda draft: has_field_with(draft, {ID}, {PHYSICAL}),
    ),
    Difference(
        "gap-03",
        "The kernel guards map keys for the first writer feature only.",
        ("writer-09",),
        "spec",
        lambda draft: draft.version == 3 and draft.before is not None,
    ),
    Difference(
        "measured-14a",
        "A struct behind an array in a map key escapes the kernel.",
        ("writer-09",),
        "spec",
        lambda draft: (
            draft.version == 2 and '"keyType": {"type": "array"' in json.dumps(draft.schema)
        ),
    ),
    Difference(
        "measured-14b",
        "The kernel takes another comment inside a map key for another key.",
        ("writer-09",),
        "kernel",
        only_comments_change,
    ),
    Difference(
        "gap-02",
        "The kernel allows three features more than the feature lists.",
        ("writer-10",),
        "spec",
        lambda draft: supports(
            draft, "checkpointProtection", "typeWidening-preview", "catalogManaged"
        ),
    ),
    Difference(
        "measured-15",
        "The kernel knows the names of features in any case; the protocol's are exact.",
        ("writer-10",),
        "spec",
        lambda draft: any(name == name.lower() for name in draft.writer_features or ()),
    ),
    Difference(
        "gap-05a",
        "The kernel does not look below arrays and maps for invariants, identity columns and "
        "generation expressions.",
        ("writer-11",),
        "spec",
        only_in_collections("delta.invariants"),
    ),
    Difference(
        "gap-05b",
        "The kernel does not look below arrays and maps for invariants, identity columns and "
        "generation expressions.",
        ("writer-15",),
        "spec",
        only_in_collections("delta.generationExpression"),
    ),
    Difference(
        "measured-16",
        "The kernel does not see an identity column below arrays and maps, nor one of which only "
        "the high water mark is left.",
        ("writer-14",),
        "spec",
        identity_goes_unseen,
    ),
    Difference(
        "gap-07",
        "The kernel makes and breaks these features only with a new table; here a table may be "
        "brought to keep them.",
        ("base-19",),
        "kernel",
        is_enabled_now(COMPATS["icebergCompatV3"].key),
    ),
    Difference(
        "measured-27",
        "The kernel takes any text for a boolean, NaN and Infinity for numbers, moments without "
        "quotes, and for text whatever begins and ends with a quote.",
        ("base-21",),
        "spec",
        default_only_java_takes,
    ),
    Difference(
        "measured-28",
        "The kernel reads defaults with Java's parsers: no NULL, no blanks, no suffix of a number, "
        "no typed literal, moments only as ISO 8601 has them and with a zone or without one as the "
        "type asks; and none for byte.",
        ("base-21",),
        "kernel",
        default_only_sql_takes,
    ),
    Difference(
        "gap-08",
        "The kernel does not know what Spark makes of a column: padding of CHAR, and a value for "
        "rows that are older than the column.",
        ("base-27", "base-28"),
        "spec",
        lambda draft: any(marked(draft, "__CHAR_VARCHAR_TYPE_STRING", "EXISTS_DEFAULT")),
    ),
    Difference(
        "gap-09",
        "The kernel looks for the feature of column defaults, not at the columns.",
        ("writer-17",),
        "spec",
        lambda draft: any(marked(draft, "CURRENT_DEFAULT")),
    ),
    Difference(
        "measured-19",
        "The kernel lets nothing but REPLACE make or break the first writer feature on a table.",
        ("writer-19",),
        "kernel",
        writer_feature_is_toggled,
    ),
)
