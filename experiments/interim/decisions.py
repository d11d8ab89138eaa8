"""Sizes of tests against margins and coverage of confidence sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table

STUDY = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), assignment=cv.Trial())
# Name, rows, share treated, mean without treatment, whether outcomes are binary.
DESIGNS = (
    ("binary, risk 0.4", 600, 0.5, 0.4, True),
    ("bell-shaped", 600, 0.5, 0.5, False),
    ("5% treated, risk 0.1", 1000, 0.05, 0.1, True),
)
MARGIN, LOOKS = 0.06, 5


def draw(design: tuple[Any, ...], rows: int, effect: float, rng: np.random.Generator) -> dict[str, Any]:
    """Return rows of a trial."""
    _, _, share, mean, binary = design
    t = (rng.random(rows) < share).astype(int)
    t[:2] = 0, 1
    y = rng.random(rows) < mean + effect * t if binary else np.clip(rng.normal(mean + effect * t, 0.15), 0, 1)
    return {"t": t, "y": np.asarray(y, dtype=float)}


def tests(design: tuple[Any, ...], protects: str, draws: int) -> list[Any]:
    """Return how often a treatment that is worse by the margin is shown not to be, and to be equivalent (at 5%)."""
    wrong = []
    for seed in range(draws):
        data = draw(design, design[1], -MARGIN, np.random.default_rng(seed))
        found = cv.ate(data, STUDY, protects=protects, epsilon=1, noise=cv.SeededNoise(seed))
        one = found.test("noninferiority", margin=MARGIN, level=0.9).met
        wrong.append([one, found.test("equivalence", margin=MARGIN, level=0.9).met])
    return [design[0], design[1], protects, draws, "size at the margin", *np.mean(wrong, axis=0).round(3)]


def sequence(design: tuple[Any, ...], protects: str, draws: int) -> list[Any]:
    """Return how often all of five looks, each with twice the rows, cover an effect of zero."""
    looks = cv.interim.sequence("y", 200 if design[2] == 0.5 else 1000, epsilon=3).planned[:LOOKS]
    kept = []
    for seed in range(draws):
        data = draw(design, looks[-1].rows, 0.0, np.random.default_rng(seed))
        ends = []
        for number, look in enumerate(looks):
            part = {name: column[: look.rows] for name, column in data.items()}
            found = cv.ate(
                part,
                STUDY,
                protects=protects,
                epsilon=look.budget.epsilon,
                level=float(1 - look.alpha),
                method="difference_in_means" if protects == "outcome" else "auto",
                noise=cv.SeededNoise(draws * number + seed),
            )
            ends.append(found.interval())
        kept.append(all(low <= 0 <= high for low, high in ends))
    return [design[0], looks[-1].rows, protects, draws, "all looks cover", round(float(np.mean(kept)), 3), ""]


def row(design: tuple[Any, ...], protects: str, *, seeds: range) -> list[Row]:
    """Return a row for each promise."""
    return [ask(design, protects, len(seeds)) for ask in (tests, sequence)]


TABLE = Table(
    columns="design | n | protects | draws | what | noninferiority or coverage | equivalence",
    cells=[(design, protects) for design in DESIGNS for protects in ("outcome", "record")],
    row=row,
    apart=True,
)
