"""Contracts of weighted sums with public coefficients: matching, weighting, and effects of several arms."""

from fractions import Fraction

import numpy as np
import pytest
from tests.contract.trials import CLOSE, ESTIMANDS, LOW, SHARP, WIDTH, ask, on_grid, people, study
from tests.unit.rows.exact_gate import public_rows

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.linear.matching import matched_effect
from counterveil.estimators.linear.matching_design import scored
from counterveil.estimators.linear.weighting import weighted_effect
from counterveil.questions.ate import AteArguments

PEOPLE = people(600, 8)
N, T, Y = 600, PEOPLE["t"] == 1, PEOPLE["y"]
# Coefficients are kept to nine digits of the largest one.
CUT = 1e-5


def asked(method, estimand, settings, epsilon=1):
    more = {"mechanism": "laplace", "settings": settings}
    return AteArguments(protects="outcome", epsilon=epsilon, method=method, estimand=estimand, **more).about(
        study()
    )


def target(estimand, column):
    return {"ATE": column, "ATT": column[T], "ATC": column[~T]}[estimand].mean()


def linear_fields(passed, result, c, width=WIDTH, epsilon=1, factor=1.0):
    """Assert the fields that every weighted sum has; `factor`: by how much bias raises the variance."""
    effect, variance, known = passed["effect"], passed["variance"], result.uncertainty
    assert float(effect.sensitivity) == pytest.approx(width * abs(c).max(), rel=1e-6)
    assert result.estimate == effect.value
    assert known.noise.variance == pytest.approx(effect.laplace)
    assert known.variance == variance.value
    assert known.variance_noise.variance == pytest.approx(variance.laplace)
    assert known.variance_cap == pytest.approx(factor * width**2 * (c @ c) / 4, rel=1e-6)
    at, scale = max(variance.value, 0), (variance.laplace / 2) ** 0.5
    # The median of Laplace's distribution around it, from 0 on.
    likely = min(at - scale * np.log(1 - np.exp(-at / scale) / 2), known.variance_cap)
    assert result.details.get("bias_allowance", 0) == pytest.approx((likely * (1 - 1 / factor)) ** 0.5)
    assert (known.extra, known.bias) == (0, 0)
    assert effect.amount + variance.amount == pytest.approx(epsilon)
    assert 0 < variance.statistic <= known.variance_cap


