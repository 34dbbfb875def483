"""Data files by Spark's own Parquet writer: the fast way, wherever it can make what is wanted.

Spark writes into a staging folder inside the table, on the same file system; the files are then
renamed to their final places, which costs nothing. What their footers say becomes statistics.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from twinlake.actions import AddFile
from twinlake.commit.plans import STAGING_PREFIX
from twinlake.errors import Code, CorruptTable, StorageError, UserError
from twinlake.log import StatsColumns, read_footer, stats_json
from twinlake.schema import (
    BOOLEAN,
    BYTE,
    DATE,
    INTEGER,
    LONG,
    SHORT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VARIANT,
    VOID,
    DataType,
    Decimal,
    Geography,
    Geometry,
    Interval,
    Struct,
    StructField,
    field_id,
    map_fields,
    nested_ids,
    parse_partition_path,
    parse_partition_value,
    render_partition_path,
    render_partition_value,
    render_schema,
    walk_fields,
    walk_types,
)
from twinlake.spark.files.file_layout import Layout, file_tags
from twinlake.spark.java_names import narrow_encoding
from twinlake.spark.job_errors import job_storage_error
from twinlake.spark.session import inner_session
from twinlake.spark.spark_types import java_class
from twinlake.storage import OnDisk, Syncs, encode_path, os_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from twinlake.spark.files.target import FileTarget
    from twinlake.storage import Store

__all__ = ["NativeWriter"]

_FIELD_ID: Final = "parquet.field.id"
_COMPLETE: Final = "org$apache$spark$sql$classic$ObservationManager$$tryComplete"
_THREADS: Final = 8
# Types whose spelling in a folder's name gives back the very value.
_SPELT: Final = frozenset(
    {STRING, BOOLEAN, BYTE, SHORT, INTEGER, LONG, DATE, TIMESTAMP, TIMESTAMP_NTZ}
)
_OPTIONS: Final[Mapping[str, str]] = {
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # The zone in which folders spell timestamps.
    "timeZone": "UTC",
}


class NativeWriter:
    """Spark's Parquet writer, for tables in a folder of this machine."""

    def refusal(self, target: FileTarget) -> str | None:
        """Why Spark's writer cannot make such files; None if it can."""
        layout = Layout.of(target)
        return next((why for check in _CHECKS if (why := check(target, layout))), None)

    def write(self, frame: DataFrame, target: FileTarget) -> tuple[AddFile, ...]:
        """The new files; a failed job leaves nothing."""
        store = target.store()
        layout = Layout.of(target)
        staging = f"{STAGING_PREFIX}{uuid4()}"
        folder = _local(store).local_path(staging)
        what = f"Could not write data files in {store.url}."
        try:
            with os_errors(what, store.url):
                # Where that fails, Hadoop says no more than "Mkdirs failed".
                os.makedirs(folder)  # noqa: PTH103
                os.rmdir(folder)  # noqa: PTH106
            with _job_errors(what):
                _run(frame, layout, folder)
            with os_errors(what, store.url):
                return _take_over(store, target, layout, staging)
        finally:
            # A task that outlives its failed job may still put a file there.
            for _ in range(2):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _job_errors(what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        found = job_storage_error(error)
        if found is None:
            raise
        found.what = what
        raise found from error


def _run(frame: DataFrame, layout: Layout, folder: str) -> None:
    """Have Spark write the frame into the folder."""
    from pyspark.sql.classic.column import _to_seq

    spark = frame.sparkSession
    observed = "CollectMetrics" in str(cast("Any", frame)._jdf.queryExecution().analyzed())
    inner = inner_session(spark, with_listeners=observed)
    kept = [i for i, f in enumerate(layout.columns) if f.type != VOID]
    fields = [layout.columns[i] for i in kept]
    source: Any = frame
    if _has_deep_ids(frame, fields, layout.field_ids):
        chosen = frame if len(kept) == len(layout.columns) else frame.select(*_columns(frame, kept))
        execution = cast("Any", chosen)._jdf.queryExecution()
        kinds = java_class(spark, "org.apache.spark.sql.types.DataType")
        schema = kinds.fromJson(_spark_schema(fields, layout))
        # The same rows under another schema: names and ids at every level, nothing copied.
        written = inner.internalCreateDataFrame(execution.toRdd(), schema, False)
    else:
        execution = None
        source = _named(frame, layout, kept)
        plan = source._jdf.queryExecution().analyzed()
        written = java_class(spark, "org.apache.spark.sql.classic.Dataset").ofRows(inner, plan)
    writer = written.write().mode("error")
    for key, value in _OPTIONS.items():
        writer = writer.option(key, value)
    if layout.partitions:
        names = [layout.columns[i].name for i in layout.partitions]
        writer = writer.partitionBy(_to_seq(spark.sparkContext, names))
    # Not a URL: Hadoop takes what follows the scheme as it is.
    writer.parquet(f"file://{folder}")
    if execution is not None and observed:
        _tell_observers(spark, execution)


def _tell_observers(spark: SparkSession, execution: Any) -> None:
    """Running a frame as an RDD tells nobody that it ended; whoever observes it would wait."""
    manager = cast("Any", spark)._jsparkSession.observationManager()
    with contextlib.suppress(Exception):
        getattr(manager, _COMPLETE)(execution)


def _columns(frame: DataFrame, places: list[int]) -> list[Any]:
    from pyspark.sql import functions

    names = [frame.columns[i].replace("`", "``") for i in places]
    return [functions.col(f"`{name}`") for name in names]


def _named(frame: DataFrame, layout: Layout, kept: list[int]) -> DataFrame:
    """The frame with the names and ids of the files, and nulls allowed everywhere."""
    from pyspark.sql.classic.column import Column

    given = frame.schema.fields
    wanted = [layout.columns[i] for i in kept]
    same = len(given) == len(kept) and all(
        g.name == w.name and g.nullable and _FIELD_ID not in g.metadata
        for g, w in zip(given, wanted, strict=True)
    )
    if same and not layout.field_ids:
        return frame
    spark = frame.sparkSession
    expressions = java_class(spark, "org.apache.spark.sql.classic.ExpressionUtils")
    nullable = java_class(spark, "org.apache.spark.sql.catalyst.expressions.KnownNullable")
    columns = []
    for place, column in zip(kept, _columns(frame, kept), strict=True):
        field = layout.columns[place]
        if not given[place].nullable:
            column = Column(expressions.column(nullable(expressions.expression(column._jc))))
        columns.append(column.alias(field.name, metadata=_ids(field, layout.field_ids)))
    return frame.select(*columns)


def _has_deep_ids(frame: DataFrame, fields: list[StructField], field_ids: bool) -> bool:
    """Whether members of structs need other names or ids than the frame has."""
    if field_ids:
        return any(len(path) > 1 for path, _ in walk_fields(Struct(tuple(fields))))
    # Ids of the frame's own origin must not get into the files of a table without them.
    return any(_FIELD_ID in f.dataType.json() for f in frame.schema.fields)


def _ids(field: StructField, field_ids: bool) -> dict[str, int]:
    number = field_id(field) if field_ids else None
    return {} if number is None else {_FIELD_ID: number}


def _spark_schema(fields: list[StructField], layout: Layout) -> str:
    def plain(_: object, field: StructField) -> StructField:
        return replace(field, metadata=_ids(field, layout.field_ids))

    return render_schema(cast("Struct", map_fields(Struct(tuple(fields)), plain)))


def _take_over(
    store: Store, target: FileTarget, layout: Layout, staging: str
) -> tuple[AddFile, ...]:
    """Move the files of a finished job to their places and say what is in them."""
    found = sorted(m.key for m in store.list_from(staging) if m.key.endswith(".parquet"))
    keys = [key for key in found if not key.rsplit("/", 1)[1].startswith((".", "_"))]
    if not keys and not layout.partitions:
        raise StorageError(
            Code.STORAGE,
            "Spark wrote files that this process cannot see.",
            why="the executors do not share the folder of the table with the driver",
            fix="Use a folder that all machines share, an object store, or "
            "`spark.conf.set('spark.twinlake.writer', 'arrow')`.",
            fields={"store": store.url},
        )
    columns = (
        StatsColumns.of(target.metadata, target.protocol, clustering=target.clustering)
        if target.stats
        else None
    )
    moved: list[str] = []

    def one(key: str) -> AddFile | None:
        return _move(store, target, layout, columns, key, staging, moved)

    try:
        if len(keys) == 1:
            adds = [one(keys[0])]
        else:
            with ThreadPoolExecutor(_THREADS) as pool:
                adds = list(pool.map(one, keys))
    except BaseException:
        with contextlib.suppress(Exception):
            store.delete(moved)
        raise
    return tuple(add for add in adds if add is not None)


def _move(
    store: Store,
    target: FileTarget,
    layout: Layout,
    columns: StatsColumns | None,
    key: str,
    staging: str,
    moved: list[str],
) -> AddFile | None:
    """Rename one file into the table; None for a file without rows, which stays behind."""
    footer = read_footer(store, key)
    if not footer.metadata.num_rows:
        return None
    folder, _, name = key[len(staging) + 1 :].rpartition("/")
    values = _partition_values(folder, layout)
    place = "/".join(p for p in (target.folder, render_partition_path(values), name) if p)
    disk = _local(store)
    path = disk.local_path(place)
    os.makedirs(path[: path.rindex("/")], exist_ok=True)  # noqa: PTH103
    moved.append(place)
    os.rename(disk.local_path(key), path)  # noqa: PTH104
    if isinstance(store, Syncs):
        store.sync(place)
    meta = store.head(place)
    return AddFile(
        path=encode_path(place),
        partition_values=values,
        size=footer.size,
        modification_time=0 if meta is None else meta.modified_ms,
        data_change=True,
        stats=None if columns is None else stats_json(footer.metadata, columns),
        tags=file_tags(target),
    )


def _partition_values(folder: str, layout: Layout) -> dict[str, str | None]:
    """The partition strings of the log, from those that Spark put into the folder's name."""
    if not layout.partitions:
        return {}
    if "?" in folder or "\ufffd" in folder:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The partition folder {folder!r} was not spelt as it should be.",
            why="Spark's Java runs in a locale whose file names cannot hold all of Unicode",
            fix="Start Spark with `LC_ALL=C.UTF-8`, or run "
            "`spark.conf.set('spark.twinlake.writer', 'arrow')`.",
            fields={"folder": folder},
        )
    spelt = parse_partition_path(folder)
    values: dict[str, str | None] = {}
    for place in layout.partitions:
        field = layout.columns[place]
        try:
            value = parse_partition_value(spelt[field.name], field.type)
        except CorruptTable as error:
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"A value of partition column {field.name} cannot be written down.",
                why=error.why,
                fix="Partition values have years 1 to 9999.",
                fields={"column": field.name},
            ) from error
        values[field.name] = render_partition_value(value, field.type)
    return values


