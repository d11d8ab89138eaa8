"""Checks that noise is drawn in one package: no other module touches a source of randomness.

Data generators, plans and the laboratory (its audits too) may use numpy's generators, but only from a seed that is
passed in.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

NOISE_PACKAGE = "mechanisms"
# Draws secrets of sessions; it sees no data.
TOKEN_MODULE = "console/visit.py"
SEEDED_PACKAGES = {"datasets", "questions/plan"}
LABORATORY = "counterveil_lab"
# A module without any of these words is not parsed.
WORDS = re.compile("random|secrets|qmc|uuid1|rvs")
# Randomness by full name; a prefix covers everything under it.
SOURCES = ("random", "secrets", "numpy.random", "os.urandom", "os.getrandom", "scipy.stats.qmc", "uuid.uuid1")
# Generators that take their seed from the operating system when they are given none.
UNSEEDED = {"default_rng", "SeedSequence", "PCG64", "Philox", "RandomState", "MT19937", "SFC64", "Random"}


def problems(package: Path) -> list[str]:
    """Return one line for each use of randomness outside the packages that may use it."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.startswith(f"{NOISE_PACKAGE}/") or name == TOKEN_MODULE:
            continue
        text = path.read_text(encoding="utf-8")
        if not WORDS.search(text):
            continue
        tree = [*ast.walk(ast.parse(text, filename=name))]
        seeded = package.name == LABORATORY or any(name.startswith(f"{one}/") for one in SEEDED_PACKAGES)
        uses = _unseeded(tree) if seeded else _uses(tree)
        found += [f"{name}:{line}: {what}" for line, what in sorted(set(uses))]
    return found


def _source(name: str) -> bool:
    return any(name == source or name.startswith(source + ".") for source in SOURCES)


def _bindings(tree: list[ast.AST]) -> dict[str, str]:
    """Return what each imported name stands for, e.g. {"np": "numpy", "token": "secrets.token_bytes"}."""
    known: dict[str, str] = {}
    for node in tree:
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return known


def _full_name(node: ast.expr, known: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _full_name(node.value, known)
        return f"{owner}.{node.attr}" if owner else None
    return None


def _imports(tree: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in tree:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def _uses(tree: list[ast.AST]) -> Iterator[tuple[int, str]]:
    yield from ((line, f"imports {name}") for line, name in _imports(tree) if _source(name))
    known = _bindings(tree)
    for node in tree:
        if isinstance(node, ast.Attribute):
            name = _full_name(node, known)
            if name and _source(name):
                yield node.lineno, f"uses {name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "rvs":
            yield node.lineno, "draws with .rvs()"


def _unseeded(tree: list[ast.AST]) -> Iterator[tuple[int, str]]:
    known = _bindings(tree)
    for line, name in _imports(tree):
        if _source(name) and not name.startswith("numpy.random"):
            yield line, f"imports {name}"
    for node in tree:
        if not isinstance(node, ast.Call):
            continue
        name = _full_name(node.func, known) or ""
        if not name.startswith("numpy.random."):
            continue
        function = name.removeprefix("numpy.random.")
        no_seed = not node.args and not node.keywords
        none_seed = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value is None
        if function in UNSEEDED and (no_seed or none_seed):
            yield node.lineno, f"{name} without a seed"
        if function[0].islower() and function != "default_rng":
            yield node.lineno, f"{name} draws from the global generator"


def main(arguments: list[str]) -> int:
    """Print the problems of the packages given (default: both) and return 1 if there are any."""
    both = ("src/counterveil", f"lab/src/{LABORATORY}")
    found = [line for package in arguments or both for line in problems(Path(package))]
    print("\n".join(found) or "randomness: in order")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
