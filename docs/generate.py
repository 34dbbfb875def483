"""Write the reference pages from the code: errors, features, rules, routes, commands.

``python docs/generate.py`` writes them, ``--check`` only compares and exits with 1 on drift.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import importlib
import inspect
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from twinlake.spark.delta_options import OptionUse

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the code. Do not edit; run `make docs`. -->"


def error_page() -> str:
    """The stable codes with the ``#:`` comment of each, and the tree of classes."""
    from twinlake import errors

    classes = _classes_by_code(errors)
    tree = (errors.__doc__ or "").split("::\n\n", 1)[1].split("\n\n", 1)[0]
    return "\n".join(
        [
            "# Errors",
            "",
            "Every error has a stable `code`, says what happened, why, and how to fix it, and",
            "carries its details in `fields`. Catch the class; show or log the code.",
            "",
            "```",
            inspect.cleandoc("\n" + tree),
            "```",
            "",
            "| code | class | meaning |",
            "|---|---|---|",
            *(
                f"| `{code}` | {', '.join(f'`{one}`' for one in classes[name])} | {meaning} |"
                for name, code, meaning in _codes(errors)
            ),
            *_spark_errors(),
        ]
    )


def _spark_errors() -> Iterator[str]:
    """The conditions by which programs on Spark know errors."""
    from twinlake.spark.error_classes import ERROR_CLASSES, ExceptionKind

    caught = {
        ExceptionKind.ANALYSIS: "AnalysisException",
        ExceptionKind.PARSE: "ParseException",
        ExceptionKind.ARGUMENT: "IllegalArgumentException",
        ExceptionKind.UNSUPPORTED: "UnsupportedOperationException",
        ExceptionKind.ARITHMETIC: "ArithmeticException",
        ExceptionKind.NUMBER: "NumberFormatException",
        ExceptionKind.CONFLICT: "its class in twinlake.spark.exceptions",
        ExceptionKind.RUNTIME: "Py4JJavaError, SparkRuntimeException",
    }
    yield from [
        "",
        "## In PySpark",
        "",
        "What leaves `twinlake.spark` is a `PySparkException` as well. Where Delta Spark or Spark",
        "has a condition for the error, `getCondition()` and `getErrorClass()` return it,",
        "`getSqlState()` its SQLSTATE, and the text begins as the message of Delta Spark does:",
        "the condition in brackets, then its words. The three lines of twinlake follow.",
        "",
        "| condition | SQLSTATE | caught as |",
        "|---|---|---|",
    ]
    for name, row in sorted(ERROR_CLASSES.items()):
        yield f"| `{name}` | {row.sql_state or ''} | {caught[row.kind]} |"


