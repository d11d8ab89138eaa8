"""Lines, weights and clips that are made of released moments by arm."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.thinned import thinned

from counterveil.estimators.moments import balanced_weights
from counterveil.estimators.moments.adjustment_budget import Design, fewest_rows
from counterveil.estimators.moments.arm_chain import ArmDesign, arms_affordable, shortest
from counterveil.estimators.moments.arm_fits import (
    ArmFit,
    ArmSlopes,
    first_fit,
    fitted_slopes,
    refined,
    residual_clip,
)
from counterveil.estimators.moments.arm_moments import ArmMoments, arm_moments
from counterveil.estimators.moments.balanced_weights import Guard, expected_shared, moved_by_richer, weighted
from counterveil.estimators.moments.longest_score import longest_score, longest_weighted
from counterveil.estimators.moments.outcome_location import ANYWHERE, HiddenOutcomes, OutcomeLocation
from counterveil.estimators.moments.row_scale import RowScale
from counterveil.estimators.moments.score_clip import (
    FarLosses,
    ScoreClip,
    ScoreShape,
    SizeHistogram,
    chosen_clip,
    far_lost,
)
from counterveil.numerics.products import Column, FeatureMap, Standard
from counterveil.privacy import Budget, Estimand
from counterveil.rows.moments.linear_models import ArmLines
from counterveil.rows.moments.residual_products import ResidualProducts
from counterveil.rows.moments.score_sums import ArmScore

ROWS, SD = 40_000, 1e-6
ESTIMANDS = (Estimand.ATE, Estimand.ATT, Estimand.ATC)
BETA = np.array([[0.2, -0.1, 0.05], [0.35, 0.0, -0.1]])


@pytest.fixture(scope="module")
def people():
    """Rows (1, z), arms and outcomes with a line of its own in each arm."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(ROWS, 3)) @ np.array([[1.0, 0.4, 0.0], [0.0, 0.9, 0.2], [0.0, 0.0, 1.0]])
    z = np.clip(z, -3, 3)
    t = (rng.random(ROWS) < 1 / (1 + np.exp(1 - 0.5 * z[:, 0] + 0.4 * z[:, 1]))).astype(float)
    y = 0.1 + 0.2 * t + np.where(t == 1, z @ BETA[1], z @ BETA[0]) + 0.2 * rng.normal(size=ROWS)
    return np.column_stack([np.ones(ROWS), z]), t, y


def moments_of(people, sd=SD):
    u, t, y = people
    v = np.column_stack([u, y])
    grams = np.stack([v[t == arm].T @ v[t == arm] / ROWS for arm in (0, 1)])
    scale = RowScale(
        Standard(np.zeros(3), np.ones(3), 4.0, 9.0), OutcomeLocation(0.0, 0.4, 0.0, 3.0), 6.3, 2.7, 2.5
    )
    return arm_moments(grams, sd, scale, float(t.mean()), 1e-6)


def test_without_noise_lines_are_those_of_least_squares(people):
    u, t, y = people
    moments = moments_of(people)
    fit = first_fit(moments, 1e-9)
    for arm in (0, 1):
        wanted = np.linalg.lstsq(u[t == arm], y[t == arm], rcond=None)[0]
        assert fit.lines(moments).values[arm] == pytest.approx(wanted, abs=2e-3)
    assert fit.residual == pytest.approx(0.04, rel=0.1)
    assert residual_clip(fit) == pytest.approx(0.6, rel=0.05)
    assert (fit.slopes.errors < 1e-4).all()


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_without_noise_the_effect_is_that_of_two_lines_and_so_is_its_variance(people, estimand):
    u, t, y = people
    moments = moments_of(people)
    found = weighted(moments, first_fit(moments, 1e-9), estimand, ROWS, Guard(1.0, 0.0))
    whose = {Estimand.ATE: np.ones(ROWS), Estimand.ATT: t, Estimand.ATC: 1 - t}[estimand] == 1
    lines = [np.linalg.lstsq(u[t == arm], y[t == arm], rcond=None)[0] for arm in (0, 1)]
    wanted = (u[whose] @ (lines[1] - lines[0])).mean()
    score = found.score.of(u, t, y)
    assert found.score.effect + score.mean() == pytest.approx(wanted, abs=1e-3)
    assert found.bias < 1e-3
    assert found.product < 1e-6
    # Weights that balance exactly show the whole sampling error of the lines.
    whole, counts = np.zeros(ROWS), whose / whose.mean()
    for arm, sign in ((1, 1), (0, -1)):
        own = t == arm
        exact = u @ np.linalg.solve(u[own].T @ u[own] / ROWS, u[whose].mean(axis=0))
        whole += sign * (counts * (u @ lines[arm]) + own * exact * (y - u @ lines[arm]))
    variance = (whole - counts * wanted).var() / ROWS
    assert score.var() / ROWS + found.sampling == pytest.approx(variance, rel=0.05)


