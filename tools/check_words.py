"""Checks that no module reads words back: what an answer says is a value, and texts are written, never compared.

A comparison (==, !=, in, not in) or a call of a method that looks into a text (startswith, endswith, removeprefix,
removesuffix, partition, replace) may not have a sentence for an operand: a literal with a space between letters. A name
that the module assigns such a literal to counts as the literal.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

# Tables of papers and of attacks are read by the names of their rows.
LABORATORY = ("attacks", "reproduce")
LOOKING = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "replace"}
SENTENCE = re.compile(r"[A-Za-z]{2,}[,;:]? (?:[A-Za-z]|$)|^ [A-Za-z]{2,}")
# What people write into a study file.
SPELLED = {"drop"}
# Compares statements of SQL, as a database repeats them.
SQL = "accounting/postgres_store.py"


def problems(package: Path) -> list[str]:
    """Return one line for each place that compares with a sentence."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).as_posix()
        if name.partition("/")[0] not in LABORATORY and name != SQL:
            tree = ast.parse(path.read_text(encoding="utf-8"), filename=name)
            found += [f"{name}:{line}: compares with {text!r}" for line, text in sorted(_compared(tree))]
    return found


def _compared(tree: ast.Module) -> Iterator[tuple[int, str]]:
    names = _constants(tree)
    for node in ast.walk(tree):
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LOOKING
        ):
            operands = node.args[:1]
        for operand in operands:
            for text in _texts(operand, names):
                if SENTENCE.search(text) and text not in SPELLED:
                    yield operand.lineno, text


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Return what the module's own names stand for."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _texts(node: ast.expr, names: dict[str, ast.expr], seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield the texts that an operand is, or is a list of."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            yield from _texts(element, names, seen)
    elif isinstance(node, ast.Name) and node.id in names and node.id not in seen:
        yield from _texts(names[node.id], names, seen | {node.id})


def main(arguments: list[str] | None = None) -> int:
    """Print the problems; return 1 if there are any."""
    chosen = (sys.argv[1:] if arguments is None else arguments) or ["src/counterveil"]
    found = [line for each in chosen for line in problems(Path(each))]
    print("\n".join([*found, f"{len(found)} comparisons with a sentence"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
