"""Errors that are twinlake's and PySpark's at once; the list below was met in Delta Spark 4.4.0."""

from __future__ import annotations

import ast
import copy
import inspect
import json
import pickle
from pathlib import Path

import pyspark.errors
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
    PythonException,
    SparkRuntimeException,
    UnsupportedOperationException,
)

from twinlake import errors as plain
from twinlake.errors import Code, ConflictError, CorruptTable, TwinlakeError, UserError
from twinlake.spark import exceptions
from twinlake.spark.error_classes import ERROR_CLASSES, ExceptionKind, error_class
from twinlake.spark.error_messages import ERROR_MESSAGES, message_of
from twinlake.spark.errors import (
    SparkError,
    decode_error,
    encode_error,
    encode_error_around_row,
    encoded_errors,
    raises_spark_errors,
    spark_error,
    spark_errors,
)

#: What arrived in PySpark when Delta Spark refused: error class, type, SQLSTATE.
MEASURED: list[tuple[str, type[Exception], str]] = [
    ("SCHEMA_ALREADY_EXISTS", AnalysisException, "42P06"),
    ("DELTA_MISSING_DELTA_TABLE", AnalysisException, "42P01"),
    ("DELTA_VERSION_NOT_FOUND", AnalysisException, "22003"),
    ("DELTA_TIMESTAMP_GREATER_THAN_COMMIT", AnalysisException, "42816"),
    ("DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION", AnalysisException, "42816"),
    ("DELTA_TIMESTAMP_INVALID", AnalysisException, "42816"),
    ("DELTA_CANNOT_RESTORE_TABLE_VERSION", AnalysisException, "22003"),
    ("DELTA_NOT_NULL_CONSTRAINT_VIOLATED", Py4JJavaError, "23502"),
    ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", Py4JJavaError, "23001"),
    ("DELTA_EXCEED_CHAR_VARCHAR_LIMIT", Py4JJavaError, "22001"),
    ("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", AnalysisException, "23512"),
    ("DELTA_CONSTRAINT_ALREADY_EXISTS", AnalysisException, "42710"),
    ("DELTA_CONSTRAINT_DOES_NOT_EXIST", AnalysisException, "42704"),
    ("DELTA_CANNOT_MODIFY_APPEND_ONLY", UnsupportedOperationException, "42809"),
    (
        "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
        UnsupportedOperationException,
        "21506",
    ),
    ("DELTA_METADATA_MISMATCH", AnalysisException, "42KDG"),
    ("DELTA_FAILED_TO_MERGE_FIELDS", AnalysisException, "22005"),
    ("DELTA_PATH_EXISTS", AnalysisException, "42K04"),
    ("DELTA_PARTITION_COLUMN_NOT_FOUND", AnalysisException, "42703"),
    ("DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION", AnalysisException, "428FT"),
    ("DELTA_REPLACE_WHERE_MISMATCH", AnalysisException, "44000"),
    ("UNRESOLVED_COLUMN.WITH_SUGGESTION", AnalysisException, "42703"),
    ("PARSE_SYNTAX_ERROR", ParseException, "42601"),
    ("DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", IllegalArgumentException, "22003"),
    ("DELTA_UNKNOWN_CONFIGURATION", AnalysisException, "F0000"),
    ("DELTA_UNSUPPORTED_DROP_COLUMN", AnalysisException, "0AKDC"),
    ("DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP", AnalysisException, "0AKDC"),
    ("DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE", UnsupportedOperationException, "0AKDC"),
    ("TABLE_OR_VIEW_ALREADY_EXISTS", AnalysisException, "42P07"),
    ("DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES", AnalysisException, "42K05"),
    ("DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT", Py4JJavaError, "55000"),
    ("DELTA_UNSUPPORTED_FEATURES_IN_CONFIG", Py4JJavaError, "56038"),
    ("DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED", AnalysisException, "42808"),
    ("DELTA_NON_PARTITION_COLUMN_REFERENCE", AnalysisException, "42P10"),
    ("DELTA_PROTOCOL_PROPERTY_NOT_INT", IllegalArgumentException, "42K06"),
    ("DELTA_METADATA_MISMATCH", AnalysisException, "42KDG"),
    ("DELTA_ILLEGAL_OPTION", IllegalArgumentException, "42616"),
]

