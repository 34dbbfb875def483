"""No rule can be broken without a case noticing it."""

from __future__ import annotations

from tests.unit.compat.rule_mutants import mutants, survivors
from twinlake.compat import RULES


def test_every_rule_is_broken_and_every_mutant_is_caught() -> None:
    alive, total = survivors()
    assert not alive
    assert total > 3 * len(RULES)
    assert {mutant.rule.id for mutant in mutants()} == {rule.id for rule in RULES}
