"""Every fix text of the source, found in its syntax tree, and the code-like pieces in it.

A fix reaches an error as ``fix=`` (or ``advice=``, ``meanwhile=``), by position to a function that
has such a parameter, or through names, branches and functions of the same module. All of them are
followed; what cannot be followed is an error, so that no text escapes. Values that are only known
when an error is raised stand as ``HOLE``.
"""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import twinlake.errors

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HOLE", "SOURCE", "FixText", "fix_texts", "pieces", "without_pieces"]

SOURCE: Final = Path(twinlake.errors.__file__).parent
HOLE: Final = "HOLE"
NAMES: Final = frozenset({"fix", "advice", "meanwhile"})
#: Here "fix" is a change to a model, not a text.
_MODELS: Final = ("verify/models/", "cli/verify/story.py", "cli/verify/report.py")
#: Functions of twinlake.errors that put calls and commands into texts.
_PHRASES: Final = {
    name: function
    for name, function in inspect.getmembers(twinlake.errors, inspect.isfunction)
    if function.__module__ == twinlake.errors.__name__ and not name.startswith("_")
}


@dataclass(frozen=True, slots=True)
class FixText:
    """One text and where it stands."""

    module: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.text}"


def pieces(text: str) -> list[str]:
    """What stands in backticks; a doubled backtick is a backtick within."""
    return [piece.replace("``", "`") for piece in re.findall(r"`((?:[^`]|``)+)`(?!`)", text)]


def without_pieces(text: str) -> str:
    """The prose between."""
    return re.sub(r"`(?:[^`]|``)+`(?!`)", " ", text)


def fix_texts() -> list[FixText]:
    """All of them; raises if one cannot be followed."""
    modules = [_Module(path) for path in sorted(SOURCE.rglob("*.py"))]
    modules = [one for one in modules if not one.name.startswith(_MODELS)]
    shared: dict[str, int] = {}
    for module in modules:
        shared |= {k: v for k, v in module.positions().items() if not k.startswith("_")}
    found: dict[FixText, None] = {}
    for module in modules:
        for value in module.values(shared | module.positions()):
            for line, text in module.texts(value):
                if text.strip():
                    found[FixText(module.name, line, text)] = None
    return list(found)