def test_without_noise_overlap_weights_give_both_arms_one_mean_at_which_lines_are_compared(people):
    u, t, y = people
    propensity = u @ np.linalg.lstsq(u, t, rcond=None)[0]
    treated, control = (
        np.average(u, axis=0, weights=w) for w in (t * (1 - propensity), (1 - t) * propensity)
    )
    assert treated == pytest.approx(control, abs=1e-9)
    lines = [np.linalg.lstsq(u[t == arm], y[t == arm], rcond=None)[0] for arm in (0, 1)]
    moments = moments_of(people)
    found = weighted(moments, first_fit(moments, 1e-9), Estimand.ATO, ROWS, Guard(1.0, 0.0))
    score = found.score.of(u, t, y)
    assert found.score.effect + score.mean() == pytest.approx(treated @ (lines[1] - lines[0]), abs=1e-3)
    # With lines, that is the least-squares coefficient of the treatment where slopes do not differ.
    assert found.product < 1e-6
    for arm, weights in ((1, 1 - propensity), (0, propensity)):
        own = t == arm
        wanted = weights[own] / weights[own].mean()
        shown = u[own] @ found.score.weights[arm] * own.mean()
        assert shown == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize("distance", [0.5, 3.0, 40.0])
def test_what_clips_lose_of_outcomes_far_out(people, distance):
    moments, clips = moments_of(people), np.array([0.5, 4.0, 30.0])
    centre = OutcomeLocation(
        0.0, 0.4, 0.0, 3.0, hidden=HiddenOutcomes(np.array([distance]), np.array([0.01]), 0.002)
    )
    scale = RowScale(Standard(np.zeros(3), np.ones(3), 4.0, 9.0), centre, 6.3, 2.7, 2.5)
    weights = {arm: np.array([0.3, -0.2, 0.1]) for arm in (0, 1)}
    found = far_lost(moments, scale, weights, clips)
    # Weights along a row are skewed: an exponential with the weights' own mean and variance.
    draws, wanted = np.random.default_rng(0).exponential(size=400_000) - 1, np.zeros(3)
    for arm, weight in weights.items():
        share = moments.shares[arm]
        spread = np.sqrt(weight @ moments.covariances[arm] @ weight)
        scores = np.abs(1 / share + spread * draws) * distance / scale.unit
        wanted += share * np.array([np.maximum(scores - clip, 0.0).mean() for clip in clips])
    assert found.lost == pytest.approx(0.01 * wanted, rel=0.05, abs=1e-5)
    assert found.sd == pytest.approx(0.002 * wanted, rel=0.05, abs=1e-5)
    assert found.longest > 2 * distance / scale.unit
    assert (np.diff(found.lost) <= 0).all()


EDGES = 2.0 ** np.arange(-2, 7.01, 0.5)
SOMEWHERE = OutcomeLocation(0.0, 1.0, 0.0, 4.0)


