"""The contract of matching on released scores."""

import numpy as np
import pytest
from tests.contract.trials import LOW, WIDTH, people, study

import counterveil as cv
from counterveil.published import matching

PEOPLE = people(2000, 50)
N, T, Y = 2000, PEOPLE["t"] == 1, PEOPLE["y"] - LOW


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
    result = cv.published.record_matching_proved(PEOPLE, study(), epsilon=6, noise=cv.SeededNoise(1))
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
