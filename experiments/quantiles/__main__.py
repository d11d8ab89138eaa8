"""Differences of quantiles of private records: coverage, size, bands, and length beside numpy's bootstrap.

`python -m experiments.quantiles` prints the tables with 200 draws a row (`drawn`: designs of each family, a fifth).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtri

import counterveil as cv
from experiments.runner import Row, Table, run

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
NORMALS = ndtri(np.array(SHARES))
# Draws whose bands are looked at.
_BANDS = 40


@dataclass(frozen=True)
class Design:
    """Outcomes of a trial or a cohort: quantiles of the control arm, and by how much treatment multiplies them."""

    rows: int
    given: dict[str, Any]
    high: float = 100.0
    spread: float = 0.6
    effect: float = 0.15
    share: float = 0.5
    confounded: bool = False

    def draw(self, seed: int, effect: float) -> dict[str, np.ndarray]:
        """Return one simulated study."""
        rng = np.random.default_rng([seed, self.rows])
        x = rng.random(self.rows)
        arm = (rng.random(self.rows) < (0.3 + 0.4 * x if self.confounded else self.share)).astype(np.int64)
        # Given x the spread is less, so that it is the same over all x.
        part = self.spread / 2
        own = part * ndtri(x) + np.sqrt(self.spread**2 - part**2) * rng.normal(size=self.rows)
        value = np.exp(
            3.3 + effect * arm + (own if self.confounded else self.spread * rng.normal(size=self.rows))
        )
        return {"arm": arm, "y": np.clip(value, 0, self.high), "x": x}

    def truth(self, effect: float) -> np.ndarray:
        """Return the differences of quantiles."""
        own = np.exp(3.3 + self.spread * NORMALS)
        return own * np.expm1(effect)

    @property
    def study(self) -> cv.Study:
        """The declaration."""
        covariates = {"x": cv.Range(0, 1)} if self.confounded else {}
        ends = (0, self.high)
        return cv.Study(
            cv.Treatment("arm", control=0),
            cv.Outcome("y", ends),
            covariates,
            assignment=cv.Trial() if not self.confounded else cv.Observational(),
        )


RECORD, OUTCOME, PAIR = (
    {"protects": level, "epsilon": 1, "grid": "even"}
    for level in ("record", "outcome", "treatment and outcome")
)
FOUND = RECORD | {"grid": "found"}
DESIGNS = {
    "n = 500": Design(500, RECORD),
    "n = 2,000": Design(2000, RECORD),
    "n = 10,000": Design(10_000, RECORD),
    "n = 2,000, outcomes": Design(2000, OUTCOME),
    "n = 2,000, weighted outcomes": Design(2000, OUTCOME, confounded=True),
    "n = 2,000, weighted pairs": Design(2000, PAIR, confounded=True),
    "n = 8,000, weighted pairs": Design(8000, PAIR, confounded=True),
    "n = 2,000, 5 % treated": Design(2000, RECORD, share=0.05),
    "n = 2,000, range 10 times too wide": Design(2000, RECORD, high=1000.0),
    **{
        f"n = {rows:,}, range {wide} times too wide, found": Design(rows, FOUND, high=100.0 * wide)
        for rows in (500, 2000)
        for wide in (1, 5, 20)
    },
}


@dataclass(frozen=True)
class Rounded(Design):
    """Outcomes of two even arms, from 0 to 100, of which a part is rounded to multiples of a number."""

    to: float = 10.0
    part: float = 0.0
    beta: tuple[float, float] = (2.0, 3.0)

    def draw(self, seed: int, effect: float) -> dict[str, np.ndarray]:
        """Return one simulated study."""
        rng = np.random.default_rng([seed, self.rows, 5])
        arm = rng.integers(0, 2, self.rows)
        value = np.clip(100 * np.exp(effect * arm) * rng.beta(*self.beta, size=self.rows), 0, self.high)
        chosen = rng.random(self.rows) < self.part
        value = np.where(chosen, np.round(value / self.to) * self.to, value)
        return {"arm": arm, "y": value}

    def truth(self, effect: float) -> np.ndarray:
        """Return the quartiles of the control arm."""
        data = replace(self, rows=2_000_000).draw(0, effect)
        return np.quantile(data["y"][data["arm"] == 0], _QUARTILES)


_QUARTILES = (0.25, 0.5, 0.75)
ROUNDED = {
    f"{name}, n = {rows:,}, {part:.0%} to {to}": Rounded(rows, RECORD, to=to, part=part, beta=beta)
    for name, beta in (("beta(2, 3)", (2.0, 3.0)), ("beta(4, 4)", (4.0, 4.0)))
    for rows in (500, 2000)
    for to, part in ((10, 0.0), (10, 0.5), (10, 1.0), (5, 0.5), (5, 1.0), (2, 1.0), (1, 1.0))
}


def rounded(name: str, *, seeds: range) -> Row:
    """Return coverage of one arm's quartiles where outcomes are rounded, and lengths in the unit of outcomes."""
    design = ROUNDED[name]
    truth, held, lengths = design.truth(0.0), [], []
    for seed in seeds:
        found = _asked(design, 0.0, seed)
        ends = np.array([found.quantile("control", one).interval() for one in _QUARTILES])
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        lengths.append(np.ptp([ends[1], found.quantile_difference().interval()], axis=1))
    return [name, *np.mean(held, axis=0), *np.median(lengths, axis=0)]


