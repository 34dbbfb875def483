"""The rules about Iceberg against the Java kernel, which has the only other implementation of them.

Profile ``kernel`` gives the kernel's verdict on every pair of metadata and protocol. Profile
``spec`` differs from it only where ``tests.support.kernel.differences`` has an entry.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.support.kernel.columns import DEFAULT_TEXTS
from tests.support.kernel.complaints import is_about_compat
from tests.support.kernel.differences import DIFFERENCES, differences_between
from tests.support.kernel.drafts import PRIMITIVES, compliant, new_field
from tests.support.kernel.mutations import mutations_for
from tests.support.kernel.pairs import (
    FEATURES,
    Outcome,
    ask,
    directed_pairs,
    judged_rules,
    pair_from,
    pair_of,
)
from tests.support.kernel.validators import KERNEL_VERSION, JavaKernel
from tests.support.scale import is_full_scale, scale
from twinlake.compat import COMPATS, Profile, Scope, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from tests.support.kernel.mutations import Mutation

pytestmark = pytest.mark.spark

_LEAST = 20
"""How often every rule is seen broken, and how often kept."""


@pytest.fixture(scope="module")
def java(delta_spark: SparkSession) -> JavaKernel:
    return JavaKernel(delta_spark)


@pytest.fixture(scope="module")
def outcomes(java: JavaKernel) -> list[Outcome]:
    each = scale(_LEAST, 5 * _LEAST)
    return [ask(java, pair) for feature in FEATURES for pair in directed_pairs(feature, each)]


def _listed(wrong: Iterable[object]) -> str:
    lines = [str(item) for item in wrong]
    return "\n".join([f"{len(lines)} pairs:", *lines[:40]])


def _show(lines: Iterable[str]) -> None:
    """Print; ``pytest -rP`` shows it for tests that pass."""
    sys.stdout.write("\n".join([*lines, ""]))


def _disagreement(outcome: Outcome) -> str | None:
    """What profile ``kernel`` gets wrong about the pair, if anything."""
    if outcome.java.ok != (not outcome.pair.kernel):
        return f"another verdict: {outcome}"
    if not outcome.java.ok and not outcome.blamed:
        return f"words that nobody knows: {outcome}"
    if not outcome.java.ok and outcome.blamed.isdisjoint(outcome.pair.kernel):
        return f"another reason ({', '.join(sorted(outcome.blamed))}): {outcome}"
    return None


def test_it_is_the_kernel_that_was_measured(java: JavaKernel) -> None:
    assert java.version() == KERNEL_VERSION


def test_profile_kernel_gives_the_verdict_of_the_kernel(outcomes: list[Outcome]) -> None:
    wrong = [told for outcome in outcomes if (told := _disagreement(outcome))]
    assert not wrong, _listed(wrong)


def test_profile_spec_differs_only_where_it_is_known_to(outcomes: list[Outcome]) -> None:
    unknown = [
        f"{rule}: {outcome}"
        for outcome in outcomes
        for rule, known in differences_between(
            outcome.pair.draft, outcome.pair.spec, outcome.pair.kernel
        )
        if known is None
    ]
    assert not unknown, _listed(unknown)


def test_every_known_difference_occurs(outcomes: list[Outcome]) -> None:
    seen = Counter(
        known.id
        for outcome in outcomes
        for _, known in differences_between(
            outcome.pair.draft, outcome.pair.spec, outcome.pair.kernel
        )
        if known is not None
    )
    _show(f"{each.id:14} {seen[each.id]:5}  {each.says}" for each in DIFFERENCES)
    assert all(seen[difference.id] for difference in DIFFERENCES)


def test_every_rule_is_seen_kept_and_broken(outcomes: list[Outcome]) -> None:
    table = {rule.id: rule for feature in FEATURES for rule in judged_rules(feature)}
    counts: Counter[tuple[str, str]] = Counter()
    for outcome in outcomes:
        pair, rule = outcome.pair, outcome.pair.aim
        counts[rule, "spec broken" if rule in pair.spec else "spec kept"] += 1
        counts[rule, "kernel broken" if rule in pair.kernel else "kernel kept"] += 1
        counts[rule, "Java passes" if outcome.java.ok else "Java refuses"] += 1
    columns = (
        "spec kept", "spec broken", "kernel kept", "kernel broken", "Java passes", "Java refuses",
    )  # fmt: skip
    _show([f"{len(outcomes)} pairs", " ".join(["rule     ", *(f"{c:>13}" for c in columns)])])
    _show(
        " ".join([f"{name:9}", *(f"{counts[name, column]:13}" for column in columns)])
        for name in sorted(table)
    )
    short = []
    for name, row in table.items():
        wanted = []
        if row.check_for(Profile.SPEC) is not None:
            wanted += ["spec kept", "spec broken"]
        if row.check_for(Profile.KERNEL) is not None:
            wanted += ["kernel kept", "kernel broken", "Java passes", "Java refuses"]
        short += [f"{name}: {column}" for column in wanted if counts[name, column] < _LEAST]
    assert not short, short


def test_what_the_kernel_cannot_be_asked() -> None:
    """Rules about files, and those the kernel has no check for, by name."""
    rules = {rule.id: rule for feature in FEATURES for rule in rules_of(COMPATS[feature])}
    files = {name for name, rule in rules.items() if rule.scope in (Scope.COMMIT, Scope.FOOTER)}
    unasked = {name for name, rule in rules.items() if rule.check_for(Profile.KERNEL) is None}
    assert files == {
        *("ICV2-06", "ICV2-10", "ICV2-11", "ICV2-12", "ICV2-14", "ICV2-24", "ICV2-25"),
        *("ICV3-10", "ICV3-11", "ICV3-12", "ICV3-14", "ICV3-22", "ICV3-24", "ICV3-25"),
        *("ICV2-26", "ICV2-29", "ICV3-26", "ICV3-29"),
    }
    # Its check of partition columns is empty, and its check of map keys knows one version.
    no_check = {"ICV2-09", "ICV3-09", "IWC3-09"}
    # What Spark makes of columns is none of its business.
    no_check |= {"ICV2-27", "ICV2-28", "ICV3-27", "ICV3-28"}
    base_first = {f"IWC{n}-{number}" for n in (1, 3) for number in ("01", "02", "08", "17")}
    assert unasked - files == no_check | base_first


def test_defaults_of_every_type_and_text(java: JavaKernel) -> None:
    """Literals are where the two readings differ most: the kernel asks Java's parsers."""
    feature, wrong, verdicts = "icebergCompatV3", [], Counter[bool]()
    for kind, text in itertools.product((*PRIMITIVES, "byte", "short"), DEFAULT_TEXTS):
        draft = compliant(random.Random(0), feature)
        draft.add_feature("allowColumnDefaults")
        draft.add_column(new_field("dflt", kind, CURRENT_DEFAULT=text))
        outcome = ask(java, pair_from(draft, "ICV3-21", f"{kind} DEFAULT {text}"))
        verdicts[outcome.java.ok] += 1
        wrong += [told] if (told := _disagreement(outcome)) else []
        wrong += [
            f"{rule}: {outcome}"
            for rule, known in differences_between(draft, outcome.pair.spec, outcome.pair.kernel)
            if known is None
        ]
    assert not wrong, _listed(wrong)
    assert min(verdicts[True], verdicts[False]) > _LEAST, verdicts


