"""Contracts of clustered studies: difference in means and trials by cluster, and whole clusters as rows."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from tests.contract.trials import CLOSE, ESTIMANDS, SHARP, WIDTH, ask, on_grid, people, study

from counterveil.inference.convolution import half_width

CLUSTERS = 30


def clustered(seed=3):
    """Return a trial of unequal clusters, one in five treated, whose outcomes have something in common."""
    data = people(600, seed, confounded=False)
    rng = np.random.default_rng(seed)
    sizes = np.repeat(
        np.arange(CLUSTERS), rng.multinomial(600 - 5 * CLUSTERS, rng.dirichlet(np.full(30, 3.0))) + 5
    )
    t = (sizes % 5 == 0).astype(int)
    y = on_grid(data["y"] + 0.5 * t + rng.normal(0, 0.5, CLUSTERS)[sizes])
    return data | {"school": sizes, "t": t, "y": y}


TRIAL = clustered()
DECLARED = study(randomised=True, cluster="school", assigned_by_cluster=True)


def by_cluster(data, values):
    return np.bincount(data["school"], values)


def corrected(data):
    """Return CR2 of the difference in means: in an arm of n rows, a cluster of m has the factor 1/(1 - m/n)."""
    t, y, total = data["t"] == 1, data["y"], 0.0
    for arm in (t, ~t):
        left = np.where(arm, y - y[arm].mean(), 0.0)
        sizes = by_cluster(data, arm.astype(float))
        total += float((by_cluster(data, left) ** 2 / (1 - sizes / arm.sum())).sum()) / arm.sum() ** 2
    return np.sqrt(total)


def freedom(data, correlation):
    """Return Satterthwaite's degrees of freedom from n-by-n matrices."""
    t, school = data["t"] == 1, data["school"]
    n, forms = len(t), np.zeros((CLUSTERS, len(t)))
    for arm in (t, ~t):
        for g in range(CLUSTERS):
            own = arm & (school == g)
            part = own.sum() / arm.sum()
            if own.any():
                forms[g] += (own - part * arm) / arm.sum() / np.sqrt(1 - part)
    same = (school[:, None] == school[None, :]).astype(float)
    spread = forms @ ((1 - correlation) * np.eye(n) + correlation * same) @ forms.T
    return np.trace(spread) ** 2 / (spread**2).sum()


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_difference_in_means_by_cluster(passed, estimand):
    result = ask(TRIAL, DECLARED, "difference_in_means", "outcome", mechanism="laplace", estimand=estimand)
    effect, error = passed["effect"], passed["error"]
    t, y, school = TRIAL["t"] == 1, TRIAL["y"], TRIAL["school"]
    assert effect.statistic + 0 == pytest.approx(y[t].mean() - y[~t].mean(), abs=CLOSE)
    assert effect.sensitivity == pytest.approx(WIDTH / t.sum(), rel=1e-8)
    assert error.statistic == pytest.approx(corrected(TRIAL), abs=CLOSE)
    # One outcome of one row: what it moves its own total, and through the mean everybody's, at most.
    longest = 0.0
    for arm in (t, ~t):
        part = by_cluster(TRIAL, arm.astype(float)) / arm.sum()
        factor = 1 / np.sqrt(1 - part)
        for g in np.unique(school[arm]):
            moved = factor * ((np.arange(CLUSTERS) == g) - part) * (part > 0) / arm.sum()
            longest = max(longest, float(np.sqrt(moved @ moved)))
    assert float(error.sensitivity) == pytest.approx(WIDTH * longest, rel=1e-6)
    assert effect.amount + error.amount == pytest.approx(1)
    known = result.uncertainty
    assert result.estimate == effect.value
    assert known.noise.variance == pytest.approx(effect.laplace)
    assert known.sd_noise.variance == pytest.approx(error.laplace)
    assert known.variance == max(error.value, 0) ** 2
    weights = np.where(t, 1 / t.sum(), 1 / (~t).sum())
    assert known.variance_cap == pytest.approx(
        WIDTH**2 / 4 * (by_cluster(TRIAL, weights) ** 2).sum(), rel=1e-6
    )
    assert known.freedom == pytest.approx(min(freedom(TRIAL, 0.0), freedom(TRIAL, 0.3)), rel=1e-6)
    assert (known.extra, known.bias, known.variance_noise) == (0, 0, None)


def test_with_hardly_any_noise_the_interval_is_that_of_t(passed):
    result = ask(TRIAL, DECLARED, "difference_in_means", "outcome", epsilon=SHARP)
    half = stats.t.ppf(0.975, result.uncertainty.freedom) * corrected(TRIAL)
    assert result.uncertainty.half_width(0.95) == pytest.approx(half, rel=0.01)
    assert passed["error"].value == pytest.approx(corrected(TRIAL), rel=1e-4)


def test_a_trial_by_cluster_where_records_are_private(passed):
    result = ask(TRIAL, DECLARED, "trial", "record", epsilon=3)
    counts, sums = passed["counts"], passed["sums"]
    t, centred = TRIAL["t"] == 1, TRIAL["y"] + 3 - WIDTH / 2
    assert_allclose(counts.exact, by_cluster(TRIAL, np.ones(600)))
    assert_allclose(sums.exact, by_cluster(TRIAL, centred), atol=1e-4)
    assert (counts.sensitivity, sums.sensitivity) == (2, Fraction(WIDTH))
    assert counts.amount + sums.amount == pytest.approx(3)
    arm = by_cluster(TRIAL, t) > 0
    size = np.array([counts.values[~arm].sum(), counts.values[arm].sum()])
    mean = np.array([sums.values[~arm].sum(), sums.values[arm].sum()]) / size
    assert result.estimate == pytest.approx(mean[1] - mean[0])
    several = np.array([(~arm).sum(), arm.sum()])
    place = arm.astype(int)
    left = (sums.values - mean[place] * counts.values) / size[place]
    total = (left**2 * (several / (several - 1))[place]).sum()
    noise = ((sums.laplace + mean**2 * counts.laplace) / size**2 * several**2 / (several - 1)).sum()
    known = result.uncertainty
    assert known.extra == pytest.approx(noise)
    assert known.variance == pytest.approx(max(total - noise, 0), abs=1e-12)
    assert known.noise is None
    factor = stats.t.ppf(0.975, known.freedom) / stats.norm.ppf(0.975)
    wanted = half_width(factor * np.sqrt(max(total, noise)), None, 0.05)
    assert known.half_width(0.95) == pytest.approx(wanted)


def test_whole_clusters_are_rows_with_a_t_interval(passed):
    declared = study("x", randomised=True, cluster="school", protects_cluster=True)
    result = ask(TRIAL, declared, "difference_in_means", "outcome", epsilon=4, mechanism="laplace")
    means = by_cluster(TRIAL, TRIAL["y"]) / by_cluster(TRIAL, np.ones(600))
    arm = np.arange(CLUSTERS) % 5 == 0
    assert passed["effect"].statistic == pytest.approx(means[arm].mean() - means[~arm].mean(), abs=CLOSE)
    assert passed["effect"].sensitivity == Fraction(WIDTH, 6)
    expected = means[arm].var(ddof=1) / 6 + means[~arm].var(ddof=1) / 24
    assert passed["variance"].statistic == pytest.approx(expected, abs=CLOSE)
    known = result.uncertainty
    assert known.freedom == pytest.approx((1 / 6 + 1 / 24) ** 2 / (1 / (36 * 5) + 1 / (576 * 23)))
    assert known.variance_noise.variance == pytest.approx(passed["variance"].laplace)
