"""`python -m experiments.outcome_level.richer_features`: does balancing more than covariates, squares and score pay?

Prints rms errors against the truth as parts of the published method's, for features added to those that
`cv.ate(..., method="weighting")` balances: on the tuning instances for all candidates, and on ACIC 1 and 4-5, which no
choice was made on, for the one that did best there. Needs COUNTERVEIL_DATA.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import sqrt

import numpy as np

from counterveil.estimators.ate.weighting_design import features_of
from counterveil.estimators.ate.weighting_settings import WeightingSettings
from counterveil.kernels.balancing_weights import balance_weights
from experiments.outcome_level.errors import one_draw, paper
from experiments.outcome_level.instances import HELD_OUT, TUNING, Instance, load
from experiments.weighting_tuning.expected_error import staircase_variance

EPSILONS = (0.5, 1.0, 4.0)
GROUPS = {
    "IHDP 1-3": TUNING["IHDP 1-5"][:3],
    "Synth 0-3": TUNING["Synth 0-9"][:4],
    "ACIC 2-3": TUNING["ACIC 2-3"],
}
# Columns to add, and their share; the usual features have 1.1 together.
Candidate = tuple[Callable[[Instance], np.ndarray], float]


def standard(columns: np.ndarray) -> np.ndarray:
    """Return the columns that vary, at mean zero and variance one."""
    columns = columns - columns.mean(axis=0)
    spread = columns.std(axis=0)
    return columns[:, spread > 1e-9] / spread[spread > 1e-9]


def own(instance: Instance) -> np.ndarray:
    return np.clip(standard(instance.design.features.values), -3, 3)


def score(instance: Instance) -> np.ndarray:
    inside = np.clip(instance.design.score, 1e-3, 1 - 1e-3)
    return np.clip(standard(np.log(inside / (1 - inside))[:, None]), -3, 3)


def strongest(instance: Instance, count: int) -> np.ndarray:
    """Return the covariates that go with the score most."""
    columns = own(instance)
    return columns[:, np.argsort(-np.abs(score(instance)[:, 0] @ columns))[:count]]


def products(instance: Instance) -> np.ndarray:
    top = strongest(instance, 10).T
    return np.column_stack([one * other for one, other in combinations(top, 2)])


def score_spline(instance: Instance) -> np.ndarray:
    logit = score(instance)
    return np.maximum(logit - np.quantile(logit, [0.1, 0.25, 0.5, 0.75, 0.9]), 0)


def hinges(instance: Instance) -> np.ndarray:
    columns = own(instance)
    return np.concatenate([np.maximum(columns - knot, 0) for knot in (-0.67, 0.67)], axis=1)


CANDIDATES: dict[str, Candidate | None] = {
    "as they are": None,
    "square of the score .1": (lambda instance: score(instance) ** 2, 0.1),
    "score in pieces .1": (score_spline, 0.1),
    "products of the ten covariates nearest to the score .2": (products, 0.2),
    "score times the ten covariates nearest to it .1": (lambda i: score(i) * strongest(i, 10), 0.1),
    "score times every covariate .2": (lambda i: score(i) * own(i), 0.2),
    "cubes .2": (lambda instance: own(instance) ** 3, 0.2),
    "covariates in three pieces .3": (hinges, 0.3),
    "covariates in three pieces .6": (hinges, 0.6),
}
BEST = "covariates in three pieces .6"


def features(instance: Instance, candidate: Candidate | None) -> np.ndarray:
    usual = features_of(instance.table, instance.design.score, WeightingSettings()).astype(np.float64) * sqrt(
        1.1
    )
    if candidate is None:
        return usual
    more = standard(candidate[0](instance))
    return np.concatenate([usual, more * sqrt(candidate[1] / more.shape[1])], axis=1)


def ratios(names: list[tuple[str, int]], candidate: Candidate | None) -> list[float]:
    """Return for each epsilon the mean error over the published method's."""
    instances = [load(*name) for name in names]
    made = [features(instance, candidate) for instance in instances]
    found = []
    for epsilon in EPSILONS:
        ours = 0.0
        for instance, columns in zip(instances, made, strict=True):
            weights = balance_weights(
                columns, instance.design.treated, noise_variance=staircase_variance(epsilon)
            ).values
            ours += one_draw(instance, weights, epsilon).to_truth
        found.append(ours / sum(paper(instance, epsilon).to_truth for instance in instances))
    return found


def print_table(groups: dict[str, list[tuple[str, int]]], labels: list[str]) -> None:
    print("| features | " + " | ".join(groups) + " |\n|---|" + "---|" * len(groups))
    for label in labels:
        cells = [
            " / ".join(f"{r:.3f}" for r in ratios(names, CANDIDATES[label])) for names in groups.values()
        ]
        print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    print(f"Epsilon {' / '.join(f'{e:g}' for e in EPSILONS)}\n")
    print_table(GROUPS, list(CANDIDATES))
    print("\nNot used for any choice:\n")
    print_table({name: HELD_OUT[name] for name in ("ACIC 1", "ACIC 4-5")}, ["as they are", BEST])