def coverage(name: str, *, seeds: range) -> Row:
    """Return coverage at five shares, that of the band, size at the median, and lengths beside numpy's."""
    design = DESIGNS[name]
    truth, held, lengths, band, rejected = design.truth(design.effect), [], [], [], []
    for seed in seeds:
        found = _asked(design, design.effect, seed)
        ends = np.array([found.quantile_difference(one).interval() for one in SHARES])
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        lengths.append(ends[:, 1] - ends[:, 0])
        if len(band) < _BANDS:
            rows = found.quantile_band(SHARES)
            kept = [r["band_low"] <= t <= r["band_high"] for r, t in zip(rows, truth, strict=True)]
            band.append(all(kept))
        low, high = _asked(design, 0.0, seed + len(seeds)).quantile_difference().interval()
        rejected.append(not low <= 0 <= high)
    plain = np.median([_bootstrap(design, seed) for seed in seeds[:40]], axis=0)
    beside = np.median(lengths, axis=0)[[2, 4]] / plain
    return [name, *np.mean(held, axis=0), np.mean(band), np.mean(rejected), *beside]


def _asked(design: Design, effect: float, seed: int) -> cv.results.QuantilesResult:
    """Return an answer; without weights its counts are drawn anew, with noise in double precision, which is fast."""
    data = design.draw(seed, effect)
    if design.confounded or design.given["grid"] == "found":
        return cv.quantiles(data, design.study, noise=cv.SeededNoise(seed), **design.given)
    made = _made(design.rows, design.high, design.share, design.given["protects"])
    # Cells hold their upper end.
    cells = np.clip(np.searchsorted(made.edges, data["y"], "left") - 1, 0, None)
    own = [np.bincount(cells[data["arm"] == arm], minlength=len(made.edges) - 1) for arm in (0, 1)]
    noisy = np.array(own) + np.random.default_rng([seed, 3]).laplace(
        0, made.histograms.noise_sd / 2**0.5, np.shape(own)
    )
    public = (design.rows,) if design.given["protects"] == "record" else [int(one.sum()) for one in own]
    counts = tuple(map(tuple, noisy.tolist()))
    return replace(
        made, histograms=replace(made.histograms, numbers=counts, totals=tuple(map(float, public)))
    )


@cache
def _made(rows: int, high: float, share: float, protects: str) -> cv.results.QuantilesResult:
    design = Design(rows, {}, high=high, share=share)
    noise = cv.SeededNoise(1)
    asked = {"protects": protects, "epsilon": 1, "grid": "even"}
    return cv.quantiles(design.draw(0, 0.0), design.study, noise=noise, **asked)


