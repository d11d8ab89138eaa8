"""Errors of the weighting estimates relative to matching with two Laplace draws, on groups of instances."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from counterveil.estimators.linear.kernels.balancing import WeightSettings, balance_weights
from counterveil.estimators.linear.kernels.weight_features import FeatureShares, parted_features
from experiments.weighting_tuning.expected_error import (
    staircase_absolute,
    staircase_variance,
    two_laplace_absolute,
)
from experiments.weighting_tuning.instances import Instance, load

EPSILONS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)


@dataclass(frozen=True)
class Errors:
    """Mean absolute error against unlimited matching, and root mean square error against the truth, both relative."""

    to_matching: float
    to_truth: float


def two_draws(instance: Instance, epsilon: float) -> Errors:
    """Limited matching with one Laplace draw of scale (k+1)B/(n epsilon) for each arm."""
    weights, k_treated, k_control = instance.limited_matching(epsilon)
    n = len(weights)
    one, other = (k_treated + 1) / (n * epsilon), (k_control + 1) / (n * epsilon)
    estimate, matched = float(weights @ instance.outcome), instance.matched_effect
    return Errors(
        two_laplace_absolute(estimate - matched, one, other) / abs(matched),
        math.sqrt((estimate - instance.effect) ** 2 + 2 * one**2 + 2 * other**2) / abs(instance.effect),
    )


def one_draw(instance: Instance, weights: np.ndarray, epsilon: float) -> Errors:
    """Any weights with one staircase draw at sensitivity B max|w|."""
    estimate, matched = float(weights @ instance.outcome), instance.matched_effect
    cap = float(np.abs(weights).max())
    return Errors(
        staircase_absolute(estimate - matched, cap, epsilon) / abs(matched),
        math.sqrt((estimate - instance.effect) ** 2 + staircase_variance(epsilon) * cap**2)
        / abs(instance.effect),
    )


def balanced(
    instance: Instance, epsilon: float, near_matching: bool, settings: WeightSettings, shares: FeatureShares
) -> np.ndarray:
    features, *_ = parted_features(instance.covariates, instance.kinds, instance.scores, shares)
    return balance_weights(
        features,
        instance.treated,
        noise_variance=staircase_variance(epsilon),
        reference=instance.matching if near_matching else None,
        settings=settings,
    ).values


def balanced_by_default(instance: Instance, epsilon: float, near_matching: bool) -> np.ndarray:
    return balanced(instance, epsilon, near_matching, WeightSettings(), FeatureShares())


def equal_weights(instance: Instance) -> np.ndarray:
    treated = instance.treated
    return np.where(treated, 1 / treated.sum(), -1 / (~treated).sum())


def ratio_row(names: Iterable[str], estimate, epsilons=EPSILONS) -> tuple[list[float], list[float]]:
    """Return the group's mean error over that of two draws, against matching and against the truth.

    `estimate(instance, epsilon)` returns weights.
    """
    instances = [load(name) for name in names]
    rows: tuple[list[float], list[float]] = ([], [])
    for epsilon in epsilons:
        ours = [one_draw(i, estimate(i, epsilon), epsilon) for i in instances]
        theirs = [two_draws(i, epsilon) for i in instances]
        for row, field in zip(rows, ("to_matching", "to_truth"), strict=True):
            row.append(sum(getattr(e, field) for e in ours) / sum(getattr(e, field) for e in theirs))
    return rows


def print_row(label: str, row: list[float]) -> None:
    print(f"  {label:44s}" + "".join(f"{value:8.3f}" for value in row), flush=True)
