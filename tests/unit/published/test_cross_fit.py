"""Cross-fitting as published and as proved: its scores by brute force, its interval, what it says and refuses."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.plain_questions import question

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import feature_map
from counterveil.datasets import synth
from counterveil.errors import ClaimError, ParameterError, StudyError
from counterveil.estimators.moments.adjustment_budget import Design
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import MisspecifiedModels
from counterveil.published.doubly_robust import (
    CrossFit,
    ScoreModels,
    cross_fit_plan,
    influence,
    largest_score,
    release,
    whole_parts,
)
from counterveil.session import Kind, Released, ReleasedVector, SeededNoise

# Outcomes vary about alike in both halves: where one seems to have lost its variance, residuals are not clipped.
STUDY = cv.Study(
    cv.Treatment("t", control=0), cv.Outcome("y", (-1, 1)), {"x": cv.Range(-1, 1), "b": cv.Binary()}
)
REST = [(0.1, 0, 0, -0.5), (0.9, 1, 1, 0.6), (-0.6, 0, 0, 0.1), (0.4, 1, 1, -0.2), (-0.2, 0, 1, 0.9)]
REST = [*REST, (0.7, 1, 0, -0.8), (-1.0, 1, 0, -0.4)]
PLACE = 2
RECORDS = list(product((-1.0, 0.3, 1.0), (0, 1), (0, 1), (-1.0, 1.0)))


class NotingGate:
    """Notes what it is asked to release, adds no noise, and answers what is `fixed` in place of what it is given.

    Neighbours are compared given the same outputs, as the proof does.
    """

    def __init__(self, plan, fixed):
        self.plan, self.fixed, self.values, self.sensitivity = plan, fixed, {}, {}

    def release_vector(self, name, values, sensitivity):
        values = values() if callable(values) else values
        self.values[name], self.sensitivity[name] = [float(value) for value in values], float(sensitivity)
        return ReleasedVector(self.fixed.get(name, tuple(values)), 1e-4)

    release_cells = release_vector

    def release(self, name, value, sensitivity):
        self.release_vector(name, [value], sensitivity)
        return Released(value, self.plan.noise(name, sensitivity))


def proved(estimand, budget=None):
    budget = budget or cv.Budget(2)
    words = {"estimand": estimand, "epsilon": budget.epsilon, "delta": budget.delta}
    return question("record", "published.cross_fit_proved", **words)


def handed_over(record, estimand, fixed, budget=None, penalty=0.1):
    """Return the gate after the estimator's own chain on REST with this record among them."""
    rows = [*REST[:PLACE], record, *REST[PLACE:]]
    x, b, t, y = zip(*rows, strict=True)
    table = Table.attach({"x": list(x), "b": list(b), "t": list(t), "y": list(y)}, STUDY)
    asked = proved(estimand, budget)
    plan = cross_fit_plan(asked, False)
    half = Design(len(rows) // 2, 2, asked.budget, asked.mechanism)
    gate = NotingGate(plan, fixed)
    design = CrossFit(feature_map(STUDY, 1), half, plan, penalty, None)
    release(gate, table, design, Estimand(estimand))
    return gate


def known_outputs(estimand, budget=None, penalty=0.1):
    """Return what the chain releases without noise for the first record: outputs to hold fixed."""
    values = handed_over(RECORDS[0], estimand, {}, budget, penalty).values
    return {name: tuple(map(Fraction, own)) for name, own in values.items()}


def own_half():
    """Return the half, 1 or 2, that the changing record is in."""
    rows = len(REST) + 1
    return 1 if PLACE in two_parts(rows, rows // 2)[0] else 2


XI = 0.2
ENDS = (-1.0, -0.3, 1.0)


def one_score(estimand, y, line, effect, logit, t):
    """Return the score of a row under models that predict line -+ effect/2 and this logit."""
    models = ScoreModels(0.0, 0.5, np.array([line, 0.0]), effect, np.array([1.0]), 0.0, None, XI)
    u = np.array([[1.0, logit]])
    return float(models.score(estimand, u, np.array([float(t)]), np.array([y]))[0])


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
def test_no_score_is_larger_than_claimed_and_the_bound_is_attained(estimand):
    # Lines and effects far outside the range: predictions are clipped, each on its own.
    cases = product(
        ENDS, (-5.0, -1.0, 0.2, 1.0, 5.0), (-8.0, -1.0, 0.0, 2.0, 8.0), (-9.0, -1.0, 0.5, 9.0), (0, 1)
    )
    sizes = [abs(one_score(estimand, *case)) for case in cases]
    claim = float(largest_score(Fraction(2), Fraction(1, 5), estimand))
    assert claim == pytest.approx(10.0 if estimand == "ATE" else 8.0)
    assert max(sizes) == pytest.approx(claim, rel=1e-12)


def test_parts_stay_inside_their_bound_whatever_is_divided():
    values = np.array([-np.inf, -1e300, -1.0, -0.5, 0.0, 1 / 3, 1.0, 1e9, np.inf, np.nan])
    with np.errstate(invalid="raise", over="ignore"):
        parts = whole_parts(values, 0.5)
    assert parts[-1] == 0
    assert abs(parts).max() == 1 << 24
    assert parts[5] == int(2 / 3 * (1 << 24))


@pytest.mark.parametrize("estimand", ["ATE", "ATT"])
def test_no_replacement_moves_a_release_further_than_claimed_and_the_other_half_not_at_all(estimand):
    fixed, own = known_outputs(estimand), own_half()
    gates = [handed_over(record, estimand, fixed) for record in RECORDS]
    assert len(gates[0].values) == (9 if estimand == "ATT" else 8)
    largest = {}
    for name, sensitivity in gates[0].sensitivity.items():
        values = np.array([gate.values[name] for gate in gates])
        moved = max(
            np.linalg.norm(values - value, 1 if name == "norms" else 2, axis=1).max() for value in values
        )
        assert moved <= sensitivity * (1 + 1e-12), name
        largest[name] = moved / sensitivity
    other = 3 - own
    assert largest[f"weights {other}"] == largest[f"gram {other}"] == 0
    assert min(largest[f"weights {own}"], largest[f"gram {own}"]) > 0.1
    assert largest["effect"] > 0.5


def test_both_halves_are_charged_once():
    plan = cross_fit_plan(proved("ATE"), False)
    assert sum(amount for _, amount in plan.amounts) == plan.budget.epsilon
    assert plan.amount("gram 1", Kind.VECTOR) == plan.amount("gram 2", Kind.VECTOR)
    names = [name for name, _ in plan.amounts]
    assert names.count("gram") == names.count("weights") == 1
    assert "gram 1" not in names


DATA = synth(seed=30_001, n=12_000, covariates=5, outcome_range=(0, 3))


def ask(data=DATA.frame, study=DATA.study, **extra):
    given = {"epsilon": 2, "delta": "1e-6", "noise": SeededNoise(3)} | extra
    return cv.published.cross_fit_proved(data, study, **given)


@pytest.mark.parametrize("estimand", ["ATE", "ATT", "ATC"])
@pytest.mark.parametrize(("epsilon", "delta"), [(2, "1e-6"), (8, 0)])
def test_is_near_the_truth_and_covers_it(estimand, epsilon, delta):
    result = ask(estimand=estimand, epsilon=epsilon, delta=delta)
    low, high = result.interval()
    assert low < 0.5 < high
    assert abs(result.estimate - 0.5) < 3 * result.std_error.total
    assert high - low < 0.015
    assert result.estimand.value == estimand
    assert result.interval_target is None


def test_a_declared_propensity_needs_no_model_and_leaves_no_product():
    rng = np.random.default_rng(5)
    frame = dict(DATA.frame)
    treated = rng.random(12_000) < 0.5
    frame["y"] = np.asarray(frame["y"]) + 0.5 * (treated.astype(float) - frame["treated"])
    frame["treated"] = treated.astype(int)
    study = cv.Study(
        cv.Treatment("treated", control=0),
        cv.Outcome("y", (0, 3)),
        dict(DATA.study.covariates),
        assignment=cv.Trial(share="1/2"),
    )
    result = ask(frame, study)
    low, high = result.interval()
    assert low < 0.5 < high
    assert result.uncertainty.extra == result.uncertainty.bias == 0
    assert not isinstance(result.not_covered[0], MisspecifiedModels)
    treated_only = ask(frame, study, estimand="ATT")
    assert abs(treated_only.estimate - 0.5) < 4 * treated_only.std_error.total


def test_the_interval_covers_where_categories_confound():
    rng = np.random.default_rng(1)
    n = 8000
    site = rng.integers(0, 3, n)
    t = rng.random(n) < np.array([0.3, 0.5, 0.7])[site]
    y = 0.2 * site + 0.5 * t + 0.1 * rng.random(n)
    study = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (0, 2)), {"site": cv.Categories([0, 1, 2])}
    )
    result = ask({"site": site, "t": t.astype(int), "y": y}, study)
    low, high = result.interval()
    assert low < 0.5 < high


