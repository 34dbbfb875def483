"""``twinlake serve``: tables as a catalog for Iceberg clients."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from twinlake.cli.command import command
from twinlake.cli.view import Fields, View
from twinlake.errors import Code, UserError
from twinlake.rest import ServerSettings, Warehouse, check_settings
from twinlake.rest import serve as run_server
from twinlake.table import default_catalog_path

if TYPE_CHECKING:
    from twinlake.cli.output import Output

__all__ = ["DATABASE", "serve"]

DATABASE = Path("~/.twinlake/server.db")


@command(table=False)
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8181, show_default=True, help="A free port."
)
@click.option(
    "--warehouse",
    "warehouses",
    multiple=True,
    required=True,
    metavar="NAME=LOCATION",
    help="A warehouse: the folder or URL below which its tables are made. Repeatable; clients "
    "that name none get the first.",
)
@click.option(
    "--database",
    metavar="URL",
    help=f"The SQLite file of names, made if need be. Default: {DATABASE}.",
)
@click.option(
    "--kind",
    type=click.Choice(["twin", "native"]),
    default="twin",
    show_default=True,
    help="What a new table becomes.",
)
@click.option(
    "--allow-location",
    "allowed",
    multiple=True,
    metavar="PREFIX",
    help="Where tables may be beside the warehouses. Repeatable.",
)
@click.option(
    "--auth",
    type=click.Choice(["none", "tokens", "oidc"]),
    default="none",
    show_default=True,
    help="How clients show who they are.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes that answer requests.",
)
def serve(
    output: Output,
    host: str,
    port: int,
    warehouses: tuple[str, ...],
    database: str | None,
    kind: str,
    allowed: tuple[str, ...],
    auth: str,
    workers: int,
) -> None:
    """Serve tables to Iceberg clients as an Iceberg REST catalog.

    The server runs until Ctrl-C or SIGTERM and then answers the requests that it has begun. What a
    client commits is one entry of the Delta log, which Delta readers see at once. The server has no
    accounts and listens on loopback addresses only. Tables of the catalog of names whose location
    is allowed are served too.
    """
    _refuse_what_comes_later(kind, auth)
    place = default_catalog_path(os.environ)
    settings = ServerSettings(
        warehouses=tuple(Warehouse.parse(text) for text in warehouses),
        database=database or str(DATABASE.expanduser()),
        host=host,
        port=port,
        workers=workers,
        allowed_locations=allowed,
        names_file=None if place.startswith("http") else place,
    )
    check_settings(settings)
    data = {
        "uri": f"http://{f'[{host}]' if ':' in host else host}:{port}/",
        "warehouses": {one.name: one.location for one in settings.warehouses},
        "database": settings.database,
        "workers": workers,
    }
    rows = [("address", data["uri"]), ("database", settings.database)]
    rows += [(f"warehouse {one.name}", one.location) for one in settings.warehouses]
    output.show(View(data=data, blocks=[Fields(tuple((name, str(v)) for name, v in rows))]))
    run_server(settings)


def _refuse_what_comes_later(kind: str, auth: str) -> None:
    if kind == "native":
        raise UserError(
            Code.NOT_YET,
            "The server cannot make native Iceberg tables.",
            why="in this release every table it makes is a twin table, with a Delta log",
            fix="Start it without `--kind`.",
        )
    if auth != "none":
        raise UserError(
            Code.NOT_YET,
            f"The server cannot check {auth}.",
            why="this release has no accounts",
            fix="Start it with `--auth none`, which listens on loopback addresses only.",
        )