@pytest.mark.parametrize("feature", FEATURES)
def test_several_things_wrong_at_once(java: JavaKernel, feature: str) -> None:
    """The kernel stops at the first; whichever it is, it is among those we report."""
    tally: Counter[int] = Counter()
    fitting = mutations_for(feature)
    states = st.lists(st.sampled_from([m for m in fitting if not m.is_change]), max_size=3)
    changes = st.lists(
        st.sampled_from([m for m in fitting if m.is_change and not m.leaves]), max_size=1
    )

    @settings(
        max_examples=scale(60, 2000),
        derandomize=not is_full_scale(),
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(states=states, changes=changes, seed=st.integers(0, 10**6))
    def run(states: list[Mutation], changes: list[Mutation], seed: int) -> None:
        pair = pair_of(feature, [*states, *changes], f"{feature} {seed}")
        assume(pair.draft.before is None or pair.draft.before.is_mapped)
        outcome = ask(java, pair)
        assume(is_about_compat(outcome.java))
        wrong = _disagreement(outcome)
        assert wrong is None, wrong
        for rule, known in differences_between(pair.draft, pair.spec, pair.kernel):
            assert known is not None, f"{rule}: {outcome}"
        tally[min(len(pair.kernel), 3)] += 1

    run()
    assert tally[0] and tally[1] and tally[2], tally
