"""Whatever a table is like, an upgrade keeps its rows and ends with a clean report."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.data_files import append
from tests.support.local_engine import LocalEngine, rows_of
from tests.support.scale import scale
from twinlake import Table
from twinlake.schema import (
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    Array,
    DataType,
    Map,
    Struct,
    StructField,
)

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}
NO_WAIT = {"delta.dropFeatureTruncateHistory.retentionDuration": "interval 0 hours"}
MODES = ("none", "name", "id")
TARGETS = (
    ("icebergWriterCompatV1", "strict"),
    ("icebergWriterCompatV1", "shared"),
    ("icebergWriterCompatV3", "strict"),
    ("icebergCompatV2", "strict"),
    ("icebergCompatV3", "strict"),
)

primitives = st.sampled_from([BYTE, SHORT, INTEGER, LONG, STRING, DATE])


def structs(inner: st.SearchStrategy[DataType]) -> st.SearchStrategy[DataType]:
    return st.lists(inner, min_size=1, max_size=3).map(
        lambda kinds: Struct(tuple(StructField(f"f{n}", kind) for n, kind in enumerate(kinds)))
    )


types = st.recursive(
    primitives,
    lambda inner: st.one_of(
        structs(inner), inner.map(Array), inner.map(lambda value: Map(STRING, value))
    ),
    max_leaves=4,
)


def value_of(kind: DataType, seed: int) -> Any:
    import datetime as dt

    if seed % 7 == 3:
        return None
    match kind:
        case Struct():
            return {f.name: value_of(f.type, seed + n) for n, f in enumerate(kind)}
        case Array():
            return [value_of(kind.element, seed + n) for n in range(seed % 3)]
        case Map():
            return [("k", value_of(kind.value, seed + 1))]
    if kind == STRING:
        return f"s{seed}"
    return dt.date(2024, 1, 1) + dt.timedelta(days=seed) if kind == DATE else seed % 100


@given(
    columns=st.lists(types, min_size=1, max_size=4),
    partition=st.sampled_from([None, BYTE, STRING, DATE]),
    mode=st.sampled_from(MODES),
    switches=st.sets(st.sampled_from(["vectors", "feed"])),
    goal=st.sampled_from(TARGETS),
    seeds=st.lists(st.integers(0, 50), max_size=4),
)
@settings(max_examples=scale(12, 400), deadline=None)
def test_rows_stay_and_rules_hold(
    columns: list[DataType],
    partition: DataType | None,
    mode: str,
    switches: set[str],
    goal: tuple[str, str],
    seeds: list[int],
) -> None:
    fields = [StructField("p", partition)] if partition is not None else []
    fields += [StructField(f"c{n}", kind) for n, kind in enumerate(columns)]
    chosen = {"vectors": VECTORS, "feed": FEED}
    properties = {**NO_WAIT, "delta.columnMapping.mode": mode}
    for name in switches:
        properties |= chosen[name]
    target, how = goal
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        table = Table.create(
            path,
            Struct(tuple(fields)),
            partition_by=["p"] if partition is not None else [],
            properties=properties,
            durable=False,
        )
        for seed in seeds:
            table = append(table, path, [{f.name: value_of(f.type, seed) for f in fields}])
        before = rows_of(table.snapshot)
        plan = table.upgrade(target, mode=how, spark=LocalEngine())
        assert plan.done, str(plan)
        after = Table.open(path)
        judged = target if how == "strict" else "icebergCompatV2"
        report = after.check(judged, files=True)
        assert report.ok, str(report)
        assert rows_of(after.snapshot) == before
        assert after.upgrade(target, mode=how).steps == ()
