"""Coverage, width and error on the simulated study with one discrete confounder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.datasets import synth_strata
from counterveil.datasets.dataset import Dataset
from experiments import runner

PUBLISHED, PROVED = "published (claim false, delta 1e-5)", "smooth, Lomax"
FORMS = {
    "weights up to 4": {},
    PROVED: {},
    PUBLISHED: {"delta": "1e-5", "accept": "unproved"},
    "difference in means": {"method": "trial", "settings": cv.settings.Trial("none", "pooled")},
}


@dataclass(frozen=True)
class Summary:
    covered: float
    width: float
    error: float


def ask(data: Dataset, form: str, epsilon: str, seed: int) -> cv.results.Result:
    table = Table.attach(data.frame, data.study)
    asked = {"epsilon": epsilon, "noise": cv.SeededNoise(seed)} | FORMS[form]
    if form == PUBLISHED:
        return cv.published.smooth_matching(table, data.study, **asked)
    if form == PROVED:
        return cv.published.smooth_matching_proved(table, data.study, **asked)
    return cv.ate(table, data.study, protects="record", **({"method": "stratified"} | asked))


def cell(form: str, rows: int, epsilon: str, draws: int) -> Summary:
    """Return coverage of the true effect, median width and rms error; a fresh study for every draw."""
    truth = 0.5
    found = []
    # The published bound of the variance takes a second to find.
    draws = draws // 5 if form == PUBLISHED else draws
    for draw in range(draws):
        result = ask(synth_strata(seed=10_000 + draw, n=rows), form, epsilon, draw)
        low, high = result.untruncated_interval()
        found.append((low <= truth <= high, high - low, (result.estimate - truth) ** 2))
    covered, width, square = np.array(found, dtype=float).T
    return Summary(float(covered.mean()), float(np.median(width)), float(np.sqrt(square.mean())))


def without_noise(rows: int, draws: int) -> Summary:
    """Return the same without privacy: the stratified mean and its usual interval."""
    found = []
    for draw in range(draws):
        data = synth_strata(seed=10_000 + draw, n=rows)
        estimate, error = stratified_mean(*(data.frame[name] for name in ("x", "treated", "y")))
        found.append((abs(estimate - 0.5) <= 1.96 * error, 3.92 * error, (estimate - 0.5) ** 2))
    covered, width, square = np.array(found, dtype=float).T
    return Summary(float(covered.mean()), float(np.median(width)), float(np.sqrt(square.mean())))


def stratified_mean(x: np.ndarray, treated: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the mean difference over strata with both arms, weighted by size, and its standard error."""
    total = effect = variance = 0.0
    for level in np.unique(x):
        arms = [y[(x == level) & (treated == arm)] for arm in (1, 0)]
        if min(map(len, arms)) == 0:
            continue
        n = sum(map(len, arms))
        total += n
        effect += n * (arms[0].mean() - arms[1].mean())
        variance += n**2 * sum(arm.var(ddof=1) / len(arm) if len(arm) > 1 else 0.25 for arm in arms)
    return effect / total, float(np.sqrt(variance)) / total


EPSILONS = ("0.5", "1", "2", "4")
ROWS = (2_000, 10_000)
FREE = "without privacy"


def row(rows: int, form: str, *, seeds: range) -> runner.Row:
    """Return coverage / median width / rms error of a form for every epsilon; the true effect is 0.5."""
    if form == "zero":
        return [rows, form, "0 % / 0 / 0.5"]
    draws = len(seeds)
    cells = (
        [without_noise(rows, draws)]
        if form == FREE
        else [cell(form, rows, epsilon, draws) for epsilon in EPSILONS]
    )
    return [
        rows,
        form,
        *(f"{100 * one.covered:.1f} % / {one.width:.4f} / {one.error:.4f}" for one in cells),
    ]


TABLE = runner.Table(
    columns=("n", "form", *(f"epsilon {epsilon}" for epsilon in EPSILONS)),
    cells=[(rows, form) for rows in ROWS for form in (*FORMS, FREE, "zero")],
    row=row,
    title="## Coverage / median width / rms error, true effect 0.5, {draws} studies a cell",
    draws=500,
)
