"""``twinlake verify iceberg`` and ``delta``: what is asked for, what comes of it, exit statuses."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import click
import pytest

from tests.unit.cli.running import check_golden, children, document, grid, lines, run
from twinlake.cli.commands.verify import verify
from twinlake.cli.verify.configs import of_case, rows
from twinlake.cli.verify.models import build, extensions, slug
from twinlake.cli.verify.options import ModelCommand
from twinlake.verify.checker import check

FAMILIES = ("iceberg", "delta")


def told(*words: object, status: int) -> dict[str, Any]:
    """The JSON document of a command with a known exit status."""
    result = run(*words, "--json")
    assert result.exit_code == status, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


# --- the source document ----------------------------------------------------------------------


def test_seed_is_one_object_with_the_violation_and_its_trace() -> None:
    found = told("verify", "iceberg", "--config", "seed", status=1)
    assert (found["ok"], found["violated"], found["depth"]) == (False, "ConsistentRead", 15)
    assert found["states"] > 2_000
    assert len(found["trace"]) == 14
    assert set(found["trace"][0]) == {
        "number", "actor", "action", "arguments", "checks", "state", "changes", "actor_changes",
        "move",
    }  # fmt: skip
    (violation,) = found["violations"]
    assert violation["fields"] == {
        "id": "jack",
        "version": 3,
        "files": ["data-2 position 0"],
        "column": "col2",
        "expected": None,
        "actual": "blue",
    }
    assert told("verify", "iceberg", status=1)["trace"] == found["trace"]


@pytest.mark.parametrize("words", [["--fix"], ["--fix", "A"]])
def test_seed_with_the_fix_is_proved_with_2741_states(words: list[str]) -> None:
    found = document("verify", "iceberg", "--config", "seed", *words)
    assert (found["ok"], found["violated"], found["states"]) == (True, None, 2741)
    assert found["trace"] == []
    assert set(found["verdicts"].values()) == {"holds"}
    assert found["unreached"] == ["StartCompactionOperation"]


def test_trace_of_the_seed_reads_like_this() -> None:
    text = run("verify", "iceberg").stdout
    check_golden("verify_seed", text[text.index("VIOLATED") :])


def test_trace_of_what_each_actor_holds() -> None:
    wide = lines_of_violation("verify", "iceberg", "--verbose")
    header = next(line for line in wide if line.lstrip().startswith("step"))
    assert header.split()[-3:] == ["goes", "to", "holds"]
    assert any(
        "names.files +delete" in line and "delete_files +delete-1[(data-1, 0)]" in line
        for line in wide
    )


def lines_of_violation(*words: object) -> list[str]:
    result = run(*words)
    assert result.exit_code == 1, result.stderr
    return result.stdout.splitlines()


# --- schedules --------------------------------------------------------------------------------


def test_schedule_of_the_document_ends_in_the_violation() -> None:
    found = told("verify", "iceberg", "--schedule", "document", status=1)
    assert found["refused"] is None
    assert len(found["trace"]) == 14
    (violation,) = found["violations"]
    assert (violation["step"], violation["property"]) == (14, "ConsistentRead")


def test_schedule_of_the_document_is_refused_with_the_fix_and_ends_with_the_abort() -> None:
    found = document("verify", "iceberg", "--schedule", "document", "--fix")
    assert "step 13: writer-1 cannot take WriteMetadataFiles" in found["refused"]
    last = found["trace"][-1]
    assert (last["number"], last["action"]) == (13, "WriteMetadataFiles (abort)")
    assert [one["passed"] for one in last["checks"]] == [True, False]


def test_serial_schedule_is_fine() -> None:
    found = document("verify", "iceberg", "--schedule", "serial")
    assert (found["ok"], found["refused"], len(found["trace"])) == (True, None, 14)


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_of_every_model_has_an_option(family: str) -> None:
    made = children(verify)[family]
    assert isinstance(made, ModelCommand)
    options = {
        name
        for option in made.get_params(click.Context(made))
        if isinstance(option, click.Option)
        for name in option.opts
    }
    for extension in extensions(family):
        wanted = {
            f"--{one.name.replace('_', '-')}"
            for one in dataclasses.fields(extension.model)  # type: ignore[arg-type]
        }
        assert wanted <= options


def test_parameters_reach_the_model() -> None:
    found = document(
        "verify", "iceberg", "--isolation", "serializable", "--col1-values", "jack, sarah",
        "--max-write-ops", 2, "--no-allow-updates", "--identity", "canonical", "--history", "row",
        "--fix", "none",
    )  # fmt: skip
    given = found["parameters"]
    assert given["isolation"] == "SERIALIZABLE"
    assert given["col1_values"] == ["jack", "sarah"]
    assert (given["max_write_ops"], given["allow_updates"], given["fix"]) == (2, False, None)
    assert (given["identity"], given["history"]) == ("canonical", "row")


def test_a_named_configuration_can_be_changed() -> None:
    found = told("verify", "iceberg", "--config", "seed-reduced-fixed", "--fix", "none", status=1)
    assert (found["states"], found["options"]["reduction"]) == (106, True)
    plain = told("verify", "iceberg", "--config", "seed-reduced", "--no-reduction", status=1)
    assert plain["options"]["reduction"] is False


def test_search_can_be_steered() -> None:
    going = told("verify", "iceberg", "--keep-going", status=1)
    assert (going["states"], going["violating_states"]) == (2861, 12)
    short = told("verify", "iceberg", "--max-states", 100, status=3)
    assert (short["ok"], short["complete"], short["violated"]) == (False, False, None)
    columns = document("verify", "iceberg", "--fix", "--engine", "columns")
    assert columns["states"] == 2741
    assert columns["options"]["engine"] == "columns"
    blind = document("verify", "iceberg", "--without", "ConsistentRead")
    assert "ConsistentRead" not in blind["verdicts"]


def test_random_walks_prove_nothing_and_repeat() -> None:
    words = ("verify", "delta", "--walk", "--seed", 7, "--walks", 5)
    found = told(*words, status=3)
    assert (found["ok"], found["complete"]) == (False, False)
    again = told(*words, status=3)
    assert (found["states"], found["generated"]) == (again["states"], again["generated"])
    assert "not proved" in run(*words).stdout


def test_a_mutant_comes_with_its_configuration() -> None:
    found = told("verify", "iceberg", "--extension", "partitions", "--mutant",
                 "exclusive-projection", status=1)  # fmt: skip
    assert (found["mutant"], found["parameters"]["fix"]) == ("exclusive-projection", "A")
    assert (found["violated"], len(found["trace"])) == ("ConsistentRead", 14)
    # The extension need not be named, and a mutant goes by the name of its case, too.
    assert (
        told("verify", "delta", "--mutant", "give up on unknown", status=1)["mutant"] == "give-up"
    )


# --- what cannot be run -----------------------------------------------------------------------

WRONG: dict[str, tuple[list[str], str]] = {
    "parameter value": (["iceberg", "--writers", "0"], "writers must be at least 1"),
    "parameter of another model": (["iceberg", "--evolve-to", "2"], "add --extension partitions"),
    "configuration": (["delta", "--config", "seed"], "no configuration 'seed'"),
    "extension": (["delta", "--extension", "seed"], "no extension 'seed'"),
    "mutant": (["delta", "--mutant", "seed"], "no mutant 'seed'"),
    "schedule": (["delta", "--schedule", "document"], "no schedule 'document'"),
    "property": (["delta", "--without", "Luck"], "'Luck' is no property"),
    "two ways": (["delta", "--walk", "--reduction"], "--reduction cannot go with --walk"),
    "config and mutant": (["delta", "--config", "p1", "--mutant", "give-up"], "at once"),
    "page": (["delta", "--max-states", "1", "--html", "no/such/page.html"], "cannot be written"),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_that_cannot_be_used_exit_with_2(name: str) -> None:
    words, text = WRONG[name]
    result = run("verify", *words)
    assert result.exit_code == 2
    assert result.stderr.startswith("TWIN-INVALID-ARGUMENT  ")
    assert len(result.stderr.splitlines()) == 3
    assert text in result.stderr
    error = json.loads(run("verify", *words, "--json").stdout)["error"]
    assert error["code"] == "TWIN-INVALID-ARGUMENT"


@pytest.mark.parametrize(
    "words",
    [["iceberg", "--fix", "Z"], ["iceberg", "--writers", "two"], ["iceberg", "--engine", "quantum"],
     ["iceberg", "--col2-values", "red,"], ["nonsense"]],
)  # fmt: skip
def test_wrong_usage_exits_with_2(words: list[str]) -> None:
    result = run("verify", *words)
    assert result.exit_code == 2
    assert "Error: " in result.stderr


# --- listings ---------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_listing_names_every_case_of_the_catalogue(family: str) -> None:
    found = document("verify", family, "--list")
    listed = {(one["name"], case["name"]) for one in found["extensions"] for case in one["cases"]}
    assert listed == {
        (one.name, slug(case.name)) for one in extensions(family) for case in one.cases
    }
    text = lines("verify", family, "--list")
    assert [row[0] for row in grid(text, "config")] == [one.name for one in rows(family)]


@pytest.mark.parametrize("family", FAMILIES)
def test_names_of_cases_are_unique_on_the_command_line(family: str) -> None:
    for extension in extensions(family):
        names = [of_case(extension, case).name for case in extension.cases]
        assert len(set(names)) == len(names)


SMALL = 10_000
ROWS = [
    pytest.param(family, one, id=one.name)
    for family in FAMILIES
    for one in rows(family)
    if (one.states or 0) < SMALL
]


@pytest.mark.parametrize(("family", "config"), ROWS)
def test_named_configuration_shows_what_it_says(family: str, config: Any) -> None:
    result = check(build(config.extension, config.parameters), **config.options)
    assert result.violated == config.violates
    if config.states is not None:
        assert result.states == config.states
    if config.steps is not None:
        assert result.trace is not None
        assert len(result.trace) == config.steps
