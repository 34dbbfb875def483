"""Property keys and feature names are written once, and everything else refers to them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import twinlake
from twinlake.protocol import FEATURES, PROPERTIES, features, keys
from twinlake.schema import mapping, metadata_keys

ROOT = Path(twinlake.__file__).parent
KEY_HOMES = ("protocol/keys.py", "schema/mapping.py", "schema/metadata_keys.py")
NAME_HOME = "protocol/features.py"
KEYS = {*PROPERTIES} | {
    value
    for module in (mapping, metadata_keys)
    for name, value in vars(module).items()
    if name.endswith("_KEY") and value.startswith("delta.")
}
#: Modules in which the name of a feature stands for something else.
OTHER_MEANINGS = {
    "domainMetadata": ("actions/", "log/", "verify/"),  # the action
    "inCommitTimestamp": ("verify/code/log_replay.py",),  # a field of commitInfo
    "v2Checkpoint": ("log/checkpoint/writer.py",),  # a field of _last_checkpoint
    "invariants": ("compat/upgrade/step_text.py",),  # a word of a sentence
    # Options have their defaults before anything of the protocol is loaded.
    "icebergWriterCompatV1": ("cli/commands/",),
}


@cache
def _all_texts() -> tuple[tuple[str, int, str], ...]:
    """The string constants of every module, with their places."""
    return tuple(
        (path.relative_to(ROOT).as_posix(), node.lineno, node.value)
        for path in sorted(ROOT.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _texts(homes: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """The string constants of every other module."""
    return (found for found in _all_texts() if found[0] not in homes)


def _is_key(text: str) -> bool:
    return text in KEYS or text.startswith((keys.FEATURE_PREFIX, keys.CONSTRAINTS_PREFIX))


def test_no_other_module_spells_a_key() -> None:
    assert [found for found in _texts(KEY_HOMES) if _is_key(found[2])] == []


def test_no_other_module_spells_the_name_of_a_feature() -> None:
    found = [
        (place, line, text)
        for place, line, text in _texts([NAME_HOME])
        if text in FEATURES and not place.startswith(OTHER_MEANINGS.get(text, ("/",)))
    ]
    assert found == []


def test_search_finds_what_it_looks_for() -> None:
    found = {text for _, _, text in _texts(())}
    assert found >= KEYS | FEATURES.keys()
    for name, places in OTHER_MEANINGS.items():
        for start in places:
            assert any(t == name and p.startswith(start) for p, _, t in _texts(())), (name, start)


def test_every_property_and_feature_has_one_constant() -> None:
    constants = [v for n, v in vars(keys).items() if n.isupper() and not n.endswith("_PREFIX")]
    assert sorted(constants) == sorted(PROPERTIES)
    assert sorted(v for n, v in vars(features).items() if n.isupper()) == sorted(FEATURES)