def one_to_one(estimand, score):
    """Return the coefficients of matching everybody asked about with the nearest of the other arm."""
    c, served = np.zeros(N), {"ATE": np.ones(N, bool), "ATT": T, "ATC": ~T}[estimand]
    for i in np.flatnonzero(served):
        others = np.flatnonzero(T[i] != T)
        nearest = others[np.argmin(abs(score[others] - score[i]))]
        sign = 1 if T[i] else -1
        c[i] += sign / served.sum()
        c[nearest] -= sign / served.sum()
    return c


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_matching_by_row_pairs(passed, estimand):
    settings = cv.settings.Matching(neighbours=1, limit=None, variance_by="row")
    more = {"epsilon": 8, "mechanism": "laplace", "estimand": estimand, "settings": settings}
    result = ask(PEOPLE, study(), "matching", "outcome", **more)
    score = scored(public_rows(Table.attach(PEOPLE, study()))).score
    c = one_to_one(estimand, score)
    assert passed["effect"].statistic == pytest.approx(c @ (Y - LOW), abs=CUT)
    linear_fields(passed, result, c, epsilon=8)
    # Neighbours on the score, two by two: a pair stands for the variances of both its rows.
    order = np.concatenate([np.flatnonzero(a)[np.argsort(score[a], kind="stable")] for a in (T, ~T)])
    first, second = order[::2], order[1::2]
    weight = c[first] ** 2 + c[second] ** 2
    assert passed["variance"].statistic == pytest.approx(weight @ (Y[first] - Y[second]) ** 2 / 2, rel=1e-5)
    largest = (np.bincount(first, weight, N) + np.bincount(second, weight, N)).max()
    assert float(passed["variance"].sensitivity) == pytest.approx(WIDTH**2 * largest / 2, rel=1e-5)


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("method", ["matching", "weighting"])
def test_coefficients_make_the_arms_alike(passed, estimand, method):
    table = public_rows(Table.attach(PEOPLE, study()))
    result = ask(PEOPLE, study(), method, "outcome", mechanism="laplace", estimand=estimand)
    maker = {"matching": matched_effect, "weighting": weighted_effect}[method]
    effect = maker(table, asked(method, estimand, None))
    treated = (effect.rows or table).treated
    c = effect.coefficients
    # Weighting puts the treated rows first.
    order = np.argsort(~T, kind="stable") if method == "weighting" else np.arange(N)
    assert (treated == T[order]).all()
    assert c[treated].sum() == pytest.approx(1)
    assert c[~treated].sum() == pytest.approx(-1)
    assert (c[treated] >= -1e-9).all()
    assert (c[~treated] <= 1e-9).all()
    x = PEOPLE["x"][order]
    gap = abs(PEOPLE["x"][T].mean() - PEOPLE["x"][~T].mean())
    # Arms supposed to be alike may move a little together; they come close to each other first.
    assert abs(c @ x) < 0.4 * gap
    for arm, sign in ((treated, 1), (~treated, -1)):
        assert abs(sign * c[arm] @ x[arm] - target(estimand, PEOPLE["x"])) < 0.55 * gap
    assert passed["effect"].statistic == pytest.approx(c @ (Y[order] - LOW), abs=CUT)
    # Weighting allows for a bias of half a standard error.
    factor = 1.25 if method == "weighting" else 1.0
    linear_fields(passed, result, c, factor=factor)
    # The variance: squared coefficients times spreads that differ by arm, what covariates explain partly taken out.
    whole = factor * sum((c[arm] ** 2).sum() * Y[order][arm].var(ddof=1) for arm in (treated, ~treated))
    assert 0.5 * whole < passed["variance"].statistic < 1.4 * whole


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("method", ["matching", "weighting"])
def test_without_noise_it_is_the_weighted_sum(estimand, method):
    result = ask(PEOPLE, study(), method, "outcome", epsilon=SHARP, estimand=estimand)
    maker = {"matching": matched_effect, "weighting": weighted_effect}[method]
    effect = maker(public_rows(Table.attach(PEOPLE, study())), asked(method, estimand, None, SHARP))
    order = np.argsort(~T, kind="stable") if method == "weighting" else np.arange(N)
    assert result.estimate == pytest.approx(effect.coefficients @ Y[order], abs=1e-4)


def test_weighting_less_a_prediction(passed):
    """Outcomes less a public prediction, clamped to a range that does not start at 0."""
    guess = on_grid(-0.6 + 0.5 * PEOPLE["x"])
    data = PEOPLE | {"guess": guess}
    declared = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (-3, 5)),
        {"x": cv.Range(-1, 3), "guess": cv.Range(-3, 5)},
    )
    settings = cv.settings.Weighting(
        prediction="guess", residual_range=(-1, 3), variance_by="row", bias=Fraction(3, 4)
    )
    result = ask(data, declared, "weighting", "outcome", mechanism="laplace", settings=settings)
    given = asked("weighting", "ATE", settings)
    effect = weighted_effect(public_rows(Table.attach(data, declared)), given)
    order = np.argsort(~T, kind="stable")
    left = np.clip(Y - guess, -1, 3)[order]
    assert not np.allclose(left, (Y - guess)[order])  # some are clamped
    c = effect.coefficients
    assert passed["effect"].statistic == pytest.approx(c @ left, abs=CUT)
    factor = 1 + 0.75**2
    linear_fields(passed, result, c, width=4, factor=factor)
    first, second = effect.pairs
    share = c**2 / np.maximum(np.bincount(np.concatenate([first, second]), minlength=N), 1)
    expected = factor * (share[first] + share[second]) @ (left[first] - left[second]) ** 2 / 2
    assert passed["variance"].statistic == pytest.approx(expected, rel=1e-5)


LABELS = ("none", "low", "high")


