"""What handlers work with: the settings of the server, its database, its tables, its counters."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from twinlake.errors import Code, UserError
from twinlake.rest.catalog import open_database
from twinlake.rest.counters import RequestCounters
from twinlake.rest.location_policy import LocationPolicy, home_location
from twinlake.rest.names_file import import_names
from twinlake.rest.served_tables import ServedTables
from twinlake.rest.single_change import SingleChange
from twinlake.rest.table_answers import TableAnswers
from twinlake.rest.table_loader import TableLoader
from twinlake.runtime import Runtime, Threads
from twinlake.table.iceberg_commits import IcebergCommits

if TYPE_CHECKING:
    from twinlake.rest.catalog import CatalogDatabase
    from twinlake.rest.request import ApiRequest
    from twinlake.rest.settings import ServerSettings

__all__ = ["ServerContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerContext:
    """One for each process of a server."""

    settings: ServerSettings
    database: CatalogDatabase
    tables: ServedTables
    counters: RequestCounters
    runtime: Runtime
    pool: ThreadPoolExecutor
    """Where handlers run; what they wait for never blocks the loop that reads requests."""

    @classmethod
    def open(cls, settings: ServerSettings, runtime: Runtime | None = None) -> ServerContext:
        """Open the database and whatever else handlers need."""
        runtime = runtime or Runtime()
        limits = settings.limits
        database = open_database(settings.database)
        allowed = tuple(home_location(text) for text in settings.allowed_locations)
        commits = IcebergCommits(runtime=runtime, readers=Threads())
        answers = TableAnswers(limits.cached_bytes)
        loader = TableLoader(
            commits=commits,
            answers=answers,
            seconds=limits.conversion_seconds,
            pool=ThreadPoolExecutor(limits.threads, "load"),
        )
        tables = ServedTables(
            database=database,
            policies={
                one.name: LocationPolicy(warehouse=home_location(one.location), allowed=allowed)
                for one in settings.warehouses
            },
            commits=commits,
            loader=loader,
            answers=answers,
            runtime=runtime,
        )
        if settings.names_file is not None:
            import_names(tables, settings.names_file)
        return cls(
            settings=settings,
            database=database,
            tables=tables,
            counters=RequestCounters(),
            runtime=runtime,
            pool=ThreadPoolExecutor(limits.threads, "request"),
        )

    def warehouse(self, name: str) -> str:
        """The warehouse of a name; ``UserError`` where the server has none of it."""
        if name not in self.tables.policies:
            raise UserError(
                Code.WAREHOUSE_NOT_FOUND,
                f"There is no warehouse {name[:100]!r}.",
                why="the server was started without it",
                fix=f"Use one of {', '.join(self.tables.policies)}, or start the server with "
                "`--warehouse NAME=LOCATION`.",
                fields={"warehouse": name[:100]},
            )
        return name

    def single_change(self, warehouse: str, request: ApiRequest) -> SingleChange:
        """The change of the database that a request makes."""
        return SingleChange(self.database, self.runtime, warehouse, request)

    def close(self) -> None:
        """Let what runs end, then close the database."""
        self.pool.shutdown(wait=True)
        self.tables.loader.pool.shutdown(wait=True, cancel_futures=True)
        self.database.close()
