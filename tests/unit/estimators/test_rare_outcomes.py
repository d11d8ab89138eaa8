"""Outcomes that few people carry: clips that follow a standard deviation must not cut these people off."""

import numpy as np
import pytest

import counterveil as cv

ROWS = 20_000


def frame(seed, control, treated):
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=(ROWS, 3)), rng.uniform(size=ROWS) < 0.5
    y = (rng.uniform(size=ROWS) < np.where(t, treated, control)).astype(float)
    return {"t": t.astype(int), "y": y} | {f"x{j}": x[:, j] for j in range(3)}


def study():
    covariates = {f"x{j}": cv.Range(0, 1) for j in range(3)}
    return cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), covariates=covariates, control=0)


@pytest.mark.parametrize(
    ("control", "treated"), [(0.02, 0.04), (0.1, 0.2), (0.15, 0.2), (0.98, 0.95)], ids=str
)
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("method", ["doubly_robust", "cross_fit"])
def test_rare_events_are_not_clipped_away(control, treated, epsilon, method):
    results = [
        cv.ate(
            frame(seed, control, treated),
            study(),
            protects="record",
            epsilon=epsilon,
            delta="1e-6",
            method=method,
            noise=cv.SeededNoise(seed),
        )
        for seed in range(4)
    ]
    truth = treated - control
    # Four samples are off by this much themselves; cross-fitting has four times the noise.
    room = 0.25 * abs(truth) if method == "doubly_robust" else 0.3 * abs(truth) + 0.01 / epsilon
    assert np.mean([result.estimate for result in results]) == pytest.approx(truth, abs=room)
    covered = sum(result.interval()[0] <= truth <= result.interval()[1] for result in results)
    assert covered >= 3