def _local(store: Store) -> OnDisk:
    if not isinstance(store, OnDisk):
        raise UserError(
            Code.INVALID_ARGUMENT,
            "Spark's own writer only writes tables in a folder of this machine.",
            fix="Run `spark.conf.set('spark.twinlake.writer', 'auto')`.",
            fields={"store": store.url},
        )
    return store


# What the writer cannot do. Each check gives its sentence, or None.


def _elsewhere(target: FileTarget, _: Layout) -> str | None:
    return None if isinstance(target.store(), OnDisk) else "the table is not in a local folder"


def _rolls(target: FileTarget, _: Layout) -> str | None:
    return "a file size is asked for" if target.target_file_size is not None else None


def _holds_partitions(_: FileTarget, layout: Layout) -> str | None:
    return "files have to hold the partition columns" if layout.materialises else None


def _only_partitions(_: FileTarget, layout: Layout) -> str | None:
    return None if layout.kept else "there is no column beside the partition columns"


def _has_element_ids(_: FileTarget, layout: Layout) -> str | None:
    if not layout.field_ids:
        return None
    found = (p for p, f in walk_fields(Struct(layout.columns)) if nested_ids(f))
    path = next(found, ())
    return f"{'.'.join(path)} has field ids for its elements, keys or values" if path else None


