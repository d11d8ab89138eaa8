"""Coverage and errors of differences at the horizon and of restricted means, and the size of the log-rank test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import counterveil as cv
from counterveil.data.follow_up import PARTS, TimeCells, entries, shared_entries
from counterveil.estimators.time_tables import table_release
from counterveil.inference.survival.log_rank import log_rank_of
from counterveil.inference.survival.tables import NoisyTables
from counterveil.privacy import Budget
from experiments.runner import Row, Table, judged, mean, of_draws, rmse
from experiments.survival.designs import HORIZON, Columns, Trial

EXACT = 1e9  # an epsilon that leaves no noise


def asked(design: Trial, seed: int, cells: int = 12, **given: Any) -> cv.results.SurvivalResult:
    """Return the answer about one simulated study."""
    return cv.survival(design.draw(seed), design.study(cells), noise=cv.SeededNoise(seed), **given)


COVERAGE = [
    *(
        (Trial(rows, censored), {"protects": protects, "epsilon": 1})
        for censored in (0.1, 0.3, 0.6)
        for rows, protects in ((500, "outcome"), (500, "record"), (2000, "record"))
    ),
    (Trial(2000, 0.3, share=0.2), {"protects": "record", "epsilon": 1}),
    (Trial(2000, 0.3, left=0.97), {"protects": "record", "epsilon": 1}),
    (Trial(2000, 0.3), {"protects": "record", "epsilon": 0.5}),
    (Trial(2000, 0.3), {"protects": "record", "epsilon": 1, "delta": "1e-6", "mechanism": "gaussian"}),
]


def answer(design: Trial, given: dict[str, Any], *, seed: int) -> dict[str, Any]:
    """Return what the difference at the horizon, that of restricted means and the band of the treated are like."""
    found = asked(design, seed, **given)
    own = found.restricted_mean_difference
    horizon = judged(found.difference().interval(), found.difference().estimate, design.gap)
    means = judged(own.interval(), own.estimate, design.mean_gap)
    rows = [row for row in found.curves() if row["arm"] == "treated" and row["time"] > 0]
    curve = [design.survival(1, row["time"]) for row in rows]
    band = all(row["band_low"] <= s <= row["band_high"] for row, s in zip(rows, curve, strict=True))
    return horizon | {f"mean {name}": value for name, value in means.items()} | {"band": band}


def _named(design: Trial) -> str:
    more = f", {design.share:.0%} treated" if design.share != 0.5 else ""
    rare = ", rare events" if design.left > 0.9 else ""
    return f"trial, n = {design.rows}, {design.censored:.0%} censored{more}{rare}"


def _terms(given: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" if name != "protects" else str(value) for name, value in given.items())


def rivals(censored: float, *, seeds: range) -> Row:
    """Return errors of the difference in restricted means: without privacy, ours, zero, and of plain means of times."""
    design = Trial(2000, censored)
    truth, errors = design.mean_gap, np.zeros((len(seeds), 4))
    plain = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("time", (0, HORIZON)), assignment=cv.Trial())
    for place, seed in enumerate(seeds):
        people, noise = design.draw(seed), cv.SeededNoise(seed)
        given = {"protects": "record", "noise": noise}
        free = cv.survival(people, design.study(), epsilon=EXACT, **given)
        ours = cv.survival(people, design.study(), epsilon=1, **given)
        times = {name: people[name] for name in ("arm", "time")}
        naive = cv.ate(times, plain, epsilon=1, method="trial", **given)
        found = [one.restricted_mean_difference.estimate for one in (free, ours)]
        errors[place] = [*found, 0.0, naive.estimate]
    return [censored, *np.sqrt(np.mean((errors - truth) ** 2, axis=0))]


SIZES = [
    (Trial(500, 0.1), "record", Budget(1)),
    (Trial(500, 0.6), "record", Budget(1)),
    (Trial(2000, 0.3), "record", Budget(1)),
    (Trial(2000, 0.3, share=0.2), "record", Budget(0.5)),
    (Trial(2000, 0.3, left=0.97), "record", Budget(1)),
    (Trial(1000, 0.3), "outcome", Budget(1)),
    (Trial(2000, 0.3), "record", Budget(1, "1e-6")),
]


def sizes(design: Trial, protects: str, budget: Budget, *, seeds: range) -> Row:
    """Return how often the log-rank test rejects at 5 % where hazards are alike, and where their ratio is .7.

    Tables are drawn without a ledger, with the same noise in double precision: many draws take seconds. Power is
    that of a fifth of the draws.
    """
    found: list[float] = []
    for ratio, some in ((1.0, seeds), (0.7, seeds[: len(seeds) // 5])):
        own = replace(design, ratio=ratio)
        found += [*np.mean([_rejected(own, seed, protects, budget) for seed in some], axis=0)]
    return [_named(design), protects, str(budget), *found]


def _rejected(design: Trial, seed: int, protects: str, budget: Budget) -> tuple[bool, bool]:
    """Return whether the test rejects with noise and without."""
    noisy, exact = drawn(design, seed, protects, budget)
    return log_rank_of(noisy).p_value < 0.05, log_rank_of(exact).p_value < 0.05


def drawn(
    design: Trial, seed: int, protects: str, budget: Budget, cells: int = 12, whole: bool = False
) -> tuple[NoisyTables, NoisyTables]:
    """Return the tables of one simulated trial with noise and without; `whole` leaves cells uncut."""
    people, event = design.draw(seed), design.study(cells).event
    assert event is not None
    kinds = ["laplace"] if budget.pure else ["gaussian"]
    release = table_release(kinds, budget, event.cells, "flat", None if whole else design.rows)
    counts = counted(people, event, release.parts)
    event = event.cut(release.parts)
    rng, sd = np.random.default_rng([seed, 3]), release.noise_sd
    noise = (
        rng.laplace(0, sd / 2**0.5, counts.shape) if release.tables.pure else rng.normal(0, sd, counts.shape)
    )
    known = (float(counts.sum()),) if protects == "record" else tuple(counts.sum(axis=1).tolist())
    facts = {"form": "flat", "heavy": release.tables.pure, "totals": known, "edges": event.edges}
    facts |= {"convention": "middle", "shares": () if protects == "record" else (1.0,), "design": (1.0, 1.0)}
    noisy, exact = (
        NoisyTables(numbers=tuple(map(tuple, numbers.tolist())), noise_sd=spread, cut=release.parts, **facts)
        for numbers, spread in ((counts + noise, sd), (counts, 0.0))
    )
    return noisy, exact


def counted(people: Columns, event: TimeCells, parts: int) -> np.ndarray:
    """Return the tables (2, M) of both arms by so many parts of cells."""
    fine = event.cut(PARTS)
    place = people["arm"] * fine.entries + entries(people["time"], people["event"], fine)
    found = np.bincount(place, minlength=2 * fine.entries).reshape(2, -1)
    return shared_entries(found, event.cells, parts, event.kinds, ends=False) / (2 * PARTS)


_LENGTH_AND_ERROR = ("half-width :.3f", "error :.4f")
TABLES = {
    "coverage": Table(
        columns=(
            *("design", "asked", "S coverage :.1%", *_LENGTH_AND_ERROR),
            *("RMST coverage :.1%", *_LENGTH_AND_ERROR, "band :.1%"),
        ),
        cells=COVERAGE,
        row=of_draws(
            lambda design, given: [_named(design), _terms(given)],
            answer,
            [
                *(mean("covered"), mean("half"), rmse("error")),
                *(mean("mean covered"), mean("mean half"), rmse("mean error")),
                mean("band"),
            ],
        ),
    ),
    "rivals": Table(
        columns=(
            "censored :.0% | without privacy :.4f | ours :.4f | zero :.4f | "
            "private difference in means of times :.4f"
        ),
        cells=[(0.1,), (0.3,), (0.6,)],
        row=rivals,
    ),
    "sizes": Table(
        columns=(
            "design | protects | budget | size :.1% | without noise :.1% | "
            "power at a ratio of 0.7 :.1% | without noise :.1%"
        ),
        cells=SIZES,
        row=sizes,
        draws=2000,
    ),
}
