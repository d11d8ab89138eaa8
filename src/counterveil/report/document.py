"""What is shown of an answer, before it is written as text, HTML, Markdown or LaTeX."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Item = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cells:
    """Headings and rows of text, all of one length; pages print the caption, papers a rule before row `ruled`."""

    headings: list[str]
    rows: list[list[str]]
    caption: str = ""
    ruled: int = 0


@dataclass(frozen=True, slots=True)
class Sentences:
    """The sentences that answer the question."""

    texts: list[str]


@dataclass(frozen=True, slots=True)
class Named:
    """Lines with a name each; those without text are left out."""

    items: list[Item]


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of texts, under a heading of its own where it has one."""

    texts: list[str]
    heading: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """A text to copy."""

    text: str
    heading: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """HTML that is drawn on pages and left out elsewhere."""

    html: str


# A text alone is a paragraph.
Block: TypeAlias = str | Cells | Sentences | Named | Listed | Code | Picture


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document; on a page it may be folded until its heading is clicked."""

    heading: str
    blocks: list[Block]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of an answer: `first` are warnings that stand above everything else.

    Tables come first, then what is left out of them (`more`), sections, and named lines. `note` is what stands under
    the first table in a paper.
    """

    first: list[str]
    title: str
    lead: str
    tables: list[Cells]
    items: list[Item]
    more: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    note: str = ""
