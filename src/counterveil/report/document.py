"""What is shown of an answer, before it is written as text, HTML, Markdown or LaTeX."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Facts = dict[str, Any]
Item = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cells:
    """Headings and rows of text, all of one length."""

    headings: list[str]
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of a result: `first` are warnings that stand above everything else."""

    first: list[str]
    title: str
    lead: str
    tables: list[Cells]
    items: list[Item]
    more: list[str] = field(default_factory=list)
