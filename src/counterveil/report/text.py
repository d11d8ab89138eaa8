"""Numbers, documents and text as people read them; every report, page, table and picture takes numbers from here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor, inf, isfinite, isinf, isnan, log10
from textwrap import wrap
from typing import Any, TypeAlias

Facts = dict[str, Any]


def rounded(value: float | None, error: float | None) -> str:
    """Return `value` with as many decimals as its error makes meaningful (two digits of the error)."""
    if value is None or isinf(value):
        return "unbounded"
    if isnan(value):
        return "unknown"
    if error is None or not isfinite(error) or error <= 0:
        return f"{value:z.4g}"
    decimals = max(0, 1 - floor(log10(error)))
    return f"{value:z,.{decimals}f}"


def probability(value: float) -> str:
    """Return a p-value as it is printed in a table."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def percent(share: float, digits: str = "g") -> str:
    """Return a share such as 0.95 as text: 95%."""
    return f"{100 * share:{digits}}%"


def held_against(sites: int, colluding: int) -> str:
    """Return against whom the guarantee of several sites holds, and on what that rests; one noise if some collude."""
    if not colluding:
        return (
            "every site adds its own noise: the guarantee holds against the coordinator and all other sites "
            "together, and rests on a person's own site alone"
        )
    return (
        f"one noise for {sites} sites: the guarantee holds against the coordinator and any {colluding} of them "
        "together, and rests on X25519, HKDF-SHA256 and ChaCha20"
    )


def span(interval: Facts, error: float | None) -> str:
    """Return an interval as text, with the digits that the error makes meaningful; an open end in words."""
    if interval.get("gap"):
        return " or ".join(_sides(interval["gap"], error))
    low, high = (end if end is None or isfinite(end) else None for end in (interval["low"], interval["high"]))
    if low is not None and high is not None:
        return f"[{rounded(low, error)}, {rounded(high, error)}]"
    return " ".join(_sides([high, low], error)) or "any value"


def with_interval(estimate: str, interval: Facts, error: float | None) -> str:
    """Return an estimate before its interval: "1.2 [0.8, 1.9]", "1.2 (at least 0.8)" where an end is open."""
    ends = span(interval, error)
    return f"{estimate} {ends}" if ends.startswith("[") else f"{estimate} ({ends})"


def time_span(estimate: float, interval: Facts, error: float | None) -> str:
    """Return a time with its interval; one that is infinite was not reached by the horizon."""

    def time(value: float | None) -> str:
        return "not reached" if value is None or value == inf else rounded(value, error)

    return f"{time(estimate)} [{time(interval['low'])}, {time(interval['high'])}]"


def quantile_name(share: float, difference: bool = False) -> str:
    """Return the name of a quantile, or of the difference of two: that of a half is the median."""
    if difference:
        return "difference of medians" if share == 0.5 else f"difference of {percent(share)} quantiles"
    return "median" if share == 0.5 else f"{percent(share)} quantile"


def effect_line(name: object, estimate: float, interval: Facts, time: bool = False) -> str:
    """Return one number with its interval as a line; an end that is open is said in words.

    With `time`, a number that is infinite or not known is that of a quantile that was not reached by the horizon.
    """
    middle = f"{estimate:.4g}" if isfinite(estimate) else "not reached" if time else rounded(estimate, None)
    return f"{name} {with_interval(middle, interval, None)}"


def from_to(interval: Facts, error: float | None) -> str:
    """Return an interval as words of a sentence."""
    if interval.get("gap"):
        return " or ".join(_sides(interval["gap"], error))
    low, high = (interval[end] for end in ("low", "high"))
    if high is None:
        return f"{rounded(low, error)} upwards, without an upper end" if low is not None else "any value"
    if low is None:
        return f"at most {rounded(high, error)}"
    return f"{rounded(low, error)} to {rounded(high, error)}"


def _sides(gap: list[float | None], error: float | None) -> list[str]:
    """Return the two parts of an interval that leaves out what is between; a part may be missing."""
    below, above = gap
    sides = [] if below is None else [f"at most {rounded(below, error)}"]
    return sides + ([] if above is None else [f"at least {rounded(above, error)}"])


def few_words(text: str, most: int) -> str:
    """Return a text of at most so many words."""
    words = text.split()
    return text if len(words) <= most else " ".join([*words[: most - 1], "..."])


