"""Contracts of inverse probability weighting: declared and fitted propensities, both kinds of noise."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.contract.trials import ESTIMANDS, LOW, SHARP, STEP, WIDTH, people, study

import counterveil as cv
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.published import weighting as proved_weighting

STEPS = 2**24
TRIAL = people(700, 6, confounded=False)
PEOPLE = people(1200, 7)
PURE = {"epsilon": 3}
NORMAL = {"epsilon": 3, "delta": 1e-6}


def ask(monkeypatch, data, declared, centred, **asked):
    """Return the answer of the proved form, with outcomes centred at released means or at the middle."""
    monkeypatch.setattr(proved_weighting, "centring_pays", lambda *_: centred)
    if "delta" not in asked:
        # Laplace noise, whose variance is known in a line.
        monkeypatch.setattr("counterveil.results.question.choose_mechanism", lambda *_: "laplace")
    return cv.published.ipw_proved(data, declared, noise=cv.SeededNoise(1), **asked)


def weights_of(estimand, scores, treated):
    one = {"ATE": 1 / scores, "ATT": np.ones_like(scores), "ATC": (1 - scores) / scores}[estimand]
    other = {"ATE": 1 / (1 - scores), "ATT": scores / (1 - scores), "ATC": np.ones_like(scores)}[estimand]
    return np.where(treated, one, other)


def sums_of(estimand, data, scores, centres, ends):
    """Return the scale, the sums of u and u^2 and the signed parts, u = +-h (y - c)/scale."""
    treated, y = data["t"] == 1, (data["y"] - LOW) / STEP
    low, high = ends
    largest = {
        "ATE": (1 / low, 1 / (1 - high)),
        "ATT": (1.0, high / (1 - high)),
        "ATC": ((1 - low) / low, 1.0),
    }[estimand]
    scale = max(h * max(c, STEPS - c) for h, c in zip(largest, centres, strict=True))
    off = np.where(treated, y - centres[0], centres[1] - y)
    u = weights_of(estimand, np.clip(scores, low, high), treated) * off / scale
    assert abs(u).max() <= 1 + 1e-9
    return scale, u.sum(), (u**2).sum()


def fields(passed, result, estimand, scale, centres, rows, size, count_variance, pure):
    """Assert estimate and uncertainty from the released sums and the documented formulas."""
    if pure:
        effect, squares = passed["effect"], passed["squares"]
        total, square = effect.value, squares.value
        noise, square_noise = effect.laplace, squares.laplace
        assert (effect.sensitivity, squares.sensitivity) == (2, 1)
    else:
        moments = passed["moments"]
        total, square = moments.values[0], moments.values[1] / 1.665
        noise, square_noise = moments.normal, moments.normal / 1.665**2
    factor = scale * STEP / size
    beyond = factor * total
    known = result.uncertainty
    assert result.estimate == pytest.approx((centres[0] - centres[1]) * STEP + beyond, rel=1e-4)
    assert known.noise.variance == pytest.approx(factor**2 * noise, rel=1e-4)
    variance = factor**2 * (square - (total**2 - noise) / rows)
    assert known.variance == pytest.approx(variance, rel=1e-4)
    assert known.variance_noise.variance == pytest.approx(factor**4 * square_noise, rel=1e-4)
    assert known.variance_cap == pytest.approx(factor**2 * rows, rel=1e-4)
    assert known.extra == pytest.approx((beyond / size) ** 2 * count_variance, rel=1e-3)
    assert known.bias == 0


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("pure", [True, False])
def test_declared_propensity_around_the_middle(monkeypatch, passed, estimand, pure):
    declared = study(randomised=True, treated_share=Fraction(1, 5))
    budget = PURE if pure else NORMAL
    result = ask(monkeypatch, TRIAL, declared, False, estimand=estimand, **budget)
    centres, rows = (STEPS / 2, STEPS / 2), 700
    scale, total, squares = sums_of(estimand, TRIAL, np.full(rows, 0.2), centres, (0.2, 0.2))
    found = [passed["effect"].statistic, passed["squares"].statistic] if pure else passed["moments"].exact
    assert found[0] == pytest.approx(total, abs=1e-3)
    assert found[1] == pytest.approx(squares if pure else 1.665 * squares, abs=1e-3)
    size = rows * {"ATE": 1.0, "ATT": 0.2, "ATC": 0.8}[estimand]
    fields(passed, result, estimand, scale, centres, rows, size, 0.0, pure)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_declared_propensity_around_released_means(monkeypatch, passed, estimand):
    declared = study(randomised=True, treated_share=Fraction(1, 5))
    result = ask(monkeypatch, TRIAL, declared, True, estimand=estimand, **NORMAL)
    one, other = TRIAL["y"][TRIAL["t"] == 1], TRIAL["y"][TRIAL["t"] == 0]
    nuisances = passed["nuisances"]
    exact = [((one - 1) / 4).sum(), ((other - 1) / 4).sum(), 1.4 * len(one)]
    assert_allclose(2 * nuisances.exact, exact, atol=1e-4)
    assert nuisances.sensitivity == 1
    centres = centres_of(2 * nuisances.values, 2 * sqrt(nuisances.normal), 700)
    scale, total, _ = sums_of(estimand, TRIAL, np.full(700, 0.2), centres, (0.2, 0.2))
    assert passed["moments"].exact[0] == pytest.approx(total, abs=1e-3)
    size = 700 * {"ATE": 1.0, "ATT": 0.2, "ATC": 0.8}[estimand]
    fields(passed, result, estimand, scale, centres, 700, size, 0.0, pure=False)


def centres_of(totals, sd, rows):
    """Return the arms' means in steps, drawn towards the middle by the factor size^2/(size^2 + sd^2)."""
    least = max(0.02 * rows, 1.0)
    count = min(max(totals[2] / 1.4, least), rows - least)
    means = [
        np.clip(total * size / (size**2 + sd**2), -1, 1)
        for total, size in ((totals[0], count), (totals[1], rows - count))
    ]
    return tuple(float(round((mean + 1) / 2 * STEPS)) for mean in means)


