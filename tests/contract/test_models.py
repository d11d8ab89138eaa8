"""Contracts of methods that fit models to private records: folds, cross-fitting, orthogonal scores, adjustment."""

from fractions import Fraction
from math import pi, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import k1
from scipy.stats import norm
from scipy.stats import t as student
from tests.contract.test_ipw import features_of
from tests.contract.trials import CLOSE, ESTIMANDS, LOW, SHARP, STEP, WIDTH, ask, people, study
from tests.thinned import thinned_rows

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.moments.adjusted_means import ClippedScores, adjusted_mean
from counterveil.estimators.moments.balanced_weights import ArmWeights, BalancedScore
from counterveil.estimators.moments.doubly_robust import scored_effect
from counterveil.estimators.moments.score_clip import ScoreClip
from counterveil.estimators.moments.trial_prediction import Prediction
from counterveil.mechanisms import Laplace
from counterveil.numerics.products import FeatureMap
from counterveil.numerics.public_choices import fold_rows
from counterveil.privacy import Estimand
from counterveil.published import doubly_robust as proved_cross_fit
from counterveil.rows.moments.linear_models import ArmLines
from counterveil.rows.moments.score_sums import ArmScore, ScoreMoments
from counterveil.rows.moments.trial_residuals import Direction, residuals_by_arm
from counterveil.rows.moments.weighted_moments import WeightedMeans
from counterveil.rows.records import Records

TRIAL = people(900, 6, confounded=False)
N = 900
HALF = WIDTH / 2


def ols(data, rows):
    """Return the coefficient of treatment beside a constant and the covariates."""
    columns = np.column_stack([data["t"], np.ones(len(data["t"])), features_of(data)])[rows]
    return np.linalg.lstsq(columns, data["y"][rows], rcond=None)[0][0]


def two_lines(data, rows):
    """Return the mean over rows of the difference between the lines of both arms."""
    x, t, y = features_of(data)[rows], data["t"][rows] == 1, data["y"][rows]
    columns = np.column_stack([np.ones(len(x)), x])
    # Slopes are penalised a little, by 1e-5 of the feature's squares around its mean, and the constant is not.
    free = {arm: np.append(0.0, 1e-5 * x[t == arm].var(axis=0) * (t == arm).sum() + 1e-9) for arm in (1, 0)}
    first, second = (
        np.linalg.solve(columns[own].T @ columns[own] + np.diag(free[own is t]), columns[own].T @ y[own])
        for own in (t, ~t)
    )
    return (columns @ (first - second)).mean()


@pytest.mark.parametrize("bound", [3, None])
def test_average_over_folds(passed, bound):
    folds = 12
    settings = cv.settings.Folds(folds=folds, bound=bound)
    result = ask(
        TRIAL, study(), "sample_and_aggregate", "record", epsilon=4, mechanism="laplace", settings=settings
    )
    effect, squares, known = passed["effect"], passed["squares"], result.uncertainty
    size, centre = float(result.details["fold_bound"]), result.details["fold_bound_centre"]
    assert (size, centre) == (3, 0) or bound is None
    if bound is None:
        assert centre == pytest.approx(passed["contrast"].value)
    effects = np.array([two_lines(TRIAL, rows) for rows in fold_rows(N, folds)])
    u = np.clip((effects - centre) / size, -1, 1)
    assert effect.statistic == pytest.approx(u.sum(), abs=1e-5)
    assert squares.statistic == pytest.approx((u**2).sum(), abs=1e-5)
    assert (effect.sensitivity, squares.sensitivity) == (2, 1)
    mean, square = effect.value / folds, squares.value / folds
    assert result.estimate == pytest.approx(centre + size * mean)
    assert known.noise.variance == pytest.approx((size / folds) ** 2 * effect.laplace)
    # Student's quantile at the asked level takes the place of the normal one.
    factor = (student.ppf(0.975, folds - 1) / norm.ppf(0.975)) ** 2
    between = size**2 * (square - mean**2 + effect.laplace / folds**2) / (folds - 1)
    assert known.variance == pytest.approx(factor * between)
    assert known.variance_cap == pytest.approx(factor * size**2 / (folds - 1))
    assert known.variance_noise.variance == pytest.approx((size / folds) ** 4 * squares.laplace)
    assert known.extra == 0
    off, sd = min(abs(mean), 1), sqrt(max(square - mean**2, 0))
    lost = size * (beyond(1 - off, sd) - beyond(1 + off, sd)) if bound is None else 0.0
    assert known.bias == pytest.approx(lost)
    assert sum(one.amount for one in passed.values()) == pytest.approx(4)