CONFLICTS = [name for name in exceptions.__all__ if name != "DeltaConcurrentModificationException"]


def error(code: Code = Code.CONSTRAINT, delta_class: str | None = None) -> UserError:
    return UserError(
        code, "What.", why="Why.", fix="Fix.", delta_class=delta_class, fields={"n": 1}
    )


@pytest.mark.parametrize(("name", "expected", "state"), MEASURED, ids=[row[0] for row in MEASURED])
def test_an_error_is_caught_as_in_delta_spark(
    name: str, expected: type[Exception], state: str
) -> None:
    converted = spark_error(error(Code.INTERNAL, name))
    assert isinstance(converted, UserError)
    assert isinstance(converted, expected)
    assert isinstance(converted, PySparkException)
    assert isinstance(converted, SparkError)
    assert converted.getCondition() == name
    assert converted.getSqlState() == state
    said, _, own = str(converted).partition("\n")
    assert said.startswith(f"[{name}] ")
    assert own == str(error(Code.INTERNAL))
    assert converted.getMessage() == str(converted)
    assert converted.getMessageParameters() == {"n": "1"}
    assert converted.getQueryContext() == []
    assert converted.getErrorClass() == name


def test_what_delta_lets_through_bare_is_a_type_of_pyspark_as_well() -> None:
    converted = spark_error(error(delta_class="DELTA_NOT_NULL_CONSTRAINT_VIOLATED"))
    assert isinstance(converted, SparkRuntimeException)
    assert isinstance(converted, Py4JJavaError)
    assert type(converted).__name__ == "SparkRuntimeException"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (Code.INVALID_ARGUMENT, IllegalArgumentException),
        (Code.PREDICATE_INVALID, ParseException),
        (Code.TABLE_NOT_FOUND, AnalysisException),
        (Code.COLUMN_NOT_FOUND, AnalysisException),
        (Code.APPEND_ONLY, UnsupportedOperationException),
        (Code.SPARK_REQUIRED, UnsupportedOperationException),
        (Code.LOG_CORRUPT, SparkRuntimeException),
        (Code.FEATURE_DROP, Py4JJavaError),
    ],
)
@pytest.mark.parametrize("unlisted", [None, "DELTA_SOMETHING_NEW"])
def test_without_a_listed_class_the_code_decides(
    code: Code, expected: type[Exception], unlisted: str | None
) -> None:
    converted = spark_error(CorruptTable(code, "What.", delta_class=unlisted))
    assert isinstance(converted, CorruptTable)
    assert isinstance(converted, expected)
    assert isinstance(converted, SparkError)
    assert converted.getCondition() == unlisted
    assert converted.getSqlState() is None
    assert converted.getMessage().endswith("What.")


@pytest.mark.parametrize("code", list(Code), ids=str)
def test_every_code_has_a_spark_error(code: Code) -> None:
    assert isinstance(spark_error(TwinlakeError(code, "What.")), PySparkException)


def test_every_listed_class_names_a_type_and_a_state() -> None:
    assert all(row.sql_state is None or len(row.sql_state) == 5 for row in ERROR_CLASSES.values())
    assert ERROR_CLASSES["DELTA_CONCURRENT_APPEND"].kind is ExceptionKind.CONFLICT


def test_every_listed_class_has_the_words_of_its_message() -> None:
    assert sorted({name.partition(".")[0] for name in ERROR_CLASSES}) == sorted(ERROR_MESSAGES)


