"""A few draws of every method: intervals cover the truth, and noise has the distribution that the result claims.

Tolerances are wide: they let gross faults through less than once in ten thousand runs and never a sound release,
seeds being fixed. Longer runs are in tests/statistical.
"""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import kstest
from tests.contract.trials import ask, people, study
from tests.thinned import thinned

import counterveil as cv

# The effect of a person is 0.9 (1 + 0.3 x), x uniform from -1 to 3.
EFFECT = 0.9 * 1.3
DRAWS = 40
# Of 40 intervals that cover 95 times in a hundred, fewer than 32 cover with a chance of 1.3e-4.
LEAST = 32
DECLARED = {"randomised": True, "treated_share": Fraction(1, 5)}
SETTINGS = {
    "stratified": cv.settings.Stratified,
    "trial": cv.settings.Trial,
    "difference_in_means": cv.settings.DifferenceInMeans,
}
TRIALS = {
    "difference_in_means": ("difference_in_means", "outcome", {"randomised": True}, {}),
    "difference_in_means, value alone": (
        "difference_in_means",
        "outcome",
        {"randomised": True},
        {"variance_share": 0},
    ),
    "centred contrast": ("trial", "record", {"randomised": True}, {"adjustment": "none", "centre": "pooled"}),
    "contrast": ("trial", "record", {"randomised": True}, {"adjustment": "none", "centre": "arms"}),
    "adjusted contrast": ("trial", "record", {"randomised": True}, {"adjustment": "covariates"}),
    "weighting": ("weighting", "outcome", {"randomised": True}, {}),
    "matching": ("matching", "outcome", {"randomised": True}, {}),
    "strata, outcomes private": ("stratified", "outcome", {"randomised": True}, {"strata": ("site",)}),
    "strata, records private": ("stratified", "record", {"randomised": True}, {"strata": ("site",)}),
    "sample_and_aggregate": ("sample_and_aggregate", "record", {"randomised": True}, {}),
}


# The others cover over more draws, or on every shape of outcomes, in tests/statistical.
@pytest.mark.parametrize(
    "name",
    thinned(
        TRIALS,
        "difference_in_means, value alone",
        "centred contrast",
        "matching",
        "strata, outcomes private",
        "strata, records private",
        "sample_and_aggregate",
    ),
)
def test_intervals_cover_the_effect(name):
    method, protects, declared, settings = TRIALS[name]
    chosen = SETTINGS[method](**settings) if settings else None
    covered, lengths = 0, []
    for seed in range(DRAWS):
        data = people(500, 1000 + seed, confounded=False)
        result = ask(data, study(**declared), method, protects, epsilon=4, seed=seed, settings=chosen)
        low, high = result.untruncated_interval()
        covered += low <= EFFECT <= high
        lengths.append(high - low)
    assert covered >= LEAST
    # An interval that covers because it is everything says nothing.
    assert np.median(lengths) < 6


@pytest.mark.parametrize(
    ("method", "protects", "release", "settings"),
    [
        ("difference_in_means", "outcome", "effect", None),
        ("trial", "record", "contrast", cv.settings.Trial("none", "pooled")),
        ("stratified", "outcome", "effect", cv.settings.Stratified(strata=("site",))),
    ],
)
def test_noise_has_the_distribution_that_the_result_claims(passed, method, protects, release, settings):
    data = people(300, 77, confounded=False)
    levels = []
    for seed in range(120):
        more = {"mechanism": "laplace", "settings": settings, "seed": seed}
        result = ask(data, study(**DECLARED), method, protects, **more)
        off = passed[release].value - passed[release].statistic
        # What the result says of the noise, in the units of the release.
        unit = np.sqrt(result.uncertainty.noise.variance / passed[release].laplace)
        levels.append(float(result.uncertainty.noise.cdf(np.array([off * unit]))[0]))
    assert kstest(levels, "uniform").pvalue > 1e-3