def three_arms(n=600, seed=2):
    """Return people of three arms: one half in the reference, three and two in ten in the others."""
    data = people(n, seed)
    rng = np.random.default_rng(seed + 1)
    arm = rng.permutation(np.repeat([0, 1, 2], [n // 2, 3 * n // 10, n // 5]))
    y = data["y"] + np.array([0.0, 0.7, -0.9])[arm] + 0.4 * arm * rng.normal(size=n)
    return {"arm": np.array(LABELS)[arm], "y": on_grid(y), "x": data["x"], "site": data["site"]}


def arms_study():
    covariates = {"x": cv.Range(-1, 3), "site": cv.Categories(("a", "b", "c"))}
    return cv.Study(
        cv.Treatment("arm", arms=LABELS, reference="none"),
        cv.Outcome("y", (-3, 5)),
        covariates,
        assignment=cv.Trial(),
    )


def ask_arms(data, **extra):
    return cv.arms(
        data, arms_study(), protects="outcome", noise=cv.SeededNoise(4), **({"epsilon": 1} | extra)
    )


def test_means_of_several_arms(passed):
    data = three_arms()
    result = ask_arms(data, method="difference_in_means", mechanism="laplace")
    for code, (label, mean) in enumerate(zip(LABELS, result.means, strict=True)):
        own = data["y"][data["arm"] == label]
        n = len(own)
        released, variance = passed[f"mean of arm {code}"], passed[f"variance of arm {code}"]
        assert released.statistic == pytest.approx(own.mean() - LOW, abs=CLOSE)
        assert released.sensitivity == Fraction(WIDTH, n)
        assert variance.statistic == pytest.approx(own.var(ddof=1) / n, rel=1e-6)
        assert variance.sensitivity == Fraction(WIDTH, n) ** 2
        # All arms share one price: an outcome is in one arm only.
        assert released.amount + variance.amount == pytest.approx(1)
        known = mean.known.uncertainty
        assert mean.estimate == pytest.approx(LOW + released.value)
        assert known.noise.variance == pytest.approx(released.laplace)
        assert known.variance == variance.value
        assert known.variance_noise.variance == pytest.approx(variance.laplace)
        ends = np.repeat([0.0, WIDTH], [n // 2, n - n // 2])
        assert known.variance_cap == pytest.approx(ends.var(ddof=1) / n)
        assert mean.known.limits == (-3, 5)
        assert -3 <= mean.interval()[0] < mean.estimate < mean.interval()[1] <= 5
    reference, *others = result.means
    for mean, effect in zip(others, result.table, strict=True):
        assert effect.estimate == pytest.approx(mean.estimate - reference.estimate)
        one, other, both = mean.known.uncertainty, reference.known.uncertainty, effect.known.uncertainty
        assert both.variance == pytest.approx(one.variance + other.variance)
        assert both.variance_cap == pytest.approx(one.variance_cap + other.variance_cap)
        assert both.noise.variance == pytest.approx(one.noise.variance + other.noise.variance)
        assert both.variance_noise.variance == pytest.approx(
            one.variance_noise.variance + other.variance_noise.variance
        )
        assert effect.known.limits == (-8, 8)


@pytest.mark.parametrize("method", ["weighting", "matching"])
def test_adjusted_means_of_several_arms_estimate_everybodys_mean(passed, method):
    data = three_arms()
    result = ask_arms(data, method=method, mechanism="laplace")
    moved = ask_arms(data | {"y": on_grid(data["y"] * 0.5 + 0.5)}, method=method, epsilon=SHARP)
    sharp = ask_arms(data, method=method, epsilon=SHARP)
    for code, (label, _mean) in enumerate(zip(LABELS, result.means, strict=True)):
        own = data["y"][data["arm"] == label]
        released = passed[f"mean of arm {code}"]
        assert abs(sharp.means[code].estimate - own.mean()) < 0.2
        # Weights add up to one in every arm, so that means follow a change of scale and origin.
        assert moved.means[code].estimate == pytest.approx(0.5 * sharp.means[code].estimate + 0.5, abs=1e-4)
        known = sharp.means[code].known.uncertainty
        whole = own.var(ddof=1) / len(own)
        assert 0.5 * whole < known.variance < 2 * whole
        assert released.laplace > 0
    assert len(result.table) == 2
