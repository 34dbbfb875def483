"""Tables that are Iceberg tables too: large ones that only the log knows, small ones of real files.

Both are made once and kept. Conversions read the log alone, so that the files of the large ones
need not be there; the peer reads the footer of each file it takes, so that for it they are.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.compat_tables import PROPERTIES as PROMISE
from benchmarks.harness import ROOT
from benchmarks.tables import add_action

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from twinlake import Table
    from twinlake.actions import AddFile

# Part of every folder's name: tables of an older recipe are not taken for new ones.
_RECIPE: Final = 2
_COMMIT: Final = 10_000
_COLUMNS: Final = "id BIGINT, name STRING, amount DOUBLE, ts TIMESTAMP, d DATE"
_PROPERTIES: Final = {**PROMISE, "delta.checkpointInterval": "1000000"}
_MAX_AGE: Final = "delta.universalFormat.config.iceberg.history.expire.max-snapshot-age-ms"
# Ten years.
_NOTHING_EXPIRES: Final = {
    "delta.deletedFileRetentionDuration": "interval 3650 days",
    "delta.logRetentionDuration": "interval 3650 days",
    _MAX_AGE: "315360000000",
}
# A commit of twinlake: files of other engines are read before they are converted.
_INFO: Final = {
    "timestamp": 1_700_000_000_000,
    "operation": "WRITE",
    "engineInfo": "twinlake/benchmark",
}


def twin_table(data: Path, files: int) -> Path:
    """The folder of a table of that many files, its history before the last commit cleaned up."""
    return _kept(data / f"iceberg{_RECIPE}-{files}", "log", files)


def many_snapshots(data: Path, commits: int) -> Path:
    """The folder of a table of that many commits of one file, none of which expires."""
    return _kept(data / f"iceberg{_RECIPE}-commits-{commits}", "commits", commits)


def real_files(data: Path, files: int) -> Path:
    """A folder with ``table``, a table of that many small files, and ``plain``, the same rows.

    The files in ``plain`` have no column ids: PyIceberg takes no others.
    """
    return _kept(data / f"iceberg{_RECIPE}-real-{files}", "real", files)


def _kept(folder: Path, kind: str, files: int) -> Path:
    if not folder.exists():
        making = folder.with_name(f"{folder.name}.making")
        shutil.rmtree(making, ignore_errors=True)
        command = [sys.executable, "-m", "benchmarks.iceberg_tables", kind, str(files), str(making)]
        subprocess.run(command, cwd=ROOT, check=True)
        making.rename(folder)
    return folder


def create(
    place: Path | str,
    *,
    partitioned: bool = True,
    options: Mapping[str, Any] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Table:
    """A table without files that promises to be an Iceberg table."""
    from twinlake import Table

    columns = f"{_COLUMNS}, part STRING" if partitioned else _COLUMNS
    return Table.create(
        place,
        columns,
        partition_by=("part",) if partitioned else (),
        properties={**_PROPERTIES, **(properties or {})},
        durable=False,
        options=options,
    )


class Writer:
    """Commits files that nobody has written, as another process would."""

    def __init__(self, folder: Path, table: Table) -> None:
        from twinlake.schema import physical_name

        self._log = folder / "_delta_log"
        self._names = {field.name: physical_name(field) for field in table.schema}
        self._version = table.version
        self._rng = random.Random(20)
        self._number = 0

    def commit(self, files: int) -> None:
        """One commit of that many files."""
        import msgspec

        self._version += 1
        lines = [msgspec.json.encode({"commitInfo": _INFO})]
        lines += (msgspec.json.encode({"add": self._add()}) for _ in range(files))
        path = self._log / f"{self._version:020d}.json"
        path.write_bytes(b"\n".join(lines) + b"\n")

    def _add(self) -> dict[str, Any]:
        add = add_action(self._number, self._version, self._rng)
        self._number += 1
        stats = json.loads(add["stats"])
        for kind in ("minValues", "maxValues", "nullCount"):
            stats[kind] = self._named(stats[kind])
        values = self._named(add["partitionValues"])
        # The rest of the path may be that of a file which is there already.
        path = f"v{self._version}-{add['path'].replace('/', '-')}"
        return {**add, "path": path, "partitionValues": values, "stats": json.dumps(stats)}

    def _named(self, values: dict[str, Any]) -> dict[str, Any]:
        return {self._names[name]: value for name, value in values.items()}


def rows_of(number: int) -> dict[str, list[Any]]:
    """The rows of a small file."""
    import datetime as dt

    numbers = [number * 16 + place for place in range(number % 16 + 1)]
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return {
        "id": numbers,
        "name": [f"name {one:09d}" for one in numbers],
        "amount": [one / 7 for one in numbers],
        "ts": [start + dt.timedelta(seconds=one) for one in numbers],
        "d": [start.date() + dt.timedelta(days=one % 700) for one in numbers],
    }


def plain_schema() -> pa.Schema:
    """The schema of the small files."""
    import pyarrow as pa

    return pa.schema(
        [
            ("id", pa.int64()),
            ("name", pa.string()),
            ("amount", pa.float64()),
            ("ts", pa.timestamp("us", tz="UTC")),
            ("d", pa.date32()),
        ]
    )


def file_name(number: int) -> str:
    """The name of a small file."""
    return f"part-{number:06d}.parquet"


def add_of(table: Table, folder: Path, number: int) -> AddFile:
    """The action that commits a small file, statistics and all."""
    from twinlake.actions import AddFile
    from twinlake.schema import physical_name

    names = [physical_name(field) for field in table.schema]
    columns = list(rows_of(number).values())
    stats = {
        "numRecords": len(columns[0]),
        "minValues": dict(zip(names, (_told(min(cells)) for cells in columns), strict=True)),
        "maxValues": dict(zip(names, (_told(max(cells)) for cells in columns), strict=True)),
        "nullCount": dict.fromkeys(names, 0),
    }
    return AddFile(
        path=file_name(number),
        partition_values={},
        size=(folder / file_name(number)).stat().st_size,
        modification_time=1_700_000_000_000,
        data_change=True,
        stats=json.dumps(stats),
    )


def _told(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if hasattr(value, "isoformat") else value


def _make_log(folder: Path, files: int) -> None:
    from twinlake import Table

    table = create(folder)
    writer = Writer(folder, table)
    for start in range(0, files, _COMMIT):
        writer.commit(min(_COMMIT, files - start))
    table = Table.open(folder, durable=False)
    table.checkpoint()
    for version in range(table.version):
        (folder / "_delta_log" / f"{version:020d}.json").unlink()


def _make_commits(folder: Path, commits: int) -> None:
    table = create(folder, properties=_NOTHING_EXPIRES)
    writer = Writer(folder, table)
    for _ in range(commits):
        writer.commit(1)


def _make_real(folder: Path, files: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from twinlake.schema import physical_schema, to_arrow

    place, plain = folder / "table", folder / "plain"
    plain.mkdir(parents=True)
    table = create(place, partitioned=False)
    own = to_arrow(
        physical_schema(table.schema, table.metadata.column_mapping_mode), field_ids=True
    )
    for number in range(files):
        rows = pa.table(rows_of(number), schema=plain_schema())
        pq.write_table(rows, plain / file_name(number))
        named = pa.Table.from_arrays(rows.columns, names=own.names).cast(own)
        pq.write_table(named, place / file_name(number))
    table = table.commit("WRITE", [add_of(table, place, number) for number in range(files)])
    table.checkpoint()
    for version in range(table.version):
        (place / "_delta_log" / f"{version:020d}.json").unlink()


if __name__ == "__main__":
    makers = {"log": _make_log, "commits": _make_commits, "real": _make_real}
    makers[sys.argv[1]](Path(sys.argv[3]), int(sys.argv[2]))