def features_of(data):
    """Return x scaled to width one around its middle, and the labels less a third each."""
    labels = np.array([[label == one for label in "abc"] for one in data["site"]]) - 1 / 3
    return np.column_stack([(data["x"] + 1) / 4 - 0.5, labels])


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("pure", [True, False])
def test_fitted_propensity(monkeypatch, passed, estimand, pure):
    penalty, rows = 0.05, 1200
    monkeypatch.setattr(proved_weighting, "chosen_penalty", lambda *_: penalty)
    monkeypatch.setattr(proved_weighting, "chosen_clip", lambda *_: 0.1)
    monkeypatch.setattr(proved_weighting, "shrunk", lambda weights, *_: weights)
    budget = PURE if pure else NORMAL
    result = ask(monkeypatch, PEOPLE, study(), not pure, estimand=estimand, **budget)
    z = features_of(PEOPLE)
    nuisances = passed["nuisances"]
    assert nuisances.sensitivity == 1
    # The fitted weights are where the gradient of the penalised log loss is nothing.
    length = 1.0 if pure else 12 / 13
    reach = sqrt(1.25 + 1)
    unit = 2 * reach / (rows * penalty) / length
    fitted = nuisances.exact[:5] * unit
    rest = logistic(z @ fitted[:-1] + fitted[-1]) - (PEOPLE["t"] == 1)
    gradient = np.append(z.T @ rest, rest.sum()) / rows + penalty * fitted
    assert_allclose(gradient, 0, atol=1e-5)
    released = nuisances.values[:5] * unit
    scores = logistic(z @ released[:-1] + released[-1])
    index = released[1:4] - released[1:4].mean()
    ends = released[-1] + np.array([-1, 1]) * abs(released[0]) / 2 + [index.min(), index.max()]
    low, high = np.clip(logistic(ends), 0.1, 0.9)
    centres = (STEPS / 2, STEPS / 2)
    if not pure:
        unit = 2 / (5 / 13)
        centres = centres_of(nuisances.values[-3:] * unit, unit * sqrt(nuisances.normal), rows)
    scale, total, squares = sums_of(estimand, PEOPLE, scores, centres, (low, high))
    found = [passed["effect"].statistic, passed["squares"].statistic] if pure else passed["moments"].exact
    assert found[0] == pytest.approx(total, abs=2e-2)
    assert found[1] == pytest.approx(squares if pure else 1.665 * squares, abs=2e-2)
    size, count_variance = rows, 0.0
    if estimand != "ATE":
        treated = (PEOPLE["t"] == 1).sum()
        assert (passed["count"].statistic if pure else 2 * found[2]) == treated
        released = passed["count"].value if pure else 2 * passed["moments"].values[2]
        count_variance = passed["count"].laplace if pure else 4 * passed["moments"].normal
        size = released if estimand == "ATT" else rows - released
        joint = passed["moments"].sensitivity if not pure else 0
        assert pure or float(joint) == pytest.approx(sqrt(4.25))
    fields(passed, result, estimand, scale, centres, rows, size, count_variance, pure)
    # The model has its share of the budget, the sums have the rest.
    amounts = {name: float(one.amount) for name, one in passed.items()}
    spent = sum(amounts.values()) if pure else sqrt(sum(one**2 for one in amounts.values()))
    whole = 3 if pure else float(mu_of(Fraction(3), Fraction("1e-6")))
    assert spent == pytest.approx(whole)
    assert amounts["nuisances"] == pytest.approx(whole / (2 if pure else sqrt(2)))


def logistic(v):
    return 1 / (1 + np.exp(-v))


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_without_noise_it_is_the_weighted_comparison(monkeypatch, estimand):
    declared = study(randomised=True, treated_share=Fraction(1, 5))
    result = ask(monkeypatch, TRIAL, declared, False, epsilon=SHARP, estimand=estimand)
    t, y = TRIAL["t"] == 1, TRIAL["y"] - (LOW + WIDTH / 2)
    h = weights_of(estimand, np.full(700, 0.2), t)
    size = 700 * {"ATE": 1.0, "ATT": 0.2, "ATC": 0.8}[estimand]
    assert result.estimate == pytest.approx((np.where(t, h, -h) @ y) / size, abs=1e-4)
