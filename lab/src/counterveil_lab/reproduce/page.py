"""The page of a paper: its claims with verdicts, and its tables and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from counterveil_lab.reproduce.protocol import Claim, Figure, Judged, Paper, Verdict

# A longer table is linked and not printed.
_LONGEST = 48


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
        f"Written by `{command}`: {seconds:.0f} CPU seconds of its own processes, without programs that they start"
        f"{'; quick mode with few repetitions' * quick}.",
        *(["## Claims", count_of(judged), claims_table(judged)] if judged else []),
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


def claims_table(judged: Sequence[tuple[Claim, Judged]]) -> str:
    """Return the claims with their verdicts as a table."""
    rows = [(claim.says, claim.where, one.verdict.value, one.number, one.why) for claim, one in judged]
    return markdown(("Claim", "Where", "Verdict", "Our number", "Why"), rows)


def section(one: Shown) -> str:
    """Return the part of the page about one figure."""
    name = one.figure.name
    parts = [f"## {one.figure.title}"]
    if one.missing:
        parts.append(f"Not finished: {one.missing} cells are missing.")
    if one.picture is not None:
        parts.append(f"![{one.figure.title}]({one.picture})")
    if len(one.table) <= _LONGEST:
        rows = [tuple(map(cell_text, row)) for row in one.table.itertuples(index=False)]
        parts.append(markdown(tuple(map(str, one.table.columns)), rows))
    parts.append(f"[Table]({name}.csv); {one.seconds:.0f} CPU seconds.")
    return "\n\n".join(parts)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *([text.replace("|", "\\|") for text in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell_text(value: object) -> str:
    """Return a value of a table as text of four digits."""
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return str(value)
