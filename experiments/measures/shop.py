"""Three outcomes of two e-mails in one request: the counts published of Hillstrom's e-mail test (2008).

Numbers of people, visits and purchases by arm are as published; what buyers spent is drawn with the published mean of
their arm, so that effects on spending are about those of the test.
"""

from __future__ import annotations

import numpy as np

import counterveil as cv
from experiments.runner import Row, Table

# People, visits, purchases and mean spending of buyers in dollars.
ARMS = {
    "no e-mail": (21_306, 2_262, 122, 114.0),
    "mens e-mail": (21_307, 3_894, 267, 113.5),
    "womens e-mail": (21_387, 3_238, 189, 121.9),
}
# The largest purchase is $499.
STUDY = cv.Study(
    cv.Treatment("email", arms=tuple(ARMS), reference="no e-mail"),
    outcome={"visit": (0, 1), "conversion": (0, 1), "spend": (0, 499)},
    assignment=cv.Trial(),
)


def people(seed: int = 1) -> dict[str, np.ndarray]:
    """Return one row a person; buyers are among the visitors."""
    generator = np.random.default_rng(seed)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in ("email", "visit", "conversion", "spend")}
    for arm, (rows, visits, buyers, mean) in ARMS.items():
        place = np.arange(rows)
        columns["email"].append(np.full(rows, arm))
        columns["visit"].append((place < visits).astype(np.int64))
        columns["conversion"].append((place < buyers).astype(np.int64))
        spent = np.clip(generator.gamma(1.2, mean / 1.2, rows), 5, 499)
        columns["spend"].append(np.where(place < buyers, spent, 0.0))
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def shop(*, seeds: range) -> list[Row]:
    """Return the effects on all three outcomes at epsilon 1, as differences and as lifts."""
    noise = cv.SeededNoise(seeds.start)
    lifts = cv.outcomes(people(), STUDY, protects="outcome", epsilon=1, measure="lift", noise=noise)
    return [
        [measure, effect.name, effect.estimate, *effect.interval()]
        for measure, found in (("difference", lifts.as_measure("difference")), ("lift", lifts))
        for effect in found.table
    ]


TABLE = Table(
    columns="measure | outcome and arm | estimate :.4g | 95%, from :.4g | to :.4g",
    cells=[()],
    row=shop,
    draws=1,
    first_seed=1,
)
