"""Contracts of exact matching on strata: outcomes private, and records private with three kinds of noise."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import laplace, norm
from tests.contract.trials import CLOSE, ESTIMANDS, SHARP, WIDTH, ask, people, study

import counterveil as cv

PEOPLE = people(900, 4)
N = 900
STUDY = study("site", "band")
ROUNDING = Fraction(1, 2**48)
LIMIT = 3
ARMS = ("treated", "control")


def strata(estimand, limit=None):
    """Return h, effect and h^2 (v1/t + v0/c) of every stratum with both arms, in units of the outcome."""
    found = []
    for site in "abc":
        for band in ("low", "mid", "top"):
            inside = (PEOPLE["site"] == site) & (PEOPLE["band"] == band)
            one = PEOPLE["y"][inside & (PEOPLE["t"] == 1)]
            other = PEOPLE["y"][inside & (PEOPLE["t"] == 0)]
            t, c = len(one), len(other)
            assert min(t, c) >= 2
            w = np.inf if limit is None else limit
            h = {"ATE": min(t + c, w * t, w * c), "ATT": min(t, w * c), "ATC": min(c, w * t)}[estimand]
            variance = one.var(ddof=1) / t + other.var(ddof=1) / c
            found.append((h, one.mean() - other.mean(), h**2 * variance, h / t, h / c, t, c))
    return np.array(found).T


def asked_of_records(estimand, chosen):
    """Return the effect with private records, epsilon 2 and Laplace noise."""
    told = {"epsilon": 2, "mechanism": "laplace", "estimand": estimand}
    return ask(PEOPLE, STUDY, "stratified", "record", settings=chosen, **told)


def settings(limit):
    return cv.settings.Stratified(limit=limit)


def smooth(estimand, epsilon):
    given = {"epsilon": epsilon, "estimand": estimand, "noise": cv.SeededNoise(1)}
    return cv.published.smooth_matching_proved(PEOPLE, STUDY, **given)


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("limit", [10**6, LIMIT])
def test_strata_where_outcomes_are_private(passed, estimand, limit):
    chosen = settings(limit)
    result = ask(
        PEOPLE, STUDY, "stratified", "outcome", mechanism="laplace", estimand=estimand, settings=chosen
    )
    h, d, v, one, other, *_ = strata(estimand, limit)
    total, largest = h.sum(), max(one.max(), other.max())
    effect, variance = passed["effect"], passed["variance"]
    assert effect.statistic == pytest.approx(h @ d / total, abs=CLOSE)
    assert variance.statistic == pytest.approx(v.sum() / total**2, rel=1e-6)
    weight = Fraction(largest) * (1 + ROUNDING)
    people_ = Fraction(total)
    assert effect.sensitivity == WIDTH * (weight + 2 * N * ROUNDING) / people_
    assert variance.sensitivity == (WIDTH * weight / people_) ** 2 * (1 + 2 * N * ROUNDING)
    known = result.uncertainty
    assert result.estimate == effect.value
    assert known.variance == variance.value
    assert known.noise.variance == pytest.approx(effect.laplace)
    assert known.variance_noise.variance == pytest.approx(variance.laplace)
    assert known.variance_cap == pytest.approx(largest * WIDTH**2 / total)
    assert (known.extra, known.bias) == (0, 0)
    assert effect.amount + variance.amount == pytest.approx(1)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_means_of_both_arms_over_strata(passed, estimand):
    chosen = settings(LIMIT)
    given = {"mechanism": "laplace", "estimand": estimand, "settings": chosen}
    # Ratios are those of outcomes that are never negative.
    low, high = STUDY.outcome_range
    above = STUDY._changed(outcome_range=(Fraction(0), high - low))
    moved = {**PEOPLE, "y": PEOPLE["y"] - float(low)}
    result = ask(moved, above, "stratified", "outcome", measure="ratio", **given)
    h, d, v, one, other, *_ = strata(estimand, LIMIT)
    means, variances = ([passed[f"{what} of {arm}"] for arm in ARMS] for what in ("mean", "variance"))
    assert means[0].statistic - means[1].statistic == pytest.approx(h @ d / h.sum(), abs=CLOSE)
    assert sum(each.statistic for each in variances) == pytest.approx(v.sum() / h.sum() ** 2, rel=1e-6)
    for mean, variance, largest, known in zip(
        means, variances, (one.max(), other.max()), result.means.known, strict=True
    ):
        weight = Fraction(largest) * (1 + ROUNDING)
        assert mean.sensitivity == WIDTH * (weight + 2 * N * ROUNDING) / Fraction(h.sum())
        assert variance.sensitivity == (WIDTH * weight / Fraction(h.sum())) ** 2 * (1 + 2 * N * ROUNDING)
        assert known.noise.variance == pytest.approx(mean.laplace)
        assert known.variance_cap == pytest.approx(largest * WIDTH**2 / h.sum() / 2)
        # Both arms are paid for once.
        assert mean.amount + variance.amount == pytest.approx(1)
    assert result.means.values == pytest.approx([each.value for each in means])


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_bounded_weights_where_records_are_private(passed, estimand):
    result = asked_of_records(estimand, settings(LIMIT))
    h, d, v, *_ = strata(estimand, LIMIT)
    effect, weight, variance = passed["effect"], passed["weight"], passed["variance"]
    assert effect.statistic == pytest.approx(h @ d / N, abs=CLOSE)
    assert weight.statistic == pytest.approx(h.sum() / N)
    assert variance.statistic == pytest.approx(v.sum() / N**2, rel=1e-6)
    slack = 2 * ROUNDING * N
    assert effect.sensitivity == (2 * LIMIT + slack) * WIDTH / N
    assert weight.sensitivity == (LIMIT + slack) / N
    kept = min(max(weight.value, 0.02), 1.0)
    known = result.uncertainty
    assert result.estimate == pytest.approx(effect.value / kept)
    assert known.noise.variance == pytest.approx(effect.laplace / kept**2)
    assert known.variance == pytest.approx(variance.value / kept**2)
    assert known.variance_noise.variance == pytest.approx(variance.laplace / kept**4)
    # The sum of h^2 (v_1/t + v_0/c) is at most w B^2 times the sum of h.
    assert known.variance_cap == pytest.approx(LIMIT * WIDTH**2 / N / kept)
    assert known.extra == pytest.approx(result.estimate**2 * weight.laplace / kept**2)
    assert known.bias == 0
    assert sum(one.amount for one in passed.values()) == pytest.approx(2)


def pooled_squares_fields(known, variance, largest, log_scale):
    """Assert the fields where squares within cells are released, times the largest coefficient squared."""
    cells = [
        PEOPLE["y"][(PEOPLE["site"] == site) & (PEOPLE["band"] == band) & (PEOPLE["t"] == t)]
        for site in "abc"
        for band in ("low", "mid", "top")
        for t in (0, 1)
    ]
    squares = sum(len(cell) * cell.var(ddof=1) for cell in cells)
    assert variance.statistic == pytest.approx(squares / WIDTH**2, rel=1e-6)
    assert variance.sensitivity == Fraction(5, 4) + 2 * ROUNDING * N
    factor = known.variance / variance.value / largest**2
    # A coefficient known up to e^L, L Laplace, is enlarged so that a normal interval built on it misses 5 % in all.
    missed, _ = quad(
        lambda v: laplace.pdf(v) * 2 * norm.sf(1.959964 * factor**0.5 * np.exp(log_scale * v)), -40, 40
    )
    assert missed == pytest.approx(0.05, rel=0.02)
    assert known.variance_cap == pytest.approx(factor * largest**2 * N / 2)
    # Staircase noise has less variance than Laplace noise, and not much less at this price.
    most = variance.laplace * (factor * largest**2) ** 2
    assert 0.5 * most < known.variance_noise.variance <= most


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_smooth_noise_where_records_are_private(passed, estimand):
    result = smooth(estimand, 6)
    h, d, v, one, other, *_ = strata(estimand)
    effect, scale, variance = passed["effect"], passed["scale"], passed["variance"]
    assert effect.statistic == pytest.approx(h @ d / WIDTH / N, abs=CLOSE)
    # A smooth bound of a person's weight is no less than the largest weight there is.
    largest = max(one.max(), other.max())
    assert np.exp(scale.statistic) >= largest * (1 - 1e-9)
    assert float(effect.sensitivity) * N >= largest
    weight = np.exp(scale.value)
    share = float(passed["share"].value) if estimand != "ATE" else 1.0
    assert estimand == "ATE" or passed["share"].statistic == pytest.approx(0.2 if estimand == "ATT" else 0.8)
    unit = WIDTH / min(max(share, 0.02), 1.0)
    known = result.uncertainty
    assert result.estimate == pytest.approx(effect.value * unit)
    assert known.noise.scale == pytest.approx(2 * weight / N * unit)
    log_scale = float(scale.sensitivity) / scale.amount
    assert known.noise.log_scale == pytest.approx(log_scale, rel=1e-6)
    if estimand == "ATE":
        # The bound is tight enough for the variance itself to be released, with noise of its own.
        assert variance.statistic == pytest.approx(v.sum() / WIDTH**2 / N**2, rel=1e-6)
        assert known.variance == pytest.approx(variance.value * unit**2)
        assert known.variance_cap == pytest.approx(unit**2 / 2)
        assert known.variance_noise.scale == pytest.approx(1.5 * (weight * unit / N) ** 2)
        assert known.variance_noise.log_scale == pytest.approx(2 * log_scale, rel=1e-6)
    else:
        pooled_squares_fields(known, variance, weight * unit / N, log_scale)
    if estimand == "ATE":
        assert known.extra == 0
    else:
        # Staircase noise has no more variance than Laplace noise.
        expected = (result.estimate / (WIDTH / unit)) ** 2 * passed["share"].laplace
        assert 0.5 * expected < known.extra <= expected * (1 + 1e-9)


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("limit", [LIMIT, None])
def test_without_noise_it_is_the_effect_of_the_people_in_the_strata(estimand, limit):
    asked = {"epsilon": SHARP, "estimand": estimand}
    if limit is None:
        result = smooth(**asked)
    else:
        result = ask(PEOPLE, STUDY, "stratified", "record", settings=settings(limit), **asked)
    h, d, *_ = strata(estimand, limit)
    assert result.estimate == pytest.approx(h @ d / h.sum(), abs=2e-3)
