"""Who is first, as text: shares by guarantee, and a line for every cell that is lost."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.accuracy.entries import GUARANTEES
from benchmarks.accuracy.outcomes import NEAR, Outcome, outcomes
from benchmarks.accuracy.standing import Cells
from counterveil_lab.reproduce.rivals.ours import KAPPA

# What is counted, by the name of an outcome's field.
COUNTED = {
    "ours": "one of ours first",
    "ours_clear": "clearly",
    "beaten": "one of others' clearly ahead of all of ours",
    "auto": "auto first",
    "auto_clear": "clearly",
    "near": f"auto within {100 * (NEAR - 1):.0f}% of the first, ours included",
    "bounded": f"auto with kappa {KAPPA:g} first",
    "adjusted": "auto first of those that adjust",
    "refused": "auto refuses",
    "no_better": "auto no better than zero",
}


@dataclass(frozen=True)
class Share:
    """How many cells a guarantee has, and in how many of them each thing that is counted is so."""

    guarantee: str
    cells: int
    won: dict[str, int]


def shares(ended: list[Outcome]) -> list[Share]:
    """Return the counts by guarantee, and in all."""
    found = []
    for guarantee in (*GUARANTEES, "all"):
        own = [one for one in ended if guarantee in (one.key[1], "all")]
        found.append(
            Share(guarantee, len(own), {name: sum(getattr(one, name) for one in own) for name in COUNTED})
        )
    return found


def text(found: Cells) -> str:
    """Return the summary that the command prints."""
    ended = outcomes(found)
    lines = ["cells; " + "; ".join(COUNTED.values())]
    lines += [
        f"  {one.guarantee}: {one.cells}; " + "; ".join(map(str, one.won.values())) for one in shares(ended)
    ]
    lines += [f"lost: {' / '.join(one.key)}: {one.why}" for one in ended if not one.auto]
    lines += [f"closer than auto: {' / '.join(one.key)}: {one.closer}" for one in ended if one.closer]
    return "\n".join(lines)
