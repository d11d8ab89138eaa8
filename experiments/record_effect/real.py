"""Record-private methods on real covariates.

Needs COUNTERVEIL_DATA. Outcomes of IHDP and ACIC are simulated and their true effects known; for the others the
estimate of least squares without privacy takes the truth's place. Ranges are those that the loaders declare.
"""

from __future__ import annotations

import numpy as np

import counterveil as cv
from counterveil.data import Binary, Range, Table
from counterveil.datasets import acic2016, ihdp, lalonde, nhefs
from counterveil.datasets.dataset import Dataset
from experiments import runner

STUDIES = {
    "IHDP 6": lambda: ihdp(6),
    "IHDP 7": lambda: ihdp(7),
    "IHDP 8": lambda: ihdp(8),
    "ACIC 3": lambda: acic2016(3),
    "ACIC 4": lambda: acic2016(4),
    "LaLonde 445": lalonde,
    "NHEFS": nhefs,
}
EPSILONS = ("1", "4", "8")
DELTA = "1e-6"
FALL_BACK = cv.settings.DoublyRobust(kappa=0.25)
METHODS: dict[str, dict[str, object]] = {
    "doubly robust": {"method": "doubly_robust", "estimand": "ATO", "settings": FALL_BACK},
    "folds of OLS": {"method": "sample_and_aggregate"},
    "difference in means": {"method": "trial", "settings": cv.settings.Trial("none", "pooled")},
}


def least_squares(data: Dataset) -> float:
    """Return the coefficient of treatment in a least-squares fit on all declared covariates."""
    study = data.study
    columns = [data.frame[study.treatment].astype(float), np.ones(len(data.frame[study.outcome]))]
    for name, domain in study.covariates.items():
        values = data.frame[name]
        if isinstance(domain, Range):
            columns.append(np.asarray(values, dtype=float))
        else:
            labels = domain.labels[:1] if isinstance(domain, Binary) else domain.labels[1:]
            columns += [(values == label).astype(float) for label in labels]
    y = np.clip(np.asarray(data.frame[study.outcome], dtype=float), *map(float, study.outcome_range))
    return float(np.linalg.lstsq(np.column_stack(columns), y, rcond=None)[0][0])


def cell(name: str, method: str, epsilon: str, draws: int) -> str:
    """Return coverage / rms error / median width (share not adjusted), over draws of the noise."""
    data = STUDIES[name]()
    truth = least_squares(data) if data.true_effect is None else data.true_effect
    table = Table.attach(data.frame, data.study)
    found = []
    for seed in range(draws):
        words = {"protects": "record", "epsilon": epsilon, "delta": DELTA} | METHODS[method]
        result = cv.ate(table, data.study, noise=cv.SeededNoise(50_000 + seed), **words)
        low, high = result.untruncated_interval()
        adjusted = result.details.get("adjusted", True) not in (False, "no")
        found.append((low <= truth <= high, (result.estimate - truth) ** 2, high - low, not adjusted))
    covered, square, width, fallen = np.array(found, dtype=float).T
    shown = f" ({fallen.mean():.2f})" if fallen.any() else ""
    return f"{covered.mean():.2f} / {np.sqrt(square.mean()):.3g} / {np.median(width):.3g}{shown}"


def rows(name: str, *, seeds: range) -> list[runner.Row]:
    """Return the rows of a study: private methods, least squares without privacy and zero."""
    data = STUDIES[name]()
    plain = least_squares(data)
    truth = plain if data.true_effect is None else data.true_effect
    head = f"{name} ({truth:.3g})"
    private = [
        [head, method, *(cell(name, method, epsilon, len(seeds)) for epsilon in EPSILONS)]
        for method in METHODS
    ]
    free = {"OLS (not private)": abs(plain - truth), "zero": abs(truth)}
    return [*private, *([head, method, f"error {error:.3g}"] for method, error in free.items())]


TABLE = runner.Table(
    columns=("study (effect)", "method", *(f"epsilon {epsilon}" for epsilon in EPSILONS)),
    cells=[(name,) for name in STUDIES],
    row=rows,
    draws=40,
    apart=True,
)
