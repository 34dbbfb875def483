"""Whatever a public method is given, the error is ours and the table stays as it was."""

from __future__ import annotations

import inspect
import itertools
import math
from typing import TYPE_CHECKING, Any

import pytest

from twinlake import Table
from twinlake.actions import AddFile
from twinlake.errors import TwinlakeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUBBISH = [None, True, math.nan, math.inf, -1, 1.5, "x", b"", object(), [], {}, {1: 2}, [1]]
GOOD: dict[str, Any] = {
    "version": 0,
    "v1": 0,
    "column": "id",
    "name": "q",
    "kind": "BIGINT",
    "expression": "id > 0",
    "target": "icebergCompatV2",
    "operation": "WRITE",
    "actions": [],
    "properties": {"a": "b"},
    "keys": ["a"],
    "schema": "id INT",
    "source": "no-such-table",
    "min_reader_version": 1,
    "min_writer_version": 2,
    "data": {"id": [1]},
    "on": "id",
    "set": {"s": "'x'"},
}
#: Values that other parts of the library make.
MADE = frozenset({"runtime", "spark"})


def cases() -> Iterator[tuple[str, str]]:
    for name, found in inspect.getmembers(Table, callable):
        if not name.startswith("_"):
            for parameter in inspect.signature(found).parameters.values():
                if parameter.name not in MADE | {"self"}:
                    yield name, parameter.name


def arguments(
    method: Any, argument: str, value: Any, path: Path
) -> tuple[list[Any], dict[str, Any]]:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for one in inspect.signature(method).parameters.values():
        if one.name == argument:
            if one.kind is one.VAR_POSITIONAL:
                args.append(value)
            else:
                kwargs[one.name] = value
        elif one.default is one.empty and one.kind is not one.VAR_POSITIONAL:
            kwargs[one.name] = path if one.name == "path" else GOOD[one.name]
    return args, kwargs


@pytest.mark.parametrize(("name", "argument"), list(cases()))
def test_rubbish_is_refused_with_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, argument: str
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = itertools.count()
    table = Table.create(tmp_path / "t", "id INT, s STRING", durable=False)
    for value in RUBBISH:
        path = tmp_path / (f"n{next(numbers)}" if name == "create" else "t")
        method = getattr(table, name)
        args, kwargs = arguments(method, argument, value, path)
        before = table.refresh().version
        try:
            method(*args, **kwargs)
        except TwinlakeError as error:
            assert error.fix
            assert table.refresh().version == before
        table = table.refresh()


@pytest.mark.parametrize("hours", [math.nan, math.inf, "x", -1])
def test_no_retention_that_is_no_number(tmp_path: Path, hours: Any) -> None:
    table = Table.create(tmp_path, "id INT")
    with pytest.raises(TwinlakeError):
        table.vacuum(hours)


@pytest.mark.parametrize("value", [None, b"x", object(), [1], {"a": 1}, math.nan])
def test_property_values_that_have_no_text(tmp_path: Path, value: Any) -> None:
    table = Table.create(tmp_path, "id INT")
    with pytest.raises(TwinlakeError):
        table.set_properties({"a": value})
    with pytest.raises(TwinlakeError):
        Table.create(tmp_path / "n", "id INT", properties={"a": value})


def test_a_wrong_keyword_is_a_type_error(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="retention"):
        Table.create(tmp_path, "id INT").vacuum(retention=1)  # type: ignore[call-arg]


def test_very_many_violations_are_counted_and_not_all_printed(tmp_path: Path) -> None:
    table = Table.create(tmp_path, "id INT")
    adds = [
        AddFile(path=f"../{n}", partition_values={}, size=1, modification_time=0, data_change=True)
        for n in range(2000)
    ]
    with pytest.raises(TwinlakeError) as caught:
        table.commit("WRITE", adds)
    assert "and 1,980 more (2,000 in all)" in str(caught.value)
    assert len(str(caught.value)) < 8000
    assert len(caught.value.fields["violations"]) == 2000


def test_very_many_broken_rules_are_counted_and_not_all_printed(tmp_path: Path) -> None:
    columns = ", ".join(f"c{n} VOID" for n in range(300))
    with pytest.raises(TwinlakeError) as caught:
        Table.create(tmp_path, columns, properties={"delta.enableIcebergCompatV2": "true"})
    assert "300 in all" in caught.value.why
    assert len(str(caught.value)) < 8000


def test_a_policy_that_is_none_is_refused_when_the_table_is_opened(tmp_path: Path) -> None:
    Table.create(tmp_path / "t", "id INT", durable=False)
    with pytest.raises(TwinlakeError, match="no upgrade policy 'x'"):
        Table.open(tmp_path / "t", policy="x")
