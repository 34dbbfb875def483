"""``twinlake log``: the files of the log, or the actions of a commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from twinlake.actions import decode_lines, encode_action
from twinlake.cli.command import command
from twinlake.cli.text import time_text, truncate
from twinlake.cli.view import Grid, Lines, View, ViewColumn
from twinlake.errors import Code, StorageError, TwinlakeError, UserError
from twinlake.log import LOG_FOLDER, commit_key, parse_log_file
from twinlake.protocol.properties import Verbatim, redact
from twinlake.schema import parse_schema, render_ddl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.cli.output import Output
    from twinlake.cli.table_reference import TableReference
    from twinlake.cli.view import Block
    from twinlake.storage import Store

__all__ = ["log"]

_SHOWN = 400


@command()
@click.argument("version", type=click.IntRange(min=0), required=False, metavar="[VERSION]")
@click.option("--raw", is_flag=True, help="Print the lines of the commit unchanged, with secrets.")
def log(output: Output, reference: TableReference, version: int | None, raw: bool) -> None:
    """Show the actions of a commit, or the files of the log.

    With VERSION the actions of that commit, without it the files of _delta_log. Reads only these
    files, so it also works on a table that cannot be opened.
    """
    store = reference.existing_store()
    if version is not None:
        view = _raw(store, version) if raw else _actions(store, version)
    elif raw:
        raise click.UsageError("--raw needs a VERSION.")
    else:
        view = _folder(store)
    output.show(view)


def _folder(store: Store) -> View:
    found: list[dict[str, Any]] = []
    for item in store.list_from(LOG_FOLDER):
        file = parse_log_file(item.key)
        found.append(
            {
                "name": item.key.removeprefix(f"{LOG_FOLDER}/"),
                "kind": file.kind.value if file else None,
                "version": file.version if file else None,
                "size": item.size,
                "modified": item.modified_ms,
            }
        )
    rows = [(f["name"], f["kind"], f["size"], time_text(f["modified"])) for f in found]
    return View(
        data={"location": store.url, "files": found},
        blocks=[Grid.of("file kind size:r changed", rows)],
    )


def _read(store: Store, version: int) -> bytes:
    try:
        return store.read(commit_key(version))
    except StorageError as error:
        if error.code != Code.STORAGE_NOT_FOUND:
            raise
        raise UserError(
            Code.VERSION_NOT_FOUND,
            f"There is no commit of version {version} at {store.url}.",
            why="it was never committed, or log cleanup has deleted it",
            fix="Run `twinlake log PATH` to list the commits.",
            fields={"version": version},
        ) from error


def _raw(store: Store, version: int) -> View:
    lines = tuple(_read(store, version).decode(errors="replace").splitlines())
    return View(
        data={"location": store.url, "version": version, "lines": Verbatim(lines)},
        blocks=[Lines(lines, verbatim=True)],
    )


def _actions(store: Store, version: int) -> View:
    data = _read(store, version)
    actions = [
        redact(msgspec.json.decode(encode_action(action)))
        for action in decode_lines(data, source=commit_key(version))
    ]
    blocks: list[Block] = []
    for action in actions:
        for name, value in action.items():
            rows = [(key, truncate(text, _SHOWN)) for key, text in _flattened(value)]
            blocks.append(Grid((ViewColumn(name), ViewColumn("value")), rows))
    return View(data={"location": store.url, "version": version, "actions": actions}, blocks=blocks)


def _flattened(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """A nested value as dotted names, one a line; JSON within JSON is opened too."""
    inner = _opened(value)
    if isinstance(inner, dict) and inner:
        for key, item in inner.items():
            yield from _flattened(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(inner, list):
        yield prefix, ", ".join(str(item) for item in inner) or "[]"
    else:
        yield prefix, str(inner)


def _opened(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        inner: Mapping[str, Any] | list[Any] = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value
    # A schema reads better as DDL than as a tree of dotted names.
    if isinstance(inner, dict) and inner.get("type") == "struct":
        try:
            return render_ddl(parse_schema(value))
        except TwinlakeError:
            return value
    return inner
