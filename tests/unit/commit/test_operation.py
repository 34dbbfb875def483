from __future__ import annotations

from typing import Any

import pytest

from twinlake.commit import Operation, OperationName
from twinlake.commit.operation import encode_parameter


@pytest.mark.parametrize(
    ("value", "spelled"),
    [
        ("Append", "Append"),
        (None, None),
        (True, True),
        (3, 3),
        (["a", "b"], '["a","b"]'),
        (("a",), '["a"]'),
        ({"k": "v"}, '{"k":"v"}'),
        (frozenset({"b", "a"}), '["a","b"]'),
    ],
    ids=["text", "absent", "boolean", "number", "list", "tuple", "mapping", "set"],
)
def test_parameters_are_spelled_as_delta_does(value: Any, spelled: Any) -> None:
    assert encode_parameter(value) == spelled


def test_metrics_are_strings() -> None:
    metrics = {"numFiles": 3, "ok": True, "ratio": 0.5}
    found = Operation(name="WRITE", metrics=metrics).metrics_to_dict()
    assert found == {"numFiles": "3", "ok": "true", "ratio": "0.5"}


def test_rearranging_operations_are_declared_so() -> None:
    rearranging = {name for name in OperationName if not Operation(name=name).changes_data}
    assert {"OPTIMIZE", "REORG", "ROW TRACKING BACKFILL", "VACUUM END"} <= rearranging
    assert not rearranging & {"WRITE", "DELETE", "UPDATE", "MERGE", "RESTORE"}


def test_the_caller_may_overrule_the_name() -> None:
    assert not Operation(name="WRITE", is_data_change=False).changes_data
