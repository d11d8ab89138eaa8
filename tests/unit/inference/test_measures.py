"""Ratios and odds ratios of noisy means and sums, of few events too: intervals of Fieller's kind cover."""

from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

import counterveil as cv
from counterveil.inference.arm_means import IndependentArmMeans, JointArmMeans, rare_events
from counterveil.inference.noise_sums import Scaled, sum_of_two
from counterveil.inference.noisy_ratio import NoisyRatio, RatioDifference
from counterveil.inference.p_values import p_value
from counterveil.inference.quotient import ODDS, RATIO, Quotient
from counterveil.inference.uncertainty import Uncertainty
from counterveil.mechanisms import Gaussian, Laplace, Staircase

# People in the arms, for the difference alone: ratios do not depend on them.
SIZES = (100.0, 400.0)


def normal(sd):
    return Gaussian(Fraction(sd), Fraction(1))


def means(one, other, variances, noise=1e-9):
    known = tuple(Uncertainty(normal(noise), v, v) for v in variances)
    return IndependentArmMeans((one, other), known, (0.0, 1.0), SIZES)


def fieller(one, other, variances):
    z = float(ndtri(0.975))
    lead = other**2 - z**2 * variances[1]
    middle = one * other / lead
    half = sqrt(middle**2 - (one**2 - z**2 * variances[0]) / lead)
    return middle - half, middle + half


def test_without_noise_the_interval_is_that_of_fieller():
    # In the middle of the range variances do not change with the means.
    variances = (2e-6, 3e-6)
    low, high = Quotient(means(0.5, 0.5, variances), RATIO).interval(0.95)
    assert (low, high) == pytest.approx(fieller(0.5, 0.5, variances), rel=1e-6)


def test_variances_of_rare_outcomes_follow_the_ratio_that_is_tested():
    variances = (1e-6, 1e-6)
    found = Quotient(means(0.001, 0.01, variances), RATIO)
    low, high = found.interval(0.95)
    plain = fieller(0.001, 0.01, variances)
    # At larger ratios than the one seen, more of the treated would be expected to have the outcome.
    assert high > 1.1 * plain[1]
    assert low <= max(plain[0], 0.0) + 1e-9


@pytest.mark.parametrize("kind", [RATIO, ODDS])
@pytest.mark.parametrize("mechanism", [Laplace, Staircase])
def test_ends_are_where_the_test_just_rejects(kind, mechanism):
    noise = mechanism(Fraction(1, 200), Fraction(1))
    known = Uncertainty(noise, 4e-4, 1e-3)
    found = Quotient(IndependentArmMeans((0.3, 0.2), (known, known), (0.0, 1.0), SIZES), kind)
    for end in found.interval(0.95):
        assert found.p_value(0.95, end) == pytest.approx(0.05, rel=1e-4)
    assert found.p_value(0.95, found.estimate) == pytest.approx(1.0)


def test_a_control_mean_that_is_lost_in_its_noise_leaves_no_upper_end():
    known = Uncertainty(Laplace(Fraction(1, 10), Fraction(1)), 1e-4, 1e-3)
    low, high = Quotient(IndependentArmMeans((0.9, 0.02), (known, known), (0.0, 1.0), SIZES), RATIO).interval(
        0.95
    )
    assert high == inf
    assert 1 < low < 10
    assert Quotient(IndependentArmMeans((0.1, 0.02), (known, known), (0.0, 1.0), SIZES), RATIO).interval(
        0.95
    ) == (
        0.0,
        inf,
    )


def test_means_below_zero_are_taken_at_zero():
    known = Uncertainty(Laplace(Fraction(1, 50), Fraction(1)), 1e-4, 1e-3)
    found = Quotient(IndependentArmMeans((-0.05, -0.1), (known, known), (0.0, 1.0), SIZES), RATIO)
    assert found.interval(0.95) == (0.0, inf)
    assert found.estimate == 0.0
    assert np.isfinite([found.sampling_sd, found.noise_sd]).all()


def test_joint_means_follow_from_the_mean_of_everyone_and_the_difference():
    known = Uncertainty(None, 4e-4, 1e-3)
    joint = JointArmMeans(0.3, None, 0.1, known, 0.25, 0.0, 1000, (0.0, 1.0))
    assert joint.values == pytest.approx((0.375, 0.275))
    # Of a variance of 4e-4 the larger weight falls on what the range allows of it.
    sd, noise, _ = joint.errors(0.05)(1.0, 2.0, (1.0, 1.0))
    cap = joint._caps(0.05)[1]
    assert noise is None
    assert cap == pytest.approx(min(0.25, cap * 750) / 750)
    assert sd**2 == pytest.approx(4 * min(cap, 4e-4) + max(4e-4 - cap, 0.0))
    assert joint.errors(0.05)(1.0, 1.0, (1.0, 1.0))[0] ** 2 == pytest.approx(4e-4)