def test_every_class_that_is_raised_is_listed() -> None:
    """Names that are put together are left out."""
    folder = Path(plain.__file__).parent
    raised = {
        keyword.value.value
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "delta_class" and isinstance(keyword.value, ast.Constant)
    }
    names = {str(name) for name in raised if name is not None}
    assert {name for name in names if error_class(name) is None} == set()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"version": 9, "earliest": 0, "latest": 3}, "to version 9. Available versions: [0, 3]."),
        ({"version": 9, "earliest": None, "latest": 3}, "to version 9."),
        ({}, "to version"),
    ],
)
def test_values_stand_in_the_words_where_an_error_has_them(
    fields: dict[str, object], said: str
) -> None:
    text = message_of("DELTA_VERSION_NOT_FOUND", fields)
    assert text == f"Cannot time travel Delta table {said}".strip()


def test_a_case_of_a_condition_has_the_words_of_the_condition() -> None:
    whole = message_of("DELTA_DUPLICATE_COLUMNS_FOUND", {"columns": ["a", "b"]})
    assert whole == message_of("DELTA_DUPLICATE_COLUMNS_FOUND.DATA", {"columns": ["a", "b"]})
    assert whole == "Found duplicate column(s): a, b"
    assert message_of("DELTA_SOMETHING_NEW", {}) == message_of(None, {}) == ""


def test_every_listed_class_is_raised_somewhere() -> None:
    """Names that are put together (features that are dropped or missing) are taken by their end."""
    folder = Path(plain.__file__).parent
    sources = (path for path in folder.rglob("*.py") if path.name != "error_classes.py")
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    made = ("DELTA_UNSUPPORTED_FEATURES_FOR_", "DELTA_FEATURE_REQUIRES_HIGHER_")
    names = (name.removeprefix("DELTA_FEATURE_DROP_") for name in ERROR_CLASSES)
    assert [name for name in names if name not in text and not name.startswith(made)] == []


def test_one_class_for_a_pair_and_no_second_conversion() -> None:
    first, second = spark_error(error()), spark_error(error())
    assert type(first) is type(second)
    assert spark_error(first) is first


@pytest.mark.parametrize("name", CONFLICTS)
def test_conflicts_keep_their_names(name: str) -> None:
    raised = getattr(plain, name)(Code.CONFLICT_APPEND, "What.", fields={"winner": 7})
    converted = spark_error(raised)
    assert type(converted).__name__ == name
    assert type(converted) is getattr(exceptions, name)
    assert isinstance(converted, type(raised))
    assert isinstance(converted, exceptions.DeltaConcurrentModificationException)
    assert isinstance(converted, PySparkException)
    assert isinstance(converted, ConflictError)
    assert converted.winner == 7


def test_the_names_of_delta_exceptions_are_all_there() -> None:
    conflicts = [
        name
        for name, kind in inspect.getmembers(plain, inspect.isclass)
        if issubclass(kind, ConflictError) and kind is not ConflictError
    ]
    assert sorted(conflicts) == sorted(CONFLICTS)
    other = spark_error(ConflictError(Code.CONFLICT_WRITE, "What."))
    assert type(other) is exceptions.DeltaConcurrentModificationException


@pytest.mark.parametrize(
    "raised",
    [
        error(Code.TABLE_NOT_FOUND, "DELTA_TABLE_NOT_FOUND"),
        error(Code.CONSTRAINT, "DELTA_NOT_NULL_CONSTRAINT_VIOLATED"),
        plain.ConcurrentAppendException(Code.CONFLICT_APPEND, "What.", fields={"winner": 7}),
    ],
    ids=["analysis", "runtime", "conflict"],
)
def test_errors_survive_pickle_and_copy(raised: TwinlakeError) -> None:
    converted = spark_error(raised)
    for again in (
        pickle.loads(pickle.dumps(converted)),
        copy.copy(converted),
        copy.deepcopy(converted),
    ):
        assert type(again) is type(converted)
        assert again.to_dict() == converted.to_dict()
        assert again.args == converted.args
        assert isinstance(again, SparkError)
        assert again.getQueryContext() == []
    bare = pickle.loads(pickle.dumps(raised))
    assert type(bare) is type(raised)
    assert bare.to_dict() == raised.to_dict()


