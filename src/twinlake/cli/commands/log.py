"""``twinlake log``: the log folder, or what one commit says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from twinlake.cli.command import command
from twinlake.cli.masking import Verbatim, masked
from twinlake.cli.view import Column, Grid, Lines, View
from twinlake.cli.wording import moment, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from twinlake.cli.output import Output
    from twinlake.cli.place import Place
    from twinlake.cli.view import Block
    from twinlake.storage import Store

__all__ = ["log"]

_SHOWN = 400


@command()
@click.argument("version", type=click.IntRange(min=0), required=False, metavar="[VERSION]")
@click.option("--raw", is_flag=True, help="The lines of the commit as they are, secrets and all.")
def log(output: Output, place: Place, version: int | None, raw: bool) -> None:
    """What a commit says, or what the log folder holds.

    With VERSION the actions of that commit, without it the files of the folder. Looks at the
    files and at nothing else, so it also works where the table cannot be opened.
    """
    store = place.existing_store()
    if version is not None:
        view = _raw(store, version) if raw else _actions(store, version)
    elif raw:
        raise click.UsageError("--raw needs a VERSION.")
    else:
        view = _folder(store)
    output.show(view)


def _folder(store: Store) -> View:
    from twinlake.log.names import LOG_FOLDER, parse_log_file

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
    rows = [(f["name"], f["kind"], f["size"], moment(f["modified"])) for f in found]
    return View(
        data={"location": store.url, "files": found},
        blocks=[Grid.of("file kind size:r changed", rows)],
    )


def _read(store: Store, version: int) -> bytes:
    from twinlake.errors import Code, StorageError, UserError
    from twinlake.log import commit_key

    try:
        return store.read(commit_key(version))
    except StorageError as error:
        if error.code != Code.STORAGE_NOT_FOUND:
            raise
        raise UserError(
            Code.VERSION_NOT_FOUND,
            f"There is no commit of version {version} at {store.url}.",
            why="it was never made, or cleanup has deleted it",
            fix="Run `twinlake log PATH` to list the commits that are there.",
            fields={"version": version},
        ) from error


def _raw(store: Store, version: int) -> View:
    lines = tuple(_read(store, version).decode(errors="replace").splitlines())
    return View(
        data={"location": store.url, "version": version, "lines": Verbatim(lines)},
        blocks=[Lines(lines, verbatim=True)],
    )


def _actions(store: Store, version: int) -> View:
    import msgspec

    from twinlake.actions import decode_lines, encode_action
    from twinlake.log import commit_key

    data = _read(store, version)
    actions = [
        masked(msgspec.json.decode(encode_action(action)))
        for action in decode_lines(data, source=commit_key(version))
    ]
    blocks: list[Block] = []
    for action in actions:
        for name, value in action.items():
            rows = [(key, shortened(text, _SHOWN)) for key, text in _flattened(value)]
            blocks.append(Grid((Column(name), Column("value")), rows))
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
    import msgspec

    if not isinstance(value, str) or not value.startswith(("{", "[")):
        return value
    try:
        inner: Mapping[str, Any] | list[Any] = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value
    # A schema reads better as DDL than as a tree of dotted names.
    if isinstance(inner, dict) and inner.get("type") == "struct":
        from twinlake.errors import TwinlakeError
        from twinlake.schema import parse_schema, render_ddl

        try:
            return render_ddl(parse_schema(value))
        except TwinlakeError:
            return value
    return inner