def beyond(limit, sd):
    """Return the mean excess of a normal number over a limit."""
    return sd * norm.pdf(limit / sd) - limit * norm.sf(limit / sd) if sd else 0.0


def test_effect_of_the_scores_by_arm():
    rows, unit, variance = 500, 0.4, 0.3
    released = ScoreMoments(0.02, 0.5, 0.003, 0.01)
    score = ArmScore(ArmLines(np.zeros((2, 5))), np.zeros((2, 5)), (1.0, 1.0), 0.7)
    control = ArmWeights(np.zeros(4), product=0.0003, bias=0.0006, shared=0.008, sampling=0.00002)
    treated = ArmWeights(np.zeros(4), product=0.00006, bias=0.0004, shared=0.002, sampling=0.00008)
    models = SimpleNamespace(
        balanced=BalancedScore(score, np.zeros(2), (control, treated), nonlinear_shift=0.0005),
        moments=SimpleNamespace(shares=np.array([0.8, 0.2])),
        scale=SimpleNamespace(unit=unit, location=SimpleNamespace(ends=None)),
        records=SimpleNamespace(count=rows),
    )
    effect = scored_effect(models, released, ScoreClip(1.5, lost=0.002, missed=0.00004), variance)
    # The expected shared error is taken off, and 1.2 times it is the standard deviation of what is left.
    assert effect.value == pytest.approx((0.7 + 0.02 - 0.006) * unit)
    # Two lines of five coefficients; the square is raised by 0.7 of its own noise.
    sampling = (0.5 + 0.007 - 0.02**2) / (rows - 10) + 0.0001
    assert effect.sampling == pytest.approx(sampling * unit**2)
    assert effect.noise == pytest.approx((0.003 * unit) ** 2)
    assert effect.product == pytest.approx((0.0004 + (1.2 * 0.006) ** 2) * unit**2)
    # Scores whose mean is off zero are cut off more on one side.
    assert effect.bias == pytest.approx((0.001 + 0.0005 + 0.002 * (1 + 2 * 0.02 / sqrt(0.3))) * unit)
    assert effect.share == 0.2
    assert effect.nonlinear_shift == pytest.approx(0.0005 * unit)


