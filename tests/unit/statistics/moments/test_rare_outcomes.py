"""Outcomes that few people carry: clips that follow a standard deviation must not cut these people off."""

from dataclasses import replace

import numpy as np
import pytest
from tests.thinned import thinned, thinned_rows

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


SHARES = [(0.02, 0.04), (0.1, 0.2), (0.15, 0.2), (0.98, 0.95)]
RARE = [(*shares, epsilon) for shares in SHARES for epsilon in (1, 4)]


@pytest.mark.parametrize(
    ("control", "treated", "epsilon"), thinned_rows(RARE, (0.02, 0.04, 1), (0.98, 0.95, 4))
)
def test_rare_events_are_not_clipped_away(control, treated, epsilon):
    results = [
        cv.ate(
            frame(seed, control, treated),
            study(),
            protects="record",
            epsilon=epsilon,
            delta="1e-6",
            method="doubly_robust",
            noise=cv.SeededNoise(seed),
        )
        for seed in range(4)
    ]
    truth = treated - control
    # Four samples are off by this much themselves.
    room = 0.25 * abs(truth)
    assert np.mean([result.estimate for result in results]) == pytest.approx(truth, abs=room)
    covered = sum(result.interval()[0] <= truth <= result.interval()[1] for result in results)
    assert covered >= 3


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize(("amount", "most_length"), [(1, 0.04), (80, 30.0)])
def test_what_noise_hides_is_in_the_interval(delta, amount, most_length):
    # 120 and 20 events: fewer than the noise of a cell, or little more.
    declared = replace(study(), outcome_range=(0, 1 if amount == 1 else 500))
    for seed in range(2):
        data = frame(seed, 0.012, 0.002)
        low, high = cv.ate(
            data | {"y": amount * data["y"]},
            declared,
            protects="record",
            epsilon=2,
            delta=delta,
            method="doubly_robust",
            noise=cv.SeededNoise(seed),
        ).interval()
        assert low <= -0.01 * amount <= high
        assert high - low < most_length


def heavy(seed):
    """Outcomes around the middle of their range whose effect lies in a long tail, and the effect in these rows."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=(ROWS, 3)), rng.uniform(size=ROWS) < 0.5
    y = np.minimum(10 * np.exp(1.2 * rng.normal(size=ROWS)) * np.where(t, 1.3, 1.0) + x[:, 0], 500)
    data = {"t": t.astype(int), "y": y} | {f"x{j}": x[:, j] for j in range(3)}
    return data, y[t].mean() - y[~t].mean()


@pytest.mark.parametrize("epsilon", thinned([4, 16], 4))
def test_heavy_tails_keep_their_effect(epsilon):
    covariates = {f"x{j}": cv.Range(0, 1) for j in range(3)}
    declared = cv.Study("t", "y", (-500, 500), covariates, control=0)
    words = {"protects": "record", "epsilon": epsilon, "delta": "1e-6", "method": "doubly_robust"}
    errors = []
    for seed in range(4):
        data, effect = heavy(seed)
        result = cv.ate(data, declared, noise=cv.SeededNoise(seed), **words)
        errors.append((result.estimate - effect) / effect)
    # A clip at four standard deviations would take a sixth of the effect away.
    assert np.mean(errors) == pytest.approx(0, abs=0.08)