Item = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of text.

    Attributes
    ----------
    headings : list of str
        Headings of the columns.
    rows : list of list of str
        Cells, as many in each row as there are headings.
    caption : str
        What pages print above the table.
    ruled : int
        Row before which papers have a rule; 0 for none.
    """

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
    """A picture that is drawn on pages and left out elsewhere.

    Attributes
    ----------
    html : str
        The picture, as HTML.
    """

    html: str


# A text alone is a paragraph.
Block: TypeAlias = str | Cells | Sentences | Named | Listed | Code | Picture


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document.

    Attributes
    ----------
    heading : str
        Its heading.
    blocks : list of str, Cells, Sentences, Named, Listed, Code or Picture
        What it holds; a text is a paragraph.
    folded : bool
        Whether a page shows it only after its heading was clicked.
    """

    heading: str
    blocks: list[Block]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What is shown of an answer, before it is printed as text, Markdown, HTML or LaTeX.

    Attributes
    ----------
    first : list of str
        Warnings that stand above everything else.
    title : str
        Title.
    lead : str
        What was estimated, and how.
    tables : list of Cells
        Tables, which come first.
    items : list of (str, str)
        Named lines.
    more : list of str
        What is left out of the tables.
    sections : list of Section
        Parts of a document.
    note : str
        What stands under the first table in a paper.
    """

    first: list[str]
    title: str
    lead: str
    tables: list[Cells]
    items: list[Item]
    more: list[str] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    note: str = ""


_WIDTH = 79  # fits a terminal of 80 columns
_PARTS = ("sampling", "noise")


def text_of(view: View) -> str:
    """Return a view as plain text: warnings, title, tables between rules, then the named lines."""
    rule = "-" * _WIDTH
    lines = [line for text in view.first for line in wrapped(f"*** {text} ***")]
    lines += [*wrapped(view.title), *wrapped(view.lead), rule]
    for cells in view.tables:
        lines += [*text_table(cells), rule]
    lines += view.more
    for name, text in view.items:
        lines += wrapped(text, f"{name}:".ljust(12) + " ") if text else []
    return "\n".join(lines)


def wrapped(text: str, lead: str = "") -> list[str]:
    """Return the lines of a paragraph; those after the first are indented by the length of `lead`."""
    # Names of files and columns stay whole, so that they can be copied.
    indent = " " * len(lead)
    return wrap(
        text,
        _WIDTH,
        initial_indent=lead,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def text_table(cells: Cells) -> Iterator[str]:
    """Yield the lines of a table whose columns are aligned.

    Where it is too wide, columns stand closer, then the two parts of the standard error are left out
    (all other forms of a result have them), then names have lines of their own, each once for rows that share it;
    of several results beside each other, some stand below.
    """
    whole = [cells.headings, *cells.rows]
    shown = [place for place, heading in enumerate(cells.headings) if heading not in _PARTS]
    narrow = [[row[place] for place in shown] for row in whole]
    for rows, gap in ((whole, 3), (whole, 2), (narrow, 2)):
        lines = _aligned(rows, gap)
        if max(map(len, lines)) <= _WIDTH:
            yield from lines
            return
    if any(not row[0] for row in cells.rows):
        yield from _continued(whole)
        return
    headings, *figures = _aligned([["  ", *row[1:]] for row in narrow], 2)
    yield headings
    for row, before, line in zip(narrow[1:], narrow, figures, strict=False):
        if row[0] != before[0]:
            yield f" {row[0]}"
        yield line


def _continued(rows: list[list[str]]) -> Iterator[str]:
    """Yield a table whose rows have several lines: columns that do not fit stand below, without rows they lack."""
    last = 2
    while last < len(rows[0]) and max(map(len, _aligned([row[: last + 1] for row in rows], 2))) <= _WIDTH:
        last += 1
    lines = _aligned([rows[0][:last], *(row[:last] for row in rows[1:] if any(row[1:last]))], 2)
    yield from (line.rstrip() for line in lines)
    if last < len(rows[0]):
        yield ""
        yield from _continued([[row[0], *row[last:]] for row in rows])


def _aligned(rows: list[list[str]], gap: int) -> list[str]:
    widths = [max(map(len, column)) + gap for column in zip(*rows, strict=True)]
    return [
        "".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))[gap - 1 :] for row in rows
    ]


_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
}


def escape(text: str) -> str:
    """Return `text` with LaTeX's special characters made harmless."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def latex(view: View) -> str:
    """Return a view's first table, which needs only the booktabs package; warnings stand above and below it."""
    cells, columns = view.tables[0], len(view.tables[0].headings)
    lines = [" & ".join(map(escape, row)) + r" \\" for row in cells.rows]
    headings = [cells.headings[0] or view.title, *cells.headings[1:]]
    note = " ".join([*(f"{text}." for text in view.first), *([view.note] if view.note else [])])
    return "\n".join(
        [
            *(f"% {' '.join(text.split())}" for text in view.first),
            rf"\begin{{tabular}}{{l{'r' * (columns - 1)}}}",
            r"\toprule",
            " & ".join(map(escape, headings)) + r" \\",
            r"\midrule",
            *lines[: cells.ruled],
            *([r"\midrule"] if cells.ruled else []),
            *lines[cells.ruled :],
            r"\bottomrule",
            *(
                [rf"\multicolumn{{{columns}}}{{p{{0.9\linewidth}}}}{{\footnotesize {escape(note)}}} \\"]
                if note
                else []
            ),
            r"\end{tabular}",
        ]
    )