def test_scaled_noise_is_the_mechanism_of_that_sensitivity():
    base, twice = Laplace(Fraction(1), Fraction(2)), Laplace(Fraction(2), Fraction(2))
    x, p = np.linspace(-3, 3, 7), np.array([0.01, 0.4, 0.9])
    scaled = Scaled(base, 2.0)
    assert scaled.variance == twice.variance
    assert np.allclose(scaled.cdf(x), twice.cdf(x))
    assert np.allclose(scaled.quantile(p), twice.quantile(p))
    assert np.allclose(scaled.breakpoints(-9, 9, 100), twice.breakpoints(-9, 9, 100))
    assert sum_of_two([(1.0, base), (0.0, twice)]) is base
    assert sum_of_two([(1.0, None), (0.0, twice)]) is None


def test_errors_below_rounding_leave_the_estimate_alone():
    found = Quotient(means(0.04097352393619469, 0.016527635528529094, (0.0, 0.0), 1e-30), RATIO)
    assert found.interval(0.95) == pytest.approx((2.4790916925454, 2.4790916925454), rel=1e-12)


def known(total=50.0, size=100.0, **rest):
    figures = {"row_variance": 1.0, "total_sd": 3.0, "size_sd": 4.0, "offset": 0.25, "limit": 5.0} | rest
    return NoisyRatio(total, size, **figures)


def test_without_noise_of_the_size_it_is_the_plain_interval():
    one = known(size_sd=0.0)
    low, high = one.interval(0.95)
    half = 1.959964 * np.sqrt(1.0 / 100 + (3.0 / 100) ** 2)
    assert one.estimate == pytest.approx(0.75)
    assert (low, high) == pytest.approx((0.75 - half, 0.75 + half), rel=1e-6)


@pytest.mark.parametrize("size", [1000.0, 120.0, 30.0, 8.0])
def test_intervals_cover_whatever_the_noise_of_the_size(size):
    generator = np.random.default_rng(int(size))
    truth, row_variance, total_sd, size_sd, draws = 0.6, 1.0, 5.0, 6.0, 4000
    totals = size * truth + generator.normal(size=draws) * np.sqrt(size * row_variance + total_sd**2)
    sizes = size + generator.normal(size=draws) * size_sd
    covered = 0
    for total, noisy in zip(totals, sizes, strict=True):
        low, high = NoisyRatio(total, noisy, row_variance, total_sd, size_sd, limit=50.0).interval(0.95)
        covered += low <= truth <= high
    # Where the size is known well, the level is met and not wasted.
    assert covered / draws > 0.94
    if size >= 100:
        assert covered / draws < 0.96


def test_laplace_noise_is_covered():
    generator = np.random.default_rng(3)
    size, truth, scale, draws = 400.0, 0.3, 20.0, 4000
    totals = size * truth + generator.normal(size=draws) * 10 + generator.laplace(size=draws) * scale
    one = [NoisyRatio(total, size, 100 / 400, scale * np.sqrt(2), 0.0, heavy=True) for total in totals]
    covered = np.mean([low <= truth <= high for low, high in (ratio.interval(0.99) for ratio in one)])
    assert 0.985 < covered < 0.999


def test_a_size_lost_in_noise_gives_the_whole_range():
    assert known(size=5.0).interval(0.95) == (-5.0, 5.0)
    assert known(size=-20.0).interval(0.95) == (-5.0, 5.0)
    assert -5.0 <= known(size=-20.0, total=1e6).estimate <= 5.0


def test_a_difference_covers():
    generator = np.random.default_rng(5)
    draws, covered = 3000, 0
    for _ in range(draws):
        ratios = []
        for size, mean in ((60.0, 1.0), (200.0, 0.4)):
            total = size * mean + generator.normal() * np.sqrt(size + 25.0)
            ratios.append(NoisyRatio(total, size + 5.0 * generator.normal(), 1.0, 5.0, 5.0, limit=20.0))
        low, high = RatioDifference(*ratios).interval(0.95)
        covered += low <= 0.6 <= high
    assert 0.94 < covered / draws < 0.965


def test_p_values_agree_with_intervals():
    one = known(total=0.0)
    p = p_value(one.interval)
    assert 1e-6 < p < 0.1
    low, high = one.interval(1 - p * 1.001)
    assert not low <= 0.0 <= high
    low, high = one.interval(1 - p * 0.999)
    assert low <= 0.0 <= high
    assert p_value(known(total=-25.0).interval) == pytest.approx(1.0, abs=0.01)