def _bootstrap(design: Design, seed: int) -> list[float]:
    """Return the lengths of numpy's intervals at .5 and .9: 1.96 bootstrap standard errors to both sides."""
    data, rng = design.draw(seed, design.effect), np.random.default_rng(seed)
    arms = [data["y"][data["arm"] == arm] for arm in (0, 1)]
    found = [
        np.subtract(*(np.quantile(rng.choice(one, len(one)), (0.5, 0.9)) for one in reversed(arms)))
        for _ in range(200)
    ]
    return list(2 * 1.96 * np.std(found, axis=0))


# Designs drawn at random: families of outcomes of one arm in units of their own, and ranges that hold them.
@dataclass(frozen=True)
class Drawn:
    """A trial whose family, size, budget, level and range come from one seed; treatment moves outcomes up."""

    seed: int

    @property
    def _given(self) -> tuple[str, int, float, float, str, np.random.Generator]:
        rng = np.random.default_rng([self.seed, 51])
        family = FAMILIES[self.seed % len(FAMILIES)]
        rows, epsilon = int(rng.choice([1000, 2000, 5000])), float(rng.choice([0.5, 1.0, 2.0]))
        wide = float(rng.choice([1.0, 2.0, 5.0, 20.0]))
        level = ("outcome", "treatment and outcome", "record")[int(rng.integers(3))]
        return family, rows, epsilon, wide, level, rng

    def outcomes(self, rng: np.random.Generator, arm: np.ndarray) -> np.ndarray:
        """Return outcomes of people in these arms."""
        family, _, _, wide, _, own = self._given
        spread, shift, n = own.uniform(0.5, 1.2), own.uniform(0.0, 0.3), len(arm)
        high = 100.0 * wide
        value = {
            "skewed": lambda: np.exp(2.5 + shift * arm + spread * rng.normal(size=n)),
            "zeros": lambda: np.where(
                rng.random(n) < 0.6, 0, np.exp(2.5 + shift * arm + spread * rng.normal(size=n))
            ),
            "clipped": lambda: high * (0.8 + 0.3 * (rng.normal(size=n) * spread + shift * arm)),
            "bell": lambda: 50 + 20 * shift * arm + 15 * spread * rng.normal(size=n),
            "two peaks": lambda: (
                np.where(rng.random(n) < 0.4, 20, 60) + 20 * shift * arm + 5 * rng.normal(size=n)
            ),
            "counts": lambda: rng.poisson(2 + 4 * spread + 3 * shift * arm),
        }[family]()
        return np.clip(value, 0, high)

    def draw(self, seed: int) -> tuple[dict[str, np.ndarray], cv.Study]:
        """Return one simulated study and its declaration."""
        _, rows, _, wide, _, _ = self._given
        rng = np.random.default_rng([seed, self.seed])
        arm = rng.integers(0, 2, rows)
        study = cv.Study(
            cv.Treatment("arm", control=0), cv.Outcome("y", (0, int(100 * wide))), assignment=cv.Trial()
        )
        return {"arm": arm, "y": self.outcomes(rng, arm)}, study

    def truth(self) -> float:
        """Return the difference of medians."""
        rng = np.random.default_rng([7, self.seed])
        return float(np.subtract(*(np.median(self.outcomes(rng, np.full(400_001, arm))) for arm in (1, 0))))


FAMILIES = ("skewed", "zeros", "clipped", "bell", "two peaks", "counts")


def _by_ranks(values: np.ndarray, high: float, epsilon: float, rng: np.random.Generator) -> float:
    """Return the exponential mechanism's median (Smith 2011): a place of the range, by how near its rank is."""
    edges = np.concatenate([[0.0], np.sort(values), [high]])
    logs = -epsilon / 2 * np.abs(np.arange(len(edges) - 1) - len(values) / 2)
    with np.errstate(divide="ignore"):
        logs += np.log(np.diff(edges))
    cell = int(np.argmax(logs + rng.gumbel(size=len(logs))))
    return float(rng.uniform(edges[cell], edges[cell + 1]))


