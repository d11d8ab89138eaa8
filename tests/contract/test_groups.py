"""Contracts of groups, rules and curves: every cell's numbers from the released ones, ranges that start at -3."""

from fractions import Fraction
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from tests.contract.trials import CLOSE, LOW, WIDTH, people, study

import counterveil as cv
from counterveil.estimators.moments.cell_tallies import Tallies, model_errors
from counterveil.estimators.moments.group_score import AdjustedScore, PlainScore
from counterveil.estimators.moments.record_groups import cell_ratios
from counterveil.inference.noisy_ratio import NoisyRatio

TRIAL = people(1500, 21, confounded=False)
N, HALF = 1500, WIDTH / 2
T = TRIAL["t"] == 1
Y = (TRIAL["y"] - (LOW + HALF)) / HALF  # in units of half the range, around its middle
SITES = [TRIAL["site"] == one for one in "abc"]
# In units of the outcome: beyond what any score, and any outcome less the mean, can be.
CLIP, NEAR = 30.0, 8.0
DESIGN = study("site", "band", randomised=True)
BY_SCORES = {"method": "scores", "settings": cv.settings.Groups(clip=CLIP)}
# The terms of a score r are (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4; rows, sums and squares of r are these of them.
TERMS = np.array([[1, -2, 1], [2, 0, -2], [1, 2, 1]]) / 4
BACK = np.array([[1, 1, 1], [-1, 0, 1], [1, -1, 1]])


def budget(pure):
    return {"epsilon": 6} if pure else {"epsilon": 6, "delta": 1e-6}


def sd_of(passed, pure):
    """Return the noise of one term of a cell."""
    cells = passed["cells"]
    assert float(cells.sensitivity) == pytest.approx(2 if pure else sqrt(2))
    return sqrt(cells.laplace if pure else cells.normal)


def centre_of(passed):
    """Return the share, the mean and the mean square of outcomes, as released, and the noise of the share."""
    released = passed["centre"]
    assert_allclose(released.exact, [(2 * T - 1).mean(), Y.mean(), 1.665 * (Y**2).mean()], atol=1e-5)
    assert float(released.sensitivity) == pytest.approx(sqrt(8) / N)
    share, mean, square = released.values
    return (1 + share) / 2, np.clip(mean, -1, 1), np.clip(square / 1.665, 0, 1)


def scores(share, mean):
    return np.where(T, 1 / share, -1 / (1 - share)) * (Y - mean)


def cell_numbers(passed, values, codes, count, clip):
    """Assert the exact terms of all cells; return sizes, totals and squares as released, in half ranges."""
    parts = [values[codes == k] / clip for k in range(count)]
    sums = np.array([[len(r), r.sum(), (r**2).sum()] for r in parts]).T
    assert_allclose(passed["cells"].exact.reshape(3, count), TERMS @ sums, rtol=1e-4, atol=1e-3)
    return BACK @ passed["cells"].values.reshape(3, count) * [[1], [clip], [clip**2]]


def drawn_together(sizes, totals, squares, sd, clip):
    """Return variances of scores in cells, drawn towards that of all as far as their noise says."""

    def noise(means):
        # Of the sum of (r - m)^2: its terms weigh (1+m)^2, m^2 - 1 and (1-m)^2.
        m = means / clip
        return sd * clip**2 * np.sqrt((1 + m) ** 4 + (1 - m**2) ** 2 + (1 - m) ** 4)

    whole = sizes.sum()
    mean = totals.sum() / whole
    shared = max(squares.sum() / whole - mean**2, noise(mean) * sqrt(len(sizes)) / whole)
    own_sizes = np.maximum(sizes, 3 * sqrt(3) * sd)
    own = np.maximum(squares / own_sizes - (totals / own_sizes) ** 2, 0)
    doubt = (noise(totals / own_sizes) / own_sizes) ** 2
    part = (shared / 2) ** 2 / ((shared / 2) ** 2 + doubt)
    return part * own + (1 - part) * shared


def ask_groups(method, pure, clip=CLIP, mechanism=None):
    asked = {"method": method, "mechanism": mechanism, "settings": cv.settings.Groups(clip=clip)}
    return cv.groups(
        TRIAL, DESIGN, by="site", protects="record", noise=cv.SeededNoise(5), **asked, **budget(pure)
    )


