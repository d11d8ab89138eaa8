"""What the saved answers add up to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from experiments.causal.runs import ADJUSTED, DELTAS, EPSILONS, FREE, PLAIN, ZERO, Row

LEAST_COVERAGE = 0.93


@dataclass(frozen=True)
class Cell:
    """Coverage, root mean square error and median width, over the answers that were given."""

    draws: int
    coverage: float
    rmse: float
    width: float
    refusal: str
    claims: bool  # whether every answer claims an interval for the effect

    def __str__(self) -> str:
        if not self.draws:
            return self.refusal
        text = f"{self.coverage:.3g} / {self.rmse:.3g} / {self.width:.3g}"
        return text if self.claims else f"({text})"


Cells = dict[tuple[str, str, str, str, str], Cell]


def cells(rows: Iterable[Row]) -> Cells:
    """Return the cell of every level, estimand, method, epsilon and delta."""
    groups: dict[tuple[str, str, str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.level, row.estimand, row.method, row.epsilon, row.delta), []).append(row)
    return {key: cell(group) for key, group in groups.items()}


def cell(group: list[Row]) -> Cell:
    answered = [row for row in group if not row.refusal]
    refusal = " ".join(sorted({row.refusal for row in group} - {""}))
    if not answered:
        return Cell(0, np.nan, np.nan, np.nan, refusal, False)
    error = np.array([row.error for row in answered])
    half = np.array([row.half for row in answered])
    return Cell(
        len(answered),
        float((np.abs(error) <= half).mean()),
        float(np.sqrt((error**2).mean())),
        float(2 * np.median(half)),
        refusal,
        all(row.valid for row in answered),
    )


def markdown(rows: list[Row], other: list[Row]) -> str:
    """Return the tables of one design, one for each level and estimand."""
    made, before = cells(rows), cells(other)
    text = []
    for level, estimand in dict.fromkeys((row.level, row.estimand) for row in rows):
        draws = max(cell.draws for key, cell in made.items() if key[:2] == (level, estimand))
        text += [
            f"\n**{rows[0].design}**, {level} level, {estimand} ({draws} draws)\n",
            "| method | " + " | ".join(f"epsilon {epsilon}" for epsilon in EPSILONS[level]) + " |",
            "|---|" + "---|" * len(EPSILONS[level]),
        ]
        methods = dict.fromkeys(row.method for row in rows if row.epsilon and row.method != PLAIN)
        for method, delta in product(methods, DELTAS[level]):
            if all((level, estimand, method, epsilon, delta) not in made for epsilon in EPSILONS[level]):
                continue
            note = f"{method}, delta {delta}" if level == "record" else method
            text.append(_line(note, made, level, estimand, method, delta))
            if before:
                kept = [cell.draws for key, cell in before.items() if key[:2] == (level, estimand)]
                title = f"{note}, before ({max(kept, default=0)} draws)"
                text.append(_line(title, before, level, estimand, method, delta))
        text.append(_line("private difference in means", made, level, estimand, PLAIN, "0"))
        for name in (*FREE, ZERO):
            only = made.get((level, estimand, name, "", ""))
            if only is not None:
                text.append(f"| {name} | {only} |" + " |" * (len(EPSILONS[level]) - 1))
    return "\n".join(text)


def _line(title: str, made: Cells, level: str, estimand: str, method: str, delta: str) -> str:
    found = [str(made.get((level, estimand, method, epsilon, delta), "")) for epsilon in EPSILONS[level]]
    return f"| {title} | " + " | ".join(found) + " |"


def failing(rows: list[Row]) -> list[str]:
    """Return the cells whose answers claim an interval for the effect that covers too seldom."""
    return [
        f"{rows[0].design}, {level} level, {estimand}, epsilon {epsilon}, delta {delta}: {found.coverage:.3g}"
        for (level, estimand, method, epsilon, delta), found in cells(rows).items()
        if method == ADJUSTED and found.draws and found.claims and found.coverage < LEAST_COVERAGE
    ]