@pytest.mark.parametrize("lost", [False, True])
def test_mean_of_an_arm_adds_its_parts(lost):
    rows, unit, noise = 500, 0.4, Laplace(Fraction(2), Fraction(1))
    sums = np.array([5.0, 4.0, 6.0]) if lost else np.array([70.0, 50.0, 60.0])
    errors = SimpleNamespace(product=0.0004, bias=0.001, shared=0.006, sampling=0.0001)
    moments = SimpleNamespace(shares=np.array([0.6, 0.4]), overall=np.zeros(20), share_error=0.0004)
    models = SimpleNamespace(
        moments=moments,
        balanced=SimpleNamespace(levels=np.array([0.1, 0.3]), arms=(None, errors)),
        scale=SimpleNamespace(unit=unit, location=SimpleNamespace(centre=0.2)),
        records=SimpleNamespace(count=rows, study=SimpleNamespace(outcome_range=(2, 6))),
    )
    clipped = ClippedScores(
        np.array([[-1.0, -0.5], [1.0, 3.0]]), np.array([0.0, 0.002]), np.array([0.0, 0.0003])
    )
    mean = adjusted_mean(models, 1, clipped, sums, noise, (np.array([0, 0.05]), np.array([0, 0.07])))
    known, step = mean.error, unit * 2 / rows
    # Scores lie from -0.5 to 3, 1.25 in the middle; half of the range, 2, is the unit of outcomes.
    score = -0.5 * sums[0] + 1.25 * sums[1] + 3 * sums[2]
    assert mean.estimate == pytest.approx(4 + 2 * 0.2 + unit * 2 * (0.3 + 0.006) + step * score)
    assert (mean.size, mean.size_sd) == pytest.approx((200, 10))
    assert known.noise.variance == pytest.approx(step**2 * (0.5**2 + 1.25**2 + 3**2) * 8)
    # A line of twenty coefficients, fitted to 200 rows.
    square = step**2 / 0.9
    more = 0.05 + 0.0001 * (unit * 2) ** 2
    assert known.variance == pytest.approx(square * (0.25 * sums[0] - 1.5 * sums[1] + 9 * sums[2]) + more)
    assert known.variance_cap == pytest.approx(square * 9 * 200 + more)
    assert known.variance_noise.variance == pytest.approx(square**2 * (0.25**2 + 1.5**2 + 9**2) * 8)
    assert known.extra == pytest.approx((0.0004 + 0.0003 + (1.2 * 0.006) ** 2) * (unit * 2) ** 2 + 0.07)
    assert known.bias == pytest.approx(4.0 if lost else 0.003 * unit * 2)


PARTS = [(estimand, delta) for estimand in (*ESTIMANDS, "ATO") for delta in (0, 1e-6)]


@pytest.mark.parametrize(
    ("estimand", "delta"),
    thinned_rows(PARTS, ("ATE", 1e-6), ("ATT", 0), ("ATC", 1e-6), ("ATO", 0), ("ATO", 1e-6)),
)
def test_doubly_robust_adds_its_parts(estimand, delta):
    data = people(6000, 9)
    result = ask(
        data, study(), "doubly_robust", "record", epsilon=20, delta=delta, estimand=estimand, level=0.99
    )
    said, known = result.details, result.uncertainty
    score = said["se_score_noise"] ** 2
    assert result.std_error.noise**2 == pytest.approx(score + said["se_models"] ** 2)
    for level in (0.99, 0.9999):
        wider = 1.0
        if said["mechanism"] != "gaussian":
            alpha = 1 - level
            wider = (tail_of_the_ball(alpha) / sqrt(3) / norm.ppf(1 - alpha / 2)) ** 2
            assert wider > 1.05
        assert known.extra_at(1 - level) == pytest.approx(wider * score + said["se_models"] ** 2)
        again, ends = type(result).from_dict(result.to_dict()), result.untruncated_interval(level)
        assert again.untruncated_interval(level) == ends
        sd, half = sqrt(known.variance + known.extra_at(1 - level)), (ends[1] - ends[0]) / 2
        assert norm.sf([half - known.bias, half + known.bias], scale=sd).sum() == pytest.approx(1 - level)
        assert sum(ends) / 2 == pytest.approx(result.estimate)
    assert known.noise is None
    assert known.variance == known.variance_cap == pytest.approx(said["se_sampling"] ** 2)
    assert known.bias == pytest.approx(said["model_bias_bound"])


def tail_of_the_ball(alpha):
    """Return what one coordinate of two exceeds with this chance."""
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        chance = 2 / pi * quad(lambda x: x * k1(x), middle, np.inf)[0]
        low, high = (middle, high) if chance > alpha else (low, middle)
    return high


LARGE = people(20_000, 10)
# The effect of a person is 0.9 (1 + 0.3 x).
OWN = 0.9 * (1 + 0.3 * LARGE["x"])


