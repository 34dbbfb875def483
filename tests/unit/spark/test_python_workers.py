"""Functions on their way to Spark's workers."""

from __future__ import annotations

import pickle
from importlib.metadata import version

import pytest

from twinlake.errors import Code
from twinlake.spark.errors import _parsed
from twinlake.spark.python_workers import WorkerFunction

OURS = version("twinlake")


def test_a_function_runs_by_the_version_that_sent_it() -> None:
    sent = pickle.loads(pickle.dumps(WorkerFunction.of(len)))
    assert sent.version == OURS
    assert sent("four") == 4


def test_another_version_of_the_package_refuses_the_function() -> None:
    with pytest.raises(RuntimeError) as caught:
        WorkerFunction(len, "0.0.1")("four")
    told = _parsed(str(caught.value).removeprefix("TWINLAKE:"))
    assert told is not None
    assert told.code is Code.SPARK_WORKERS
    assert told.why == f"they have twinlake {OURS}, and the driver has 0.0.1"
    assert "'twinlake[spark]==0.0.1'" in told.fix


def test_sources_that_do_not_know_their_version_are_taken() -> None:
    assert WorkerFunction(len, "unknown")("four") == 4
