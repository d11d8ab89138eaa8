"""What the saved answers add up to: cells, the table, and how near the automatic choice is to the best."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np

from experiments.every_method.asking import FREE, METHODS, TOLD
from experiments.every_method.runs import DELTAS, EPSILONS, Row

NEAR = 1.15
VALID = 0.9
# Methods with fewer draws than this in common with the automatic choice are not compared with it.
FEWEST = 10


@dataclass(frozen=True)
class Cell:
    """Coverage, root mean square error, median width and share not adjusted of one method at one budget."""

    draws: int
    coverage: float
    rmse: float
    width: float
    unadjusted: float
    valid: bool  # whether every answer claims an interval for the effect
    refusal: str

    def __str__(self) -> str:
        if not self.draws:
            return self.refusal or ""
        text = f"{self.coverage:.2f} / {self.rmse:.3g} / {self.width:.3g}"
        return text + (f" ({self.unadjusted:.2f})" if self.unadjusted else "")


Cells = dict[tuple[str, str, str], Cell]


def cells(rows: Iterable[Row]) -> Cells:
    """Return the cell of every (method, epsilon, delta)."""
    return {key: _cell(group) for key, group in _groups(rows).items()}


def _groups(rows: Iterable[Row]) -> dict[tuple[str, str, str], list[Row]]:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.method, row.epsilon, row.delta), []).append(row)
        if row.method in METHODS and METHODS[row.method].pure:
            groups.setdefault((row.method, row.epsilon, DELTAS[1]), []).append(row)
    return groups


def _cell(group: list[Row]) -> Cell:
    answered = [row for row in group if not row.refusal]
    refusal = "".join(sorted({row.refusal for row in group} - {""}))
    if not answered:
        return Cell(0, np.nan, np.nan, np.nan, np.nan, False, refusal)
    error = np.array([row.error for row in answered])
    half = np.array([row.half for row in answered])
    return Cell(
        len(answered),
        float((np.abs(error) <= half).mean()),
        float(np.sqrt((error**2).mean())),
        float(2 * np.median(half)),
        float(np.mean([not row.adjusted for row in answered])),
        all(row.valid for row in answered),
        refusal,
    )


def markdown(name: str, found: Cells, deltas: Iterable[str] = DELTAS) -> str:
    """Return the tables of one design, one for each delta."""
    methods = list(dict.fromkeys(key[0] for key in found))
    lines = []
    for delta in deltas:
        lines += [f"\n**{name}**, delta = {delta}\n", "| method | " + " | ".join(EPSILONS) + " |"]
        lines.append("|---|" + "---|" * len(EPSILONS))
        for method in methods:
            if method in FREE:
                lines.append(f"| {method} | {found[method, '', '']} |" + " |" * (len(EPSILONS) - 1))
                continue
            texts = [str(found.get((method, epsilon, delta), "")) for epsilon in EPSILONS]
            lines.append(f"| {method} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


@dataclass(frozen=True)
class Gap:
    """How far the automatic choice is from the best method of one cell, and which methods are near the best."""

    design: str
    epsilon: str
    delta: str
    best: str
    ratio: float
    near: frozenset[str]


def gaps(name: str, rows: list[Row], valid_only: bool, told: bool, of: str) -> list[Gap]:
    """Return the ratio of root mean square `of` (error or half) in every cell of a design, over draws that both have.

    The best is taken over all private methods, or, with `valid_only`, over those whose interval claims to be one for
    the effect and covers in at least 90 % of the draws; without `told`, over those that know what the choice knows.
    """
    errors = {k: {r.draw: getattr(r, of) for r in g if not r.refusal} for k, g in _groups(rows).items()}
    valid = {key for key, cell in cells(rows).items() if cell.valid and cell.coverage >= VALID}
    listed = []
    for epsilon, delta in product(EPSILONS, DELTAS):
        own = errors.get(("auto", epsilon, delta), {})
        ratios: dict[str, float] = {}
        for (method, *budget), others in errors.items():
            common = sorted(own.keys() & others.keys())
            enough = len(common) >= min(FEWEST, len(own)) > 0
            if tuple(budget) == (epsilon, delta) and enough and (told or method not in TOLD):
                ratios[method] = _size(own, common) / _size(others, common)
        allowed = [m for m in ratios if m != "auto" and (not valid_only or (m, epsilon, delta) in valid)]
        if allowed:
            best = max(allowed, key=ratios.__getitem__)
            near = frozenset(method for method, ratio in ratios.items() if ratio * NEAR >= ratios[best])
            listed.append(Gap(name, epsilon, delta, best, ratios[best], near))
    return listed


def ceiling(listed: list[Gap], alike: dict[str, str]) -> int:
    """Return in how many cells a rule of public numbers could be near the best at most.

    It takes one method for all designs that are alike, and is told the figures beforehand.
    """
    groups: dict[tuple[str, str, str], list[Gap]] = {}
    for gap in listed:
        groups.setdefault((alike[gap.design] or gap.design, gap.epsilon, gap.delta), []).append(gap)
    return sum(
        max(sum(method in gap.near for gap in group) for method in METHODS) for group in groups.values()
    )


def _size(errors: dict[int, float], draws: list[int]) -> float:
    return float(np.sqrt(np.mean([errors[number] ** 2 for number in draws])))