def truth(estimand):
    t = LARGE["t"] == 1
    return {"ATE": OWN, "ATT": OWN[t], "ATC": OWN[~t]}[estimand].mean()


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("method", ["doubly_robust", "cross_fit"])
def test_without_noise_the_effect_on_the_people_asked_about(monkeypatch, estimand, method):
    budget = {"epsilon": 10_000, "delta": 1e-6}
    if method == "cross_fit":
        monkeypatch.setattr(proved_cross_fit, "CLIP", 0.02)
        monkeypatch.setattr(proved_cross_fit, "clip_sds", lambda _: 1e6)
        asked = {"estimand": estimand, "noise": cv.SeededNoise(1), **budget}
        result = cv.published.cross_fit_proved(LARGE, study(), **asked)
    else:
        settings = cv.settings.DoublyRobust(degree=1)
        result = ask(LARGE, study(), method, "record", estimand=estimand, settings=settings, **budget)
    # Sampling at 20,000 rows, and propensities that are not linear in the weights.
    assert result.estimate == pytest.approx(truth(estimand), abs=0.08)
    whole = sum(LARGE["y"][LARGE["t"] == arm].var() / (LARGE["t"] == arm).sum() for arm in (0, 1))
    assert 0.5 * whole < result.std_error.sampling**2 < 3 * whole


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_cross_fitting_with_a_declared_propensity(passed, estimand):
    data = people(6000, 14, confounded=False)
    design, budget = study(randomised=True, treated_share=Fraction(1, 5)), {"epsilon": 1000, "delta": 1e-6}
    asked = {"estimand": estimand, "noise": cv.SeededNoise(1), **budget}
    result = cv.published.cross_fit_proved(data, design, **asked)
    assert result.estimate == pytest.approx(ols(data, slice(None)), abs=0.1)
    # The sum of u^2, in units of the clip, over the people that the mean is divided by.
    part = {"ATE": 1.0, "ATT": 0.2, "ATC": 0.8}[estimand]
    factor = result.details["score_clip"] * HALF / (6000 * part)
    assert result.uncertainty.variance_cap == pytest.approx(factor**2 * 6000)
    moments = passed["moments"]
    assert result.uncertainty.noise.variance == pytest.approx(factor**2 * moments.normal)


def test_overlap_weights_give_the_partial_regression():
    result = ask(LARGE, study(), "doubly_robust", "record", estimand="ATO", epsilon=10_000, delta=1e-6)
    assert result.estimate == pytest.approx(ols(LARGE, slice(None)), abs=0.02)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_cross_fitted_effect_from_released_numbers(estimand):
    rows, size = 1000, 1000 if estimand == "ATE" else 220
    noise, other = SimpleNamespace(variance=0.0009), SimpleNamespace(variance=1e-6)
    weighted = WeightedMeans(0.04, 0.06, rows, float(size), 25.0, noise, other)
    halves = (half(0.25, 0.1, 0.002, 0.0004), half(0.31, 0.2, 0.003, 0.0002))
    sizes, clip = (480, 520), 1.7
    effect_bias = (480 * 0.1 + 520 * 0.2) / rows
    scored = proved_cross_fit.Halves(weighted, clip, halves, sizes, effect_bias)
    estimate, known = proved_cross_fit.effect_of(scored, HALF, Estimand.parse(estimand))
    left, parts = 1 - effect_bias, (0.48, 0.52)
    own = (0.48 * 0.9 * 0.25 + 0.52 * 0.8 * 0.31) / left
    factor = clip * HALF / size / left
    beyond_ = factor * rows * 0.04
    effect = own * HALF + beyond_
    assert estimate == pytest.approx(effect)
    assert known.noise is noise
    assert known.variance == pytest.approx(factor**2 * rows * (0.06 - 0.04**2) + 0.0009 / rows)
    assert known.variance_cap == pytest.approx(factor**2 * rows)
    product = sum(
        p**2 * (h.variance + (0.2 * h.effect_bias * (effect / HALF - h.models.effect)) ** 2)
        for p, h in zip(parts, halves, strict=True)
    )
    if estimand != "ATE":
        product += 0.06**2 * 0.48 * 0.52 / size
    assert known.extra == pytest.approx(product * (HALF / left) ** 2 + (beyond_ / size) ** 2 * 25)
    assert known.bias == pytest.approx((0.48 * 0.0004 + 0.52 * 0.0002) * HALF / left)


