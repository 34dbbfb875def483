"""What an error tells its reader to type exists: commands, options, calls, arguments, properties.

A fix writes code in backticks. Each piece is compared with the commands and their options, the
public functions and their parameters, and the registries of properties and features; code that
stands outside backticks is an error too.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shlex
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from tests.support.fix_texts import HOLE, SOURCE, FixText, fix_texts, pieces, without_pieces
from tests.unit.cli.running import children
from twinlake.cli import main
from twinlake.protocol import FEATURES, PROPERTIES
from twinlake.spark.streaming.source_options import OPTION_NAMES
from twinlake.storage.os_errors import OS_ERRORS

if TYPE_CHECKING:
    from collections.abc import Iterator

PYPROJECT = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")

#: Classes whose methods a fix may name without their module, and where they are.
CLASSES = {
    "Table": "twinlake",
    "Transaction": "twinlake.commit",
    "DeltaTable": "twinlake.spark",
}
#: Builders whose methods are named alone, as one writes them in a chain.
BUILDERS = (
    "twinlake.spark.DeltaTableBuilder",
    "twinlake.spark.DeltaMergeBuilder",
    "twinlake.spark.DeltaOptimizeBuilder",
    "twinlake.spark.reorg",
    "pyspark.sql.DataFrame",
    "pyspark.sql.DataFrameReader",
    "pyspark.sql.DataFrameWriter",
    "pyspark.sql.Column",
    "pyspark.sql.streaming.DataStreamWriter",
)
#: Values, examples and names of others, as they are typed.
PLAIN = {
    "true", "false", "id", "name", "iceberg", "spec", "static", "dynamic", "full", "lite", "0",
    "delta.", "delta.constraints.", "_delta_log", "_iceberg", "ulimit -n", "~/.pyiceberg.yaml",
    "id INT, name STRING", "a.`b.c`", "LC_ALL=C.UTF-8", "JAVA_HOME", "SPARK_REMOTE",
    "PYICEBERG_CATALOG__HOLE__URI", "TWINLAKE_CATALOG", "spark.api.mode", "spark.archives", HOLE,
    "@", "io.delta:delta-spark", "spark.jars", "spark.jars.packages", "spark.sql.extensions",
    "2024-05-01 12:00:00", "rewrite_table_path", "duckdb.connect()",
    f"pip install 'twinlake[{HOLE}]'",
    f"{HOLE}/data/catalog.db", f"load_catalog({HOLE}).create_namespace({HOLE})",
    '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}',
    # Options of streams and what they may be.
    *OPTION_NAMES, "txnAppId", "metadata", "path", "always", "latest", "update", "10 seconds",
    "availableNow", "foreachBatch", "follow", "readStream", "load(PATH)", "start(PATH)",
    ".option('checkpointLocation', FOLDER)",
}  # fmt: skip
#: Calls of Spark's own.
SPARK = re.compile(
    r"spark\.(conf\.set|read\.parquet)\(|SparkSession\.builder\.(config|master|remote)\("
)

#: Statements of SQL, or parts of them, that `twinlake.spark.sql` takes.
SQL = re.compile(
    r"(ALTER TABLE|CREATE TABLE|CREATE TEMPORARY VIEW|DELETE FROM|DESCRIBE EXTENDED|DROP TABLE"
    r"|EXPLAIN SELECT|INSERT INTO|SET|SHOW TBLPROPERTIES|TIMESTAMP AS OF|VERSION AS OF) \S"
    r"|OPTIMIZE$|table_changes\('"
)

#: What looks like code. Words of the format in prose (NOT NULL, CHECK, VACUUM) are not code.
CODE = re.compile(
    rf"""
    \btwinlake\ (?:{"|".join(children(main))})\b
    | (?<![\w-])--[a-z]                # an option
    | \b\w+\([^)]*\)                   # a call
    | \b[a-z]\w*=                      # an argument
    | \b(?:Table|DeltaTable|Catalog|Transaction)\.\w+
    | \b(?:delta|spark|twinlake)\.[A-Za-z]\w+
    | \b[a-z]+_[a-z_]+\b               # a name of Python
    | \b[a-z]+[A-Z]\w+                 # a name of Delta
    | \bpip\ install\b
    | \b(?:ALTER|REORG|CREATE|DROP|SET|UNSET|DESCRIBE|INSERT|SELECT|APPLY)\ [A-Z(]
    """,
    re.VERBOSE,
)


# All texts in one test: finding them takes seconds, which is no work for the collection of tests.
@pytest.fixture(scope="module")
def texts() -> list[FixText]:
    return fix_texts()


def test_what_a_fix_names_exists(texts: list[FixText]) -> None:
    pytest.importorskip("pyspark")
    wrong = [
        f"{fix}: {piece}: {problem}"
        for fix in texts
        for piece in pieces(fix.text)
        for problem in _problems(piece)
    ]
    assert wrong == []


def test_code_in_a_fix_stands_in_backticks(texts: list[FixText]) -> None:
    wrong = [
        str(fix)
        for fix in texts
        if CODE.search(without_pieces(fix.text)) or fix.text.count("`") % 2
    ]
    assert wrong == []


def test_a_fix_is_a_sentence(texts: list[FixText]) -> None:
    reasons = {why for why, _ in OS_ERRORS.values()}  # they stand beside their fixes
    wrong = [str(fix) for fix in texts if fix.text not in reasons and not is_sentence(fix.text)]
    assert wrong == []


def is_sentence(text: str) -> bool:
    """Whether it begins and ends as one, as far as it is known before an error is raised."""
    if text.startswith(","):  # goes on from the text before it
        text = "X" + text
    known = text.strip().replace("H O L E", HOLE)
    return bool(re.match(r"[A-Z`]", known) and re.search(rf"([.?]|{HOLE})$", known))


@pytest.mark.parametrize("text", ["check the path.", "Check the path", "use `x`"])
def test_the_search_for_sentences_can_fail(text: str) -> None:
    assert not is_sentence(text)


def test_the_texts_are_all_found(texts: list[FixText]) -> None:
    written = sum(
        isinstance(node, ast.keyword) and node.arg == "fix"
        for path in SOURCE.rglob("*.py")
        if "verify/models" not in path.as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )
    assert len(texts) > written > 300


@pytest.mark.parametrize(
    "piece",
    [
        "twinlake nope PATH",
        "twinlake alter PATH --nope",
        "twinlake verify nope",
        "--nope",
        "Table.nope()",
        "Table.vacuum(nope=1)",
        "twinlake.spark.nope(spark)",
        "nope=",
        "delta.nope",
        'Table.set_properties({"delta.nope": "true"})',
        "twinlake alter PATH --set delta.nope=true",
        'Table.drop_feature("nope")',
        "twinlake upgrade PATH --to nope",
        "pip install 'twinlake[nope]'",
        "ALTER FEATURE x OF t",
    ],
)
def test_the_comparison_can_fail(piece: str) -> None:
    assert list(_problems(piece))


@pytest.mark.parametrize(
    "text",
    [
        "Run twinlake upgrade PATH.",
        "Drop it: ALTER TABLE t DROP CONSTRAINT c.",
        "Purge it: REORG TABLE t APPLY (PURGE).",
        "Create it: create_namespace(x).",
        "Pass --no-retention-check.",
        "Set delta.appendOnly to false.",
        "Use icebergCompatV2.",
        "Pass enforce_retention=False.",
    ],
)
def test_the_search_for_bare_code_can_fail(text: str) -> None:
    assert CODE.search(without_pieces(text))


def _problems(piece: str) -> Iterator[str]:
    """What does not exist in a piece of code."""
    if piece in PLAIN or SQL.match(piece):
        return
    if piece.startswith("twinlake "):
        yield from _command_problems(shlex.split(piece)[1:])
    elif extra := re.fullmatch(rf"pip install 'twinlake\[(\w+)\](?:=={HOLE})?'", piece):
        if not re.search(rf"^{extra[1]} = \[", PYPROJECT, re.MULTILINE):
            yield "no such extra"
    elif piece.startswith("--"):
        if not any(piece.split()[0] in _options(command) for command in _commands(main)):
            yield "no such option"
    elif piece in FEATURES or _is_option_of_spark(piece) or _is_property(piece.partition("=")[0]):
        return
    elif argument := re.fullmatch(r"([a-z_]+)=(.*)", piece):
        if argument[1] not in _every_parameter():
            yield "no such argument"
    else:
        yield from _call_problems(piece)


def _is_option_of_spark(name: str) -> bool:
    from twinlake.spark.delta_options import OPTIONS

    return name in {option.name for option in OPTIONS}


def _is_property(key: str) -> bool:
    return (
        key in PROPERTIES
        or (
            key.startswith("delta.feature.")
            and key.removeprefix("delta.feature.") in {*FEATURES, HOLE}
        )
        or key in {"delta.rowTrackingSuspended", HOLE, HOLE * 2}
    )


def _command_problems(words: list[str]) -> Iterator[str]:
    command: click.Command = main
    while isinstance(command, click.Group) and words and words[0] != HOLE:
        name = words.pop(0)
        if name not in children(command):
            yield f"no command {name}"
            return
        command = children(command)[name]
    if isinstance(command, click.Group):
        known = {option for one in _commands(command) for option in _options(one)}
    else:
        known = set(_options(command))
    for number, word in enumerate(words):
        if word.startswith("--") and word not in known:
            yield f"no option {word}"
        value = words[number + 1] if number + 1 < len(words) else ""
        if word in {"--set", "--unset"} and not _is_property(value.partition("=")[0]):
            yield f"no property {value}"
        if word in {"--to", "--add-feature", "--drop-feature"} and not _is_feature(value):
            yield f"no feature {value}"


def _is_feature(name: str) -> bool:
    return name in FEATURES or name in {HOLE, "NAME", "FEATURE"}


def _commands(group: click.Group) -> Iterator[click.Command]:
    for command in children(group).values():
        if isinstance(command, click.Group):
            yield from _commands(command)
        yield command


def _options(command: click.Command) -> list[str]:
    return [*(name for param in command.params for name in param.opts), "--help"]


def _call_problems(piece: str) -> Iterator[str]:
    if SPARK.match(piece):
        return
    try:
        tree = ast.parse(piece.replace("...", "ANY"), mode="eval").body
    except SyntaxError:
        yield "neither a command nor a call"
        return
    try:
        _resolve(tree)
    except LookupError as error:
        yield str(error)


def _resolve(node: ast.expr) -> Any:
    """The object that an expression names; its arguments are compared with its parameters."""
    if isinstance(node, ast.Call):
        function = _resolve(node.func)
        _check_arguments(function, node)
        return _result(function)
    if isinstance(node, ast.Attribute):
        owner = _resolve(node.value)
        if inspect.ismodule(owner):
            return _member(owner, node.attr)
        found = inspect.getattr_static(owner, node.attr, None)
        if found is None:
            raise LookupError(f"no {node.attr} in {owner}")
        if isinstance(found, property):
            return _result(found.fget)
        return getattr(owner, node.attr)
    assert isinstance(node, ast.Name), ast.unparse(node)
    return _named(node.id)


def _named(name: str) -> Any:
    if name in CLASSES:
        return getattr(importlib.import_module(CLASSES[name]), name)
    if name == "twinlake":
        return importlib.import_module("twinlake")
    for path in BUILDERS:
        module, _, owner = path.rpartition(".")
        found = getattr(importlib.import_module(module), owner)
        if owner == name:
            return found
        if hasattr(found, name):
            return getattr(found, name)
    raise LookupError(f"no {name}")


def _member(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        try:
            return importlib.import_module(f"{module.__name__}.{name}")
        except ModuleNotFoundError:
            raise LookupError(f"no {name} in {module.__name__}") from None
    return getattr(module, name)


def _result(function: Any) -> Any:
    """What a call gives: the class itself, or what its annotation says."""
    if inspect.isclass(function):
        return function
    module = inspect.getmodule(function)
    text = str(inspect.signature(function).return_annotation).strip("'\"")
    if text == "Self" or module is None:
        return object
    return getattr(module, text, None) or _imported(module, text)


def _imported(module: Any, name: str) -> Any:
    """A class that the module imports for type checkers only."""
    source = inspect.getsource(module)
    found = re.search(rf"from (\S+) import [^\n]*\b{re.escape(name)}\b", source)
    return getattr(importlib.import_module(found[1]), name) if found else object


def _check_arguments(function: Any, node: ast.Call) -> None:
    parameters = inspect.signature(function).parameters.values()
    named = {p.name for p in parameters}
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for keyword in node.keywords:
            if keyword.arg not in named:
                raise LookupError(f"no argument {keyword.arg}")
    name = getattr(function, "__name__", "")
    if name in {"set_properties", "unset_properties"}:
        given = node.args[0]
        keys = given.keys if isinstance(given, ast.Dict) else getattr(given, "elts", [])
        for key in keys:
            if isinstance(key, ast.Constant) and not _is_property(str(key.value)):
                raise LookupError(f"no property {key.value!r}")
    if name in {"add_feature", "drop_feature", "upgrade", "addFeatureSupport"}:
        first = node.args[0]
        if isinstance(first, ast.Constant) and not _is_feature(str(first.value)):
            raise LookupError(f"no feature {first.value!r}")


def _every_parameter() -> set[str]:
    """The parameters of the functions that programs call."""
    from twinlake import Table
    from twinlake.commit.plans import touched
    from twinlake.protocol import required_minimum_protocol

    functions = [m for _, m in inspect.getmembers(Table, callable)]
    functions += [touched, required_minimum_protocol]
    spark = importlib.import_module("twinlake.spark")
    functions += [spark.changes, spark.scan, spark.write, spark.reorg]
    functions += [spark.follow, spark.into]
    options = importlib.import_module("twinlake.spark.dml.write").WriteOptions
    names = set(
        typing.get_type_hints(
            options, include_extras=False, localns={"Mapping": dict, "Operation": object}
        )
    )
    for function in functions:
        try:
            names |= set(inspect.signature(function).parameters)
        except ValueError:
            continue
    return names
