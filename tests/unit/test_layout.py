"""The folders of the package: few modules side by side, and each says what belongs in it."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import twinlake

ROOT = Path(twinlake.__file__).parent
#: One module a command, whatever their number.
COMMANDS = ROOT / "cli" / "commands"
MOST_MODULES = 20


def _modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py")


def test_no_folder_has_many_modules_side_by_side() -> None:
    found = Counter(path.parent for path in _modules() if path.parent != COMMANDS)
    assert {str(folder): n for folder, n in found.items() if n > MOST_MODULES} == {}


def test_every_folder_says_what_belongs_in_it() -> None:
    folders = {path.parent for path in _modules()}
    bare = [
        str(folder.relative_to(ROOT))
        for folder in sorted(folders)
        if not ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    ]
    assert bare == []
