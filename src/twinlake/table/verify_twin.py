"""``verify_twin``: whether both faces of a table say the same.

The Delta side is read by our own reader, the Iceberg side by PyIceberg, each from its own files. At
every version that both keep, the file sets, counts, sizes, partitions and statistics are held
against each other, and on request the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from twinlake.errors import TwinlakeError
from twinlake.iceberg.file_access import pyiceberg_properties
from twinlake.iceberg.snapshot_ids import recorded_id, snapshot_id, version_of
from twinlake.log import load_snapshot
from twinlake.protocol import partition_zone
from twinlake.runtime import engine_for
from twinlake.table.twin_checks import VersionCheck
from twinlake.table.twin_iceberg import IcebergSide
from twinlake.table.twin_report import Difference, Finding, TwinReport
from twinlake.table.twin_rows import Content, DeltaContent, IcebergContent

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from pyiceberg.table import FileScanTask

    from twinlake.actions import AddFile, Metadata
    from twinlake.log import Snapshot
    from twinlake.runtime import Executor
    from twinlake.table.table import Table
    from twinlake.table.twin_iceberg import IcebergVersion

__all__ = ["verify_twin"]


def verify_twin(
    table: Table,
    rows: bool = False,
    spark: Any = None,
    *,
    properties: Mapping[str, str] | None = None,
) -> TwinReport:
    """Compare both faces of a table at every version they both keep.

    ``rows`` reads all rows on both sides and compares their content hashes, file by file, on Spark
    where ``spark`` is given. ``properties`` go to PyIceberg's file access, which is told of S3 what
    the table was opened with.
    """
    engine = engine_for(spark)
    executor = table.runtime.executor if engine is None else engine.executor
    store = table.snapshot.store
    location = unquote(store.url)
    side = IcebergSide(location, {**pyiceberg_properties(store), **(properties or {})})
    run = _Run(table.snapshot, side, location, executor)
    run.check_lag()
    for version, iceberg in run.versions():
        run.check(version, iceberg, rows=rows)
    return TwinReport(
        location=location,
        delta_version=table.version,
        iceberg_version=side.version,
        versions=tuple(run.checked),
        files=len(run.files),
        rows=run.rows if rows else None,
        findings=tuple(run.findings.values()),
    )


@dataclass
class _Run:
    """One comparison as it goes on."""

    snapshot: Snapshot
    side: IcebergSide
    location: str
    executor: Executor
    checked: list[int] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    rows: int = 0
    findings: dict[tuple[str, ...], Finding] = field(default_factory=dict)
    _contents: dict[Hashable, Content] = field(default_factory=dict)
    _owners: dict[int, int] = field(default_factory=dict)
    """The version that recorded an id first, by the id."""

    def report(self, findings: Iterable[Finding]) -> None:
        """Keep what is new: what stays wrong from version to version is told once."""
        for finding in findings:
            self.findings.setdefault(finding.key, finding)

    def check_lag(self) -> None:
        """Both have to be at the same version."""
        ours, theirs = self.snapshot.version, self.side.version
        if ours != theirs:
            found = Finding(
                version=ours,
                what=Difference.BEHIND,
                delta=f"version {ours}",
                iceberg=f"version {theirs}",
            )
            self.report([found])

    def versions(self) -> Iterable[tuple[int, IcebergVersion | None]]:
        """Each Delta version that Iceberg keeps, with the snapshot that was current at it."""
        stated = self._stated()
        last = min(self.side.version, self.snapshot.version)
        first = min(stated, default=last)
        current: IcebergVersion | None = None
        is_readable = True
        for version in range(first, last + 1):
            if version in stated:
                current = self._read(version, stated[version])
                is_readable = current is not None
            # Versions without a snapshot of their own show the one before: told once is enough.
            if is_readable:
                yield version, current

    def check(self, version: int, iceberg: IcebergVersion | None, *, rows: bool) -> None:
        """Compare one version."""
        try:
            delta = self._delta(version)
            check = VersionCheck(delta, iceberg, self.location)
            self.report(check.findings())
        except TwinlakeError as error:
            self._unreadable(version, delta=error.what)
            return
        self.checked.append(version)
        self.files |= check.adds.keys()
        is_own = iceberg is not None and iceberg.version == version
        if iceberg is not None and is_own:
            self._check_id(delta, iceberg)
        is_last = version == self.side.version
        schema = iceberg.schema if iceberg is not None and is_own else None
        if is_last:
            # What readers take who do not travel in time.
            schema = self.side.table.schema()
            self.report(check.metadata_findings(self.side.table.metadata))
        if schema is not None:
            self.report(check.schema_findings(schema))
        if rows and iceberg is not None and (is_own or is_last):
            self._check_rows(delta, check, iceberg, schema)

    def _check_id(self, delta: Snapshot, iceberg: IcebergVersion) -> None:
        """A snapshot has the id that its commit records, else the one of its version."""
        table = delta.metadata.id
        recorded = recorded_id(table, delta.commit_info)
        # Of several that record the same one, the first has it.
        if recorded is None or self._owners.setdefault(recorded, delta.version) != delta.version:
            recorded = None
        wanted = snapshot_id(table, delta.version) if recorded is None else recorded
        if iceberg.snapshot_id != wanted:
            found = Finding(
                version=delta.version,
                what=Difference.SNAPSHOT,
                delta=f"snapshot {wanted}",
                iceberg=f"snapshot {iceberg.snapshot_id}",
            )
            self.report([found])

    def _stated(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for version, snapshot in self.side.snapshots():
            decoded = version_of(self.snapshot.metadata.id, snapshot.snapshot_id)
            if version is None or (decoded is not None and decoded != version) or version in found:
                told = "no version" if version is None else f"version {version}"
                self._report_snapshot(
                    "no version" if decoded is None else f"version {decoded}",
                    f"snapshot {snapshot.snapshot_id} states {told}",
                )
            if version is not None:
                found[version] = snapshot
        newest = self.side.table.metadata.current_snapshot_id
        if found and found[max(found)].snapshot_id != newest:
            self._report_snapshot(f"version {max(found)}", f"snapshot {newest} is the current one")
        self._check_main()
        return found

    def _check_main(self) -> None:
        """The branch that readers take is at the current snapshot, which other readers take."""
        metadata = self.side.table.metadata
        main, newest = metadata.refs.get("main"), metadata.current_snapshot_id
        if main is not None and main.snapshot_id != newest:
            self._report_snapshot(
                f"snapshot {newest}", f"snapshot {main.snapshot_id} is the one of branch main"
            )

    def _report_snapshot(self, delta: str, iceberg: str) -> None:
        found = Finding(
            version=self.side.version, what=Difference.SNAPSHOT, delta=delta, iceberg=iceberg
        )
        self.report([found])

    def _read(self, version: int, snapshot: Any) -> IcebergVersion | None:
        try:
            return self.side.read(version, snapshot)
        except Exception as error:
            # PyIceberg raises whatever it stumbles over; other readers would stumble, too.
            self._unreadable(version, iceberg=f"{type(error).__name__}: {error}")
            return None

    def _delta(self, version: int) -> Snapshot:
        is_newest = version == self.snapshot.version
        return self.snapshot if is_newest else load_snapshot(self.snapshot.store, version)

    def _unreadable(self, version: int, *, delta: str = "", iceberg: str = "") -> None:
        found = Finding(version=version, what=Difference.UNREADABLE, delta=delta, iceberg=iceberg)
        self.report([found])

    def _check_rows(
        self, delta: Snapshot, check: VersionCheck, iceberg: IcebergVersion, schema: Any
    ) -> None:
        try:
            tasks = self.side.tasks(iceberg.snapshot_id)
        except Exception as error:
            self._unreadable(delta.version, iceberg=f"{type(error).__name__}: {error}")
            return
        ours = self._hashed(
            DeltaContent(delta.store),
            {
                path: (_delta_key(delta.metadata, path, add), (delta.metadata, add))
                for path, add in check.adds.items()
            },
        )
        theirs = self._hashed(
            IcebergContent(self.side.table.metadata, self.side.table.io),
            {
                path: (_iceberg_key(schema, path, task), (schema, task))
                for path, task in tasks.items()
            },
        )
        for path in sorted(ours.keys() | theirs.keys()):
            one, other = ours.get(path), theirs.get(path)
            if one is None or other is None or one.problem or one != other:
                self.report(
                    [
                        Finding(
                            version=delta.version,
                            what=Difference.ROWS,
                            file=path,
                            delta=str(one or "no such file"),
                            iceberg=str(other or "no such file"),
                        )
                    ]
                )

    def _hashed(self, task: Any, wanted: Mapping[str, tuple[Hashable, Any]]) -> dict[str, Content]:
        """The contents of files by path; each is read once, however many versions have it."""
        new = {key: item for key, item in wanted.values() if key not in self._contents}
        for key, content in zip(new, self.executor.map(task, new.values()), strict=True):
            self._contents[key] = content
            if isinstance(task, DeltaContent):
                self.rows += content.rows
        return {path: self._contents[key] for path, (key, _) in wanted.items()}


def _delta_key(metadata: Metadata, path: str, add: AddFile) -> Hashable:
    """All that the rows of a file on the Delta side depend on."""
    return (
        "delta",
        path,
        add.key,
        metadata.schema_string,
        metadata.column_mapping_mode,
        tuple(metadata.partition_columns),
        partition_zone(metadata),
        frozenset(add.partition_values.items()),
    )


def _iceberg_key(schema: Any, path: str, task: FileScanTask) -> Hashable:
    """The same for the Iceberg side, where a column that the file lacks is one of its partition."""
    deletes = frozenset(one.file_path for one in task.delete_files)
    # As text: not a number would not be found again.
    return ("iceberg", path, deletes, schema.schema_id, repr(task.file.partition))
