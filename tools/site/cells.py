"""Tutorials as notebooks: their Python blocks become cells, which Sphinx runs and whose output it shows."""

from __future__ import annotations

from tools.check_docs import NO_RUN, blocks_of

# Below the block that prints it, a tutorial shows one run to readers of the plain page; the site shows its own.
OUTPUT = "<!-- output -->"
# Ends with a comment, so that the first heading stays the title of the page.
HEAD = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"


def notebook(text: str) -> str:
    """Return a page as a notebook in Markdown, without the outputs it was written with."""
    lines = text.splitlines()
    kept: list[str | None] = list(lines)
    for block in blocks_of(text):
        first, last = block.line - 2, block.line - 1 + block.text.count("\n")
        if block.language == "python" and block.run:
            kept[first] = "```{code-cell} ipython3"
        elif before(lines, first) == OUTPUT:
            kept[first : last + 1] = [None] * (last + 1 - first)
    return HEAD + "\n".join(line for line in kept if line is not None and line not in (OUTPUT, NO_RUN)) + "\n"


def before(lines: list[str], place: int) -> str:
    """Return the last line above a place that is not blank."""
    return next((line.strip() for line in reversed(lines[:place]) if line.strip()), "")
