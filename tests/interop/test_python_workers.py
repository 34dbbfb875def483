"""Which Python the workers of a session run, and what is said of one that will not do."""

from __future__ import annotations

import sys
import venv
from typing import Any

import pytest

from tests.support.spark.child_drivers import bare_environment, run_child
from tests.support.spark.cluster import needs_java

pytestmark = pytest.mark.spark

JOBS = ("write", "executor", "optimize")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One driver without an active environment: its jobs by one Python after another."""
    needs_java()
    folder = tmp_path_factory.mktemp("workers")
    venv.create(folder / "bare", with_pip=False)
    task = {
        "table": str(folder / "table"),
        "pythons": {
            "bare": str(folder / "bare" / "bin" / "python"),
            "absent": str(folder / "absent" / "python"),
        },
    }
    return run_child("worker python", folder, task, environment=bare_environment(folder))


def test_workers_of_a_local_session_run_the_drivers_python(report: dict[str, Any]) -> None:
    assert report["unset"]["write"] == {"result": 0}
    assert report["unset"]["executor"] == {"result": [n * n for n in range(20)]}
    assert report["unset"]["optimize"] == {"result": 2}


def test_functions_of_the_user_run_where_they_did(report: dict[str, Any]) -> None:
    assert report["python"] == [sys.executable, "python3"]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("choice", "why"),
    [
        ("bare", "bare/bin/python, and it has no module "),
        ("absent", "absent/python, and there is no such program"),
        ("other version", "while the driver is Python 3.6"),
    ],
)
def test_a_python_that_cannot_run_twinlake_is_one_error(
    report: dict[str, Any], choice: str, why: str, job: str
) -> None:
    found = report[choice][job]
    assert found["code"] == "TWIN-SPARK-WORKERS", found
    assert found["error"] == "UserError"
    assert why in found["why"]
    assert "Traceback" not in found["text"]


def test_the_error_says_how_the_drivers_python_is_used_again(report: dict[str, Any]) -> None:
    found = report["bare"]["write"]
    assert "Unset PYSPARK_PYTHON, spark.pyspark.python" in found["fix"]
    assert sys.executable in found["fix"]
    assert found["fields"]["driver_python"] == sys.executable


def test_the_setting_of_the_context_is_a_choice_as_well(report: dict[str, Any]) -> None:
    """PySpark itself looks at it only where spark-submit started the driver."""
    assert "bare/bin/python, and it has no module" in report["context setting"]["write"]["why"]


def test_failed_jobs_leave_the_table_as_it_was(report: dict[str, Any]) -> None:
    assert report["version"] == 2, "two writes and an OPTIMIZE"
    assert report["rows"] == 20_004
    # The files that OPTIMIZE took out, two of each partition.
    assert len(report["strays"]) == 4


def test_a_module_that_the_users_own_function_lacks_is_not_our_affair(
    report: dict[str, Any],
) -> None:
    found = report["module of the user"]
    assert "No module named 'module_of_the_user'" in found["foreign"]
