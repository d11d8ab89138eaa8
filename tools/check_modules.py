"""Checks the shape of the source: short modules and functions, honest names, `__init__` files that export."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES = 400
FUNCTION_LINES = 50
DRAWERS = {"utils", "util", "common", "helpers", "helper", "base", "misc"}


def problems(source: Path) -> list[str]:
    """Return one line for each module or function under `source` that breaks a rule."""
    found: list[str] = []
    for path in sorted(source.rglob("*.py")):
        name = path.relative_to(source).as_posix()
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text, filename=name)
        found += _module(name, path, text.count("\n") + 1)
        found += [f"{name}:{line}: {what}" for line, what in _functions(tree)]
        if path.name == "__init__.py":
            found += [f"{name}:{line}: {what}" for line, what in _exports(tree)]
    return found


def _module(name: str, path: Path, lines: int) -> Iterator[str]:
    if lines >= MODULE_LINES:
        yield f"{name}: {lines} lines, the limit is {MODULE_LINES - 1}"
    for part in (path.stem, path.parent.name):
        if part in DRAWERS:
            yield f"{name}: the name {part!r} says nothing about the contents"


def _functions(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1 - _docstring_lines(node)
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
    """Print the problems under the folder given (default `src`) and return 1 if there are any."""
    found = problems(Path(arguments[0] if arguments else "src"))
    print("\n".join(found) or "modules: in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
