"""Brute force: no change of an outcome moves a release of moments at outcome level further than claimed."""

import numpy as np
import pytest
from tests.unit.statistics.moments.fixed_outputs import FixedGate
from tests.unit.statistics.moments.small_records import NotingGate

import counterveil as cv
from counterveil.data import Table
from counterveil.privacy import Budget
from counterveil.statistics.moments.records import Records
from counterveil.statistics.moments.regression import Columns, RowPlan, outcome_plan, release_outcome_moments

STUDY = cv.Study("t", "y", (-1, 1), {"x": cv.Range(-1, 1)}, treated=1, control=0)
COLUMNS = Columns.of(STUDY, [], ["t:x"])
ROWS = {"x": [0.9, 0.1, -0.4, 0.5, -0.8, 0.3], "t": [1, 0, 1, 1, 0, 0], "y": [0.0, 0.3, -0.2, 0.1, -0.6, 0.4]}


def records(outcome):
    columns = ROWS | {"y": [outcome, *ROWS["y"][1:]]}
    return Records(Table.attach(columns, STUDY), COLUMNS.features)


def releases(outcome, budget, mechanism, beyond):
    """Return the gate with all that is released of one outcome and five fixed ones, earlier outputs held fixed.

    Counts of residuals say that `beyond` of them are beyond all windows.
    """
    design = RowPlan(6, COLUMNS, budget, mechanism)
    first = NotingGate()
    release_outcome_moments(first, records(0.3), design)
    held = dict(first.values)
    for name in ("first reach", "reach"):
        held[name] = [*([0.0] * (len(held[name]) - 1)), beyond]
    gate = FixedGate(outcome_plan(design), held)
    return gate, release_outcome_moments(gate, records(outcome), design)


@pytest.mark.parametrize("beyond", [-1e6, 1e6])
@pytest.mark.parametrize(("budget", "mechanism"), [(Budget(2), "staircase"), (Budget(2, "1e-6"), "gaussian")])
def test_no_change_of_an_outcome_exceeds_the_claim(budget, mechanism, beyond):
    gates, found = zip(
        *(releases(outcome, budget, mechanism, beyond) for outcome in np.linspace(-1, 1, 9)), strict=True
    )
    # Residuals are clipped, or outcomes are taken as they are: never beyond their range.
    assert all((one.rows.clip < 1) if beyond < 0 else (one.rows.clip == 1) for one in found)
    assert all(one.rows.prediction.any() == (beyond < 0) for one in found)
    assert set(gates[0].given) == {"centre", "first reach", "first moments", "reach", "moments"}
    for name, sensitivity in gates[0].sensitivity.items():
        assert all(gate.sensitivity[name] == sensitivity for gate in gates)
        values = np.array([[float(value) for value in gate.given[name]] for gate in gates])
        largest = max(np.linalg.norm(values - one, ord=gates[0].norm[name], axis=1).max() for one in values)
        assert 0.4 * float(sensitivity) < largest <= float(sensitivity) * (1 + 1e-12)


@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_with_a_large_budget_it_is_the_regression_of_the_rows(delta):
    rng = np.random.default_rng(0)
    x, t = rng.uniform(-1, 1, (2, 3000)), rng.integers(0, 2, 3000)
    y = np.clip(1 + x[0] - 0.5 * x[1] + 0.4 * t + rng.normal(0, 0.5, 3000), -3, 5)
    data = {"a": x[0], "b": x[1] + 0.5 * x[0], "t": t, "y": y}
    study = cv.Study("t", "y", (-3, 5), {"a": cv.Range(-1, 1), "b": cv.Range(-2, 2)})
    found = cv.moments(
        data,
        study,
        protects="outcome",
        epsilon=10**6,
        delta=delta,
        terms=["t:a"],
        noise=cv.SeededNoise(0),
    )
    fit = found.regress("y ~ t*a + b")
    columns = np.column_stack((np.ones(3000), t, data["a"], t * data["a"], data["b"]))
    exact = np.linalg.lstsq(columns, y, rcond=None)[0]
    assert fit.terms == ("Intercept", "t", "a", "t:a", "b")
    errors = np.array([one.std_error.sampling for one in fit.coefficients])
    assert np.all(np.abs(np.array(list(fit.params)) - exact) < 0.02 * errors)
    # Regressions among public columns have no noise at all.
    assert not found.regress("b ~ a + t").fit.noise.any()
    assert found.guarantee.unit.value == "outcome"


@pytest.mark.parametrize("delta", ["1e-6", 0])
def test_rare_and_skewed_outcomes_have_no_more_noise_than_their_range_calls_for(delta):
    rng = np.random.default_rng(2)
    n = 2000
    t, x = rng.integers(0, 2, n), rng.random(n)
    study = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)}, randomised=True)
    shapes = {
        "common": rng.random(n) < 0.5,
        "rare": rng.random(n) < 0.01,
        "skewed": np.clip(rng.gamma(1, 0.08, n), 0, 1),
    }
    noise = {
        name: [
            cv.moments(
                {"t": t, "x": x, "y": y.astype(float)},
                study,
                protects="outcome",
                epsilon=1,
                delta=delta,
                noise=cv.SeededNoise(seed),
            )
            .regress("y ~ t + x")
            .coefficient("t")
            .std_error.noise
            for seed in range(8)
        ]
        for name, y in shapes.items()
    }
    # Outcomes at both ends of the range have all the noise that it calls for.
    assert max(map(max, noise.values())) <= max(noise["common"]) * (1 + 1e-9)


def test_no_coefficient_is_beyond_what_outcomes_in_their_range_can_make():
    rng = np.random.default_rng(3)
    n = 200
    t, x = rng.integers(0, 2, n), rng.random(n)
    study = cv.Study("t", "y", (10, 12), {"x": cv.Range(0, 1)}, randomised=True)
    columns = np.column_stack((np.ones(n), t, x))
    # The outcomes that make each coefficient largest lie at the ends of the range.
    weights = np.linalg.pinv(columns)
    largest = np.abs(weights).sum(axis=1)
    cut = 0
    for seed in range(10):
        noise = cv.SeededNoise(seed)
        data = {"t": t, "x": x, "y": 10.0 + 2 * (weights[1] > 0)}
        found = cv.moments(data, study, protects="outcome", epsilon="1/100", delta="1e-6", noise=noise)
        fit = found.regress("y ~ t + x")
        matrix = np.linalg.inv(columns.T @ columns / n)
        for place, name in ((1, "t"), (2, "x")):
            most = float(np.sqrt(matrix[place, place]))
            assert largest[place] <= most * (1 + 1e-9)
            one = fit.coefficient(name)
            assert max(map(abs, (one.estimate, *one.interval()))) <= most * 1.3
            cut += max(map(abs, one.interval())) < abs(one.estimate) + one.std_error.total
    assert cut > 0
    assert abs(fit.coefficient("Intercept").estimate) > 2
