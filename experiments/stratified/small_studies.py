"""Mean absolute error on IHDP and the 722 men of the work experiment, at the published settings."""

from __future__ import annotations

import numpy as np

import counterveil as cv
from counterveil.data import Table
from counterveil.datasets import ihdp, nsw
from counterveil.datasets.dataset import Dataset
from experiments import runner

EPSILON = "5"
IHDP_STRATA = ("x7", "x9", "x14")  # sex, mother married at birth, first born
PUBLISHED, PROVED = "published (claim false, delta 1e-5)", "smooth, Lomax"
FORMS: dict[str, dict[str, object]] = {
    PUBLISHED: {"delta": "1e-5", "accept": "unproved"},
    PROVED: {},
    "weights up to 4": {},
    "weights up to 8": {"limit": 8},
    "difference in means": {"method": "trial"},
}
STUDIES = {"IHDP 1, three covariates": (ihdp, IHDP_STRATA), "NSW 722, age": (nsw, ("age",))}


def matched_effect(data: Dataset, strata: tuple[str, ...]) -> float:
    """Return the stratified effect without privacy, people without a match counting as zero."""
    study = data.study
    y = np.clip(data.frame[study.outcome], *map(float, study.outcome_range))
    treated = data.frame[study.treatment] == 1
    _, place = np.unique(np.column_stack([data.frame[name] for name in strata]), axis=0, return_inverse=True)
    total = 0.0
    for level in np.unique(place):
        arms = [y[(place == level) & arm] for arm in (treated, ~treated)]
        if min(map(len, arms)):
            total += sum(map(len, arms)) * (arms[0].mean() - arms[1].mean())
    return total / len(y)


def draws(data: Dataset, strata: tuple[str, ...], form: str, count: int) -> np.ndarray:
    """Return estimates of one form over seeded noise."""
    words = dict(FORMS[form])
    method = words.pop("method", "stratified")
    settings = (
        cv.settings.Stratified(limit=words.pop("limit", None))
        if method == "stratified"
        else cv.settings.Trial("none", "pooled")
    )
    # The strata are those of all covariates that a study declares.
    study = data.study._changed(covariates={name: data.study.covariates[name] for name in strata})
    table = Table.attach(data.frame, study)

    def estimate(seed: int) -> float:
        asked = words | {"epsilon": EPSILON, "noise": cv.SeededNoise(seed)}
        if form == PUBLISHED:
            return cv.published.smooth_matching(table, study, **asked).estimate
        if form == PROVED:
            return cv.published.smooth_matching_proved(table, study, **asked).estimate
        return cv.ate(table, study, protects="record", method=method, settings=settings, **asked).estimate

    return np.array([estimate(seed) for seed in range(count)])


def rows_of(name: str, *, seeds: range) -> list[runner.Row]:
    """Return the rows of one study: mean absolute errors in ranges of its outcome."""
    loader, strata = STUDIES[name]
    data = loader()
    width = float(data.study.outcome_bounds.width)
    aim, truth = matched_effect(data, strata), data.true_effect

    def row(form: str, values: np.ndarray) -> runner.Row:
        far = "" if truth is None else np.abs(values - truth).mean() / width
        return [name, form, np.abs(values - aim).mean() / width, far]

    known = [row("without privacy", np.array([aim])), row("zero", np.zeros(1))]
    return known + [row(form, draws(data, strata, form, len(seeds))) for form in FORMS]


TABLE = runner.Table(
    columns=(
        "study | form | mean abs. error to the effect without privacy, in ranges :.4f | to the truth :.4f"
    ),
    cells=[(name,) for name in STUDIES],
    row=rows_of,
    title=f"## Small studies at epsilon {EPSILON}, {{draws}} draws",
    draws=100,
)
