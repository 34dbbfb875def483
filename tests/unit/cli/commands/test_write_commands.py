"""The commands that change a table: alter and restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.cli.running import document, grid, lines, run
from twinlake import Table
from twinlake.cli.commands.alter import STEPS

if TYPE_CHECKING:
    from pathlib import Path


def test_alter_sets_properties_in_one_commit_and_masks_secrets(empty: Path) -> None:
    found = document("alter", empty, "--set", "a=1", "--set", "my.password=x=y")
    assert set(found) == {
        "location", "from", "version", "steps", "protocol", "properties", "warnings",
    }  # fmt: skip
    assert found["steps"] == [{"step": "--set a=1 --set my.password=********", "versions": [1]}]
    assert Table.open(empty).properties == {"a": "1", "my.password": "x=y"}


@pytest.mark.parametrize(
    ("policy", "versions"), [("bundled", (1, 4)), ("minimal", (1, 7))], ids=["bundled", "minimal"]
)
def test_alter_grows_the_protocol_by_policy(
    empty: Path, policy: str, versions: tuple[int, int]
) -> None:
    feed = "delta.enableChangeDataFeed=true"
    found = document("alter", empty, "--policy", policy, "--set", feed)["protocol"]
    assert (found["minReaderVersion"], found["minWriterVersion"]) == versions


def test_alter_makes_its_changes_in_the_documented_order(empty: Path) -> None:
    # Given in the wrong order on purpose: renaming needs the mapping that --set turns on.
    text = lines(
        "alter", empty,
        "--comment", "key=the key",
        "--add-column", "price DECIMAL(10, 2)",
        "--rename", "id=key",
        "--set", "delta.columnMapping.mode=name",
    )  # fmt: skip
    assert grid(text, "change") == [
        ["--set delta.columnMapping.mode=name", "1"],
        ["--rename id=key", "2"],
        ["--add-column price DECIMAL(10, 2)", "3"],
        ["--comment key=the key", "4"],
    ]
    table = Table.open(empty)
    assert [(f.name, f.metadata.get("comment")) for f in table.schema] == [
        ("key", "the key"),
        ("price", None),
    ]


def test_alter_each_kind_of_change(empty: Path) -> None:
    wide = ["--set", "delta.enableTypeWidening=true", "--type", "id=BIGINT"]
    assert document("alter", empty, *wide)["version"] == 2
    assert document("alter", empty, "--constraint", "positive=id > 0")["version"] == 3
    assert (
        document("alter", empty, "--drop-constraint", "positive", "--nullable", "id")["version"]
        == 5
    )
    assert document("alter", empty, "--add-feature", "v2Checkpoint")["version"] == 6
    assert document("alter", empty, "--unset", "delta.enableTypeWidening")["version"] == 7
    assert document("alter", empty, "--unset", "nothing", "--if-exists")["version"] == 8
    dropped = document("alter", empty, "--drop-feature", "v2Checkpoint")
    assert dropped["steps"][0]["versions"] == list(range(9, dropped["version"] + 1))
    assert not Table.open(empty).protocol.is_supported("v2Checkpoint")


def test_alter_upgrades_the_protocol_and_says_when_nothing_is_needed(empty: Path) -> None:
    assert document("alter", empty, "--upgrade-protocol", "1,4")["protocol"] == {
        "minReaderVersion": 1,
        "minWriterVersion": 4,
    }
    again = lines("alter", empty, "--upgrade-protocol", "1,4")
    assert again[-1] == "The table already has these settings; nothing was committed."


def test_alter_says_which_steps_stand_when_one_fails(empty: Path) -> None:
    result = run("alter", empty, "--set", "a=1", "--drop-column", "nope")
    assert result.exit_code == 1
    assert "versions: 1." in result.stderr
    assert Table.open(empty).version == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--set", "no-equals-sign"],
        ["--set", "=value"],
        ["--upgrade-protocol", "four"],
        ["--policy", "loose", "--set", "a=1"],
    ],
    ids=["nothing", "no pair", "no key", "no versions", "no policy"],
)
def test_alter_wrong_usage_commits_nothing(empty: Path, words: list[str]) -> None:
    assert run("alter", empty, *words).exit_code == 2
    assert Table.open(empty).version == 0


def test_every_step_is_an_option_in_the_order_of_the_registry() -> None:
    help_text = run("alter", "--help").stdout
    places = [help_text.index(f"  {step.option} ") for step in STEPS]
    assert places == sorted(places)


def test_a_pair_splits_at_the_first_equals_sign_outside_backticks() -> None:
    from twinlake.cli.command import PAIR

    assert PAIR.convert("`a=b`=c=d", None, None) == ("`a=b`", "c=d")


def test_restore_previews_unless_told_to_do_it(empty: Path) -> None:
    Table.open(empty).set_properties({"delta.enableChangeDataFeed": "true"})
    preview = document("restore", empty, 0)
    assert (preview["restored"], preview["version"]) == (False, None)
    assert preview["changes"]["properties"][0]["after"] is None
    assert preview["changes"]["features_dropped"] == []
    assert "Nothing was changed" in lines("restore", empty, 0)[0]
    assert Table.open(empty).version == 1
    done = document("restore", empty, 0, "--yes")
    assert (done["restored"], done["version"]) == (True, 2)
    assert Table.open(empty).properties == {}
    assert str(Table.open(empty).protocol) == preview["changes"]["protocol_after"] == "1,4"


def test_restore_by_timestamp(empty: Path) -> None:
    moment = document("history", empty)["commits"][0]["timestamp"]
    Table.open(empty).set_properties({"a": "1"})
    assert document("restore", empty, "--timestamp", moment)["to"] == 0


@pytest.mark.parametrize("words", [[], ["0", "--timestamp", "2024-01-01"]], ids=["none", "both"])
def test_restore_needs_exactly_one_target(empty: Path, words: list[str]) -> None:
    assert run("restore", empty, *words).exit_code == 2
