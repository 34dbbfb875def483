"""Every configuration of the catalogue shows what it says: safe, caught, harmless or known."""

from __future__ import annotations

import pytest

from benchmarks.cases.tlc import CONFIGURATIONS
from tests.support.scale import is_full_scale, scale
from twinlake.verify import Result, check
from twinlake.verify.checker import Model, ModelError
from twinlake.verify.models.catalogue import (
    CATALOGUE,
    CONTROL,
    FINDING,
    KINDS,
    MUTANT,
    SAFE,
    ModelCase,
    ModelSuite,
    case,
    counterpart_of,
    purpose_of,
)

ROWS = [
    pytest.param(
        extension,
        one,
        id=f"{extension.format} {extension.name}: {one.name}",
        marks=pytest.mark.skipif(
            one.large and not is_full_scale(), reason="large: run with TWINLAKE_SCALE=full"
        ),
    )
    for extension in CATALOGUE
    for one in extension.cases
]
EXTENSIONS = [
    pytest.param(extension, id=f"{extension.format} {extension.name}") for extension in CATALOGUE
]


RESULTS: dict[tuple[str, str, str], Result] = {}


def result_of(extension: ModelSuite, name: str) -> Result:
    """What a case comes out as; every case is checked once only."""
    key = (extension.format, extension.name, name)
    if key not in RESULTS:
        RESULTS[key] = extension.run(extension.case(name))
    return RESULTS[key]


@pytest.mark.parametrize(("extension", "one"), ROWS)
def test_case_comes_out_as_the_catalogue_says(extension: ModelSuite, one: ModelCase) -> None:
    assert extension.differences(one, result_of(extension, one.name)) == ()


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_cases_say_what_their_kind_says(extension: ModelSuite) -> None:
    assert extension.safe
    for one in extension.cases:
        assert one.kind in KINDS
        assert (one.violates is not None) == (one.kind in (MUTANT, FINDING))
        assert one.violates is None or one.steps is not None
        assert one.kind != MUTANT or "mutant" in one.parameters


def mutants(model: type[Model]) -> tuple[str | None, ...]:
    return getattr(model, "mutants", ())


#: Every model with the extensions that configure it, or a model it takes its mutants from.
MODELS = {
    model: [
        one
        for one in CATALOGUE
        if one.model is model
        or (issubclass(model, one.model) and mutants(model) == mutants(one.model))
    ]
    for model in dict.fromkeys(one.model for one in CATALOGUE)
}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_mutant_of_a_model_is_in_a_case(model: type[Model]) -> None:
    cases = [one for extension in MODELS[model] for one in extension.cases]
    assert any(one.kind in (MUTANT, FINDING) for one in cases)
    used = {one.parameters.get("mutant") for one in cases if one.kind in (MUTANT, CONTROL)}
    assert used - {None} == set(mutants(model)) - {None}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_action_is_reached_in_a_safe_case_or_only_by_a_mistake(model: type[Model]) -> None:
    extensions = [one for one in MODELS[model] if one.model is model]
    never = {one.name for one in extensions[0].build(extensions[0].safe[0]).actions()}
    for extension in extensions:
        for one in extension.safe:
            never &= one.unreached
    for extension in extensions:
        for one in extension.mutants:
            if not never:
                return
            # Some steps exist only where something is done wrongly: then a mutant takes them.
            actions = extension.run(one, stop_at_first=False).actions
            never -= {name for name, count in actions.items() if count}
    assert never == set()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_unknown_mutant_is_refused(model: type[Model]) -> None:
    if hasattr(model, "mutants"):
        with pytest.raises(ModelError, match="is no mutant"):
            model(mutant="typo")  # type: ignore[call-arg]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_reductions_keep_the_verdicts_of_the_smallest_safe_case(extension: ModelSuite) -> None:
    if not extension.options:
        return
    sizes = {
        one.name: result_of(extension, one.name).states for one in extension.safe if not one.large
    }
    smallest = extension.case(min(sizes, key=lambda name: sizes[name]))
    reduced = result_of(extension, smallest.name)
    full = check(
        extension.build(smallest), without=extension.without, max_states=scale(2_000, 500_000)
    )
    assert full.violations == ()
    if full.complete:
        assert reduced.verdicts == full.verdicts
        assert reduced.unreached == full.unreached
        assert reduced.states <= full.states


CASES = [(suite, one) for suite in CATALOGUE for one in suite.cases]
#: Rows of the benchmarks that a configuration may be there for.
BENCHMARKS = {
    "verify-seed: with the fix",
    "verify-large: 5,240,909 states",
    *(f"verify-tlc: {name}" for name in CONFIGURATIONS),
}


def test_every_configuration_says_what_it_is_there_for() -> None:
    assert [f"{suite.name}: {one.name}" for suite, one in CASES if not purpose(suite, one)] == []


def test_every_named_counterpart_and_benchmark_row_is_there() -> None:
    for suite, one in CASES:
        if one.counterpart:
            assert counterpart_of(CATALOGUE, suite, one), f"{suite.name}: {one.name}"
        if one.benchmark:
            assert one.benchmark in BENCHMARKS
            assert not one.counterpart


def test_benchmark_rows_measure_the_configurations_that_name_them() -> None:
    measured = {one.benchmark: one for _, one in CASES if one.benchmark}
    assert set(measured) == BENCHMARKS
    for name, parameters in CONFIGURATIONS.items():
        named = measured[f"verify-tlc: {name}"].parameters
        assert {**named, "col1_values": list(named.get("col1_values", ()))} == {
            "col1_values": [],
            **parameters,
        }


@pytest.mark.parametrize("suite", EXTENSIONS)
def test_every_model_has_a_finding_or_a_mutant_beside_it(suite: ModelSuite) -> None:
    beside = [counterpart_of(CATALOGUE, suite, one) for one in suite.cases]
    assert any(one.kind in (MUTANT, FINDING) for one in suite.cases) or all(beside)


def test_configuration_without_a_place_in_the_catalogue_has_no_purpose() -> None:
    suite = CATALOGUE[0]
    assert purpose(suite, case(SAFE, "new")) == ""
    assert purpose(suite, case(SAFE, "new", counterpart="no such case")) == ""
    # What is safe itself is nothing to be a counterpart of.
    assert purpose(suite, case(SAFE, "new", counterpart="with the fix")) == ""
    assert purpose(suite, case(CONTROL, "new", mutant="no-such-mutant")) == ""


def purpose(suite: ModelSuite, one: ModelCase) -> str:
    return purpose_of(CATALOGUE, suite, one)


def test_catalogue_names_are_unique() -> None:
    names = [(one.format, one.name) for one in CATALOGUE]
    assert len(names) == len(set(names))


def test_differences_are_told() -> None:
    log = next(one for one in CATALOGUE if (one.format, one.name) == ("delta", "store"))
    wrong = case(SAFE, "wrong", steps=3, states=1, unreached=("Put",))
    told = log.differences(wrong, log.run(wrong))
    assert told == (
        "unreached actions: expected ['Put'], found ['Finish']",
        "steps of the trace: expected 3, found None",
        "states: expected 1, found 259",
    )
    caught = log.case("give up on unknown")
    safe = log.safe[0]
    assert log.differences(safe, log.run(caught))[0] == (
        "violated property: expected None, found ReportsAreTrue"
    )