def _classes_by_code(errors: Any) -> dict[str, list[str]]:
    """The names of codes, with the classes that are raised with each, as the source says it."""
    known = {
        name
        for name, one in vars(errors).items()
        if inspect.isclass(one) and issubclass(one, errors.TwinlakeError)
    }
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(Path(errors.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            # Raised with the code first, or a row of a registry that names both.
            named = {ast.unparse(one) for one in (node.func, *node.args)} & known
            for part in (one for argument in node.args[:2] for one in ast.walk(argument)):
                if isinstance(part, ast.Attribute) and ast.unparse(part.value) == "Code":
                    found[part.attr] |= named
    return defaultdict(list, {name: sorted(classes) for name, classes in found.items()})


def _codes(errors: Any) -> Iterator[tuple[str, str, str]]:
    source = inspect.getsource(errors)
    lines = source.splitlines()
    (enum,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == "Code"
    )
    for node in enum.body:
        if not isinstance(node, ast.Assign):
            continue
        code, name = ast.literal_eval(node.value), ast.unparse(node.targets[0])
        # A formatter may wrap a long member in brackets, with the comment on an inner line, and
        # a comment too long for its line stands above it.
        above = lines[node.lineno - 2] if lines[node.lineno - 2].strip().startswith("#:") else ""
        text = "\n".join([above, *lines[node.lineno - 1 : node.end_lineno]])
        _, found, comment = text.partition("#:")
        if not found:
            sys.exit(f"{code} has no `#:` comment in errors.py")
        yield name, code, comment.splitlines()[0].strip()


#: The packages whose exports are the public interface, with what each is for.
PUBLIC = {
    "twinlake": "Tables, what their operations return, and the errors.",
    "twinlake.spark": "Rows, on PySpark.",
    "twinlake.protocol": "Protocols, table features and properties as values.",
    "twinlake.spark.exceptions": "Conflicts under the names of `delta.exceptions`.",
    "twinlake.verify": "The model checker.",
}


def python_page() -> str:
    """What a program may import."""
    lines = [
        "# Python interface",
        "",
        "What a program may import. Everything else is private and may change in any release.",
    ]
    for package, purpose in PUBLIC.items():
        module = importlib.import_module(package)
        lines += ["", f"## `{package}`", "", purpose, "", "| name | |", "|---|---|"]
        for name in sorted(module.__all__):
            lines.append(f"| `{name}` | {_summary(getattr(module, name))} |")
    return "\n".join(lines)


def _summary(value: Any) -> str:
    """The first paragraph of a docstring; the type of a constant."""
    if not callable(value) and not inspect.ismodule(value):
        return f"A constant: {type(value).__name__}."
    text = inspect.cleandoc(value.__doc__ or "").split("\n\n")[0]
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|")


def feature_page() -> str:
    """The registry of table features."""
    from twinlake.protocol import render_feature_table

    return "\n".join(
        [
            "# Table features",
            "",
            "Every feature twinlake knows by name. A table that lists a feature unknown here is",
            "refused by name; nothing is guessed.",
            "",
            render_feature_table().strip(),
        ]
    )


def property_page() -> str:
    """The registry of table properties."""
    from twinlake.protocol import render_property_table

    return "\n".join(
        [
            "# Table properties",
            "",
            "Properties in the `delta.` space that are checked when they are set. Other keys are",
            "kept as they are.",
            "",
            render_property_table().strip(),
            "",
            "`delta.universalFormat.config.iceberg.<name>` sets property `<name>` of the Iceberg",
            "metadata. Values are checked. What the metadata says itself is refused: locations,",
            "the name mapping, `format-version`, `gc.enabled`, and names that begin with `delta-`,",
            "`delta.`, `twinlake.` or `encryption.`. `history.expire.max-snapshot-age-ms` may be",
            "shorter than Delta's own retention, never longer.",
        ]
    )


def cli_page() -> str:
    """The command line, from its own help."""
    import click

    from twinlake import cli

    groups = [value for value in vars(cli).values() if isinstance(value, click.Group)]
    if not groups:
        sys.exit("twinlake.cli exports no click group to document")
    group = groups[0]
    lines = ["# Command line", "", "`twinlake` and `python -m twinlake` are the same.", ""]
    lines += [inspect.cleandoc(group.help or ""), ""]
    for name, child in _children(group):
        lines += _command(f"twinlake {name}", child)
    return "\n".join(lines)


def _children(group: Any) -> Iterator[tuple[str, Any]]:
    import click

    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in sorted(group.list_commands(context)):
            yield name, group.get_command(context, name)


def _command(name: str, command: Any) -> Iterator[str]:
    import click

    context = click.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    yield from (f"## `{name}`", "", "```", usage, "```")
    yield from ("", inspect.cleandoc(command.help or "").replace("\b\n", ""), "")
    options = [option for option in command.get_params(context) if isinstance(option, click.Option)]
    records = [record for option in options if (record := option.get_help_record(context))]
    if records:
        yield from ("| option | meaning |", "|---|---|")
        yield from (f"| `{_cell(flag)}` | {_cell(text)} |" for flag, text in records)
        yield ""
    for child, made in _children(command):
        yield from _command(f"{name} {child}", made)


def spark_page() -> str:
    """The session settings and options that count, and what comes later."""
    from twinlake.spark.delta_options import OPTIONS
    from twinlake.spark.delta_settings import SETTINGS
    from twinlake.spark.unsupported import UNSUPPORTED_CALLS

    return "\n".join(
        [
            "# Spark: session settings, options, and what comes later",
            "",
            "`twinlake.spark.DeltaTable` has the names, arguments and results of",
            "`delta.tables.DeltaTable`. Beside them it has `reorg()` with `where(condition)`,",
            "`executePurge()` and `executeUpgradeUniform(version)`, which Delta offers as SQL",
            "only; `twinlake.spark.reorg(spark, path_or_name, where=None, purge=True,",
            "upgrade_uniform=None)` is the same as a function. These settings of a session keep",
            "working under their names; others are ignored.",
            "",
            "| setting | default | meaning |",
            "|---|---|---|",
            *(
                f"| `{s.name}` | {f'`{s.default}`' if s.default else ''} | {_cell(s.meaning)} |"
                for s in SETTINGS
            ),
            "",
            "These options of Delta's readers and writers work under",
            "`enable(spark, delta=True)` ([how](../how-to/replace-delta-spark.md)), whatever",
            "their case. `delta.*` are properties of a new table, `fs.*` settings of the file",
            "system; an option that is not listed is reported once, as a warning.",
            "",
            "| option | for | meaning |",
            "|---|---|---|",
            *(f"| `{x.name}` | {_uses(x.use)} | {_cell(x.meaning)} |" for x in OPTIONS),
            "",
            "These calls are known and not supported yet. They raise `TWIN-NOT-YET`, which",
            "PySpark's `UnsupportedOperationException` catches too.",
            "",
            "| call | what it will do | until then |",
            "|---|---|---|",
            *(
                f"| `{x.name}` | {_cell(x.what)} | {_cell(x.meanwhile)} |"
                for x in UNSUPPORTED_CALLS
            ),
        ]
    )


def _uses(use: OptionUse) -> str:
    return ", ".join(str(one.name).lower().replace("_", " ") for one in use)


def compat_page() -> str:
    """The rules of each compat feature."""
    from twinlake.compat import COMPATS, NOT_RULES, PROFILE_KEY

    lines = [
        "# Rules of Iceberg compatibility",
        "",
        "Under the five compat features a table can be read, or read and written, as an Iceberg",
        "table. These are their rules. Every commit must fulfil them, `Table.check` and",
        "`twinlake check` report on them, `twinlake features --explain NAME` shows those of one;",
        "see [how to check a table](../how-to/check-a-table.md).",
        "",
        "*Looks at*: `metadata` is the table as it is (schema, properties, protocol), `change`",
        "what differs from the version before, `commit` what the log says of files, `footer` the",
        "data files themselves. A flag that is absent, or anything but `true`, is off.",
        "",
        "*Profiles*: who reads the rule in another way ([how](#other-readings)), and who does",
        f"not know it. The profile `spec` is the default; `{PROFILE_KEY}` stores",
        "the one of a table.",
    ]
    for compat in COMPATS.values():
        lines += ["", *_compat(compat)]
    lines += ["", *_other_readings()]
    lines += ["", "## Numbers without a rule", "", "| id | why |", "|---|---|"]
    lines += [f"| {name} | {_cell(why)} |" for name, why in NOT_RULES.items()]
    return "\n".join(lines)


def _compat(compat: Any) -> Iterator[str]:
    from twinlake.compat import RULES

    yield from (f"## {compat.feature}", "", f"Enabled by `{compat.key}`.")
    if compat.base is not None:
        yield f"Requires {compat.base}: its rules apply too."
    yield ""
    yield "| id | looks at | a table that keeps it | why | how to fix it | profiles |"
    yield "|---|---|---|---|---|---|"
    for rule in RULES:
        if rule.compat == compat:
            cells = [rule.title, rule.reason, rule.fix, _readings(rule)]
            yield f"| {rule.id} | {rule.scope} | {' | '.join(map(_cell, cells))} |"


def _other_readings() -> Iterator[str]:
    """What each reading that is not the specification's looks at, in the words of its code."""
    from twinlake.compat import RULES

    found: dict[tuple[str, str], list[str]] = {}
    for rule in RULES:
        for profile, check in sorted(rule.profiles.items()):
            if check is not None:
                words = inspect.cleandoc(check.__doc__ or "")
                found.setdefault((str(profile), words), []).append(rule.id)
    yield from ("## Other readings", "", "| rules | profile | what it looks at |", "|---|---|---|")
    for (reader, words), rules in found.items():
        yield f"| {', '.join(rules)} | {reader} | {_cell(words)} |"


def _readings(rule: Any) -> str:
    return "; ".join(
        f"{profile}: {'not asked' if check is None else 'another reading'}"
        for profile, check in sorted(rule.profiles.items())
    )


def commit_page() -> str:
    """What every commit is asked, and the rules about schema changes."""
    from twinlake.commit import CHECKS
    from twinlake.schema import SCHEMA_CHANGE_RULES

    return "\n".join(
        [
            "# Rules of commits",
            "",
            "Every commit is held to these checks before it is written, whichever call it comes",
            "from: `Table.commit`, `Table.add_column`, a write with `merge_schema`, an upgrade.",
            "All that is wrong is reported at once; `fields` of the error names check, rule and",
            "column.",
            "",
            "| check | what it asks |",
            "|---|---|",
            *(f"| {check.id} | {_cell(check.name)} |" for check in CHECKS),
            "",
            "## Schema changes",
            "",
            "CMT-17 asks these rules of a commit that changes schema, partitioning or column",
            "mapping. A rule about *files* counts only while a file stays in the table that was",
            "there before: an overwrite and a table that replaces another leave none.",
            "",
            "| rule | what it asks | counts | how to fix it |",
            "|---|---|---|---|",
            *(
                f"| {rule.id} | {_cell(rule.name)} | {'files' if rule.files else 'always'} "
                f"| {_cell(rule.fix)} |"
                for rule in SCHEMA_CHANGE_RULES
            ),
        ]
    )


def model_page() -> str:
    """The catalogue of models: every configuration and what it shows."""
    from twinlake.verify.models.catalogue import CATALOGUE, purpose_of

    lines = [
        "# Models",
        "",
        "What `twinlake verify all` checks. A *safe* configuration is explored to the end and",
        "everything holds. A *mutant* has a deliberate mistake, and a property fails; a *control*",
        "has a change that looks like one and is harmless. A *finding* is as designed and breaks",
        "a property all the same. *Steps* is the length of the shortest path to the failure.",
        "*Purpose* is what a configuration is there for: the finding, the mutant or the row of the",
        "benchmarks (`make bench`). A name in brackets is for `twinlake verify --config` as well.",
    ]
    for extension in CATALOGUE:
        lines += ["", f"## {extension.format.capitalize()}: {extension.name}", "", extension.shows]
        lines += [
            "",
            "| kind | configuration | breaks | steps | purpose |",
            "|---|---|---|---|---|",
        ]
        lines += [_model_row(one, purpose_of(CATALOGUE, extension, one)) for one in extension.cases]
    return "\n".join(lines)


def _model_row(case: Any, purpose: str) -> str:
    name = f"{case.name} (`{case.config}`)" if case.config else case.name
    shows = f"<br>{case.shows}" if case.shows else ""
    broken = f"`{case.violates}`" if case.violates else ""
    cells = (case.kind, _cell(name + shows), broken, str(case.steps or ""), _cell(purpose))
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def rest_page() -> str:
    """The routes of the REST catalog, and what errors become there."""
    from twinlake.rest.error_response import ERRORS_BY_CLASS, ERRORS_BY_CODE
    from twinlake.rest.resources import ROUTES

    lines = [
        "# Routes of the REST catalog",
        "",
        "What `twinlake serve` answers to. `GET /v1/config` lists the routes of Iceberg's REST",
        "catalog specification among them; the operations are named as there. `prefix` is the name",
        "of a warehouse. Levels of a namespace are parted by 0x1F (`%1F` in a URL). Bodies may be",
        "packed by gzip, both ways. See [how to serve tables](../how-to/serve-iceberg-clients.md).",
        "",
        "| method | path | operation | what it does |",
        "|---|---|---|---|",
        *(
            f"| {route.method} | `{route.path}` | {route.operation} | {_cell(route.summary)} |"
            for route in ROUTES
        ),
        "",
        "## Errors",
        "",
        "The message of an error has the code, the reason and the fix. These codes have a status",
        "of their own; for others the class decides, and the first that fits counts. A commit gets",
        "500 only where its outcome is unknown: then the type is `CommitStateUnknownException`.",
        "",
        "| code or class | status | type |",
        "|---|---|---|",
        *(f"| `{code}` | {one.status} | {one.type} |" for code, one in ERRORS_BY_CODE.items()),
        *(f"| {kind.__name__} | {one.status} | {one.type} |" for kind, one in ERRORS_BY_CLASS),
    ]
    return "\n".join(lines)


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli_page,
    "commit-rules.md": commit_page,
    "compat-rules.md": compat_page,
    "errors.md": error_page,
    "features.md": feature_page,
    "models.md": model_page,
    "properties.md": property_page,
    "python.md": python_page,
    "rest-routes.md": rest_page,
    "spark.md": spark_page,
}


def main() -> int:
    """Write or check every page; the exit status says whether a check found drift."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only, exit 1 on drift")
    check = parser.parse_args().check
    drifted = False
    for name, render in PAGES.items():
        page = REFERENCE / name
        fresh = f"{NOTE}\n\n{render().rstrip()}\n"
        stored = page.read_text(encoding="utf-8") if page.exists() else ""
        if fresh == stored:
            continue
        if not check:
            page.write_text(fresh, encoding="utf-8")
            print(f"wrote {page.relative_to(Path.cwd())}")
            continue
        drifted = True
        diff = difflib.unified_diff(
            stored.splitlines(), fresh.splitlines(), f"stored {name}", f"fresh {name}", lineterm=""
        )
        print("\n".join(diff))
    if drifted:
        print("The reference pages differ from the code: run `make docs`.")
    return int(drifted)


if __name__ == "__main__":
    sys.exit(main())
