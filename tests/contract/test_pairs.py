"""Contracts of private pairs and of matching on released scores, by plain arithmetic."""

import numpy as np
import pytest
from tests.contract.trials import HIGH, LOW, SHARP, WIDTH, people, study

import counterveil as cv
from counterveil.published import matching

PEOPLE = people(2000, 8)
N = 2000
TRIAL = study(randomised=True)._changed(covariates={})
HALF, MIDDLE = (HIGH - LOW) / 2, (HIGH + LOW) / 2
# Propensity and means of a trial without covariates are those of the arms; noise and rounding are far below this.
NEAR = 1e-3


def test_a_trial_without_covariates_is_the_difference_in_means_with_its_error(passed):
    level = "treatment and outcome"
    result = cv.ate(PEOPLE, TRIAL, protects=level, epsilon=SHARP, noise=cv.SeededNoise(1))
    t, y = PEOPLE["t"] == 1, (PEOPLE["y"] - MIDDLE) / HALF
    q = t.mean()
    assert set(passed) == {"centre", "spread", "models", "score"}
    assert passed["centre"].exact.sum() == passed["spread"].exact.sum() == N
    assert passed["centre"].sensitivity == passed["spread"].sensitivity == passed["score"].sensitivity == 2
    # One feature, the constant, of scale one.
    assert float(passed["models"].sensitivity) == pytest.approx(2)
    assert passed["models"].statistic == pytest.approx(181 / 128 * t.sum())
    assert [one.amount / SHARP for one in passed.values()][:2] == pytest.approx([1 / 30, 1 / 15])
    assert sum(one.amount for one in passed.values()) == pytest.approx(SHARP)
    left = np.where(t, (y - y[t].mean()) / q, -(y - y[~t].mean()) / (1 - q))
    difference = PEOPLE["y"][t].mean() - PEOPLE["y"][~t].mean()
    assert result.estimate == pytest.approx(difference, abs=NEAR)
    known = result.uncertainty
    error = np.sqrt((left**2).sum()) / N * HALF
    # Two means were fitted to these rows.
    assert np.sqrt(known.variance) == pytest.approx(error * np.sqrt(N / (N - 2)), rel=0.02)
    assert known.bias == 0
    # The arms' sums released twice over tell the size of the score's noise: clip / n times two over epsilon.
    clip = known.noise.sensitivity / 2 * N / HALF
    assert float(clip) >= np.abs(left).max() * (1 - NEAR)
    assert known.noise.epsilon == passed["score"].amount


def test_noise_of_the_variance_follows_the_clip(passed):
    result = cv.ate(PEOPLE, TRIAL, protects="treatment and outcome", epsilon=2, noise=cv.SeededNoise(2))
    known = result.uncertainty
    clip = float(known.noise.sensitivity) / 2 * N
    fitted = N / (N - 2)
    assert float(known.variance_noise.sensitivity) == pytest.approx(4 * fitted * clip**2 / N**2, rel=0.01)
    assert known.variance_cap == pytest.approx(fitted * clip**2 / N, rel=0.01)
    total = 2 * passed["score"].values[1] * fitted * clip**2 / N**2
    assert known.variance == pytest.approx(total, rel=0.01)


RECORDS_PEOPLE = people(2000, 50)
RECORDS_N, T, Y = 2000, RECORDS_PEOPLE["t"] == 1, RECORDS_PEOPLE["y"] - LOW


def keep(monkeypatch, module, name, kept):
    own = getattr(module, name)

    def called(*arguments):
        found = own(*arguments)
        kept[name] = found
        return found

    monkeypatch.setattr(module, name, called)


def test_matching_on_released_scores(passed, monkeypatch):
    kept = {}
    keep(monkeypatch, matching, "match_released", kept)
    keep(monkeypatch, matching, "release_proved_scores", kept)
    # Laplace noise, whose variance is known in a line.
    monkeypatch.setattr("counterveil.results.question.choose_mechanism", lambda *_: "laplace")
    result = cv.published.record_matching_proved(RECORDS_PEOPLE, study(), epsilon=6, noise=cv.SeededNoise(1))
    c, responses = kept["match_released"].coefficients, kept["release_proved_scores"][1]
    effect, known = passed["effect"], result.uncertainty
    assert effect.statistic == pytest.approx(c @ Y, abs=1e-5)
    assert float(effect.sensitivity) == pytest.approx(WIDTH * abs(c).max(), rel=1e-6)
    # Of every treatment the truth is told with chance p = e^4.2/(1 + e^4.2).
    p = 1 / (1 + np.exp(-0.7 * 6))
    assert responses.truth == pytest.approx(p)
    q = min(max((responses.values.mean() - (1 - p)) / (2 * p - 1), 0.02), 0.98)
    s = p * q + (1 - p) * (1 - q)
    factor = (2 * p - 1) * q * (1 - q) / (s * (1 - s))
    assert result.estimate == pytest.approx(effect.value)
    assert result.details["debiased_estimate"] == pytest.approx(effect.value / factor)
    assert known.noise.variance == pytest.approx(effect.laplace)
    cap = WIDTH**2 * (c @ c) / 4
    assert known.variance == known.variance_cap == pytest.approx(cap, rel=1e-6)
    assert result.interval_target is not None
