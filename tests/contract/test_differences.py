"""Contracts of the comparisons of two means: difference in means at both levels, contrast, declared bounds."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.contract.trials import CLOSE, ESTIMANDS, SHARP, WIDTH, arms, ask, people, study

import counterveil as cv

TRIAL = people(500, 3, confounded=False)
# Half treated: here the contrast's sensitivity depends on the centre, which then leaves its best place.
HALVES = people(500, 3, share=0.5, confounded=False)
MIDDLE = WIDTH / 2


def largest_variance(n):
    """Return the largest s^2/n of n numbers in the range: half of them at either end."""
    ends = np.repeat([0.0, WIDTH], [n // 2, n - n // 2])
    return ends.var(ddof=1) / n


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_difference_in_means_where_outcomes_are_private(passed, estimand):
    one, other = arms(TRIAL)
    more = {"mechanism": "laplace", "estimand": estimand}
    result = ask(TRIAL, study(randomised=True), "difference_in_means", "outcome", **more)
    effect, variance = passed["effect"], passed["variance"]
    assert effect.statistic == pytest.approx(one.mean() - other.mean(), abs=CLOSE)
    assert effect.sensitivity == Fraction(WIDTH, 100)
    expected = one.var(ddof=1) / 100 + other.var(ddof=1) / 400
    assert variance.statistic == pytest.approx(expected, abs=CLOSE)
    assert variance.sensitivity == Fraction(WIDTH, 100) ** 2
    assert effect.amount + variance.amount == pytest.approx(1)
    known = result.uncertainty
    assert result.estimate == effect.value
    assert known.noise.variance == pytest.approx(effect.laplace)
    assert known.variance == variance.value
    assert known.variance_noise.variance == pytest.approx(variance.laplace)
    assert known.variance_cap == pytest.approx(largest_variance(100) + largest_variance(400))
    assert (known.extra, known.bias) == (0, 0)
    assert result.estimand.value == estimand


def test_without_a_released_variance_the_largest_stands_in():
    tiny = {name: column[:40] for name, column in TRIAL.items()}
    result = ask(
        tiny, study(randomised=True), "difference_in_means", "outcome", epsilon=0.05, mechanism="laplace"
    )
    treated = int((tiny["t"] == 1).sum())
    cap = largest_variance(treated) + largest_variance(40 - treated)
    assert result.uncertainty.variance == result.uncertainty.variance_cap == pytest.approx(cap)
    assert result.uncertainty.variance_noise is None
    assert result.uncertainty.noise.variance == pytest.approx(2 * (WIDTH / treated / 0.05) ** 2)


@pytest.mark.parametrize("share", [0, Fraction(1, 10)])
def test_the_variance_has_the_share_that_is_asked_for(passed, share):
    settings = cv.settings.DifferenceInMeans(variance_share=share)
    more = {"mechanism": "laplace", "settings": settings}
    result = ask(TRIAL, study(randomised=True), "difference_in_means", "outcome", **more)
    assert passed["effect"].amount == pytest.approx(float(1 - share))
    assert result.details["variance_budget_share"] == float(share)
    known = result.uncertainty
    assert known.noise.variance == pytest.approx(2 * (WIDTH / 100 / float(1 - share)) ** 2)
    if share:
        assert passed["variance"].amount == pytest.approx(float(share))
        assert known.variance == passed["variance"].value
    else:
        assert "variance" not in passed
        assert known.variance_noise is None
        assert known.variance == known.variance_cap
        assert known.variance_cap == pytest.approx(largest_variance(100) + largest_variance(400))


def psi(data, q, centre):
    """Return everybody's part of the contrast; the centre is measured from the lower end of the range."""
    t, off = data["t"] == 1, data["y"] + 3 - centre
    return np.where(t, off / q, -off / (1 - q))


def nearest(tried, q, passed, data=TRIAL):
    """Return the centre that was taken: the one whose second moment was released."""
    return min(tried, key=lambda c: abs((psi(data, q, c) ** 2).mean() - passed["moment"].statistic))


def least_error(tried, q, passed, best, share_variance):
    """Return the centre of least expected error: noise, and the share's noise times the distance from the best."""
    unit, n = 2 / passed["contrast"].amount ** 2, len(TRIAL["t"])

    def expected(c):
        ends = [(WIDTH - c) / q, -c / q, c / (1 - q), -(WIDTH - c) / (1 - q)]
        reach = (max(ends) - min(ends)) / n
        return unit * reach**2 + share_variance * (c - best) ** 2 / (q * (1 - q)) ** 2

    return min(tried, key=expected)


def contrast_fields(passed, result, q, centre, off, centre_sd, n, share_variance, data=TRIAL):
    """Assert every field of a contrast's uncertainty from the released numbers and the documented formulas."""
    contrast, moment = passed["contrast"], passed["moment"]
    ends = [(WIDTH - centre) / q, -centre / q, centre / (1 - q), -(WIDTH - centre) / (1 - q)]
    high, low = max(ends), min(ends)
    assert contrast.statistic == pytest.approx(psi(data, q, centre).mean(), abs=CLOSE)
    assert float(contrast.sensitivity) == pytest.approx((high - low) / n)
    assert moment.statistic == pytest.approx((psi(data, q, centre) ** 2).mean(), rel=1e-6)
    assert float(moment.sensitivity) == pytest.approx(max(high**2, low**2) / n)
    known = result.uncertainty
    assert result.estimate == contrast.value
    assert known.noise.variance == pytest.approx(contrast.laplace)
    sampling = (moment.value - contrast.value**2 + contrast.laplace) / n
    sampling -= max(abs(off) - centre_sd, 0) ** 2 / (q * (1 - q)) / n
    assert known.variance == pytest.approx(sampling)
    assert known.variance_cap == pytest.approx((high - low) ** 2 / 4 / n)
    assert known.variance_noise.variance == pytest.approx(moment.laplace / n**2)
    assert known.extra == pytest.approx(share_variance * (off**2 + centre_sd**2) / (q * (1 - q)) ** 2)
    assert known.bias == 0


