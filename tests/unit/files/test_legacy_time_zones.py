"""Timestamps of the legacy calendar in time zones: held against the data that Spark itself uses."""

from __future__ import annotations

import json
import zipfile
from importlib.util import find_spec
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinlake.files import legacy_time_zones
from twinlake.files.legacy_time_zones import legacy_zone

_FILE = "julian-gregorian-rebase-micros.json"
_SECOND = 1_000_000

Switches = list[tuple[int, int]]


@pytest.fixture(scope="module")
def spark_zones() -> dict[str, Switches]:
    """By zone the seconds from which on so many seconds are added, and these."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    for path in Path(spec.origin).parent.glob("jars/spark-sql-api_*.jar"):
        with zipfile.ZipFile(path) as jar:
            zones: list[dict[str, Any]] = json.loads(jar.read(_FILE))
        return {z["tz"]: list(zip(z["switches"], z["diffs"], strict=True)) for z in zones}
    raise AssertionError("this Spark has its rebasing elsewhere")


def _line(switches: Switches, utc: Switches) -> str:
    """A zone in the form of the table: what every zone has is left out."""
    offset, shift = utc[0][0] - switches[0][0], switches[0][1] - utc[0][1]
    assert [(at - offset, by + shift) for at, by in utc[:-1]] == switches[: len(utc) - 1]
    # From the start of the Gregorian calendar on the days are the same.
    assert switches[len(utc) - 1] == (utc[-1][0] - offset, shift)
    return " ".join(map(str, (offset, shift, *sum(switches[len(utc) :], ()))))


def test_the_table_is_that_of_spark(spark_zones: dict[str, Switches]) -> None:
    utc = spark_zones["UTC"]
    lines = sorted((_line(switches, utc), name) for name, switches in spark_zones.items())
    wanted = [
        f"{numbers}: {' '.join(name for _, name in names)}"
        for numbers, names in groupby(lines, key=lambda line: line[0])
    ]
    table = Path(legacy_time_zones.__file__).with_suffix(".txt")
    assert table.read_text(encoding="ascii").splitlines() == wanted


def test_every_instant_is_moved_as_spark_moves_it(spark_zones: dict[str, Switches]) -> None:
    for name, switches in spark_zones.items():
        zone = legacy_zone(name)
        assert zone is not None
        ends = [at for at, _ in switches] + [0]
        # At each switch, just before the next, and somewhere between.
        micros = [
            moment
            for start, end in pairwise(ends)
            for moment in (start * _SECOND, (start + end) // 2 * _SECOND + 7, end * _SECOND - 1)
        ]
        added = np.repeat([by for _, by in switches], 3) * _SECOND
        found = zone.rebased(np.array(micros, dtype=np.int64))
        assert (found - np.array(micros)).tolist() == added.tolist(), name


def test_zones_that_spark_has_no_data_of() -> None:
    assert legacy_zone("+01:30") is None
    assert legacy_zone("") is None