def test_refuses_before_it_spends():
    with cv.Session(synth(n=2000).frame, synth(n=2000).study, budget=cv.Budget(4, "1e-5")) as session:
        with pytest.raises(ParameterError, match="CV-P431"):
            cv.published.cross_fit_proved(session, epsilon=1, delta="1e-6")
        assert session.remaining().epsilon == 4
    bare = cv.Study(cv.Treatment("treated", control=0), cv.Outcome("y", (0, 5)))
    with pytest.raises(StudyError, match="CV-S051"):
        ask(study=bare)


@pytest.mark.parametrize("method", ["cross_fit", "ipw"])
def test_the_core_names_the_place_of_a_published_form(method):
    with pytest.raises(ParameterError, match=f"cv.published.{method}_proved") as refused:
        cv.ate(DATA.frame, DATA.study, protects="record", epsilon=1, method=method)
    assert refused.value.code == "CV-P027"


def published_ask(**extra):
    given = {"epsilon": 2, "delta": "1e-6", "accept": "unproved", "noise": SeededNoise(3)} | extra
    return cv.published.cross_fit(DATA.frame, DATA.study, **given)


def test_refuses_before_it_spends_of_published():
    given = {"epsilon": 1, "delta": "1e-6", "accept": "unproved"}
    wrong = {"CV-P432": {"delta": 0}, "CV-P433": {"estimand": "ATT"}}
    with cv.Session(synth(n=2000).frame, synth(n=2000).study, budget=cv.Budget(4, "1e-5")) as session:
        for code, changed in wrong.items():
            with pytest.raises(ParameterError, match=code):
                cv.published.cross_fit(session, **(given | changed))
        with pytest.raises(ClaimError, match="CV-C001"):
            cv.published.cross_fit(session, **(given | {"accept": None}))
        assert session.remaining().epsilon == 4


def test_the_published_scale_is_that_of_the_influence_function():
    table = Table.attach(DATA.frame, DATA.study)
    found = influence(table, 0.1)
    assert abs(found.effect - 0.5) < 0.01
    # Residuals reach about the range, the least propensity is near the clip.
    assert 3 < found.largest <= 3 / 0.1 + 1
    result = published_ask()
    expected = 5 * np.sqrt(2 * np.log(12_000) * np.log(2 / 0.5e-6)) / (1 * 12_000) * found.largest
    assert result.details["effect_noise_sd"] == pytest.approx(expected)
    assert result.uncertainty.noise.variance == pytest.approx(expected**2, rel=1e-6)
    factor = expected / found.largest
    assert found.largest_of_variance == pytest.approx(found.largest**2 - found.variance)
    noise_of_variance = factor * found.largest_of_variance
    assert result.details["variance_noise_sd"] == pytest.approx(noise_of_variance)
