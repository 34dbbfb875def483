"""What ``import twinlake`` may and may not pull in."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

#: Loaded only by the code that needs them: an engine, a web framework, or a slow start.
LATE = frozenset(
    {
        *("pyspark", "py4j"),
        *("starlette", "fastapi", "flask", "uvicorn", "granian", "jinja2"),
        *("pyarrow", "sqlglot", "obstore", "click", "rich"),
    }
)


@pytest.mark.process
def test_import_twinlake_loads_no_engine_no_web_framework_and_nothing_slow() -> None:
    code = "import sys, twinlake; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert LATE & set(done.stdout.split()) == frozenset()


@pytest.mark.process
def test_a_local_session_without_pyspark_names_what_to_install() -> None:
    code = (
        "import sys; sys.modules.update(pyspark=None, py4j=None)\n"
        "from twinlake.errors import UserError\n"
        "from twinlake.spark.session import local_session\n"
        "try:\n"
        "    local_session().__enter__()\n"
        "except UserError as error:\n"
        "    print(error.why, error.fix)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "JAVA_HOME": "/anywhere"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "pip install 'twinlake[spark]'" in done.stdout
