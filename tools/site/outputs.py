"""Writes what the examples of the tutorials print below them: `python -m tools.site.outputs [PAGE ...]`.

A block below the line `<!-- output -->` gets what the Python block above it printed. Noise is drawn from the
operating system, so a page shows one run.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.check_docs import Block, blocks_of
from tools.site.cells import OUTPUT, before

ROOT = Path(__file__).resolve().parents[2]


def printed(block: Block, space: dict[str, Any]) -> str:
    """Return what a block prints, its last expression shown as a notebook would."""
    tree = ast.parse(block.text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        exec(compile(tree, "page", "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "page", "eval"), space)
            print(value) if value is not None else None
    return shown.getvalue().strip("\n")


def with_outputs(text: str) -> str:
    """Return a page with the outputs of a run of its examples."""
    lines = text.splitlines()
    space: dict[str, Any] = {"__name__": "__main__"}
    output, changes = "", []
    for block in blocks_of(text):
        first = block.line - 1
        if before(lines, first - 1) == OUTPUT:
            changes.append((first, first + block.text.count("\n") * bool(block.text.strip()), output))
        elif block.language == "python" and block.run:
            output = printed(block, space)
    for start, end, shown in reversed(changes):
        lines[start:end] = shown.splitlines()
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Rewrite the pages given, by default all tutorials, and return 0."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    pages = [Path(name).resolve() for name in arguments] or sorted(ROOT.glob("docs/tutorials/*.md"))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        if OUTPUT in text:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                text = with_outputs(text)
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
