"""Does adjusting pay in a trial? `python -m experiments.every_method.trials`.

Treatments are drawn anew for each draw, so that the true effect is known: 0.5 in the simulated trials, zero in the
real ones (LaLonde 445, NSW 722, STAR in kindergarten, IST), whose outcomes are left as they are. Cells are coverage /
root mean square error / median width of 95 % intervals, in percent of the outcome's range. `rule` has the number of
rows from which `auto` adjusts for covariates in trials of private records.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np

import counterveil as cv
from counterveil.data import Range, Study, Table
from counterveil.datasets import ist, lalonde, nsw, star
from counterveil.datasets.dataset import Dataset
from counterveil.errors import CounterveilError
from counterveil.estimators.moments.trial_adjustment import TrialNumbers, adjustment_is_worthwhile
from counterveil.privacy import Budget
from experiments import runner
from experiments.every_method.designs import widened

EPSILONS = ("0.5", "1", "2", "4", "8")
# Comparisons of a trial of private records, by the names of the table.
COMPARED = {
    "difference_in_means": cv.settings.Trial("none", "pooled"),
    "contrast": cv.settings.Trial("none", "arms"),
    "adjusted_contrast": cv.settings.Trial("covariates"),
}
LEVELS = {
    "record": ("difference_in_means", "contrast", "doubly_robust", "adjusted_contrast", "auto"),
    "outcome": ("difference_in_means", "weighting"),
}
# With so few releases pure noise is the smaller one, whatever the delta.
_FEW_RELEASES = ("contrast", "difference_in_means", "weighting")
Loader = Callable[[int], tuple[dict[str, np.ndarray], Study, float]]


def simulated(n: int, explained: float) -> Loader:
    """Return trials with 20 covariates that explain a given part of the outcome's variance in an arm."""

    def load(seed: int) -> tuple[dict[str, np.ndarray], Study, float]:
        r = np.random.default_rng([seed, n])
        x = r.uniform(size=(n, 20))
        fitted = x @ r.uniform(0, 0.4, 20)
        t = r.uniform(size=n) < 0.5
        left = fitted.std() * np.sqrt((1 - explained) / explained) if explained else fitted.std()
        y = (fitted if explained else 0.0) + 0.5 * t + left * r.uniform(-(3**0.5), 3**0.5, n)
        names = [f"x{j}" for j in range(1, 21)]
        domains = dict.fromkeys(names, Range(0, 1))
        study = Study(
            cv.Treatment("t", control=0), cv.Outcome("y", widened(y)), domains, assignment=cv.Trial()
        )
        return {"t": t.astype(int), "y": y} | dict(zip(names, x.T, strict=True)), study, 0.5

    return load


def real(make: Callable[[], Dataset]) -> Loader:
    """Return a trial whose arms are dealt out again, in their sizes: nobody's outcome depends on them."""
    kept: list[Dataset] = []

    def load(seed: int) -> tuple[dict[str, np.ndarray], Study, float]:
        if not kept:
            kept.append(make())
        data = kept[0]
        columns = dict(data.frame)
        columns[data.study.treatment] = np.random.default_rng(seed).permutation(columns[data.study.treatment])
        study = data.study._changed(treated_share=None)
        return columns, study, 0.0

    return load


DESIGNS = {
    f"simulated, n = {n:,}, {share:.0%} explained": simulated(n, share)
    for n in (500, 2000, 10_000, 40_000)
    for share in (0.0, 0.3, 0.9)
} | {
    "LaLonde 445": real(lalonde),
    "NSW 722": real(nsw),
    "STAR, kindergarten": real(lambda: star("K")),
    "IST": real(ist),
}


ASKED = [(level, name) for level, names in LEVELS.items() for name in names]


def trial(name: str, delta: str, *, seeds: range) -> list[runner.Row]:
    """Return a row for every level and method of a trial."""
    found = [answers(DESIGNS[name], seed, delta, ASKED) for seed in seeds]
    return [
        [name, level, method, *(cell([one[level, method, epsilon] for one in found]) for epsilon in EPSILONS)]
        for level, method in ASKED
    ]


def rule(delta: str, features: int, *, seeds: range) -> runner.Row:
    """Return the numbers of rows from which adjusting is expected to pay; nothing is drawn."""
    return [delta, features, *(fewest(features, Budget(epsilon, delta)) for epsilon in EPSILONS)]


def fewest(features: int, budget: Budget) -> int:
    """Return the number of rows from which a model of outcomes is expected to pay, to two digits."""
    low, high = 10.0, 1e6
    while high / low > 1.005:
        middle = (low * high) ** 0.5
        worthwhile = adjustment_is_worthwhile(TrialNumbers(round(middle), features, budget, "staircase"))
        low, high = (low, middle) if worthwhile else (middle, high)
    return int(float(f"{high:.2g}"))


def answers(
    load: Loader, seed: int, delta: str, asked: list[tuple[str, str]]
) -> dict[tuple[str, str, str], tuple[float, float] | None]:
    columns, study, truth = load(seed)
    table = Table.attach(columns, study)
    width = float(study.outcome_range[1] - study.outcome_range[0]) / 100
    made: dict[tuple[str, str, str], tuple[float, float] | None] = {}
    for level, method in asked:
        for epsilon in EPSILONS:
            arguments = {"protects": level, "epsilon": epsilon, "delta": delta, "method": method}
            if level == "record" and method in COMPARED:
                arguments |= {"method": "trial", "settings": COMPARED[method]}
            mechanism = "staircase" if delta != "0" and method in _FEW_RELEASES else None
            try:
                result = cv.ate(table, study, mechanism=mechanism, noise=cv.SeededNoise(seed), **arguments)
            except CounterveilError:
                made[level, method, epsilon] = None
                continue
            low, high = result.untruncated_interval()
            made[level, method, epsilon] = (result.estimate - truth) / width, (high - low) / 2 / width
    return made


def cell(found: list[tuple[float, float] | None]) -> str:
    answered = np.array([one for one in found if one is not None])
    if not len(answered):
        return "refused"
    error, half = answered.T
    covered = float((np.abs(error) <= half).mean())
    return f"{covered:.2f} / {np.sqrt((error**2).mean()):.3g} / {2 * np.median(half):.3g}"


TABLES = {
    "trials": runner.Table(
        columns=("trial", "level", "method", *EPSILONS),
        cells=[(name, "1e-6") for name in DESIGNS],
        row=trial,
        draws=20,
        first_seed=40_000,
    ),
    "rule": runner.Table(
        columns=("delta", "features", *(f"{epsilon} :," for epsilon in EPSILONS)),
        cells=list(product(("0", "1e-6"), (1, 5, 20, 50))),
        row=rule,
        apart=True,
    ),
}

if __name__ == "__main__":
    runner.run(__doc__, TABLES)
