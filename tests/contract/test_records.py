"""Contracts of two comparisons of private records: strata of a private score, and matching on released scores."""

from math import sqrt

import numpy as np
import pytest
from tests.contract.trials import CLOSE, ESTIMANDS, LOW, WIDTH, ask, people, study

import counterveil as cv
from counterveil.data import Table
from counterveil.published import proved_matching
from counterveil.statistics.moments import score_strata

PEOPLE = people(2000, 50)
N, T, Y = 2000, PEOPLE["t"] == 1, PEOPLE["y"] - LOW


def keep(monkeypatch, module, name, kept):
    own = getattr(module, name)

    def called(*arguments):
        found = own(*arguments)
        kept[name] = found
        return found

    monkeypatch.setattr(module, name, called)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_strata_of_a_private_score(passed, monkeypatch, estimand):
    kept = {}
    keep(monkeypatch, score_strata, "release_strata", kept)
    keep(monkeypatch, score_strata, "choose_weighting", kept)
    result = ask(PEOPLE, study(), "score_strata", "record", epsilon=8, mechanism="laplace", estimand=estimand)
    place = kept["release_strata"].strata(Table.attach(PEOPLE, study()))
    chosen = kept["choose_weighting"]
    made = chosen.contrast
    a, b = np.array(made.treated, dtype=float), np.array(made.control, dtype=float)
    one, other = float(made.centre_treated), float(made.centre_control)
    psi = np.where(T, a[place] * (Y - one), -b[place] * (Y - other))
    contrast, moment, known = passed["contrast"], passed["moment"], result.uncertainty
    assert contrast.statistic == pytest.approx(psi.sum(), abs=CLOSE)
    assert moment.statistic == pytest.approx((psi**2).sum(), rel=1e-6)
    ends = [a.max() * (WIDTH - one), -a.max() * one, b.max() * other, -b.max() * (WIDTH - other)]
    assert float(contrast.sensitivity) == pytest.approx(max(ends) - min(ends))
    assert float(moment.sensitivity) == pytest.approx(max(end**2 for end in ends))
    assert result.estimate == pytest.approx(contrast.value + one - other)
    assert known.noise.variance == pytest.approx(contrast.laplace)
    assert known.variance == moment.value
    assert known.variance_noise.variance == pytest.approx(moment.laplace)
    extra = max(moment.value + sqrt(moment.laplace), 0) * chosen.inflation
    assert known.extra == pytest.approx(min(extra, 4 * WIDTH**2))
    weights_fields(passed, chosen, a, b, estimand)
    assert known.variance_cap == pytest.approx(chosen.variance_cap)
    assert sum(one.amount for one in passed.values()) == pytest.approx(8)


def weights_fields(passed, chosen, a, b, estimand):
    """Assert the weights of the cells, what errors of counts add, and the largest variance."""
    counts, q = passed["counts"].values.reshape(3, 2).T, min(max(passed["share"].value, 0.02), 0.98)
    sizes = np.maximum(counts.sum(axis=0), 0.02 * N)
    sizes *= N / sizes.sum()
    usual = sizes * np.array([[q], [1 - q]])
    inside = np.clip(counts, 0.4 * usual, usual / 0.4)
    target = {"ATE": sizes, "ATT": inside[0], "ATC": inside[1]}[estimand]
    full, plain = target / target.sum() / inside, 1 / (N * np.array([[q], [1 - q]]))
    weights = chosen.blend * full + (1 - chosen.blend) * plain
    assert np.stack([a, b]) == pytest.approx(weights)
    noise = passed["counts"].laplace
    inflation = chosen.blend**2 * noise / inside.min()
    inflation += (1 - chosen.blend) ** 2 * passed["share"].laplace * N / min(q, 1 - q)
    assert chosen.inflation == pytest.approx(inflation)
    most = np.clip(counts + 4 * sqrt(noise), 0, N)
    assert chosen.variance_cap == pytest.approx(WIDTH**2 / 4 * (weights**2 * most).sum())


@pytest.mark.parametrize("kappa", [0.2])
def test_a_declared_bound_on_what_strata_leave(kappa):
    result = ask(
        PEOPLE,
        study(),
        "score_strata",
        "record",
        epsilon=8,
        settings=cv.settings.ScoreStrata(kappa=kappa),
    )
    known, q = result.uncertainty, result.details["share_treated"]
    lightest = min(1.0, 0.4 / max(q, 1 - q))
    within = N * max(known.known_sd(0.05) ** 2 - known.extra, 0) / lightest**2
    sd = min(WIDTH / 2, sqrt(within + q * (1 - q) * result.estimate**2))
    assert known.bias == pytest.approx(kappa * sd / (0.75 * sqrt(q * (1 - q))))


def test_matching_on_released_scores(passed, monkeypatch):
    kept = {}
    keep(monkeypatch, proved_matching, "match", kept)
    keep(monkeypatch, proved_matching, "release_scores", kept)
    # Laplace noise, whose variance is known in a line.
    monkeypatch.setattr("counterveil.results.question.choose_mechanism", lambda *_: "laplace")
    result = cv.published.record_matching_proved(PEOPLE, study(), epsilon=6, noise=cv.SeededNoise(1))
    c, responses = kept["match"].coefficients, kept["release_scores"][1]
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
    assert result.interval_of is not None
