"""The page of a paper: its claims with verdicts, and its tables and pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from counterveil_lab.reproduce.protocol import Claim, Figure, Judged, Paper, Verdict

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
