"""Runs of ``twinlake verify run FILE``: a model that somebody else wrote."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, is_dataclass
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

from twinlake.cli.text import count_text
from twinlake.cli.verify.exit_status import status_of
from twinlake.cli.verify.page import Page, Shown, write_page
from twinlake.cli.verify.progress import ProgressLine
from twinlake.cli.verify.view import outcome_blocks, result_details, verdict_line
from twinlake.cli.view import Fields, Paragraph, View
from twinlake.errors import Code, UserError
from twinlake.verify import Model, ModelError, check

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from twinlake.cli.view import Block

__all__ = ["ModelFileRequest", "run_model_file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFileRequest:
    """The options of the command line."""

    file: Path
    model: str | None
    settings: tuple[str, ...]
    options: Mapping[str, Any]
    page: Path | None
    verbose: bool


def run_model_file(request: ModelFileRequest) -> tuple[View, int]:
    """The view of the outcome, and the exit status."""
    model = _made(request.file, _chosen(request), request.settings)
    try:
        with ProgressLine() as line:
            result = check(model, on_progress=line.update, **request.options)
    except ModelError as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"The model in {request.file} cannot be checked.",
            why=f"{error}.",
            fix="Change the model; docs/how-to/write-a-model.md says what it must keep to.",
            fields={"file": str(request.file)},
        ) from error
    given = ", ".join(f"{name}={value}" for name, value in result.parameters.items())
    details = [("model", f"{result.model} ({type(model).__name__})"), ("parameters", given)]
    blocks: list[Block] = [
        Fields(tuple(row for row in details if row[1])),
        *outcome_blocks(result, verbose=request.verbose),
    ]
    if request.page is not None:
        page = Page(
            title=result.model,
            verdict=verdict_line(result),
            ok=not result.violations,
            details=[*details, *result_details(result).rows],
            verdicts=list(result.verdicts.items()),
            traces=[
                Shown(
                    title=f"{one.property} in {count_text(len(one.trace), 'step')}",
                    trace=one.trace,
                    message=one.message,
                    fields=one.to_dict()["fields"],
                )
                for one in result.violations
            ],
        )
        write_page(request.page, page)
        blocks.append(Paragraph(f"The page was written to {request.page}."))
    record = result.to_dict()
    data = {**record, "trace": record["trace"] or [], "unreached": list(result.unreached)}
    return View(data=data, blocks=blocks), status_of(result)


def _chosen(request: ModelFileRequest) -> type[Model]:
    """The model of the file, by name if it has several."""
    found = _models(request.file)
    if request.model is not None and request.model in found:
        return found[request.model]
    if request.model is None and len(found) == 1:
        return next(iter(found.values()))
    names = ", ".join(found)
    why = f"It has the models {names}." if found else "No class in it is a twinlake.verify.Model."
    fix = (
        f"Add `--model {next(iter(found))}`."
        if found
        else "Write one; docs/how-to/write-a-model.md shows how."
    )
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"{request.file} does not say which model to check."
        if request.model is None
        else f"{request.file} has no model {request.model!r}.",
        why=why,
        fix=fix,
        fields={"file": str(request.file), "models": list(found)},
    )


def _models(file: Path) -> dict[str, type[Model]]:
    name = "twinlake_model_file"
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise _unusable(file, "its name does not end in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        # Any statement of the file may fail in any way: it is the user's own program.
        raise _unusable(file, f"{type(error).__name__}: {error}") from error
    return {
        key: kind
        for key, kind in vars(module).items()
        if isinstance(kind, type)
        and issubclass(kind, Model)
        and kind.__module__ == name
        and not key.startswith("_")
    }


def _unusable(file: Path, why: str) -> UserError:
    return UserError(
        Code.INVALID_ARGUMENT,
        f"{file} cannot be loaded.",
        why=why,
        fix="Make the file run in Python without an error first.",
        fields={"file": str(file)},
    )


def _made(file: Path, kind: type[Model], settings: Sequence[str]) -> Model:
    values: dict[str, Any] = {}
    known: list[str] = [one.name for one in fields(kind)] if is_dataclass(kind) else []
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals or name not in known:
            named = ", ".join(known) or "none: it is no dataclass"
            raise UserError(
                Code.INVALID_ARGUMENT,
                f"--set {setting} sets no parameter of {kind.__name__}.",
                why=f"Its parameters are {named}.",
                fix="Give `--set NAME=VALUE` with one of them.",
                fields={"file": str(file), "setting": setting},
            )
        values[name] = _value(text, getattr(kind, name, None), setting)
    try:
        return kind(**values)
    except Exception as error:
        raise UserError(
            Code.INVALID_ARGUMENT,
            f"{kind.__name__} cannot be made with these parameters.",
            why=f"{type(error).__name__}: {error}",
            fix="Give the ones it wants with `--set NAME=VALUE`.",
            fields={"file": str(file), "model": kind.__name__},
        ) from error


def _value(text: str, default: Any, setting: str) -> Any:
    """A value as the parameter's default is: a number, yes or no, or words."""
    if isinstance(default, bool):
        if text.lower() in ("true", "yes", "1", "false", "no", "0"):
            return text.lower() in ("true", "yes", "1")
    elif isinstance(default, int):
        if text.lstrip("-").isdigit():
            return int(text)
    elif isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    else:
        return text
    raise UserError(
        Code.INVALID_ARGUMENT,
        f"--set {setting} cannot be used.",
        why=f"The parameter is like {default!r}.",
        fix="Give a whole number, or yes or no.",
        fields={"setting": setting},
    )
