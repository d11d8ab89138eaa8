"""Prints the shape of the source in one table: sizes, imports, files that one call runs through, public names.

python -m tools.shape              # this tree
python -m tools.shape OTHER/src    # another tree, in a process of its own
"""

from __future__ import annotations

import ast
import os
import statistics
import subprocess
import sys
from pathlib import Path

FUNCTION_LINES = 50
CALLS = {
    "weighting": '{"protects": "outcome", "method": "weighting"}',
    "difference in means": '{"protects": "outcome", "method": "difference_in_means"}',
}
# Counts the files and functions of the package in which a call runs, once everything is loaded.
PROGRAM = """
import sys
import numpy as np
import counterveil as cv

draw = np.random.default_rng(1)
rows = {{"t": draw.permutation([0, 1] * 100), "y": draw.random(200),
         "a": draw.random(200), "b": draw.integers(0, 2, 200)}}
study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True,
                 covariates={{"a": cv.Range(0, 1), "b": cv.Binary()}})
call = lambda: cv.ate(rows, study, epsilon=1, **{call})
call()
seen = set()
def watch(frame, event, _):
    code = frame.f_code
    if event == "call" and "counterveil" in code.co_filename and code.co_name != "<module>":
        seen.add((code.co_filename, code.co_qualname))
sys.setprofile(watch)
call()
sys.setprofile(None)
print(len({{name for name, _ in seen}}), len(seen))
"""


def table(source: Path) -> dict[str, str]:
    """Return what is measured of the source, by its name."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(source.rglob("*.py"))}
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in trees}
    long, functions = _functions(trees)
    found = {
        "modules": str(len(trees)),
        "median lines of a module": f"{statistics.median(lines.values()):.0f}",
        "lines": f"{sum(lines.values()):,}",
        "imports, share of code lines": f"{_imports(trees):.1%}",
        f"functions over {FUNCTION_LINES} lines": f"{long} of {functions:,} ({long / functions:.1%})",
        "import cycles between modules": str(len(_cycles(source, trees))),
    }
    for name, call in CALLS.items():
        files, called = _run(source, PROGRAM.format(call=call)).split()
        found[f"files and functions of ate, {name}"] = f"{files}, {called}"
    names = _run(source, "import counterveil; print(*counterveil.__all__)").split()
    found["names on the top level"] = str(len(names))
    found["settings classes on the top level"] = str(sum(name.endswith("Settings") for name in names))
    return found


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


def _cycles(source: Path, trees: dict[Path, ast.Module]) -> list[list[str]]:
    """Return groups of modules that import each other while they are loaded."""
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
    return found


def _imported(tree: ast.Module, names: dict[str, Path]) -> set[str]:
    """Return the modules whose names a module needs when it is loaded; packages on the way are not counted."""
    found: set[str] = set()
    for node in tree.body:
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
    """Print the table of the source given (default `src`)."""
    for name, value in table(Path(arguments[0] if arguments else "src")).items():
        print(f"{name:45} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