def user_raised(text: str) -> PySparkException:
    """What ``raise_error`` of SQL arrives as."""
    return SparkRuntimeException(
        message=f"[USER_RAISED_EXCEPTION] {text}",
        errorClass="USER_RAISED_EXCEPTION",
        messageParameters={"errorMessage": text},
    )


def test_a_violated_constraint_comes_out_of_a_job_with_its_row() -> None:
    violated = UserError(
        Code.CONSTRAINT,
        "CHECK constraint pos (id > 0) is violated.",
        why="the expression is not true",
        fix="correct the rows",
        delta_class="DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        fields={"constraint": "pos", "expression": "id > 0"},
    )
    before, after = encode_error_around_row(violated)
    text = before + json.dumps({"id": -1, "name": "TWINLAKE:{ü"}) + after
    with pytest.raises(UserError) as caught, spark_errors():
        raise user_raised(text)
    converted = caught.value
    assert isinstance(converted, Py4JJavaError)
    assert converted.delta_class == "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    assert converted.fields == {
        "constraint": "pos",
        "expression": "id > 0",
        "row": {"id": -1, "name": "TWINLAKE:{ü"},
    }
    assert converted.why == (
        'the expression is not true; for example the row (id: -1, name: "TWINLAKE:{ü")'
    )
    assert isinstance(converted.__cause__, SparkRuntimeException)


def test_an_error_of_a_python_worker_comes_out_as_what_it_is() -> None:
    with pytest.raises(RuntimeError) as caught, encoded_errors():
        raise CorruptTable(Code.DV_CORRUPT, "Damaged.", fields={"path": "a"})
    trace = (
        f"Traceback:\n  raise RuntimeError(TWINLAKE:)\nRuntimeError: {caught.value}\n\n at org.x"
    )
    found = decode_error(PythonException(message=trace))
    assert type(found) is CorruptTable
    assert (found.code, found.fields) == (Code.DV_CORRUPT, {"path": "a"})


@pytest.mark.parametrize(
    "exception",
    [
        user_raised("TWINLAKE:{}"),
        user_raised("TWINLAKE:not json"),
        user_raised('TWINLAKE:{"code": "OTHER", "what": "x"}'),
        user_raised("another message"),
        AnalysisException(message=encode_error(error()), errorClass="OTHER", messageParameters={}),
        ValueError(encode_error(error())),
        KeyError("x"),
    ],
    ids=["empty", "no-json", "no-code", "other-text", "other-class", "python", "key"],
)
def test_everything_else_passes_unchanged(exception: Exception) -> None:
    @raises_spark_errors
    def fails() -> None:
        raise exception

    with pytest.raises(type(exception)) as caught:
        fails()
    assert caught.value is exception


def test_the_border_keeps_arguments_results_causes_and_tracebacks() -> None:
    @raises_spark_errors
    def public(number: int, *, text: str = "a") -> str:
        """Doc."""
        if number:
            try:
                raise OSError("disk")
            except OSError as cause:
                raise error(Code.TABLE_NOT_FOUND) from cause
        return text

    assert public(0, text="b") == "b"
    assert public.__doc__ == "Doc."
    with pytest.raises(AnalysisException) as caught:
        public(1)
    assert isinstance(caught.value, UserError)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.traceback[-1].name == "public"
    with pytest.raises(AnalysisException) as again, spark_errors():
        public(1)
    assert again.value.__class__ is caught.value.__class__


def test_the_types_are_those_pyspark_exports() -> None:
    assert issubclass(AnalysisException, pyspark.errors.PySparkException)
    assert issubclass(type(spark_error(error(Code.PREDICATE_INVALID))), AnalysisException)