ARMS = [(100, 400), (250, 250), (300, 1200), (1000, 4000)]
RISKS = [(0.01, 0.01), (0.02, 0.01), (0.01, 0.02), (0.01, 0.005), (0.05, 0.03), (0.5, 0.4)]


def coverage(sizes, risks, added):
    """Return how often a 95 % interval of the difference covers, over all numbers of events in both arms."""
    means, chances, variances = [], [], []
    for n, p in zip(sizes, risks, strict=True):
        mean = np.arange(n + 1) / n
        means.append(mean)
        chances.append(binom.pmf(np.arange(n + 1), n, p))
        variances.append(mean * (1 - mean) / (n - 1))
    error = np.abs(np.subtract.outer(*means) - (risks[0] - risks[1]))
    covered = error <= 1.96 * np.sqrt(np.add.outer(*variances) + added)
    return float(chances[0] @ covered @ chances[1])


@pytest.mark.parametrize("sizes", ARMS)
def test_one_more_event_in_each_arm_keeps_the_level(sizes):
    added = rare_events((0, 1), sizes)
    assert min(coverage(sizes, risks, added) for risks in RISKS) > 0.943


def test_without_it_few_events_are_missed():
    assert coverage((100, 400), (0.01, 0.01), 0.0) < 0.82
    assert coverage((300, 1200), (0.01, 0.01), 0.0) < 0.92


def test_other_outcomes_have_nothing_added():
    assert rare_events((-3, 5), (10, 10)) == 0.0


GROUPS = np.array(["a", "b"])[np.arange(600) // 300]
NOTHING = {"arm": np.arange(600) % 3 // 2, "event": np.zeros(600), "group": GROUPS}
STUDY = cv.Study(
    cv.Treatment("arm", control=0),
    cv.Outcome("event", (0, 1)),
    {"group": cv.Categories(["a", "b"])},
    assignment=cv.Trial(),
)


@pytest.mark.parametrize(
    ("protects", "method"), [("outcome", "auto"), ("record", "auto"), ("outcome", "stratified")]
)
def test_no_event_in_either_arm_is_no_certainty(protects, method):
    found = cv.ate(NOTHING, STUDY, protects=protects, method=method, epsilon=1e5, noise=cv.SeededNoise(1))
    low, high = found.interval()
    assert (high - low) / 2 >= 1.95 * np.sqrt(1 / 200**2 + 1 / 400**2)


@pytest.mark.parametrize(
    ("protects", "method"),
    [("outcome", "difference_in_means"), ("outcome", "stratified"), ("record", "trial")],
)
def test_nor_beside_a_ratio_or_pooled(protects, method):
    asked = {"protects": protects, "method": method, "measure": "ratio", "epsilon": 20}
    sites = [cv.ate(NOTHING, STUDY, **asked, noise=cv.SeededNoise(seed)) for seed in (1, 2)]
    least = 1.95 * np.sqrt(1 / 200**2 + 1 / 400**2)
    for found, part in ((sites[0], 1), (cv.pool(sites, method="all"), 1 / np.sqrt(2))):
        low, high = found.as_measure("difference").interval()
        assert (high - low) / 2 >= part * least


@pytest.mark.parametrize("protects", ["outcome", "record"])
@pytest.mark.parametrize("measure", ["difference", "nnt", "ratio"])
def test_nor_among_several_outcomes(protects, measure):
    study = cv.Study(
        cv.Treatment("arm", control=0), outcome={"event": (0, 1), "other": (0, 1)}, assignment=cv.Trial()
    )
    data = NOTHING | {"other": NOTHING["arm"]}
    found = cv.outcomes(
        data, study, protects=protects, measure=measure, epsilon=1e5, noise=cv.SeededNoise(1)
    ).as_measure("difference")
    low, high = found.effect("event").interval()
    assert (high - low) / 2 >= 1.95 * np.sqrt(1 / 200**2 + 1 / 400**2)


def test_what_weights_add_for_rare_events_does_not_depend_on_the_order_of_rows():
    rng = np.random.default_rng(3)
    x = rng.random(900)
    arm = (rng.random(900) < 0.02 + 0.3 * x**3).astype(int)
    study = cv.Study(
        cv.Treatment("arm", control=0),
        cv.Outcome("event", (0, 1)),
        {"x": cv.Range(0, 1)},
        assignment=cv.Observational(),
    )
    lengths = []
    for order in (np.argsort(-arm, kind="stable"), np.arange(900)):
        data = {"arm": arm[order], "event": np.zeros(900), "x": x[order]}
        asked = {"protects": "outcome", "method": "weighting", "epsilon": 1e5}
        low, high = cv.ate(data, study, **asked, noise=cv.SeededNoise(1)).interval()
        lengths.append(high - low)
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-4)
