"""Several arms of private records: coverage, size, simultaneous coverage, and length beside Welch's intervals.

`python -m experiments.arms` prints the table with 200 draws a row; `--draws` changes their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import counterveil as cv
from experiments.tables import print_tables, seeds

# Draws whose pairs and permuted arms are looked at.
_FEW = 40


@dataclass(frozen=True)
class Design:
    """A trial of three arms: shares, and means of outcomes in [0, 1] that are beta or 0 and 1."""

    rows: int
    means: tuple[float, ...] = (0.4, 0.45, 0.5)
    shares: tuple[float, ...] = (1 / 3, 1 / 3, 1 / 3)
    events: bool = False
    size: float = 8.0  # of the beta distribution: larger ones vary less

    def draw(self, seed: int) -> dict[str, np.ndarray]:
        """Return one simulated study."""
        rng = np.random.default_rng([seed, self.rows])
        arm = rng.choice(len(self.shares), self.rows, p=self.shares)
        mean = np.array(self.means)[arm]
        y = (
            rng.random(self.rows) < mean
            if self.events
            else rng.beta(self.size * mean, self.size * (1 - mean))
        )
        return {"arm": arm, "y": y.astype(np.float64)}


DESIGNS = {
    "n = 500": Design(500),
    "n = 2,000": Design(2000),
    "n = 10,000": Design(10_000),
    "events, n = 2,000": Design(2000, events=True),
    "rare events, n = 3,000": Design(3000, (0.03, 0.03, 0.05), events=True),
    "5 % in one arm, n = 2,000": Design(2000, shares=(0.5, 0.45, 0.05), events=True),
    "skewed, n = 1,000": Design(1000, (0.05, 0.05, 0.08), size=3.0),
}


def coverage(draws: int) -> Iterator[str]:
    """Yield coverage of both contrasts, of all pairs together, size, and length beside Welch's."""
    yield "| design | 1 - 0 | 2 - 0 | all pairs | size | length, 1 - 0 | 2 - 0 |"
    yield "|---|---|---|---|---|---|---|"
    study = cv.Study("arm", "y", (0, 1), arms=(0, 1, 2), reference=0, randomised=True)
    for name, design in DESIGNS.items():
        truth = np.array(design.means)[1:] - design.means[0]
        pairs = np.array([truth[0], truth[1], truth[1] - truth[0]])
        held, together, missed, lengths = [], [], [], []
        for seed in seeds(draws):
            data = design.draw(seed)
            found = _asked(study, data, seed)
            ends = np.array(list(found.interval().values()))
            held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
            if len(together) < _FEW:
                every = np.array([one.interval(simultaneous=True) for one in found.pairwise()])
                together.append(np.all((every[:, 0] <= pairs) & (pairs <= every[:, 1])))
                null = data | {"arm": np.random.default_rng(seed).permutation(data["arm"])}
                missed.append(
                    [not low <= 0 <= high for low, high in _asked(study, null, seed).interval().values()]
                )
            errors = [data["y"][data["arm"] == k].var() / (data["arm"] == k).sum() for k in range(3)]
            lengths.append((ends[:, 1] - ends[:, 0]) / 3.92 / np.sqrt(np.array(errors[1:]) + errors[0]))
        cells = [*np.mean(held, axis=0), np.mean(together), np.mean(missed), *np.median(lengths, axis=0)]
        yield f"| {name} | {' | '.join(f'{one:.3f}' for one in cells)} |"


def _asked(study: cv.Study, data: dict[str, np.ndarray], seed: int) -> cv.results.ArmsResult:
    return cv.arms(data, study, protects="record", epsilon=1, noise=cv.SeededNoise(seed))


if __name__ == "__main__":
    print_tables(__doc__, {"coverage": coverage})
