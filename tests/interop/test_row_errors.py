"""Errors about rows name columns and rules; values of the row only if the session asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from twinlake import Table
from twinlake.errors import TwinlakeError
from twinlake.spark import DeltaTable, write
from twinlake.spark.delta_settings import SHOW_VALUES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SECRET = "4111-secret"
NAME = f"'{SECRET}'"
SECRET_NUMBER = 41111111111


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, rows that break one of its rules, and what of a row is shown on request."""

    id: tuple[str, bool] = ("INT", True)
    """Type and nullability."""
    name: str = "STRING"
    constraints: tuple[tuple[str, str], ...] = ()
    query: str
    replace_where: str | None = None
    update: str | None = None
    """What the rows get as id once they are written; else the write itself is refused."""
    delta_class: str
    row: tuple[tuple[str, object], ...]


CASES = {
    "CHECK": Case(
        constraints=(("short", "id > 0 AND length(name) < 3"),),
        query=f"SELECT 1 AS id, {NAME} AS name",
        delta_class="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        row=(("id", 1), ("name", SECRET)),
    ),
    "NOT NULL": Case(
        id=("INT", False),
        query=f"SELECT CAST(NULL AS INT) AS id, {NAME} AS name",
        delta_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        row=(("id", None), ("name", SECRET)),
    ),
    "value that does not fit": Case(
        query="SELECT 1 AS id, 'x' AS name",
        update=f"CAST({SECRET_NUMBER} AS BIGINT) + 0 * length(name)",
        delta_class="DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
        row=(("id", SECRET_NUMBER),),
    ),
    "replace_where": Case(
        query=f"SELECT 2 AS id, {NAME} AS name",
        replace_where="id = 1",
        delta_class="DELTA_REPLACE_WHERE_MISMATCH",
        row=(("id", 2), ("name", SECRET)),
    ),
    "length": Case(
        name="VARCHAR(3)",
        query=f"SELECT 1 AS id, {NAME} AS name",
        delta_class="DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        row=(("name", SECRET),),
    ),
}


@pytest.fixture(params=[False, True], ids=["compiled", "interpreted"])
def spark(delta_spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """Expressions that only raise must wait for their row, however Spark evaluates them."""
    names = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    before = [delta_spark.conf.get(name) for name in names]
    if not request.param:
        delta_spark.conf.set(names[0], "true")
        delta_spark.conf.set(names[1], "FALLBACK")
    yield delta_spark
    for name, value in zip(names, before, strict=True):
        delta_spark.conf.set(name, str(value))
    delta_spark.conf.unset(SHOW_VALUES)


def broken(spark: SparkSession, path: Path, case: Case) -> TwinlakeError:
    kind, nullable = case.id
    making = DeltaTable.create(spark).location(str(path))
    making = making.addColumn("id", kind, nullable=nullable).addColumn("name", case.name)
    making.execute()
    for name, expression in case.constraints:
        Table.open(path).add_constraint(name, expression)
    where: dict[str, Any] = {"replace_where": case.replace_where} if case.replace_where else {}
    # Many rows, so that a Spark job writes them; just one of them is wrong.
    frame = spark.sql(f"{case.query} FROM range(30000) WHERE id = 7")
    if case.update is not None:
        write(frame, path, "append")
        with pytest.raises(TwinlakeError) as caught:
            DeltaTable.forPath(spark, str(path)).update(set={"id": case.update})
        return caught.value
    with pytest.raises(TwinlakeError) as caught:
        write(frame, path, "overwrite" if where else "append", **where)
    return caught.value


def whole_text(error: BaseException | None) -> str:
    """The error with everything it was made of."""
    texts = []
    while error is not None:
        texts.append(f"{error!r} {error} {getattr(error, 'fields', '')}")
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


@pytest.mark.parametrize("name", CASES)
def test_an_error_about_a_row_shows_no_values(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    case = CASES[name]
    error = broken(spark, tmp_path / "t", case)
    assert error.delta_class == case.delta_class
    assert error.fields["columns"] == [column for column, _ in case.row]
    assert SECRET not in whole_text(error)
    assert str(SECRET_NUMBER) not in whole_text(error)
    assert "__twinlake" not in whole_text(error)
    assert f"spark.conf.set('{SHOW_VALUES}', 'true')" in error.fix


@pytest.mark.parametrize("name", CASES)
def test_values_of_the_tables_own_columns_are_shown_on_request(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    case = CASES[name]
    # The session of the frame counts, not whichever was used last.
    other: Any = spark.newSession()
    other._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(other._jsparkSession)
    spark.conf.set(SHOW_VALUES, "true")
    error = broken(spark, tmp_path / "t", case)
    assert error.delta_class == case.delta_class
    assert error.fields["row"] == dict(case.row)
    assert str(dict(case.row).get("name", SECRET_NUMBER)) in error.why


@pytest.mark.parametrize("show", [False, True])
def test_a_new_constraint_counts_rows(spark: SparkSession, tmp_path: Path, show: bool) -> None:
    write(spark.sql(f"SELECT 1 AS id, {NAME} AS name"), tmp_path / "t")
    spark.conf.set(SHOW_VALUES, str(show).lower())
    add: Callable[..., object] = Table.open(tmp_path / "t").add_constraint
    with pytest.raises(TwinlakeError) as caught:
        add("short", "length(name) < 3", spark=spark)
    assert caught.value.fields["count"] == 1
    assert (SECRET in whole_text(caught.value)) is show


def test_a_setting_that_is_no_flag_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set(SHOW_VALUES, "perhaps")
    with pytest.raises(TwinlakeError, match="is 'perhaps'"):
        Table.create(tmp_path / "t", "id INT NOT NULL")
        write(spark.sql("SELECT CAST(NULL AS INT) AS id"), tmp_path / "t", "append")
