from __future__ import annotations

import pytest

import twinlake
from tests.support.notebook_page import HOSTILE, NotebookPage
from twinlake import errors
from twinlake.errors import Code, ConcurrentAppendException, ConflictError, TwinlakeError, UserError


def test_three_lines() -> None:
    error = UserError(Code.INVALID_ARGUMENT, "It went wrong.", why="of this", fix="do that")
    assert str(error) == "TWIN-INVALID-ARGUMENT  It went wrong.\n  why: of this\n  fix: do that"


def test_repr_is_code_and_what_happened() -> None:
    error = UserError(Code.INVALID_ARGUMENT, "It went wrong.", why="of this", fix="do that")
    assert repr(error) == "UserError('TWIN-INVALID-ARGUMENT', 'It went wrong.')"


def test_notebooks_show_what_why_and_fix() -> None:
    error = ConcurrentAppendException(
        Code.CONFLICT_APPEND, HOSTILE, why="a winner", fix="Run `Table.refresh()`.", rule="OCC-07"
    )
    found = NotebookPage(error)
    assert "ConcurrentAppendException TWIN-CONFLICT-APPEND" in found.text
    assert found.rows == [
        ["what", HOSTILE],
        ["why", "a winner"],
        ["fix", "Run Table.refresh()."],
        ["rule", "OCC-07"],
    ]
    assert "<code>Table.refresh()</code>" in found.html


def test_plain_data_for_machines() -> None:
    error = ConcurrentAppendException(
        Code.CONFLICT_APPEND,
        "lost",
        rule="OCC-07",
        delta_class="DELTA_CONCURRENT_APPEND",
        fields={"winner": 4},
    )
    assert error.winner == 4
    assert isinstance(error, ConflictError)
    assert error.to_dict() == {
        "code": "TWIN-CONFLICT-APPEND",
        "what": "lost",
        "why": "",
        "fix": "",
        "rule": "OCC-07",
        "delta_class": "DELTA_CONCURRENT_APPEND",
        "fields": {"winner": 4},
    }


def test_codes_are_unique_and_ours() -> None:
    assert len({str(code) for code in Code}) == len(Code)
    assert all(code.startswith("TWIN-") for code in Code)


@pytest.mark.parametrize("module", [errors, twinlake])
def test_every_exported_name_is_there(module: object) -> None:
    names = module.__all__  # type: ignore[attr-defined]
    assert all(hasattr(module, name) for name in names)


def test_every_error_has_the_one_root() -> None:
    exported = [getattr(errors, name) for name in errors.__all__ if name != "Code"]
    classes = [value for value in exported if isinstance(value, type)]
    assert len(classes) > 10
    assert all(issubclass(cls, TwinlakeError) for cls in classes)
