"""The public API has the shape of Delta's own package: names, parameters, kinds and defaults."""

from __future__ import annotations

import inspect
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
theirs = pytest.importorskip("delta.tables")

from twinlake import spark as ours  # noqa: E402
from twinlake.errors import Code, UnsupportedFeature  # noqa: E402
from twinlake.spark.delta_settings import SETTINGS  # noqa: E402
from twinlake.spark.unsupported import UNSUPPORTED_CALLS, unsupported_call  # noqa: E402

CLASSES = (
    "DeltaTable",
    "DeltaTableBuilder",
    "DeltaMergeBuilder",
    "DeltaOptimizeBuilder",
    "IdentityGenerator",
)


def _public(cls: type) -> dict[str, Any]:
    return {
        name: member
        for name, member in inspect.getmembers(cls)
        if not name.startswith("_") and callable(member)
    }


METHODS = [(cls, name) for cls in CLASSES for name in sorted(_public(getattr(theirs, cls)))]


def _shape(function: Any) -> list[tuple[str, Any, Any]]:
    return [
        (p.name, p.kind, dict(p.default) if hasattr(p.default, "keys") else p.default)
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize(("cls", "name"), METHODS, ids=lambda value: value)
def test_every_public_method_has_the_same_signature(cls: str, name: str) -> None:
    our_method = getattr(getattr(ours, cls), name)
    their_method = getattr(getattr(theirs, cls), name)
    assert _shape(our_method) == _shape(their_method)
    assert inspect.ismethod(our_method) == inspect.ismethod(their_method)
    assert our_method.__doc__


OWN = {"DeltaTable": {"reorg"}}
"""What Delta has as SQL only."""


@pytest.mark.parametrize("cls", CLASSES)
def test_there_is_nothing_public_beside_it(cls: str) -> None:
    wanted = _public(getattr(theirs, cls)).keys() | OWN.get(cls, set())
    assert _public(getattr(ours, cls)).keys() == wanted


def test_identity_generators_are_alike() -> None:
    assert _shape(ours.IdentityGenerator) == _shape(theirs.IdentityGenerator)
    assert (ours.IdentityGenerator().start, ours.IdentityGenerator().step) == (1, 1)


def test_what_the_package_offers_can_be_imported() -> None:
    for name in ours.__all__:
        assert getattr(ours, name) is not None
    assert set(ours.__all__) <= set(dir(ours))
    with pytest.raises(ImportError, match="nonsense"):
        exec("from twinlake.spark import nonsense")


@pytest.mark.parametrize("later", UNSUPPORTED_CALLS, ids=lambda later: later.name)
def test_what_comes_later_says_so(later: Any) -> None:
    error = unsupported_call(later.name)
    assert isinstance(error, UnsupportedFeature)
    assert error.code is Code.NOT_YET
    assert later.name in error.what
    assert error.fix


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_settings_are_read_where_the_list_says(setting: Any) -> None:
    prefix, _, rest = setting.name.removesuffix("*").rpartition("spark.databricks.delta.")
    wanted = rest if prefix == "" and rest else setting.name
    for module in setting.used_by:
        found = find_spec(module)
        assert found is not None and found.origin is not None
        assert wanted in Path(found.origin).read_text(encoding="utf-8"), module