def clipped(counts, rows, sd, **expected):
    """Return where scores are clipped of which one standard deviation is expected."""
    nothing = np.zeros(len(EDGES))
    usual = {"missed": nothing, "far_losses": FarLosses(nothing, nothing, 0.0), "noise_unit": 0.001}
    usual |= {"location": SOMEWHERE, "least": 0.0}
    shape = ScoreShape(rows=rows, typical=1.0, peaked=3.0, far=3.0, **(usual | expected))
    return chosen_clip(SizeHistogram(counts, sd, EDGES), shape)


def test_a_clip_holds_what_is_seen_of_outcomes_far_out_or_the_noise_in_that():
    rows, counts = 10_000, np.zeros(len(EDGES) + 1)
    counts[1] = rows

    def variance(lost, noise, longest=128.0):
        far = FarLosses(np.full(len(EDGES), lost), np.full(len(EDGES), noise), longest)
        return clipped(counts, rows, 30.0, far_losses=far).missed

    assert variance(0.0, 0.0) == 0
    assert 0 < variance(0.0, 0.01) < variance(0.0, 0.05)
    assert variance(0.1, 0.001) == pytest.approx((0.7 * 0.1) ** 2, rel=0.05)
    # Where scores cannot reach far, their sizes say that none is lost.
    assert variance(0.1, 0.01, longest=1.0) < variance(0.1, 0.01)


# Directions of rows, ends of coordinates and of outcomes: what a bound is attained at is among them.
_LIMIT, _LENGTH = 2.0, 2.5


@pytest.mark.parametrize("case", [0, 1, 2, 3])
def test_no_row_has_a_score_beyond_the_bound_of_released_numbers(case):
    source = np.random.default_rng([17, case])
    scale = RowScale(
        Standard(np.zeros(2), np.ones(2), _LIMIT, _LENGTH**2),
        OutcomeLocation(-0.3, 0.4, 0.0, 3.0),
        6.3,
        2.7,
        1.5,
    )
    lines, weights = ArmLines(source.normal(size=(2, 3))), source.normal(size=(2, 3))
    if case == 3:
        # Weights along the opposite of the line reach it: the row of this direction and the farther outcome.
        lines, weights = ArmLines(np.array([[0.0, -0.6, 0.0], [0.0, 0.0, 0.0]])), np.zeros((2, 3))
        weights[0] = [1.0, 0.9, 0.0]
    angles = np.linspace(0, 2 * np.pi, 4001)
    z = np.column_stack([np.cos(angles), np.sin(angles)]) * _LENGTH
    z = np.vstack([np.clip(z, -_LIMIT, _LIMIT), 0.3 * z])
    u = np.column_stack([np.ones(len(z)), z])
    score = ArmScore(lines, weights, (1.0, 0.7), 0.2)
    largest, own = 0.0, np.zeros(2)
    for arm, end in product((0, 1), (-1.0, 0.2, 1.0)):
        t, y = np.full(len(u), float(arm)), np.full(len(u), (end + 0.3) / scale.unit)
        largest = max(largest, np.abs(score.of(u, t, y)).max())
        weighted_residuals = u @ weights[arm] * (y - u @ lines.values[arm])
        own[arm] = max(own[arm], np.abs(weighted_residuals).max())
    bounds = longest_weighted(lines, weights, scale.rows)
    assert largest <= longest_score(score, scale.rows)
    assert (own <= bounds + 1e-12).all()
    if case == 3:
        assert own[0] == pytest.approx(bounds[0], rel=1e-6)


def test_noise_in_cells_that_no_score_reaches_moves_no_clip():
    rows, sd = 5_000, 40.0
    counts = np.zeros(len(EDGES) + 1)
    counts[:6] = rows / 6
    for location in (ANYWHERE, SOMEWHERE):
        clips = []
        for false in (0.0, 600.0):
            noisy = counts.copy()
            noisy[-3:] += false  # far beyond the longest score
            clips.append(clipped(noisy, rows, sd, location=location, longest=5.0))
        assert clips[0] == clips[1]
        assert clips[0].clip <= 5.0
    # Without the bound the same noise sends the clip of events to the end.
    assert clipped(noisy, rows, sd, location=ANYWHERE).clip > 20


