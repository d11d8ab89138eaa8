"""Checks the shape of the source: budgets of folders, short functions, honest names, `__init__` files that export.

python -m tools.check_modules          # folders beside their budgets, and what is out of shape
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A budget is raised by a decision that says what was deleted in exchange.
BUDGETS = Path(__file__).with_name("budgets.toml")
FUNCTION_LINES = 50
SOURCES = ("src", "lab/src")
DRAWERS = {"utils", "util", "common", "helpers", "helper", "base", "misc"}


def problems(source: Path) -> list[str]:
    """Return one line for each module or function under `source` that breaks a rule."""
    found: list[str] = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, filename=name)
        found += _module(name, path)
        found += [f"{name}:{line}: {what}" for line, what in _functions(tree)]
        if path.name == "__init__.py":
            found += [f"{name}:{line}: {what}" for line, what in _exports(tree)]
    return found


def budgets(root: Path, kept: Path = BUDGETS) -> list[tuple[str, int, int]]:
    """Return each folder with its lines of Python and its budget, which is 0 for one without beside others."""
    allowed: dict[str, int] = tomllib.loads(kept.read_text(encoding="utf-8"))["lines"]
    found = [(name, lines_under(root / name), most) for name, most in allowed.items()]
    parents = {Path(name).parent for name in allowed} - {Path()}
    beside = {
        path.relative_to(root).as_posix()
        for parent in parents
        for path in (root / parent).iterdir()
        if path.is_dir() and any(path.rglob("*.py"))
    }
    return found + [(name, lines_under(root / name), 0) for name in sorted(beside - allowed.keys())]


def over(root: Path, kept: Path = BUDGETS) -> list[str]:
    """Return one line for each folder with more lines than its budget."""
    return [
        f"{name}: {lines:,} lines, the budget is {most:,}"
        for name, lines, most in budgets(root, kept)
        if lines > most
    ]


def lines_under(folder: Path) -> int:
    """Return the lines of all Python files in a folder."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in folder.rglob("*.py"))


def _module(name: str, path: Path) -> Iterator[str]:
    for part in (path.stem, path.parent.name):
        if part in DRAWERS:
            yield f"{name}: the name {part!r} says nothing about the contents"


def _functions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.body[0].lineno + 2 - _docstring_lines(node)
            if lines >= FUNCTION_LINES:
                yield node.lineno, f"{node.name} has {lines} lines, the limit is {FUNCTION_LINES - 1}"


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of the docstring: saying what arguments mean must not cost room for code."""
    first = node.body[0]
    if ast.get_docstring(node) is None:
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1


def _exports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in tree.body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        if not (docstring or imports or _assigns_metadata(node) or _lazy_export(node)):
            yield node.lineno, "an __init__ file only imports and exports"


def _assigns_metadata(node: ast.stmt) -> bool:
    if isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        names = [node.target.id]
    else:
        return False
    return names in (["__all__"], ["__version__"])


def _lazy_export(node: ast.stmt) -> bool:
    """Whether a statement serves lazy exports (PEP 562), which keep `import` fast."""
    if isinstance(node, ast.FunctionDef):
        return node.name in {"__getattr__", "__dir__"}
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assign) and _is_text_table(node.value)


def _is_text_table(value: ast.expr) -> bool:
    """Whether an expression only says where each public name lives: {"Budget": "privacy", ...}."""
    return isinstance(value, ast.Dict) and all(
        isinstance(entry, ast.Constant) and isinstance(entry.value, str)
        for entry in [*value.keys, *value.values]
    )


def main(arguments: list[str]) -> int:
    """Print folders beside their budgets and the problems of the folder given, of all source where none is."""
    if arguments:
        found = problems(Path(arguments[0]))
    else:
        for name, lines, most in budgets(ROOT):
            print(f"{name:34} {lines:7,} of {most:7,}{'  over' if lines > most else ''}")
        found = over(ROOT) + [line for folder in SOURCES for line in problems(ROOT / folder)]
    print("\n".join(found) or "modules: in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
