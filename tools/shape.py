"""Prints the shape of the repository in one table: sizes, imports, files that one call runs through, repeated names.

python -m tools.shape              # this tree
python -m tools.shape OTHER        # beside another tree, such as a clone of an older commit
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

FUNCTION_LINES = 50
CORE, LAB = "src/counterveil", "lab/src/counterveil_lab"
CALLS = {
    "ate, weighting": 'cv.ate(rows, study, protects="outcome", method="weighting", epsilon=1)',
    "ate, doubly robust": 'cv.ate(rows, study, protects="record", method="doubly_robust", epsilon=4)',
    "cate, records": 'cv.cate(rows, study, protects="record", epsilon=4)',
}
# Counts the files and functions of the package in which a call runs, once everything is loaded,
# and how often a function calls one of another file.
PROGRAM = """
import sys
import numpy as np
import counterveil as cv

draw = np.random.default_rng(1)
rows = {{"t": draw.permutation([0, 1] * 1000), "y": draw.random(2000),
         "a": draw.random(2000), "b": draw.integers(0, 2, 2000)}}
study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1),
                 covariates={{"a": cv.Range(0, 1), "b": cv.Binary()}})
call = lambda: {call}
call()
seen, changes = set(), set()
def watch(frame, event, _):
    code = frame.f_code
    if event == "call" and "counterveil" in code.co_filename and code.co_name != "<module>":
        seen.add((code.co_filename, code.co_qualname))
        before = frame.f_back.f_code if frame.f_back else code
        if "counterveil" in before.co_filename and before.co_filename != code.co_filename:
            changes.add((before.co_filename, before.co_qualname, code.co_filename, code.co_qualname))
sys.setprofile(watch)
call()
sys.setprofile(None)
print(len({{name for name, _ in seen}}), len(seen), len(changes))
"""


def table(root: Path) -> dict[str, str]:
    """Return what is measured of a tree, by its name."""
    found: dict[str, str] = {}
    for name, folder in (("counterveil", CORE), ("counterveil-lab", LAB), ("tests", "tests")):
        paths = list((root / folder).rglob("*.py"))
        lines = sum(path.read_text(encoding="utf-8").count("\n") for path in paths)
        found[f"{name}: lines, modules"] = f"{lines:,}, {len(paths)}"
    source = root / "src"
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((root / CORE).rglob("*.py"))
    }
    long, functions = _functions(trees)
    found |= {
        "imports, share of code lines": f"{_imports(trees):.1%}",
        f"functions over {FUNCTION_LINES} lines": f"{long} of {functions:,}",
        "import circles, modules in them": "{}, {}".format(*_circles(source, trees)),
        "class names used twice": str(_repeated_classes(trees)),
        "functions `_result`": str(_named(trees, "_result")),
        "calls of `locals()`": str(_calls(trees, "locals")),
        "error pages": str(len(list((root / CORE).rglob("CV-*.md")))),
        "test files that import two levels down": str(_deep_tests(root / "tests")),
        "words of Markdown": f"{_words(root):,}",
    }
    for name, call in CALLS.items():
        found[f"files, functions, changes of file: {name}"] = _run(source, PROGRAM.format(call=call))
    names = _run(source, "import counterveil; print(*counterveil.__all__)").split()
    found["names on the top level"] = str(len(names))
    return found


def _repeated_classes(trees: dict[Path, ast.Module]) -> int:
    """Return how many names are given to more than one class."""
    names = Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    return sum(count > 1 for count in names.values())


def _named(trees: dict[Path, ast.Module], name: str) -> int:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return sum(
        isinstance(node, kinds) and node.name == name for tree in trees.values() for node in ast.walk(tree)
    )


def _calls(trees: dict[Path, ast.Module], name: str) -> int:
    return sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
        for tree in trees.values()
        for node in ast.walk(tree)
    )


def _deep_tests(tests: Path) -> int:
    """Return how many test files import from a module below a folder of the package."""
    deep = re.compile(r"^\s*(?:from|import) counterveil(?:_lab)?\.\w+\.\w+", re.MULTILINE)
    return sum(bool(deep.search(path.read_text(encoding="utf-8"))) for path in tests.rglob("test_*.py"))


def _words(root: Path) -> int:
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "*.md"], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    return sum(len((root / name).read_text(encoding="utf-8").split()) for name in listed if name)


def _functions(trees: dict[Path, ast.Module]) -> tuple[int, int]:
    """Return how many functions are longer than the limit, docstrings included, and how many there are."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, kinds)]
    sizes = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes]
    return sum(size > FUNCTION_LINES for size in sizes), len(sizes)


def _imports(trees: dict[Path, ast.Module]) -> float:
    """Return the lines of import statements over the lines that hold code."""
    imports = code = 0
    for tree in trees.values():
        held: set[int] = set()
        brought: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.stmt) and not _is_text(node):
                whole = isinstance(node, ast.Import | ast.ImportFrom)
                block = isinstance(getattr(node, "body", None), list)
                last = node.lineno if block else node.end_lineno or node.lineno
                held |= set(range(node.lineno, last + 1))
                brought |= set(range(node.lineno, last + 1)) if whole else set()
        imports, code = imports + len(brought), code + len(held)
    return imports / code


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _circles(source: Path, trees: dict[Path, ast.Module]) -> tuple[int, int]:
    """Return how many groups of modules import each other, wherever they do, and how many modules are in them."""
    names = {_dotted(source, path): path for path in trees}
    edges = {name: _imported(trees[path], names) - {name} for name, path in names.items()}
    found: list[list[str]] = []
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> None:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in order:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(group)

    sys.setrecursionlimit(10_000)
    for name in names:
        if name not in order:
            visit(name)
    return len(found), sum(len(group) for group in found)


def _imported(tree: ast.Module, names: dict[str, Path]) -> set[str]:
    """Return the modules whose names a module uses; packages on the way are not counted."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found |= {whole} if whole in names else {node.module} & names.keys()
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names} & names.keys()
    return found


def _dotted(source: Path, path: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _run(source: Path, program: str) -> str:
    surroundings = os.environ | {"PYTHONPATH": str(source.resolve())}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=surroundings
    )
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    """Print the table of this tree, beside that of another where one is given."""
    trees = [Path(name) for name in arguments] + [Path(__file__).resolve().parents[1]]
    tables = [table(tree) for tree in trees]
    for name in tables[-1]:
        print(f"{name:50}" + "".join(f"{found[name]:>16}" for found in tables))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