def test_a_clip_at_the_longest_score_cuts_nothing_off_beyond_it():
    rows, counts = 5_000, np.zeros(len(EDGES) + 1)
    counts[3] = rows
    expected = {"missed": np.full(len(EDGES), 0.5), "noise_unit": 1e-6}
    # All scores are shorter than the first edge, where a clip loses nothing.
    assert clipped(counts, rows, 30.0, longest=0.2, **expected) == ScoreClip(0.2, 0.0, 0.0)
    assert clipped(counts, rows, 30.0, **expected).missed == pytest.approx(0.5)


def test_residuals_correct_lines_that_noise_has_spoiled(people):
    u, t, y = people
    moments = moments_of(people)
    rng = np.random.default_rng(5)
    start = first_fit(moments, 1e-9)
    spoiled = moments.products + 0.05 * rng.normal(size=(2, 3))
    slopes = fitted_slopes(moments, spoiled, np.full(2, 0.0025))
    wrong = type(start)(start.levels, slopes, spoiled, np.full(2, 0.0025), start.residual, start.level_error)
    left = wrong.lines(moments).residual(u, t, y)
    products = np.stack([(u * (left * (t == arm))[:, None]).mean(axis=0) for arm in (0, 1)])
    better = refined(moments, wrong, ResidualProducts(products, float((left**2).mean()), 1e-4, 1e-4))
    truth = np.stack([np.linalg.lstsq(u[t == arm], y[t == arm], rcond=None)[0] for arm in (0, 1)])
    off = [np.abs(fit.lines(moments).values - truth).max() for fit in (wrong, better)]
    assert off[1] < 0.1 * off[0]
    assert (better.first < 0.01).all()
    assert (better.slopes.errors < wrong.slopes.errors).all()


def design(rows, features, epsilon, delta="1e-6"):
    mechanism = "gaussian" if Fraction(delta) else "staircase"
    return Design(rows, features, Budget(epsilon, delta), mechanism)


def feature_maps_of(columns):
    numbers = tuple(Column(f"x{j}", 0.0, 1.0, None, False) for j in range(columns))
    squares = tuple((j, j) for j in range(columns))
    pairs = squares + tuple((i, j) for i in range(columns) for j in range(i))
    return [FeatureMap(numbers), FeatureMap(numbers, squares), FeatureMap(numbers, pairs)]


@pytest.mark.parametrize("rows", thinned([500, 2000, 5000, 50_000], 500, 50_000))
@pytest.mark.parametrize("columns", thinned([3, 5, 20], 5, 20))
def test_the_richest_features_are_taken_that_lengthen_no_answer(rows, columns):
    deltas = ("0", "1e-30", "1e-12", "1e-9", "1e-6", "1e-4")
    epsilons = [Fraction(2) ** k for k in range(-6, 6)]
    feature_maps, (taken, least) = (
        feature_maps_of(columns),
        np.full((2, len(deltas), len(epsilons) + 1), np.inf),
    )
    for (i, delta), (j, epsilon) in product(enumerate(deltas), enumerate(epsilons, 1)):
        noise = ("gaussian", "staircase") if i else ("staircase",)
        found = shortest(feature_maps, rows, Budget(epsilon, delta), noise)
        alone = {
            one.size: shortest([one], rows, Budget(epsilon, delta), noise).length for one in feature_maps
        }
        least[i, j], taken[i, j] = min(alone.values()), found.length
        if np.isfinite(least[i, j]):
            # Half of epsilon, or no delta, is not shorter, unless there is hardly any noise.
            before = max(min(taken[i, j - 1], taken[0, j] if i else np.inf), 1.02)
            within = max(size for size in alone if alone[size] <= min(1.25 * least[i, j], before))
            assert (found.features.size, found.length) == (within, alone[within])
    # A larger budget never makes the shortest longer; where nothing is affordable it is infinite.
    for axis in (0, 1):
        later, earlier = np.moveaxis(least, axis, 0)[1:], np.moveaxis(least, axis, 0)[:-1]
        assert (later <= earlier).all()
    assert np.isfinite(least[-1, -1])


