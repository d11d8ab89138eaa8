"""What a paper is made of, figures as cells and claims that they decide; and its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import pandas as pd
from matplotlib.figure import Figure as Drawing

Scalar = str | int | float | bool | None
# The public description of one piece of work, with its seed; its JSON text is the key under which its rows are kept.
Cell = Mapping[str, Scalar]
# One line of a result table in long form, e.g. method, x, repetition, value; the cell's entries are added to it.
Row = Mapping[str, Scalar]
# The tables of a paper's figures by their names.
Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper, by the cells that fill it.

    `cells(quick)` lists the work; a cell takes seconds, so that a run that was cut short loses little. `run` returns
    the rows of one cell and depends on the cell alone. `table` reduces all rows to what is printed and kept. `draw`
    is None for tables.
    """

    name: str
    title: str
    cells: Callable[[bool], Sequence[Cell]]
    run: Callable[[Cell], list[Row]]
    table: Callable[[pd.DataFrame], pd.DataFrame]
    draw: Callable[[pd.DataFrame], Drawing] | None = None


class Verdict(StrEnum):
    """What a claim came to."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    CANNOT_BE_CHECKED = "cannot be checked"


@dataclass(frozen=True)
class Judged:
    """A claim's verdict, the number of ours that decides it, and the reason in one sentence."""

    verdict: Verdict
    number: str
    why: str

    @classmethod
    def of(cls, holds: bool | None, number: str, why: str) -> Judged:
        """Return the verdict on a claim that holds or does not, or of which our number does not tell (None)."""
        verdicts = {True: Verdict.REPRODUCED, False: Verdict.NOT_REPRODUCED, None: Verdict.CANNOT_BE_CHECKED}
        return cls(verdicts[holds], number, why)


Judge = Callable[[Tables], Judged]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, where it stands, and how the tables of `figures` decide it."""

    says: str
    where: str
    figures: tuple[str, ...]
    judge: Judge


@dataclass(frozen=True)
class Paper:
    """A paper by its short name, its reference, its figures in order and its claims.

    `remarks` returns what else its page has to say, in Markdown, from the tables that are finished. `files` has the
    files below COUNTERVEIL_DATA that a data set needs, by the name that cells have for it under "data" or "study".
    """

    name: str
    reference: str
    figures: tuple[Figure, ...]
    claims: tuple[Claim, ...]
    remarks: Callable[[Tables], str] | None = None
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


# The file of all claims with their verdicts, beside the page.
CLAIMS = "claims.csv"
_HEAD = ("Claim", "Where", "Verdict", "Our number", "Why")


@dataclass(frozen=True)
class Shown:
    """A figure with its table, the name of its picture file, how many cells are missing, and its CPU seconds."""

    figure: Figure
    table: pd.DataFrame
    picture: str | None
    missing: int
    seconds: float


def written(
    paper: Paper, kept: Sequence[Shown], judged: Sequence[tuple[Claim, Judged]], *, quick: bool
) -> str:
    """Return the page in Markdown."""
    command = f"counterveil reproduce {paper.name}{' --quick' * quick}"
    seconds = sum(one.seconds for one in kept)
    finished = {one.figure.name: one.table for one in kept if not one.missing}
    remarks = paper.remarks(finished) if paper.remarks else ""
    parts = [
        f"# {paper.reference}",
        f"Written by `{command}`: {seconds:.0f} CPU seconds of its own processes"
        f"{'; quick mode with few repetitions' * quick}.",
        *(claims(judged) if judged else []),
        *([remarks] if remarks else []),
        *(section(one) for one in kept),
    ]
    return "\n\n".join(parts) + "\n"


def count_of(judged: Sequence[tuple[Claim, Judged]]) -> str:
    """Return how many claims there are of each verdict."""
    if not judged:
        return "No claims."
    found = Counter(one.verdict for _, one in judged)
    return f"{len(judged)} claims: " + ", ".join(f"{found[each]} {each.value}" for each in Verdict) + "."


def claims_table(judged: Sequence[tuple[Claim, Judged]]) -> pd.DataFrame:
    """Return the claims with their verdicts."""
    rows = [(claim.says, claim.where, one.verdict.value, one.number, one.why) for claim, one in judged]
    return pd.DataFrame(rows, columns=list(_HEAD))


def claims(judged: Sequence[tuple[Claim, Judged]]) -> list[str]:
    """Return the part of the page about the claims: their number, and those that were not reproduced."""
    refuted = [one for one in judged if one[1].verdict is Verdict.NOT_REPRODUCED]
    said = f"{count_of(judged)} [All claims]({CLAIMS})" + ("; those not reproduced:" if refuted else ".")
    rows = [tuple(row) for row in claims_table(refuted).itertuples(index=False)]
    return ["## Claims", said, *([markdown(_HEAD, rows)] if rows else [])]


def section(one: Shown) -> str:
    """Return the part of the page about one figure."""
    name = one.figure.name
    parts = [f"## {one.figure.title}"]
    if one.missing:
        parts.append(f"Not finished: {one.missing} cells are missing.")
    if one.picture is not None:
        parts.append(f"![{one.figure.title}]({one.picture})")
    parts.append(f"[Table]({name}.csv); {one.seconds:.0f} CPU seconds.")
    return "\n\n".join(parts)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *([text.replace("|", "\\|") for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
