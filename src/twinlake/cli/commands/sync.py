"""``twinlake sync``: bring the Iceberg metadata of tables up to their Delta logs."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import PAIR, command
from twinlake.cli.output import error_lines
from twinlake.cli.place import Place
from twinlake.cli.view import Facts, View
from twinlake.errors import Code, TwinlakeError, UserError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from twinlake.cli.output import Output
    from twinlake.iceberg import SyncResult
    from twinlake.table import Table
    from twinlake.table.watch import Watched

__all__ = ["sync"]


@command(table=False)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--watch",
    is_flag=True,
    help="Go on until Ctrl-C or SIGTERM: convert every commit soon after it is made, also by "
    "other engines. Prints a line for each conversion and failure, with --json a JSON document.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.01),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How long --watch waits between two looks.",
)
@click.option("--spark", is_flag=True, help="Start Spark for the first conversion of big tables.")
@click.option(
    "--publish",
    metavar="NAME",
    help="Also give the table this name, which from now on follows: table or namespace.table in "
    "the catalog of names, catalog.namespace.table in a catalog that PyIceberg knows.",
)
@click.option(
    "--option",
    "options",
    type=PAIR,
    multiple=True,
    help="A setting of the object store, such as region=eu-west-1. Repeatable.",
)
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

    No data file is written or copied: <PATH>/_iceberg/metadata gets the metadata of every version
    that has none, and <PATH>/_iceberg opens as an Iceberg table. A table that fails does not keep
    the others from it. Exit status: 0 if all are up to date, 1 if one failed.
    """
    places = [Place(path=path, options=dict(options)) for path in paths]
    with _session(wanted=spark) as session:
        if publish is not None:
            _publish(places, publish, session)
        if watch:
            _watch(places, interval, session, as_json=not _is_text(output))
            return
        records = [_synced(place, session) for place in places]
    output.show(
        View(data={"tables": records}, blocks=[Facts(tuple(_line(one) for one in records))])
    )
    if any("error" in one for one in records):
        click.get_current_context().exit(1)


@contextlib.contextmanager
def _session(*, wanted: bool) -> Iterator[Any]:
    if not wanted:
        yield None
        return
    from twinlake.spark.local_session import local_session

    with local_session() as spark:
        yield spark


def _is_text(output: Output) -> bool:
    from twinlake.cli.output import JsonOutput

    return not isinstance(output, JsonOutput)


def _publish(places: Sequence[Place], name: str, session: Any) -> None:
    if len(places) != 1:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{len(places)} tables cannot have the one name {name}.",
            why="--publish names one table",
            fix="Run `twinlake sync PATH --publish NAME` once for each table.",
        )
    places[0].open().iceberg.publish(name, session)


def _synced(place: Place, session: Any) -> dict[str, Any]:
    try:
        table = place.open()
        return _record(place, table, table.iceberg.sync(session))
    except TwinlakeError as error:
        return _failed(place, error)


def _record(place: Place, table: Table, done: SyncResult) -> dict[str, Any]:
    return {
        "path": place.path,
        "location": table.location,
        "version": done.version,
        "converted": done.converted,
        "rebuilt": done.rebuilt,
        "metadata_location": done.metadata_location,
        "name": table.iceberg.name,
    }


def _failed(place: Place, error: TwinlakeError) -> dict[str, Any]:
    click.echo("\n".join(error_lines(error)), err=True)
    return {"path": place.path, "error": {**error.to_dict(), "type": type(error).__name__}}


def _line(record: dict[str, Any]) -> tuple[str, str]:
    if "error" in record:
        return record["path"], f"failed: {record['error']['what']}"
    count = record["converted"]
    commits = f"{count} commit{'' if count == 1 else 's'} converted" if count else "nothing to do"
    why = f" (rebuilt: {record['rebuilt']})" if record["rebuilt"] else ""
    name = f", published as {record['name']}" if record["name"] else ""
    return record["path"], f"Iceberg metadata at version {record['version']}, {commits}{why}{name}"


def _watch(places: Sequence[Place], interval: float, session: Any, *, as_json: bool) -> None:
    from twinlake.table.watch import Watched

    watched = [(place, Watched(place.open, session)) for place in places]
    told: dict[str, str] = {}
    with _until_signalled() as stop:
        while not stop.is_set():
            for place, table in watched:
                if stop.is_set():
                    break
                record = _look(place, table)
                if record is not None and _is_news(record, told):
                    _tell(record, as_json=as_json)
            stop.wait(interval)


def _look(place: Place, table: Watched) -> dict[str, Any] | None:
    """What became of one table; a failure of it must not end the watch over the others."""
    try:
        done = table.look()
        newest = table.table
        return None if done is None or newest is None else _record(place, newest, done)
    except TwinlakeError as error:
        return {"path": place.path, "error": {**error.to_dict(), "type": type(error).__name__}}
    except Exception as error:
        what = f"twinlake did not expect this: {error!r}"
        return {"path": place.path, "error": {"code": str(Code.INTERNAL), "what": what}}


def _is_news(record: dict[str, Any], told: dict[str, str]) -> bool:
    """Whether it was not said before: a failure is told once, however long it lasts."""
    text = _line(record)[1] if "error" in record else f"version {record['version']}"
    is_news = told.get(record["path"]) != text or bool(record.get("converted"))
    told[record["path"]] = text
    return is_news


def _tell(record: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        import msgspec

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
