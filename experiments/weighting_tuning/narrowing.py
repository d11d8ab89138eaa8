"""Print whether narrowing the range pays: `python -m experiments.weighting_tuning.narrowing`.

A tenth of epsilon buys the means of both arms (an outcome lies in one arm, so it pays once); outcomes are
then clipped to a window around their arm's mean, and the weights see noise proportional to the window.
The clipping bias is part of the error shown. Tuning instances only; 400 simulated draws of the means.
"""

from __future__ import annotations

import math

import numpy as np

from counterveil.estimators.linear.kernels.balancing import balance_weights
from counterveil.estimators.linear.kernels.weight_features import parted_features
from experiments.weighting_tuning.comparison import balanced_by_default, one_draw, print_row
from experiments.weighting_tuning.expected_error import staircase_absolute, staircase_variance
from experiments.weighting_tuning.instances import TUNING, Instance, load

EPSILONS = (0.5, 1.0, 2.0, 4.0)
SHARE_FOR_MEANS = 0.1
WINDOWS = (0.8, 0.6, 0.4, 0.3)
DRAWS = 400


def windowed(instance: Instance, epsilon: float, width: float, near: bool) -> tuple[float, float]:
    """Return the relative errors to matching (mean absolute) and to the truth (root mean square)."""
    left = epsilon * (1 - SHARE_FOR_MEANS)
    features, *_ = parted_features(instance.covariates, instance.kinds, instance.scores)
    weights = balance_weights(
        features,
        instance.treated,
        noise_variance=staircase_variance(left) * width**2,
        reference=instance.matching if near else None,
    ).values
    rng = np.random.default_rng(5)
    absolute, squares = [], []
    for _ in range(DRAWS):
        centred, shift = np.empty(len(weights)), 0.0
        for arm, sign in ((instance.treated, 1.0), (~instance.treated, -1.0)):
            noise = rng.laplace(0.0, 1 / (arm.sum() * epsilon * SHARE_FOR_MEANS))
            centre = min(max(float(instance.outcome[arm].mean()) + noise, 0.0), 1.0)
            centred[arm] = np.clip(instance.outcome[arm] - centre, -width / 2, width / 2)
            shift += sign * centre
        estimate = float(weights @ centred) + shift
        scale = width * float(np.abs(weights).max())
        absolute.append(staircase_absolute(estimate - instance.matched_effect, scale, left))
        squares.append((estimate - instance.effect) ** 2 + staircase_variance(left) * scale**2)
    return (
        float(np.mean(absolute)) / abs(instance.matched_effect),
        math.sqrt(float(np.mean(squares))) / abs(instance.effect),
    )


def main() -> None:
    print(f"Errors with a window over errors without; epsilon {EPSILONS} to matching, then to the truth")
    for group, names in TUNING.items():
        for near in (True, False):
            plain = [
                [one_draw(load(n), balanced_by_default(load(n), e, near), e) for n in names] for e in EPSILONS
            ]
            for width in WINDOWS:
                rows: tuple[list[float], list[float]] = ([], [])
                for epsilon, without in zip(EPSILONS, plain, strict=True):
                    errors = np.array([windowed(load(n), epsilon, width, near) for n in names]).sum(axis=0)
                    rows[0].append(errors[0] / sum(e.to_matching for e in without))
                    rows[1].append(errors[1] / sum(e.to_truth for e in without))
                mode = "near matching" if near else "population balance"
                print_row(f"{group}, {mode}, window {width} B", rows[0] + rows[1])


if __name__ == "__main__":
    main()