def test_features_are_added_as_noise_falls():
    sizes = [
        shortest(feature_maps_of(5), 5000, Budget(e, "1e-6"), ("gaussian",)).features.size for e in (1, 2, 64)
    ]
    assert sizes == [5, 10, 20]
    # With a delta that is next to nothing, noise without one is the smaller.
    tiny = shortest(feature_maps_of(3), 20_000, Budget(8, "1e-90"), ("gaussian", "staircase"))
    assert tiny.design.mechanism == "staircase"


def test_whether_moments_by_arm_are_affordable_is_public_and_monotone():
    few, many = design(500, 20, 1), design(50_000, 20, 1)
    assert not arms_affordable(few)
    assert arms_affordable(many)
    least = fewest_rows(few, arms_affordable)
    assert arms_affordable(design(least, 20, 1))
    assert not arms_affordable(design(least - 1, 20, 1))
    assert ArmDesign(few).inflation(0.6) > ArmDesign(many).inflation(0.6) > ArmDesign(many).inflation(0.2)
    assert ArmDesign(many).inflation(0.0) == 1.3
    assert ArmDesign(few).shared > ArmDesign(many).shared
    for one in (few, many, design(50_000, 5, 4, "0"), design(2000, 20, 4, "0")):
        assert sum(ArmDesign(one).shares.values()) == 1
        assert sum(ArmDesign(one, searched=False).shares.values()) == 1
        assert not any(name.startswith("place") for name in ArmDesign(one, searched=False).shares)


@pytest.mark.parametrize(("bend", "moved"), [(0.0, 0.0), (0.5, 0.25)])
def test_what_squares_surely_move_is_held(bend, moved):
    # Two features, the second a square, independent; arms differ by half a standard deviation in both.
    shares, means = np.array([0.5, 0.5]), np.array([[-0.25, -0.25], [0.25, 0.25]])
    slopes = np.array([[1.0, bend], [1.0, bend]])
    identity = np.stack([np.eye(2)] * 2)
    none = np.zeros(2)
    known = ArmMoments(
        shares, 0.0, none, 1e-6, means, identity, none, none, none, slopes, none + 1e-8, 1.0, 0.5, np.eye(2)
    )
    fit = ArmFit(none, ArmSlopes(slopes, 1e-8 * identity), slopes, none + 1e-8, 0.1, none)
    found = moved_by_richer(known, fit, Estimand.ATE, 1, 100_000)
    assert found == pytest.approx(moved, abs=0.01)
    # With so few rows chance may explain it.
    assert moved_by_richer(known, fit, Estimand.ATE, 1, 1) == 0


@pytest.mark.parametrize("error", [0.001, 0.05, 0.2])
def test_the_ridge_is_the_one_of_which_the_interval_says_least(people, monkeypatch, error):
    moments, ridges = replace(moments_of(people, 0.01), errors=np.full(2, error)), (0.0, 0.1, 0.4, 1.6, 10.0)
    fit = first_fit(moments, 0.01)

    def said(arm, *tried):
        monkeypatch.setattr(balanced_weights, "_RIDGES", tried)
        side = weighted(moments, fit, Estimand.ATE, ROWS, Guard(3.0, 0.3)).arms[arm]
        shown = side.slope @ moments.covariances[arm] @ side.slope * fit.residual / moments.shares[arm] / ROWS
        return side.product + shown + side.sampling + side.bias**2 + expected_shared(side.shared)

    for arm in (0, 1):
        assert said(arm, *ridges) == pytest.approx(min(said(arm, one) for one in ridges), rel=1e-9)
