"""The pairs for the Java kernel and for us, and what each says of them.

Pairs are drawn from seeds, rule by rule, until every rule has been seen with every verdict as often
as asked. Our own verdicts choose which draws are kept, the kernel's never do.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import tests.support.kernel.changes
import tests.support.kernel.columns  # noqa: F401 - registers its mutations, as does the other
from tests.support.kernel.complaints import blamed_rules
from tests.support.kernel.drafts import compliant
from tests.support.kernel.mutations import mutations_for, rule_id
from twinlake.compat import COMPATS, Profile, Scope, evaluate_rules, rules_of
from twinlake.compat.rule import Case

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.support.kernel.drafts import Draft
    from tests.support.kernel.mutations import Mutation
    from tests.support.kernel.validators import JavaKernel, KernelVerdict
    from twinlake.compat import Rule, Subject

__all__ = [
    "FEATURES",
    "SCOPES",
    "Outcome",
    "Pair",
    "ask",
    "directed_pairs",
    "judged_rules",
    "pair_from",
    "pair_of",
]

FEATURES: Final = (
    "icebergCompatV2",
    "icebergCompatV3",
    "icebergWriterCompatV1",
    "icebergWriterCompatV3",
)
SCOPES: Final = frozenset({Scope.METADATA, Scope.CHANGE})
_DRAWS: Final = 400
_AT_LEAST: Final = 3


@dataclass(frozen=True, slots=True)
class Pair:
    """A table, what was done to it, and what our two profiles say."""

    feature: str
    aim: str
    """The id of the rule it was made for."""
    done: tuple[str, ...]
    draft: Draft
    spec: frozenset[str]
    """The rules that are broken under profile ``spec``."""
    kernel: frozenset[str]
    """The rules that are broken under profile ``kernel``."""

    def broken(self, profile: Profile) -> frozenset[str]:
        """The rules that are broken under one of the two profiles."""
        return self.spec if profile is Profile.SPEC else self.kernel

    def __str__(self) -> str:
        return f"{self.feature} {', '.join(self.done)}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A pair and what the Java kernel says of it."""

    pair: Pair
    java: KernelVerdict

    @property
    def blamed(self) -> frozenset[str]:
        """The rules the kernel's complaint can be about."""
        return blamed_rules(self.pair.feature, self.java)

    def __str__(self) -> str:
        told = f"{self.java.error}: {self.java.message[:160]}" if self.java.error else "fine"
        ours = {"kernel": sorted(self.pair.kernel), "spec": sorted(self.pair.spec)}
        return f"{self.pair}: Java says {told}; ours {ours}"


def judged_rules(feature: str) -> tuple[Rule, ...]:
    """The rules of the feature that metadata and protocol alone can break."""
    return tuple(rule for rule in rules_of(COMPATS[feature]) if rule.scope in SCOPES)


def _broken(feature: str, subject: Subject, profile: Profile) -> frozenset[str]:
    """The rules that find something wrong; a report tells of the same thing under one of them."""
    compat = COMPATS[feature]
    report = evaluate_rules(subject, compat, profile=profile, scopes=SCOPES)
    broken = frozenset(
        rule.id
        for rule in rules_of(compat)
        if rule.id in report.rules and any(rule.violations(Case(subject, rule.compat, profile)))
    )
    told = {violation.rule for violation in report.violations}
    assert told <= broken, (told, broken)
    assert report.ok == (not broken), (report, broken)
    return broken


def pair_of(feature: str, mutations: Sequence[Mutation], seed: str) -> Pair:
    """The compliant table of the seed with the mutations applied in turn."""
    rng = random.Random(seed)
    draft = compliant(rng, feature)
    for mutation in mutations:
        mutation.apply(rng, draft)
    aim = rule_id(mutations[0].aim, feature) if mutations else ""
    return pair_from(draft, aim, *(repr(mutation) for mutation in mutations))


def pair_from(draft: Draft, aim: str, *done: str) -> Pair:
    """The pair of a draft that was made for the rule ``aim``."""
    feature, subject = draft.feature, draft.subject()
    return Pair(
        feature=feature,
        aim=aim,
        done=done,
        draft=draft,
        spec=_broken(feature, subject, Profile.SPEC),
        kernel=_broken(feature, subject, Profile.KERNEL),
    )


def directed_pairs(feature: str, each: int) -> Iterator[Pair]:
    """Pairs for every rule of the feature, ``each`` of every verdict that a profile can give."""
    fitting = mutations_for(feature)
    rules = {rule.id: rule for rule in judged_rules(feature)}
    for aim in dict.fromkeys(mutation.aim for mutation in fitting):
        rule = rules[rule_id(aim, feature)]
        ways = [mutation for mutation in fitting if mutation.aim == aim]
        asked = [p for p in (Profile.SPEC, Profile.KERNEL) if rule.check_for(p) is not None]
        open_counts = Counter({(p, broken): each for p in asked for broken in (True, False)})
        for number, way in zip(range(_DRAWS), itertools.cycle(ways), strict=False):
            pair = pair_of(feature, (way,), f"{feature} {aim} {number}")
            verdicts = [(p, rule.id in pair.broken(p)) for p in asked]
            # Every way is taken a few times, however often its verdict was seen already.
            if number < _AT_LEAST * len(ways) or any(open_counts[v] > 0 for v in verdicts):
                open_counts.subtract(verdicts)
                yield pair
            elif max(open_counts.values()) <= 0:
                break


def ask(java: JavaKernel, pair: Pair) -> Outcome:
    """Put the pair to the Java kernel."""
    return Outcome(pair, java.verdict(pair.feature, pair.draft.subject()))
