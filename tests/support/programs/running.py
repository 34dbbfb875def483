"""Programs as users write them for Delta Spark, run one after another in one session each.

A program is a file in ``tests/programs`` with ``main(spark, folder)``. It is loaded from its file,
so that it imports ``delta.tables`` when it is run and as it stands.
"""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import json
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

__all__ = ["PROGRAMS", "program_names", "run_programs", "run_under_takeover"]

PROGRAMS = Path(__file__).parents[2] / "programs"


def program_names() -> list[str]:
    """Every program there is."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def run_programs(
    spark: SparkSession, folder: Path, names: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """What each program returns, or the error that it ends with; each has a session of its own."""
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        place = folder / name
        place.mkdir(parents=True)
        try:
            result = _loaded(name).main(spark.newSession(), str(place))
            found[name] = {"result": json.loads(json.dumps(_plain(result)))}
        except Exception as error:
            found[name] = _failure(error)
    return found


def _loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"program_{name}", PROGRAMS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _failure(error: Exception) -> dict[str, Any]:
    return {
        "error": type(error).__name__,
        "code": str(getattr(error, "code", "")),
        "text": str(error)[:4000],
        "trace": "".join(traceback.format_exception(error))[-6000:],
    }


def _plain(value: Any) -> Any:
    """A value as JSON has it: rows are lists, what JSON lacks is text."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case set() | frozenset():
            return sorted(map(_plain, value))
        case list() | tuple():
            return [_plain(item) for item in value]
        case datetime.date() | decimal.Decimal():
            return str(value)
        case _:
            return repr(value)


def run_under_takeover(task: Mapping[str, Any]) -> dict[str, Any]:
    """The programs with twinlake in the place of Delta Spark, in a process without its jar."""
    from tests.support.spark.child_drivers import start_session
    from twinlake.spark import enable

    spark = start_session(task)
    enable(spark, delta=True)
    found = run_programs(spark, Path(task["programs"]), task["names"])
    spark.stop()
    return found