def ratio_fields(known):
    """Assert estimate, errors and Fieller's interval of a noisy ratio."""
    estimate = known.offset + known.total / known.size
    assert known.estimate == pytest.approx(estimate)
    assert known.sampling_sd == pytest.approx(sqrt(known.row_variance / known.size))
    own = (known.total_sd**2 + ((estimate - known.offset) * known.size_sd) ** 2) / known.size**2
    assert known.noise_sd == pytest.approx(sqrt(own + known.extra))
    # The ends solve (total - r size)^2 = z^2 (size row_variance + size^2 extra) + q^2 (total_sd^2 + r^2 size_sd^2).
    z = norm.ppf(0.975)
    q = max(z, -np.log(0.05) / sqrt(2)) if known.heavy else z
    for end, side in zip(known.interval(0.95), (1, -1), strict=True):
        r = end - known.offset + side * known.bias
        left = (known.total - r * known.size) ** 2
        right = z**2 * (known.size * known.row_variance + known.size**2 * known.extra)
        right += q**2 * (known.total_sd**2 + r**2 * known.size_sd**2)
        assert left == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize(("pure", "near"), [(True, NEAR), (False, NEAR), (True, None)])
def test_arms_of_groups(passed, pure, near):
    result = ask_groups("arms", pure, near, None if pure else "gaussian")
    # Without a clip all outcomes are taken around the middle of their range, and nothing else is released.
    mean = 0.0 if near is None else centre_of(passed)[1]
    clip = 1.0 if near is None else near / HALF
    assert set(passed) == {"cells"} | ({"centre"} if near is not None else set())
    codes, sd = 2 * np.select(SITES, [0, 1, 2]) + T, sd_of(passed, pure)
    sizes, totals, squares = cell_numbers(passed, Y - mean, codes, 6, clip)
    row_variance = drawn_together(sizes, totals, squares, sd, clip)
    for k, one in enumerate(result.groups):
        for place, ratio in ((2 * k + 1, one.known.one), (2 * k, one.known.other)):
            assert ratio.offset == pytest.approx(mean * HALF)
            assert ratio.total == pytest.approx(totals[place] * HALF)
            assert ratio.size == pytest.approx(sizes[place])
            assert ratio.row_variance == pytest.approx(row_variance[place] * HALF**2)
            assert ratio.total_sd == pytest.approx(sqrt(2) * sd * clip * HALF)
            assert (ratio.limit, ratio.bias, ratio.heavy) == (HALF, 0, pure)
            ratio_fields(ratio)
        assert one.size == pytest.approx(sizes[2 * k] + sizes[2 * k + 1])
        assert one.size_sd == pytest.approx(sqrt(6) * sd)
        assert one.estimate == pytest.approx(one.known.one.estimate - one.known.other.estimate)
        assert one.known.sampling_sd == pytest.approx(
            np.hypot(one.known.one.sampling_sd, one.known.other.sampling_sd)
        )
        exact = TRIAL["y"][SITES[k] & T].mean() - TRIAL["y"][SITES[k] & ~T].mean()
        assert one.estimate == pytest.approx(exact, abs=5 * one.std_error.total)