class _Module:
    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(SOURCE).as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.nodes = list(ast.walk(self.tree))
        self._seen: set[int] = set()
        self._defined = [node for node in self.nodes if isinstance(node, ast.FunctionDef)]
        self.functions = {node.name: node for node in self._defined}

    @cached_property
    def owner(self) -> dict[int, ast.FunctionDef]:
        """The innermost function around each node."""
        return {id(child): node for node in self._defined for child in ast.walk(node)}

    def positions(self) -> dict[str, int]:
        """Functions that take a fix by position."""
        found = {}
        for function in self.functions.values():
            names = [a.arg for a in function.args.args if a.arg not in {"self", "cls"}]
            for name in NAMES.intersection(names):
                found[function.name] = names.index(name)
        return found

    def values(self, positions: dict[str, int]) -> Iterator[ast.expr]:
        """The expressions that become fixes."""
        for node in self.nodes:
            match node:
                case ast.keyword(arg=arg, value=value) if arg in NAMES:
                    yield value
                case ast.Call(func=func, args=args):
                    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
                    if name in positions and len(args) > positions[name]:
                        yield args[positions[name]]
                case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if attr in NAMES:
                    yield value
                case _:
                    pass

    def texts(self, node: ast.expr) -> Iterator[tuple[int, str]]:
        """The texts that an expression can become."""
        match node:
            case ast.Constant(value=None) | ast.Attribute(attr="strerror"):
                return
            case ast.Constant(value=str() as text):
                yield node.lineno, text
            case ast.JoinedStr():
                yield node.lineno, "".join(map(self._part, node.values))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                ends = [text for _, text in self.texts(right)] or [HOLE]
                for line, text in list(self.texts(left)):
                    for end in ends:
                        yield line, text + end
            case ast.IfExp(body=body, orelse=other):
                yield from self.texts(body)
                yield from self.texts(other)
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self.texts(value)
            case ast.Attribute(attr=attr) if attr in NAMES or attr.endswith("_fix"):
                return  # the fix of another value, which is found where that is made
            case ast.Name(id=name):
                yield from self._named(name, node)
            case ast.Call():
                yield from self._called(node)
            case ast.Subscript(value=ast.Name(id=name)):
                yield from self._named(name, node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for element in elements:
                    yield from self.texts(
                        element.value if isinstance(element, ast.Starred) else element
                    )
            case ast.Dict(values=values):
                for value in values:
                    yield from self.texts(value)
            case _:
                raise AssertionError(f"{self.name}:{node.lineno}: {ast.unparse(node)}")

    def _part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        assert isinstance(node, ast.FormattedValue)
        inner = node.value
        if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") in _PHRASES:
            return "".join(text for _, text in self._called(inner))
        if isinstance(inner, ast.Name):
            owner = self.owner.get(id(inner))
            given = [] if owner is None else list(_given(owner, inner.id))
            if given and isinstance(given[0], ast.JoinedStr):
                return next(text for _, text in self.texts(given[0]))
        if isinstance(inner, ast.IfExp):
            return next((text for _, text in self.texts(inner.body)), HOLE)
        return HOLE

    def _called(self, node: ast.Call) -> Iterator[tuple[int, str]]:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if name in _PHRASES:
            given = [_constant(argument) for argument in node.args]
            named = {k.arg: _constant(k.value) for k in node.keywords if k.arg}
            yield node.lineno, _PHRASES[name](*given, **named)
        elif name == "join" and node.args:
            yield from self._joined(node)
        elif name in {"strip", "rstrip"} and isinstance(node.func, ast.Attribute):
            yield from self.texts(node.func.value)
        elif name in self.functions:
            function = self.functions[name]
            for inner in ast.walk(function):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield from self.texts(inner.value)
        elif name not in {"str", "get"}:  # the text of an error that is carried along
            raise AssertionError(f"{self.name}:{node.lineno}: {ast.unparse(node)}")

    def _joined(self, node: ast.Call) -> Iterator[tuple[int, str]]:
        (argument,) = node.args
        if isinstance(argument, ast.Name | ast.Tuple):
            yield from self.texts(argument)
        elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "' '":
            yield node.lineno, HOLE  # a list of names in the middle of a text

    def _named(self, name: str, node: ast.expr) -> Iterator[tuple[int, str]]:
        """What a name was given, in its function or in the module."""
        owner = self.owner.get(id(node))
        places = [tree for tree in (owner, self.tree) if tree is not None]
        for place in places:
            found = [value for value in _given(place, name) if id(value) not in self._seen]
            for value in found:
                self._seen.add(id(value))
                yield from self._part_of(value)
                self._seen.discard(id(value))
            if found:
                return
        if owner is None or name not in {a.arg for a in [*owner.args.args, *owner.args.kwonlyargs]}:
            raise AssertionError(f"{self.name}:{node.lineno}: {name}")

    def _part_of(self, value: ast.expr) -> Iterator[tuple[int, str]]:
        if isinstance(value, ast.Call) and ast.unparse(value.func) in {"dict.fromkeys", "list"}:
            return  # the fixes of other values
        if isinstance(value, ast.Call) and ast.unparse(value.func).endswith(".get"):
            table = ast.unparse(value.func).removesuffix(".get")
            for given in _given(self.tree, table):
                yield from self.texts(given)
            for default in value.args[1:]:
                yield from self.texts(default)
            return
        yield from self.texts(value)


def _given(tree: ast.AST, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                yield value
            case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value) if any(
                isinstance(e, ast.Name) and e.id == name for e in elements
            ):
                yield value
            case ast.AnnAssign(target=ast.Name(id=found), value=value) if found == name and value:
                yield value
            case ast.AugAssign(target=ast.Name(id=found), value=value) if found == name:
                yield value
            case ast.Call(
                func=ast.Attribute(attr="append", value=ast.Name(id=found)), args=[value]
            ) if found == name:
                yield value
            case _:
                pass


def _constant(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else HOLE
