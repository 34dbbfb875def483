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
#: Delta's exceptions, once more as the PySpark types that users of Delta Spark catch.
MIRRORS = ["errors.py", "spark/errors.py"]


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


def test_unit_tests_lie_in_the_folders_of_what_they_test() -> None:
    unit = Path(__file__).parent
    folders = {path.parent.relative_to(unit) for path in unit.rglob("test_*.py")}
    assert [str(folder) for folder in sorted(folders) if not (ROOT / folder).is_dir()] == []


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _exports(tree: ast.Module) -> frozenset[str]:
    """The names of the written ``__all__``."""
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return frozenset(name for found in lists for name in ast.literal_eval(found))


def _imports(tree: ast.Module) -> list[tuple[str, str]]:
    """Module and name of every import, also those of functions and for type checkers."""
    nodes = list(ast.walk(tree))
    return [
        *((one.name, "") for n in nodes if isinstance(n, ast.Import) for one in n.names),
        *(
            (n.module or "", a.name)
            for n in nodes
            if isinstance(n, ast.ImportFrom)
            for a in n.names
        ),
    ]


def test_packages_import_each_other_by_the_names_they_export() -> None:
    trees = {
        _name(path): ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")
    }
    # A module beside the packages, such as ``errors``, has no package around it.
    doors = {
        module: _exports(trees[module])
        for module in trees
        if module.count(".") == 1 or (ROOT.parent / module.replace(".", "/")).is_dir()
    }
    deep = [
        f"{importer}: {module} {name}"
        for importer, tree in sorted(trees.items())
        for module, name in _imports(tree)
        if module.startswith("twinlake.")
        and module.split(".")[1] not in importer.split(".")[1:2]
        and name not in doors.get(module, ())
        and not doors.get(f"{module}.{name}")
    ]
    assert deep == []


def test_public_class_name_means_one_thing() -> None:
    """What only its own module uses is private; other names are qualified until they are unique."""
    homes: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    twice = {name: found for name, found in homes.items() if len(found) > 1}
    mirrored = {n for n, found in twice.items() if found == MIRRORS and n.endswith("Exception")}
    assert {name: found for name, found in twice.items() if name not in mirrored} == {}
