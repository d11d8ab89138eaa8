"""The published forms of effects at queries: formulas, options, refusals, and what the ledger is charged."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

import counterveil as cv
from counterveil.datasets import dataset_1
from counterveil.errors import ClaimError, ParameterError
from counterveil.privacy import Budget, Proof
from counterveil.published import InfluenceSettings, KernelSettings
from counterveil.published.cate import (
    Kernel,
    PublishedFunction,
    StageModels,
    StageRows,
    fitted_kernel,
    loss_at,
    published_scale,
    release,
)
from counterveil.session import Gate, Kind, Plan, SeededNoise

DATA = dataset_1(400, 5)
PEOPLE = {"x1": np.array([0.1, 0.5, 0.9]), "x2": np.array([0.5, 0.5, 0.2])}
QUICK = {"outcome": "linear", "propensity": "logistic"}
KNOWN = StageModels(lambda x: 0.3 + 0.4 * x[:, 0], lambda x: x[:, 1].copy(), lambda x: x[:, 1] + 2 * x[:, 0])


FORMS = {"influence": cv.published.cate_finite, "kernel": cv.published.cate_functional}


def ask(form, settings=None, **changed):
    given = {
        "epsilon": 1,
        "delta": 1e-6,
        "accept": "unproved",
        "queries": PEOPLE,
        "noise": SeededNoise(1),
    } | changed
    return FORMS[form](dict(DATA.frame), DATA.study, settings=settings, **given)


def rows_of(count=300, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.uniform(size=(count, 2))
    treated = generator.uniform(size=count) < KNOWN.propensity(x)
    y = np.where(treated, KNOWN.treated(x), KNOWN.control(x)) + generator.uniform(-1, 1, count)
    return StageRows(x, treated, y)


# The loss


def test_the_r_learner_is_the_regression_of_residuals_on_residuals():
    rows = rows_of()
    loss = loss_at(KNOWN, "R", rows.x, rows.treated)
    e = KNOWN.propensity(rows.x)
    mean = e * KNOWN.treated(rows.x) + (1 - e) * KNOWN.control(rows.x)
    assert loss.rho == pytest.approx((rows.treated - e) ** 2)
    assert loss.phi(rows.y) == pytest.approx((rows.y - mean) / (rows.treated - e))
    assert loss.weight == pytest.approx(e * (1 - e))


def test_the_dr_learner_has_the_doubly_robust_score():
    rows = rows_of()
    loss = loss_at(KNOWN, "DR", rows.x, rows.treated)
    e, one, zero = (f(rows.x) for f in (KNOWN.propensity, KNOWN.treated, KNOWN.control))
    score = one - zero + np.where(rows.treated, (rows.y - one) / e, -(rows.y - zero) / (1 - e))
    assert loss.phi(rows.y) == pytest.approx(score)
    assert (loss.rho == 1).all()


# The kernel


def test_the_fit_is_the_minimiser_of_its_objective():
    rows, kernel = rows_of(40), Kernel.normalised(0.5, 2)
    weights = np.random.default_rng(1).uniform(0.1, 1, 40)
    fitted = fitted_kernel(kernel, rows.x, rows.y, weights, 0.05, None)
    full = kernel.height * kernel.unit(rows.x, rows.x)
    best = np.linalg.solve(full + 1e-12 * np.eye(40), fitted(rows.x))

    def objective(coefficients):
        left = rows.y - full @ coefficients
        return float(np.mean(weights * left**2) + 0.05 * coefficients @ full @ coefficients)

    for seed in range(5):
        step = 1e-3 * np.random.default_rng(seed).standard_normal(40)
        assert objective(best) <= objective(best + step)
    some = fitted_kernel(kernel, rows.x, rows.y, weights, 0.05, rows.x)
    assert some(rows.x) == pytest.approx(fitted(rows.x), abs=1e-3)


# The process


def answers(algorithm, effects, points, seed, scale=0.1):
    kernel = Kernel(0.4, points.shape[1], 1.0)
    form = PublishedFunction(kernel, scale, 1.0)
    plan = Plan(
        Budget(1, Fraction(1, 10**5)), "gaussian", (("answers", Fraction(1, 4)),), (("answers", Kind.VECTOR),)
    )
    return release(Gate(plan, SeededNoise(seed)), plan, form, effects, points, algorithm)


@pytest.mark.parametrize("algorithm", ["batch", "iterative", "iterative_printed"])
def test_law_of_the_second_answer(algorithm):
    points, effects = np.array([[0.2], [0.5]]), np.array([1.0, -3.0])
    drawn = np.array([answers(algorithm, effects, points, seed) for seed in range(400, 800)])
    correlation = float(np.exp(-(0.3**2) / (2 * 0.4**2)))
    assert drawn[:, 0].mean() == pytest.approx(1.0, abs=0.02)
    assert drawn[:, 0].std() == pytest.approx(0.1, rel=0.12)
    if algorithm == "iterative_printed":
        # As printed it never reads the effect at the second point: it is drawn from the first answer.
        assert drawn[:, 1].mean() == pytest.approx(correlation, abs=0.1)
        assert drawn[:, 1].std() == pytest.approx(
            sqrt(1 - correlation**2 + (0.1 * correlation) ** 2), rel=0.12
        )
    else:
        assert drawn[:, 1].mean() == pytest.approx(-3.0, abs=0.02)
        assert drawn[:, 1].std() == pytest.approx(0.1, rel=0.12)
        assert np.corrcoef(drawn.T)[0, 1] == pytest.approx(correlation, abs=0.1)


@pytest.mark.parametrize("algorithm", ["batch", "iterative"])
def test_a_query_asked_twice_gets_one_answer(algorithm):
    points = np.array([[0.2], [0.5], [0.2]])
    first, _, again = answers(algorithm, np.array([1.0, 2.0, 1.0]), points, 3)
    assert first == again


# The front door


@pytest.mark.parametrize("learner", ["R", "DR"])
@pytest.mark.parametrize("effect", ["linear", "forest"])
def test_finite_queries_answer_and_say_that_the_claim_is_refuted(learner, effect):
    settings = InfluenceSettings(learner=learner, effect=effect, points=200, starts=2, **QUICK)
    found = ask("influence", settings, noise=None)
    assert found.guarantee.proof is Proof.REFUTED
    assert "NO GUARANTEE" in str(found)
    assert "NO VALID INTERVAL" in str(found)
    assert len(found.effect()) == 3
    assert np.isfinite(found.effect()).all()
    assert found.spent == Budget(1, Fraction(1, 10**6))
    # The scale of the noise follows the rows: it is not told, and no interval is given.
    assert np.isinf(found.std_error).all()
    assert cv.results.CateAnswers.from_dict(found.to_dict()) == found


class Diverged:
    """A learner whose predictions are finite, and whose differences and products are not."""

    def fit(self, x, y, sample_weight=None):
        return self

    def predict(self, x):
        return np.where(x[:, 0] > 0.5, 1.7e308, -1.7e308)


class Broken:
    def fit(self, x, y, sample_weight=None):
        raise ValueError(f"the first outcome is {y[0]}")


@pytest.mark.parametrize("learner", [Diverged, Broken])
@pytest.mark.parametrize("method", ["influence", "kernel"])
def test_learners_that_fail_or_diverge_say_nothing_of_the_rows(method, learner, monkeypatch):
    """What is computed from them stays finite: a fault while noise is drawn would depend on private rows."""
    monkeypatch.setattr("counterveil.published.cate._named_regressor", lambda *_: learner())
    own = InfluenceSettings(points=200, starts=2) if method == "influence" else KernelSettings()
    assert np.isfinite(ask(method, replace(own, propensity="logistic")).effect()).all()


@pytest.mark.parametrize("algorithm", ["batch", "iterative", "iterative_printed"])
def test_functional_queries(algorithm):
    found = ask(
        "kernel", KernelSettings(bandwidth=0.5, penalty_meaning="alpha", algorithm=algorithm, **QUICK)
    )
    assert len(found.effect()) == 3
    assert "kernel regression" in found.method
    if algorithm == "iterative_printed":
        assert np.isinf(found.std_error).all()
    else:
        scale = published_scale(Kernel.normalised(0.5, 2), 8.5, 1 / 200, 200, 1.0, 1e-6)
        height = Kernel.normalised(0.5, 2).height
        assert found.std_error == pytest.approx(scale * sqrt(height), rel=1e-6)


def test_the_ledger_is_charged_the_claim_and_a_repeat_costs_nothing(tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    with cv.open_ledger(str(ledger), create=True) as opened:
        opened.register("data", cv.Budget(2, 1e-5), access_policy=cv.drafting.AccessPolicy(unproved=True))
    settings = InfluenceSettings(effect="linear", points=200, starts=2, **QUICK)
    first, again = (
        ask("influence", settings, noise=None, ledger=str(ledger), request_id="one") for _ in range(2)
    )
    assert first.estimates == again.estimates
    with cv.open_ledger(str(ledger)) as opened:
        assert float(opened.account("data").spent.epsilon) == pytest.approx(1, rel=0.01)


# Refusals


def test_acceptance_queries_and_delta_are_asked_for_before_anything_is_spent():
    with pytest.raises(ClaimError, match="CV-C001"):
        ask("influence", accept=None)
    for changed, code in (({"queries": None}, "CV-P563"), ({"delta": 0}, "CV-P564")):
        with pytest.raises(ParameterError, match=code):
            ask("kernel", **changed)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: InfluenceSettings(learner="T"), "CV-P025"),
        (lambda: InfluenceSettings(points=1), "CV-P025"),
        (lambda: KernelSettings(bandwidth=0), "CV-P025"),
        (lambda: KernelSettings(penalty_meaning="both"), "CV-P025"),
        (lambda: InfluenceSettings(effect="boosting"), "CV-P025"),
    ],
)
def test_settings_out_of_range(make, code):
    with pytest.raises(ParameterError, match=code):
        make()