def test_groups_where_outcomes_are_private(passed):
    asked = {"method": "difference_in_means", "epsilon": 1, "mechanism": "laplace"}
    result = cv.groups(TRIAL, DESIGN, by="site", protects="outcome", noise=cv.SeededNoise(5), **asked)
    for k, one in enumerate(result.groups):
        treated, control = TRIAL["y"][SITES[k] & T], TRIAL["y"][SITES[k] & ~T]
        effect, variance = passed[f"effect of group {k}"], passed[f"variance of group {k}"]
        known, small = one.known.uncertainty, min(len(treated), len(control))
        assert effect.statistic == pytest.approx(treated.mean() - control.mean(), abs=CLOSE)
        assert effect.sensitivity == Fraction(WIDTH, small)
        expected = treated.var(ddof=1) / len(treated) + control.var(ddof=1) / len(control)
        assert variance.statistic == pytest.approx(expected, rel=1e-6)
        # Every group spends the whole budget on its own outcomes.
        assert effect.amount + variance.amount == pytest.approx(1)
        assert one.estimate == effect.value
        assert known.noise.variance == pytest.approx(effect.laplace)
        assert known.variance == variance.value
        assert known.variance_noise.variance == pytest.approx(variance.laplace)
        caps = [
            np.repeat([0.0, WIDTH], [n // 2, n - n // 2]).var(ddof=1) / n
            for n in (len(treated), len(control))
        ]
        assert known.variance_cap == pytest.approx(sum(caps))
        assert (one.size, one.size_sd, one.known.limits) == (SITES[k].sum(), 0, (-WIDTH, WIDTH))


def sums_of(passed, values, codes, count, pure, cost):
    """Return sizes, means, mean squares and the noise of means over everybody, in the outcome's units."""
    sizes, totals, squares = cell_numbers(passed, values, codes, count, CLIP / HALF)
    sd = sd_of(passed, pure)
    sizes = sizes + (N - sizes.sum()) / count
    totals, squares = totals * HALF, squares * HALF**2
    means = (totals - cost * sizes) / N
    second = np.maximum(squares - 2 * cost * totals + cost**2 * sizes, 0) / N
    noise = np.hypot(sqrt(2) * sd * CLIP / N, cost * sqrt(1 - 1 / count) * sqrt(3) * sd / N)
    return sizes, means, second, noise, sqrt(3) * sd * CLIP**2 / N


def gain_fields(known, weights, sums, pure):
    """Assert what is known about a weighted sum of the cells' means."""
    _, means, second, noise, second_sd = sums
    value = weights @ means
    assert known.estimate == pytest.approx(value)
    # Noise that makes squares too small must not shorten an interval.
    squares = weights**2 @ second + 0.7 * second_sd * np.linalg.norm(weights**2)
    assert known.row_variance == pytest.approx(max(squares - value**2, 0))
    assert known.total_sd == pytest.approx(sqrt(weights @ weights) * noise * N)
    assert (known.size, known.size_sd, known.bias, known.heavy) == (N, 0, 0, pure)
    assert known.extra > 0


@pytest.mark.parametrize("without_delta", [True, False])
def test_value_of_a_rule(passed, without_delta):
    # The few sums of plain scores have pure noise with a delta as well.
    cost, pure = 0.4, True
    asked = (
        {"protects": "record", "policy": cv.Policy.where(site=["b", "c"]), "cost": cost}
        | BY_SCORES
        | budget(without_delta)
    )
    result = cv.policy_value(TRIAL, DESIGN, noise=cv.SeededNoise(6), **asked)
    share, mean, _ = centre_of(passed)
    codes = (~SITES[0]).astype(int)
    sums = sums_of(passed, scores(share, mean), codes, 2, pure, cost)
    wanted = [np.array([0.0, 1.0]), np.array([-1.0, 0.0]), np.array([1.0, 1.0])]
    for gain, weights in zip(result.gains, wanted, strict=True):
        gain_fields(gain.known, weights, sums, pure)
    assert result.share == pytest.approx(np.clip(sums[0][1] / N, 0, 1))
    treated = ~SITES[0]
    effect = TRIAL["y"][treated & T].mean() - TRIAL["y"][treated & ~T].mean()
    assert result.estimate == pytest.approx(
        (effect - cost) * treated.mean(), abs=5 * result.over_none.std_error.total
    )


class Ranking:
    """A public score: three for site c, two for b, one for a."""

    def effect(self, X):
        return np.array([{"a": 1.0, "b": 2.0, "c": 3.0}[str(one)] for one in X["site"]])


@pytest.mark.parametrize("without_delta", [True, False])
def test_targeting_curve(passed, without_delta):
    cost, pure = 0.25, True
    asked = (
        {"protects": "record", "model": Ranking(), "thresholds": (1.5, 2.5), "cost": cost}
        | BY_SCORES
        | budget(without_delta)
    )
    curve = cv.targeting_curve(TRIAL, DESIGN, noise=cv.SeededNoise(6), **asked)
    share, mean, _ = centre_of(passed)
    codes = np.select(SITES, [0, 1, 2])
    sums = sums_of(passed, scores(share, mean), codes, 3, pure, cost)
    top = [np.array([0.0, 0, 1]), np.array([0.0, 1, 1]), np.ones(3)]
    for point, weights in zip(curve.gains, top, strict=True):
        gain_fields(point.known, weights, sums, pure)
    shares = np.minimum(np.cumsum(sums[0][::-1]) / N, 1)
    assert curve.shares == pytest.approx((shares[0], shares[1], 1.0))
    assert curve.thresholds == (2.5, 1.5, None)
    steps = np.diff([0.0, shares[0], shares[1], 1.0])
    gains = np.array([weights @ sums[1] for weights in top])
    # The area under the curve by trapezia, less the triangle of treating at random.
    area = np.trapezoid([0.0, *gains], [0.0, shares[0], shares[1], 1.0]) - gains[-1] / 2
    assert curve.qini.estimate == pytest.approx(area)
    autoc = (
        sum(step / at * gain for step, at, gain in zip(steps, [*shares[:2], 1.0], gains, strict=True))
        - gains[-1]
    )
    assert curve.autoc.estimate == pytest.approx(autoc)


def test_a_size_lost_in_its_noise_tells_nothing():
    lost = NoisyRatio(total=3.0, size=4.0, row_variance=1.0, total_sd=2.0, size_sd=3.0, offset=0.5, limit=8.0)
    assert lost.interval(0.95) == (-8.0, 8.0)
    assert lost.estimate == pytest.approx(0.5 + 3 / 4)


def test_errors_of_models_in_a_cell():
    """What a wrong propensity and a wrong outcome model add, from what they leave in the cell."""
    n, share = np.array([300.0, 200.0]), 0.2
    treatment_residual, residual = np.array([12.0, -5.0]), np.array([9.0, 4.0])
    left = {"treatment_residual": treatment_residual, "residual": residual}
    left |= {"treatment_residual_sd": 3.0, "residual_sd": 1.5}
    made = Tallies(n, np.zeros(2), np.zeros(2), 0.0, 2.0, 1.0, 1.0, heavy=False, **left)
    models = SimpleNamespace(share=share, effect=0.1)
    score = AdjustedScore(None, models, 0.1, 0.6, 0.1, 0.0005, 0.0001, 0.002)
    shift, extra = model_errors(made, score)
    weight = 1 / (share * (1 - share))
    t, y = treatment_residual / n, residual / n
    doubt_t, doubt_y = (3 / n) ** 2 + 0.25 / n, (1.5 / n) ** 2 + 0.6**2 / 9 / n
    supposed = np.maximum(0.0005, t**2 - doubt_t)
    part = supposed / (supposed + doubt_t)
    assert_allclose(shift, weight * part * t * y * n)
    assert_allclose(extra, weight**2 * (part * doubt_t * y**2 + doubt_y * (part * t) ** 2) + 0.0001)


def test_noise_of_sizes_and_of_the_share_enters_every_cell():
    made = Tallies(np.array([300.0, 200.0]), np.ones(2), np.ones(2), 0.0, 2.0, 1.0, 1.0, heavy=False)
    score = PlainScore(share=0.2, mean=0.1, share_sd=0.004, square=0.26)
    for one in cell_ratios(made, score, 1.0, 8.0):
        assert (one.size_sd, one.total_sd) == (2.0, 1.0)
        assert one.extra >= (0.26 - 0.1**2) * (0.004 / (0.2 * 0.8)) ** 2 * (1 - CLOSE)
    assert score.extra == pytest.approx((0.26 - 0.1**2) * (0.004 / (0.2 * 0.8)) ** 2)


def test_other_errors_of_a_mean_lengthen_its_interval():
    """With an exact size the interval is z times the root of sampling, noise and other errors."""
    known = {"total": 30.0, "size": 100.0, "row_variance": 4.0, "total_sd": 3.0, "size_sd": 0.0, "limit": 8.0}
    one = NoisyRatio(**known, offset=0.0, extra=0.01)
    half = norm.ppf(0.975) * sqrt(4.0 / 100 + 0.01 + 0.03**2)
    assert_allclose(one.interval(0.95), (0.3 - half, 0.3 + half))
    assert one.noise_sd == pytest.approx(sqrt(0.03**2 + 0.01))