def drawn(family: str, *, seeds: range) -> Row:
    """Return errors of the difference of medians in one family, over designs drawn at random: a fifth of the draws.

    Errors and lengths are divided by those of numpy's medians without privacy, or by a 20th (length) and an 80th
    (error) of the outcomes' standard deviation where these are less. The exponential mechanism has half of epsilon
    for each arm; one draw is numpy's median with one Laplace number in each arm's rank.
    """
    designs = range(FAMILIES.index(family), len(FAMILIES) * max(len(seeds) // 5, 1), len(FAMILIES))
    rows = [_of_design(Drawn(seed), 5) for seed in designs]
    middle = np.median(np.array(rows), axis=0)
    return [family, np.mean([row[0] for row in rows]), *middle[1:]]


def _of_design(design: Drawn, draws: int) -> list[float]:
    _, _rows, epsilon, wide, level, _ = design._given
    truth, high = design.truth(), 100.0 * wide
    found: list[list[float]] = []
    for seed in range(draws):
        data, study = design.draw(seed)
        arms = [data["y"][data["arm"] == arm] for arm in (1, 0)]
        rng = np.random.default_rng([seed, design.seed, 3])
        asked = {"protects": level, "epsilon": epsilon, "probs": (0.5,)}
        ours, even = (
            cv.quantiles(data, study, noise=cv.SeededNoise(seed), grid=grid, **asked).table[0]
            for grid in ("found", "even")
        )
        plain = float(np.subtract(*map(np.median, arms)))
        ranked = np.subtract(*(_by_ranks(one, high, epsilon / 2, rng) for one in arms))
        moved = [
            np.quantile(one, np.clip(0.5 + rng.laplace(0, 2 / epsilon, 400) / len(one), 0, 1)) for one in arms
        ]
        again = [np.subtract(*(np.median(rng.choice(one, len(one))) for one in arms)) for _ in range(60)]
        (low, high_end), (least, most) = ours.interval(), even.interval()
        noise = float(np.hypot(np.std(again), np.hypot(*map(np.std, moved))))
        small = 1e-6 * high
        found.append(
            [
                low - small <= truth <= high_end + small,
                high_end - low,
                most - least,
                3.92 * noise,
                abs(ours.estimate - truth),
                abs(even.estimate - truth),
                abs(ranked - truth),
                3.92 * np.std(again),
                abs(plain - truth),
            ]
        )
    table = np.array(found, dtype=float)
    # Where numpy's median hardly varies, a part of the outcomes' spread stands for it.
    spread = float(np.std(design.draw(0)[0]["y"]))
    length = max(float(np.median(table[:, 7])), spread / 20)
    error = max(float(np.sqrt(np.mean(table[:, 8] ** 2))), spread / 80)
    errors = np.sqrt(np.mean(table[:, 4:7] ** 2, axis=0)) / error
    return [float(table[:, 0].mean()), *(np.median(table[:, 1:4], axis=0) / length), *errors]


TABLES = {
    "coverage": Table(
        columns=(
            *("design", *(f"{share:g} :.3f" for share in SHARES)),
            *("band :.3f", "size :.3f", "length at .5 :.3f", "at .9 :.3f"),
        ),
        cells=[(name,) for name in DESIGNS],
        row=coverage,
    ),
    "rounded": Table(
        columns=(
            *("design", *(f"{share:g} :.3f" for share in _QUARTILES)),
            *("length at .5 :.3f", "of the difference :.3f"),
        ),
        cells=[(name,) for name in ROUNDED],
        row=rounded,
    ),
    "drawn": Table(
        columns=(
            "outcomes | covered :.2f | length :.2f | even cells :.2f | one draw :.2f | error :.2f | "
            "even cells :.2f | exponential mechanism :.2f"
        ),
        cells=[(family,) for family in FAMILIES],
        row=drawn,
    ),
}

if __name__ == "__main__":
    run(__doc__, TABLES)