def _odd_partition(_: FileTarget, layout: Layout) -> str | None:
    kinds = ((layout.columns[i].name, layout.columns[i].type) for i in layout.partitions)
    odd = [f"{name} ({kind})" for name, kind in kinds if not _is_spelt(kind)]
    return f"the name of a folder may not give back {', '.join(odd)}" if odd else None


def _is_spelt(kind: DataType) -> bool:
    return kind in _SPELT or isinstance(kind, Decimal)


def _odd_type(_: FileTarget, layout: Layout) -> str | None:
    for path, kind in _types(layout):
        if kind in (VARIANT, VOID) or isinstance(kind, Interval | Geometry | Geography):
            return f"{'.'.join(path)} is of type {kind}"
    return None


def _types(layout: Layout) -> Iterator[tuple[tuple[str, ...], DataType]]:
    for place in (*layout.kept, *layout.partitions):
        field = layout.columns[place]
        yield from walk_types(field.type, (field.name,))


def _narrow_locale(target: FileTarget, layout: Layout) -> str | None:
    """Java replaces what its locale cannot spell in file names by question marks."""
    strings = any(layout.columns[i].type == STRING for i in layout.partitions)
    names = "".join(layout.columns[i].name for i in layout.partitions)
    if not strings and (_root(target) + names).isascii():
        return None
    encoding = narrow_encoding()
    return None if encoding is None else f"Java spells file names in {encoding}"


def _root(target: FileTarget) -> str:
    store = target.store()
    return store.local_path("x") if isinstance(store, OnDisk) else ""


_CHECKS: Final[tuple[Callable[[FileTarget, Layout], str | None], ...]] = (
    _elsewhere,
    _rolls,
    _holds_partitions,
    _only_partitions,
    _has_element_ids,
    _odd_partition,
    _odd_type,
    _narrow_locale,
)
