"""Root mean squared error of effects as functions (PEHE), for every design and size, and four tables beside.

`python -m experiments.cate` prints a table for every design and size, an hour of CPU; every answer is a fresh study
with noise of its own, seeds from 1000 on. The tables beside, bands, surfaces, tuning and audits, are made where
`--only` names them.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from counterveil.errors import ParameterError
from counterveil.results.functions import default_delta
from counterveil_lab.reproduce.papers.cate.methods import boosted, constant_answers, not_private
from counterveil_lab.reproduce.papers.cate.studies import FINITE, KERNEL, Instance, anonymised, published_fit
from counterveil_lab.reproduce.rivals.simple import K
from experiments.cate import audits, bands, surfaces, tuning
from experiments.cate.instances import FIRST_SEED, instance
from experiments.cate.ours import FUNCTIONS, OUTCOME_CONSTANT, OUTCOMES, named_answers, outcome_constant
from experiments.runner import Row, Table, run

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
PAPER = (*FINITE, *KERNEL)
FREE = ("zero", "best constant (not private)", "k-anonymous (not private)", "not private")
METHODS = (
    *OUTCOMES,
    OUTCOME_CONSTANT,
    *FUNCTIONS,
    "constant private ATE",
    *PAPER,
    "DP-EBM R-learner",
    *FREE,
)
# Rows, and studies for what is quick, for our single methods, and for what is slow (none where it says 0).
SIZES = {3000: (6, 3, 2), 30_000: (4, 2, 1), 300_000: (1, 1, 0)}
DESIGNS = ("dataset 1", "dataset 2", "skewed 1", "skewed 2", "IHDP", *(f"ACIC {s}" for s in range(1, 6)))
_SLOW = (*PAPER, "DP-EBM R-learner")
_SINGLE = ("t_learner", "r_learner")
_REAL_ROWS = {"IHDP": 747} | {f"ACIC {setting}": 4802 for setting in range(1, 6)}
_REAL_STUDIES = (2, 1, 1)


def errors(design: str, rows: int, method: str, seed: int) -> list[float]:
    """Return the error of a method on one drawn study at each epsilon, or one where there is no epsilon."""
    study = instance(design, rows, seed)
    if method in PAPER:
        fit = published_fit(study, method, seed, default_delta(study.table.rows))
        return [study.error(fit.answers(epsilon)) for epsilon in EPSILONS]
    if method in FREE:
        return [study.error(_free(study, method))]
    return [_error(study, method, epsilon, seed) for epsilon in EPSILONS]


def _error(study: Instance, method: str, epsilon: float, seed: int) -> float:
    """Return the error of a private method, not a number where it refuses the study."""
    try:
        return study.error(_private(study, method, epsilon, seed))
    except ParameterError:
        return float("nan")


def _private(study: Instance, method: str, epsilon: float, seed: int) -> np.ndarray:
    if method == "constant private ATE":
        return constant_answers(study, epsilon, seed)
    if method == OUTCOME_CONSTANT:
        return outcome_constant(study, epsilon, seed)
    if method == "DP-EBM R-learner":
        return boosted(study, epsilon, seed)
    return named_answers(study, method, epsilon, seed)


def _free(study: Instance, method: str) -> np.ndarray:
    if method == "zero":
        return np.zeros(len(study.truth))
    if method.startswith("best constant"):
        return np.full(len(study.truth), study.truth.mean())
    return not_private(anonymised(study, K) if method.startswith("k-") else study)


def studies(design: str, rows: int, method: str) -> int:
    """Return how many studies a method is asked about."""
    quick, single, slow = _REAL_STUDIES if design in _REAL_ROWS else SIZES[rows]
    return single if method in _SINGLE else slow if method in _SLOW else quick


def row(design: str, rows: int, method: str, *, seeds: range) -> list[Row]:
    """Return the mean errors of a method over studies, with the number of studies; no row where there are none."""
    some = seeds[: studies(design, rows, method)]
    if not some:
        return []
    means = np.mean([errors(design, rows, method, seed) for seed in some], axis=0)
    return [[f"{method} ({len(some)})", *("refused" if np.isnan(mean) else mean for mean in means)]]


def table(design: str, rows: int) -> Table:
    """Return the table of a design and size."""
    return Table(
        columns=("method", *(f"epsilon {epsilon:g} :.3g" for epsilon in EPSILONS)),
        cells=[(method,) for method in METHODS],
        row=partial(row, design, rows),
        title=f"**{design}, n = {rows:,}** (mean PEHE; in brackets the number of studies)",
        draws=max(studies(design, rows, method) for method in METHODS),
        first_seed=FIRST_SEED,
    )


TABLES = {
    f"{design}, {rows}": table(design, rows)
    for design in DESIGNS
    for rows in ([_REAL_ROWS[design]] if design in _REAL_ROWS else SIZES)
} | {"bands": bands.TABLE, "surfaces": surfaces.TABLE, "tuning": tuning.TABLE, "audits": audits.TABLE}

if __name__ == "__main__":
    run(__doc__, TABLES)
