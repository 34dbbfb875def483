"""``twinlake sync``: bring the Iceberg metadata of tables up to their Delta logs."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

import click
import msgspec

from twinlake.cli.command import command, complete_path, store_option
from twinlake.cli.error_text import error_lines
from twinlake.cli.json_output import JsonOutput
from twinlake.cli.progress_display import progress_display
from twinlake.cli.spark_session import spark_session
from twinlake.cli.table_reference import TableReference
from twinlake.cli.view import Fields, View
from twinlake.errors import Code, TwinlakeError, UserError
from twinlake.table import TableWatcher

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.cli.output import Output
    from twinlake.iceberg import SyncResult
    from twinlake.runtime import Runtime
    from twinlake.table import Table

__all__ = ["sync"]


@command(table=False)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", shell_complete=complete_path)
@click.option(
    "--watch",
    is_flag=True,
    help="Run until Ctrl-C or SIGTERM and convert every new commit, also those of other "
    "engines. Prints a line for each conversion and failure, with --json a JSON document.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.01),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How long --watch waits between two checks.",
)
@click.option("--spark", is_flag=True, help="Start Spark for the first conversion of big tables.")
@click.option(
    "--publish",
    metavar="NAME",
    help="Also publish the table under this name, which every sync updates: table or "
    "namespace.table in the catalog of names, catalog.namespace.table in a catalog that "
    "PyIceberg has configured.",
)
@store_option
def sync(
    output: Output,
    paths: tuple[str, ...],
    watch: bool,
    interval: float,
    spark: bool,
    publish: str | None,
    options: tuple[tuple[str, str], ...],
) -> None:
    """Bring the Iceberg metadata of tables up to their Delta logs.

    No data file is written or copied: the command writes the metadata of every version that has
    none to <PATH>/_iceberg/metadata, and <PATH>/_iceberg opens as an Iceberg table. If one table
    fails, the others are still converted. Exit status: 0 if all are up to date, 1 if one failed.
    """
    references = [TableReference(path=path, options=dict(options)) for path in paths]
    records: list[dict[str, Any]] = []
    failures: list[TwinlakeError] = []
    with contextlib.ExitStack() as stack:
        with progress_display(output) as progress:
            session = stack.enter_context(spark_session(wanted=spark, progress=progress))
            if publish is not None:
                _publish(references, publish, session)
            for number, reference in enumerate(() if watch else references, 1):
                with progress.stage(f"converting {reference.path} ({number} of {len(paths)})"):
                    runtime = progress.counting_runtime("reading footers")
                    records.append(_synced(reference, session, failures, runtime))
        if watch:
            _watch(references, interval, session, as_json=not _is_text(output))
            return
    for error in failures:
        click.echo("\n".join(error_lines(error)), err=True)
    output.show(
        View(data={"tables": records}, blocks=[Fields(tuple(_line(one) for one in records))])
    )
    if any("error" in one for one in records):
        click.get_current_context().exit(1)


def _is_text(output: Output) -> bool:
    return not isinstance(output, JsonOutput)


def _publish(references: Sequence[TableReference], name: str, session: Any) -> None:
    if len(references) != 1:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{len(references)} tables cannot have one name {name}.",
            why="--publish names one table",
            fix="Run `twinlake sync PATH --publish NAME` once for each table.",
        )
    references[0].open().iceberg.publish(name, session)


def _synced(
    reference: TableReference, session: Any, failures: list[TwinlakeError], runtime: Runtime
) -> dict[str, Any]:
    try:
        table = reference.open(runtime)
        return _record(reference, table, table.iceberg.sync(session))
    except TwinlakeError as error:
        failures.append(error)
        return _failed(reference, error)


def _record(reference: TableReference, table: Table, done: SyncResult) -> dict[str, Any]:
    return {
        "path": reference.path,
        "location": table.location,
        "version": done.version,
        "converted": done.converted,
        "rebuilt": done.rebuilt,
        "metadata_location": done.metadata_location,
        "name": table.iceberg.name,
    }


def _failed(reference: TableReference, error: TwinlakeError) -> dict[str, Any]:
    return {"path": reference.path, "error": {**error.to_dict(), "type": type(error).__name__}}


def _line(record: dict[str, Any]) -> tuple[str, str]:
    if "error" in record:
        return record["path"], f"failed: {record['error']['what']}"
    count = record["converted"]
    commits = f"{count} commit{'' if count == 1 else 's'} converted" if count else "nothing to do"
    why = f" (rebuilt: {record['rebuilt']})" if record["rebuilt"] else ""
    name = f", published as {record['name']}" if record["name"] else ""
    return record["path"], f"Iceberg metadata at version {record['version']}, {commits}{why}{name}"


def _watch(
    references: Sequence[TableReference], interval: float, session: Any, *, as_json: bool
) -> None:
    watched = [(reference, TableWatcher(reference.open, session)) for reference in references]
    reported: dict[str, str] = {}
    with _until_signalled() as stop:
        while not stop.is_set():
            for reference, table in watched:
                if stop.is_set():
                    break
                record = _poll(reference, table)
                if record is not None and _is_new(record, reported):
                    _print(record, as_json=as_json)
            stop.wait(interval)


def _poll(reference: TableReference, table: TableWatcher) -> dict[str, Any] | None:
    """The result of one table; its failure must not stop the others."""
    try:
        done = table.poll()
        newest = table.table
        return None if done is None or newest is None else _record(reference, newest, done)
    except TwinlakeError as error:
        return _failed(reference, error)
    except Exception as error:
        what = f"Unexpected error: {error!r}"
        return {"path": reference.path, "error": {"code": str(Code.INTERNAL), "what": what}}


def _is_new(record: dict[str, Any], reported: dict[str, str]) -> bool:
    """Whether it was not printed before: a failure is printed once, however long it lasts."""
    text = _line(record)[1] if "error" in record else f"version {record['version']}"
    is_new = reported.get(record["path"]) != text or bool(record.get("converted"))
    reported[record["path"]] = text
    return is_new


def _print(record: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.encode(record, enc_hook=str).decode())
        return
    path, text = _line(record)
    click.echo(f"{path}: {text}", err="error" in record)


@contextlib.contextmanager
def _until_signalled() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set; the second signal ends the process at once."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def end(number: int, frame: Any) -> None:
        del number, frame
        stop.set()
        for one in before:
            signal.signal(one, signal.SIG_DFL)

    for number in before:
        signal.signal(number, end)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
