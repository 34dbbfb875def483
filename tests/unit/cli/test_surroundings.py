"""Commands in a locale without UTF-8, in other time zones, and without a working directory."""

from __future__ import annotations

import datetime as dt
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.data_files import append
from twinlake.table import Table

pytestmark = pytest.mark.process

NARROW = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LATIN = {"PYTHONIOENCODING": "iso-8859-1"}
LETTERS = "gr\u00f6\u00dfe \u2603 \U0001d4b3"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in a folder of plain letters; all other names have more."""
    folder = tmp_path_factory.mktemp("letters") / "t"
    properties = {"delta.enableIcebergCompatV2": "true", "delta.columnMapping.mode": "name"}
    made = Table.create(
        folder, f"id LONG, `{LETTERS}` STRING", partition_by=[LETTERS], properties=properties
    )
    append(made, folder, [{"id": 1, LETTERS: "\u2603"}]).iceberg.sync()
    return folder


def command(
    *words: object, variables: Mapping[str, str] | None = None, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a process of its own, into pipes."""
    places = os.pathsep.join(filter(None, sys.path))
    # What the tests themselves run with must not get through.
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "LANG"))}
    return subprocess.run(
        [*prefix, sys.executable, "-m", "twinlake", *map(str, words)],
        env={**kept, "PYTHONPATH": places, **(variables or {})},
        capture_output=True,
        check=False,
    )


@pytest.mark.parametrize("locale", [NARROW, LATIN], ids=["C", "ISO-8859-1"])
@pytest.mark.parametrize("words", ["show", "files", "history --json", "sync --json"])
def test_all_letters_can_be_printed(table: Path, words: str, locale: dict[str, str]) -> None:
    name, *more = words.split()
    found = command(name, table, *more, variables=locale)
    assert (found.returncode, found.stderr) == (0, b"")
    if more:
        encoding = locale.get("PYTHONIOENCODING", "ascii")
        document = json.loads(found.stdout.decode(encoding))
        assert LETTERS in json.dumps(document, ensure_ascii=False) or name == "sync"
    elif name == "files":
        assert rb"\u2603 \U0001d4b3" in found.stdout


def test_names_that_python_cannot_spell_are_refused(table: Path, tmp_path: Path) -> None:
    # Listed in another spelling, files of the table would look like nobody's and be deleted.
    stranger = table / "\u2603.parquet"
    stranger.write_bytes(b"")
    os.utime(stranger, (0, 0))
    try:
        found = command("vacuum", table, "--yes", variables=NARROW)
        assert stranger.exists()
    finally:
        stranger.unlink()
    assert found.returncode == 1
    assert found.stderr.startswith(b"TWIN-PATH-UNSAFE")
    assert b"LC_ALL=C.UTF-8" in found.stderr
    refused = command("show", tmp_path / "\u00fc", variables=NARROW)
    assert refused.stderr.startswith(b"TWIN-PATH-UNSAFE")
    assert b"Traceback" not in refused.stderr


def test_a_working_directory_that_is_gone(table: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    # The shell deletes the folder in which it then starts the command.
    prefix = ("sh", "-c", f'mkdir "{gone}" && cd "{gone}" && rmdir "{gone}" && exec "$@"', "sh")
    assert command("show", table, prefix=prefix).returncode == 0
    assert command("sync", table, prefix=prefix).returncode == 0
    for words in (("show", "./t"), ("show", "t"), ("verify-twin", table, "--rows")):
        found = command(*words, prefix=prefix)
        assert found.returncode == 1, words
        assert found.stderr.startswith(b"TWIN-INVALID-ARGUMENT"), found.stderr
        assert b"working directory" in found.stderr


def test_texts_without_a_zone_are_utc_in_every_zone(table: Path) -> None:
    moment = Table.open(table).history()[-1].timestamp
    # Read by another clock it would be hours away from the first version.
    text = dt.datetime.fromtimestamp(moment / 1000, dt.UTC).isoformat(sep=" ")[:-6]
    outcomes = []
    for zone in ("UTC", "America/New_York", "Asia/Kolkata"):
        shown = command("show", table, "--timestamp", text, "--json", variables={"TZ": zone})
        history = command("history", table, "--json", variables={"TZ": zone})
        outcomes.append((json.loads(shown.stdout)["version"], history.stdout))
    assert outcomes[0][0] == 0
    assert outcomes[1:] == outcomes[:1] * 2
