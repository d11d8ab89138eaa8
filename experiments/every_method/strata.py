"""Many strata beside models, by rows in a stratum: `python -m experiments.every_method.strata`.

Simulated studies whose covariates are all binary, so that they form strata as declared. Outcomes follow
covariates linearly, which favours models. Each cell is root mean square error / median width of 95 % intervals.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy.special import expit

import counterveil as cv
from counterveil.errors import CounterveilError
from experiments.runner import Row, Table, run

METHODS = ("stratified", "doubly_robust", "sample_and_aggregate")
EFFECT = 0.5


def people(n: int, d: int, seed: int) -> dict[str, np.ndarray]:
    r = np.random.default_rng([seed, d])
    x = r.integers(0, 2, (n, d))
    a, b = r.uniform(-1, 1, d), r.uniform(0, 0.4, d)
    t = r.uniform(size=n) < expit((2 * x - 1) @ a)
    y = x @ b + EFFECT * t + r.uniform(0, 0.3, n)
    return {f"x{j}": x[:, j] for j in range(d)} | {"t": t.astype(np.int64), "y": y}


def cell(n: int, d: int, method: str, epsilon: str, draws: int) -> str:
    covariates = {f"x{j}": cv.Binary() for j in range(d)}
    study = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (0, 4.5)), covariates, assignment=cv.Observational()
    )
    errors, widths = [], []
    for seed in range(draws):
        try:
            result = cv.ate(
                people(n, d, seed),
                study,
                method=method,
                protects="record",
                epsilon=epsilon,
                noise=cv.SeededNoise(seed),
            )
        except CounterveilError as refusal:
            return refusal.code
        errors.append(result.estimate - EFFECT)
        widths.append(float(np.ptp(result.untruncated_interval())))
    return f"{np.sqrt(np.mean(np.square(errors))):.3g} / {np.median(widths):.3g}"


def row(n: int, d: int, epsilon: str, *, seeds: range) -> Row:
    """Return the cells of all methods."""
    return [n, 2**d, n / 2**d, epsilon, *(cell(n, d, method, epsilon, len(seeds)) for method in METHODS)]


TABLES = {
    "strata": Table(
        columns=("rows :,", "strata", "rows a stratum :.3g", "epsilon", *METHODS),
        cells=list(product((1000, 4000), (7, 8, 9, 10), ("0.5", "1", "4"))),
        row=row,
        draws=6,
    )
}

if __name__ == "__main__":
    run(__doc__, TABLES)
