"""What ``import twinlake`` may and may not pull in."""

from __future__ import annotations

import subprocess
import sys

#: Loaded only by the code that needs them: an engine, a web framework, or a slow start.
LATE = frozenset(
    {
        *("pyspark", "py4j"),
        *("starlette", "fastapi", "flask", "uvicorn", "jinja2"),
        *("pyarrow", "sqlglot", "obstore", "click", "rich"),
    }
)


def test_import_twinlake_loads_no_engine_no_web_framework_and_nothing_slow() -> None:
    code = "import sys, twinlake; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert LATE & set(done.stdout.split()) == frozenset()
