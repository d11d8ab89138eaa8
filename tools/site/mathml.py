"""Formulas as MathML, which browsers draw by themselves: no script, and no file from elsewhere."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml


def _mathml(node: nodes.Element, block: bool) -> str:
    try:
        return tex2mathml(node.astext(), as_block=block)
    except MathError as problem:
        raise ValueError(f"a formula cannot be drawn: {node.astext()!r}: {problem}") from None


def inline(writer: Any, node: nodes.Element) -> None:
    """Write a formula within a line."""
    writer.body.append(_mathml(node, block=False))
    raise nodes.SkipNode


def display(writer: Any, node: nodes.Element) -> None:
    """Write a formula on a line of its own, which can be scrolled sideways, with the keyboard too."""
    writer.body.append(f'<div class="formula" tabindex="0">{_mathml(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
