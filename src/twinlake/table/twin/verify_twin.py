"""``verify_twin``: whether both sides of a table say the same.

The Delta log is read by our own reader, the Iceberg metadata by PyIceberg, each from its own files.
At every version that both keep, the file sets, counts, sizes, partitions and statistics are held
against each other, and on request the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.iceberg.catalogs import pyiceberg_properties
from twinlake.iceberg.derive import recorded_id, snapshot_id, version_of
from twinlake.log import load_snapshot, read_checksum, verify_checksum
from twinlake.runtime import engine_for
from twinlake.table.twin.report import DifferenceKind, TwinFinding, TwinReport
from twinlake.table.twin.row_check import RowCheck, SnapshotRows
from twinlake.table.twin.version_check import VersionCheck

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from twinlake.log import Snapshot
    from twinlake.table.twin.iceberg_side import IcebergSide, IcebergVersion
    from twinlake.table.view import TableView

__all__ = ["verify_twin"]


def verify_twin(
    table: TableView,
    rows: bool = False,
    spark: Any = None,
    *,
    properties: Mapping[str, str] | None = None,
) -> TwinReport:
    """Compare both sides of a table at every version they both keep.

    ``rows`` reads all rows on both sides and compares their content hashes, file by file, and what
    the formats say that readers make of each file. With ``spark`` the rows of the Delta side are
    read by Spark, and those of the Iceberg side by Iceberg Spark if the session has it; else by
    PyIceberg. ``properties`` go to PyIceberg's file access, which gets of S3 what the table was
    opened with.
    """
    engine = engine_for(spark)
    executor = table.runtime.executor if engine is None else engine.executor
    store = table.snapshot.store
    location = unquote(store.url)
    side = _iceberg_side(location, {**pyiceberg_properties(store), **(properties or {})})
    run = _Run(table.snapshot, side, location)
    run.check_lag()
    for version, iceberg in run.versions():
        run.check(version, iceberg)
    reader = None if engine is None or not rows else engine.contents
    check = RowCheck(side, store, executor, reader)
    if rows:
        run.check_rows(check)
    return TwinReport(
        location=location,
        delta_version=table.version,
        iceberg_version=side.version,
        versions=tuple(run.checked),
        files=len(run.files),
        rows=check.rows if rows else None,
        delta_reader=check.delta_reader,
        iceberg_reader=check.iceberg_reader,
        findings=tuple(run.findings.values()),
    )


def _iceberg_side(location: str, properties: Mapping[str, str]) -> IcebergSide:
    try:
        from twinlake.table.twin.iceberg_side import IcebergSide
    except ImportError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Cannot verify the table: PyIceberg is not installed.",
            why="PyIceberg reads the Iceberg side",
            fix="Run `pip install 'twinlake[catalogs]'`.",
        ) from error
    return IcebergSide(location, properties)


@dataclass
class _Run:
    """One comparison as it goes on."""

    snapshot: Snapshot
    side: IcebergSide
    location: str
    checked: list[int] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    findings: dict[tuple[str, ...], TwinFinding] = field(default_factory=dict)
    _with_rows: list[SnapshotRows] = field(default_factory=list)
    _owners: dict[int, int] = field(default_factory=dict)
    """The version that recorded an id first, by the id."""

    def report(self, findings: Iterable[TwinFinding]) -> None:
        """Keep what is new: what stays wrong from version to version is reported once."""
        for finding in findings:
            self.findings.setdefault(finding.key, finding)

    def check_lag(self) -> None:
        """Both have to be at the same version."""
        ours, theirs = self.snapshot.version, self.side.version
        if ours != theirs:
            found = TwinFinding(
                version=ours,
                what=DifferenceKind.BEHIND,
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
            # Versions without a snapshot of their own show the one before: one report is enough.
            if is_readable:
                yield version, current

    def check(self, version: int, iceberg: IcebergVersion | None) -> None:
        """Compare one version."""
        try:
            delta = self._delta(version)
            check = VersionCheck(delta, iceberg, self.location)
            self.report(check.findings())
            self.report(_checksum_findings(delta))
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
        if iceberg is not None and schema is not None:
            self._with_rows.append(
                SnapshotRows(
                    version=version,
                    snapshot_id=iceberg.snapshot_id,
                    schema=schema,
                    is_current=is_last,
                )
            )

    def check_rows(self, check: RowCheck) -> None:
        """Compare the rows of every version that has a snapshot.

        The newest comes first: it has most of the files, so that an engine that reads whole
        versions reads few of the others. A finding names the oldest version that has it.
        """
        for one in reversed(self._with_rows):
            try:
                findings = check.findings(self._delta(one.version), one)
            except TwinlakeError as error:
                self._unreadable(one.version, delta=error.what)
                continue
            self.findings.update((finding.key, finding) for finding in findings)

    def _check_id(self, delta: Snapshot, iceberg: IcebergVersion) -> None:
        """A snapshot has the id that its commit records, else the one of its version."""
        table = delta.metadata.id
        recorded = recorded_id(table, delta.commit_info)
        # Of several that record the same one, the first has it.
        if recorded is None or self._owners.setdefault(recorded, delta.version) != delta.version:
            recorded = None
        wanted = snapshot_id(table, delta.version) if recorded is None else recorded
        if iceberg.snapshot_id != wanted:
            found = TwinFinding(
                version=delta.version,
                what=DifferenceKind.SNAPSHOT,
                delta=f"snapshot {wanted}",
                iceberg=f"snapshot {iceberg.snapshot_id}",
            )
            self.report([found])

    def _stated(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for version, snapshot in self.side.snapshots():
            decoded = version_of(self.snapshot.metadata.id, snapshot.snapshot_id)
            if version is None or (decoded is not None and decoded != version) or version in found:
                stated = "no version" if version is None else f"version {version}"
                self._report_snapshot(
                    "no version" if decoded is None else f"version {decoded}",
                    f"snapshot {snapshot.snapshot_id} states {stated}",
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
        found = TwinFinding(
            version=self.side.version, what=DifferenceKind.SNAPSHOT, delta=delta, iceberg=iceberg
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
        found = TwinFinding(
            version=version, what=DifferenceKind.UNREADABLE, delta=delta, iceberg=iceberg
        )
        self.report([found])


def _checksum_findings(delta: Snapshot) -> Iterable[TwinFinding]:
    """In what the checksum file of a version, where it has one, contradicts its log."""
    checksum = read_checksum(delta.store, delta.version)
    if checksum is None:
        return
    for one in verify_checksum(delta, checksum):
        yield TwinFinding(version=delta.version, what=DifferenceKind.CHECKSUM, delta=str(one))