def half(effect, effect_bias, variance, bias):
    return SimpleNamespace(
        models=SimpleNamespace(effect=effect), effect_bias=effect_bias, variance=variance, bias=bias
    )


ADJUSTED = cv.settings.Trial("covariates")


def test_adjusted_contrast_takes_predictions_off_everybody():
    table = Table.attach(TRIAL, study(randomised=True))
    taken = np.rint(0.2 * (TRIAL["x"] - 1) / STEP).astype(np.int64)
    bound, fitted = int(0.5 / STEP), Fraction(21, 20)
    taken = np.clip(taken, -bound, bound)
    made = SimpleNamespace(bound_steps=bound, steps=lambda part: taken[part.rows])
    totals = residuals_by_arm(Records(table, FeatureMap(())), made, fitted)
    arms, unit, width = totals._arms, totals.unit, totals.width
    left = TRIAL["y"] - LOW - taken * STEP + bound * STEP
    t = TRIAL["t"] == 1
    assert float(unit) == pytest.approx(STEP * 1.05)
    assert float(width) == pytest.approx((WIDTH + 2 * bound * STEP) * 1.05)
    assert float(arms.treated.mean() * unit) == pytest.approx(1.05 * left[t].mean(), abs=CLOSE)
    assert float(arms.control.mean() * unit) == pytest.approx(1.05 * left[~t].mean(), abs=CLOSE)
    assert left.min() >= 0
    assert left.max() <= WIDTH + 2 * bound * STEP


def test_adjusted_contrast_allows_for_coefficients_fitted_to_the_same_rows():
    direction = Direction(np.zeros(4), 2.0, 0.5, 0.1)
    made = Prediction(None, direction, 0.25, 0.0, 0.1, 0.2, 0.2, bound=0.1)
    # Four coefficients, half of their length: two degrees of freedom of 100 rows.
    assert float(made.fitted(100)) == pytest.approx(1 / (1 - 2 / 100), rel=1e-5)


@pytest.mark.parametrize("declared", [None, Fraction(1, 5)])
def test_adjusted_contrast(passed, declared):
    data = people(4000, 12, confounded=False)
    design = study(randomised=True, treated_share=declared)
    result = ask(data, design, "trial", "record", epsilon=4, mechanism="laplace", settings=ADJUSTED)
    q = 0.2 if declared is not None else passed["share"].value
    contrast, moment, known = passed["contrast"], passed["moment"], result.uncertainty
    assert result.details["adjusted"] is True
    assert result.estimate == contrast.value
    assert known.noise.variance == pytest.approx(contrast.laplace)
    variance = (moment.value - contrast.value**2 + contrast.laplace) / 4000
    assert known.variance <= variance + 1e-12
    assert known.variance == pytest.approx(variance) or declared is None
    assert known.variance_noise.variance == pytest.approx(moment.laplace / 4000**2)
    reach = float(contrast.sensitivity) * 4000
    assert known.variance_cap == pytest.approx(reach**2 / 4 / 4000)
    # Outcomes less a prediction cut to a bound have a longer range.
    assert reach > WIDTH / q
    assert contrast.statistic == pytest.approx(ols(data, slice(None)), abs=0.12)
    one, other = (data["y"][data["t"] == arm] for arm in (1, 0))
    plain = one.var() / len(one) + other.var() / len(other)
    assert 0.4 * plain < (moment.statistic - contrast.statistic**2) / 4000 < plain
    assert sum(one.amount for one in passed.values()) == pytest.approx(4)


def test_adjusted_contrast_without_noise():
    data = people(4000, 12, confounded=False)
    result = ask(data, study(randomised=True), "trial", "record", epsilon=SHARP, settings=ADJUSTED)
    assert result.estimate == pytest.approx(ols(data, slice(None)), abs=0.05)