DESIGNS = [None, Fraction(1, 5)]


def joined(share, declared, n):
    """Return the share released, joined with a declared one by the variances of both, and the variance of its error."""
    if declared is None:
        return share.value, share.laplace
    chance = float(declared * (1 - declared)) / n
    part = float(Fraction(share.laplace / (share.laplace + chance)).limit_denominator(1 << 20))
    return share.value + part * (float(declared) - share.value), part * chance


@pytest.mark.parametrize("declared", DESIGNS)
@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_centred_contrast(passed, declared, estimand):
    n = len(TRIAL["t"])
    design = study(randomised=True, treated_share=declared)
    settings = cv.settings.Trial("none", "pooled")
    result = ask(
        TRIAL, design, "trial", "record", epsilon=2, mechanism="laplace", estimand=estimand, settings=settings
    )
    assert (passed["share"].statistic, passed["share"].sensitivity) == (0.2, Fraction(1, n))
    q, share_variance = joined(passed["share"], declared, n)
    mean = passed["centre"]
    assert mean.statistic == pytest.approx(TRIAL["y"].mean() + 3, abs=CLOSE)
    assert mean.sensitivity == Fraction(WIDTH, n)
    start = min(max(mean.value, 0.0), WIDTH)
    # The centre lies between the released mean and the middle.
    tried = [start + k / 16 * (MIDDLE - start) for k in range(17)]
    centre = nearest(tried, q, passed)
    assert centre == least_error(tried, q, passed, start, share_variance)
    off = start - centre + (1 - 2 * q) * result.estimate
    contrast_fields(passed, result, q, centre, off, mean.laplace**0.5, n, share_variance)
    assert sum(one.amount for one in passed.values()) == pytest.approx(2)


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize(("data", "epsilon"), [(TRIAL, 2), (HALVES, 20)])
def test_contrast_with_both_arms_centres(passed, declared, data, epsilon):
    n, known = len(data["t"]), Fraction(round(10 * data["t"].mean()), 10) if declared else None
    design = study(randomised=True, treated_share=known)
    settings = cv.settings.Trial("none", "arms")
    result = ask(data, design, "trial", "record", epsilon=epsilon, mechanism="laplace", settings=settings)
    q, share_variance = joined(passed["share"], known, n)
    one, other = arms(data)
    sums = passed["centres"]
    assert_allclose(sums.exact, [(one + 3 - MIDDLE).sum(), (other + 3 - MIDDLE).sum()], atol=1e-3)
    assert sums.sensitivity == WIDTH
    means = np.clip(MIDDLE + sums.values / (n * q, n * (1 - q)), 0, WIDTH)
    best = (1 - q) * means[0] + q * means[1]
    centre_sd = sums.laplace**0.5 * np.hypot((1 - q) / q, q / (1 - q)) / n
    tried = [best + k / 16 * (MIDDLE - best) for k in range(17)]
    centre = nearest(tried, q, passed, data)
    assert centre == least_error(tried, q, passed, best, share_variance)
    assert data is TRIAL or abs(best - centre) > 2 * centre_sd
    contrast_fields(passed, result, q, centre, best - centre, centre_sd, n, share_variance, data)
    assert sum(one.amount for one in passed.values()) == pytest.approx(epsilon)


@pytest.mark.parametrize(
    ("method", "protects", "settings"),
    [
        ("difference_in_means", "outcome", None),
        ("trial", "record", cv.settings.Trial("none", "pooled")),
        ("trial", "record", cv.settings.Trial("none", "arms")),
    ],
)
def test_without_noise_it_is_the_difference_in_means(method, protects, settings):
    one, other = arms(TRIAL)
    result = ask(TRIAL, study(randomised=True), method, protects, epsilon=SHARP, settings=settings)
    assert result.estimate == pytest.approx(one.mean() - other.mean(), abs=1e-5)
    expected = one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other)
    assert result.std_error.sampling**2 == pytest.approx(expected, rel=0.02)


def test_a_declared_bound_on_confounding_widens_by_kappa_over_three_quarters():
    data, kappa = people(400, 5), 0.3
    settings = cv.settings.DoublyRobust(kappa=kappa)
    result = ask(data, study(), "doubly_robust", "record", epsilon=0.05, settings=settings)
    known = result.uncertainty
    q = min(max(float(result.details["share_treated"]), 0.02), 0.98)
    second = max(known.known_sd(0.05) ** 2 - known.extra, 0.0) * 400
    sd = max(q, 1 - q) * np.sqrt(second + result.estimate**2)
    bound = kappa * sd / (0.75 * np.sqrt(q * (1 - q)))
    assert known.bias == pytest.approx(bound)
    assert result.details["confounding_bound"] == pytest.approx(bound)
    narrow, wide = known.half_width(0.9), known.half_width(0.95)
    assert bound < narrow < wide
