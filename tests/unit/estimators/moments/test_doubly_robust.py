"""The doubly robust effect of private records: through the front door, its plan, its releases and their noise."""

import json
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from tests.thinned import thinned, thinned_rows
from tests.unit.estimators.moments.small_records import records

import counterveil as cv
from counterveil.data.features import counted_features
from counterveil.datasets import synth
from counterveil.errors import ParameterError, StudyError
from counterveil.estimators.moments.adjustment_budget import (
    Design,
    affordable,
    fewest_rows,
    gram_noise_norm,
    split,
)
from counterveil.estimators.moments.nuisance_models import first_models, refined
from counterveil.numerics.denoising import floored
from counterveil.numerics.products import Standard
from counterveil.privacy import Budget
from counterveil.privacy.caveats import ConfoundingBeyond, NotAdjusted
from counterveil.rows.moments.feature_moments import release_moments
from counterveil.rows.moments.joint_gram import Scaling, SecondMoments, release_gram
from counterveil.rows.moments.linear_models import LinearModels
from counterveil.rows.moments.residual_products import ResidualProducts, release_residuals
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT
from counterveil.session import Gate, Kind, Plan, SeededNoise

EFFECT = 0.5
DELTA = "1e-6"


def answered(frame, study, seed=0, **extra):
    arguments = {"epsilon": 2, "delta": DELTA, "protects": "record", "method": "doubly_robust"}
    arguments |= {"estimand": "ATO"} | extra
    return cv.ate(frame, study, noise=SeededNoise(seed), **arguments)


def ask(data, seed=0, **extra):
    return answered(data.frame, data.study, seed, **extra)


def overlap_effect(x, t, y):
    """Return the difference of both arms' lines at the mean of x where arms overlap, and its standard error."""
    t = np.asarray(t) == 1
    z = np.column_stack([np.ones(len(t)), x]).astype(float)
    e = z @ np.linalg.lstsq(z, t.astype(float), rcond=None)[0]
    weights = np.where(t, 1 - e, e)
    at = z[t].T @ weights[t] / weights[t].sum()
    lines = [np.linalg.lstsq(z[own], y[own], rcond=None)[0] for own in (~t, t)]
    left = weights / weights[t].sum() * (y - np.where(t, z @ lines[1], z @ lines[0]))
    return at @ (lines[1] - lines[0]), np.sqrt((left**2).sum())


def covered(results, value):
    """Return how many intervals hold the value; that of the same rows, so that only noise separates them."""
    return sum(low <= value <= high for low, high in (one.interval() for one in results))


def columns(data):
    return (
        np.column_stack([data.frame[name] for name in data.study.covariates]),
        np.asarray(data.frame["treated"], dtype=float),
        np.asarray(data.frame["y"]),
    )


def difference(data):
    t, y = np.asarray(data.frame["treated"]) == 1, np.asarray(data.frame["y"])
    return y[t].mean() - y[~t].mean()


@cache
def confounded():
    """A study in which a plain comparison is far off."""
    return max((synth(seed, 4000) for seed in range(6)), key=lambda data: abs(difference(data) - EFFECT))


@cache
def mixed():
    """Numbers, two labels and several, all of them confounding."""
    rng = np.random.default_rng(4)
    n = 6000
    x, b, c = rng.uniform(18, 65, n), rng.random(n) < 0.4, rng.integers(0, 3, n)
    drive = (x - 40) / 25 + 1.2 * b - 0.8 * (c == 0)
    t = rng.random(n) < 1 / (1 + np.exp(-drive))
    y = 2 + 0.05 * x + 1.5 * b - (c == 0) + EFFECT * t + rng.normal(0, 0.5, n)
    frame = {"x": x, "b": b.astype(int), "c": np.array(["u", "v", "w"])[c], "t": t.astype(int), "y": y}
    covariates = {"x": cv.Range(18, 65), "b": cv.Binary(), "c": cv.Categories(["u", "v", "w"])}
    return frame, cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 10)), covariates)


@pytest.mark.parametrize(("epsilon", "delta"), [(2, DELTA), (16, 0)])
def test_it_removes_confounding_and_covers(epsilon, delta):
    found = [ask(confounded(), seed, epsilon=epsilon, delta=delta) for seed in range(12)]
    errors = np.array([one.estimate - EFFECT for one in found])
    assert np.sqrt((errors**2).mean()) < 0.15 * abs(difference(confounded()) - EFFECT)
    assert covered(found, overlap_effect(*columns(confounded()))[0]) >= 11
    assert all(one.details["adjusted"] is True for one in found)


def test_with_a_vast_budget_it_is_the_difference_of_lines_where_arms_overlap():
    reference, error = overlap_effect(*columns(confounded()))
    sharp = ask(confounded(), epsilon=10**5)
    assert sharp.estimate == pytest.approx(reference, abs=3e-4)
    assert sharp.std_error.total == pytest.approx(error, rel=0.1)
    assert sharp.std_error.noise < 0.1 * sharp.std_error.sampling


def test_numbers_labels_and_categories_are_adjusted_for():
    frame, study = mixed()
    t, y = frame["t"] == 1, frame["y"]
    raw = y[t].mean() - y[~t].mean()
    assert raw - EFFECT > 0.8
    lines = cv.settings.DoublyRobust(degree=1)
    found = [answered(frame, study, seed, epsilon=1, settings=lines) for seed in range(8)]
    assert np.abs([one.estimate - EFFECT for one in found]).mean() < 0.1 * (raw - EFFECT)
    assert found[0].details["features"] == 4
    flags = np.column_stack([frame["x"], frame["b"], frame["c"] == "u", frame["c"] == "v"])
    assert covered(found, overlap_effect(flags, frame["t"], y)[0]) == 8


def test_degree_two_removes_what_lines_cannot():
    frame, study = mixed()
    x = (frame["x"] - 41.5) / 23.5
    rng = np.random.default_rng(0)
    t = rng.random(len(x)) < 1 / (1 + np.exp(-3 * (x**2 - 0.33)))
    bent = frame | {"t": t.astype(int), "y": 4 + 2 * x**2 + EFFECT * t + rng.normal(0, 0.3, len(x))}
    found = {}
    for degree in (1, 2, "auto"):
        found[degree] = answered(bent, study, 3, epsilon=8, settings=cv.settings.DoublyRobust(degree=degree))
    assert abs(found[1].estimate - EFFECT) > 0.3
    assert max(abs(found[degree].estimate - EFFECT) for degree in (2, "auto")) < 0.05
    # Four features, their squares where they are numbers, and products across covariates, which auto leaves out.
    assert [found[degree].details["features"] for degree in (2, "auto")] == [4 + 1 + 5, 4 + 1]


def test_targets_are_named_and_differ_where_effects_vary():
    rng = np.random.default_rng(5)
    n = 20_000
    x = rng.uniform(-1, 1, n)
    e = 1 / (1 + np.exp(-1.5 * x))
    t = rng.random(n) < e
    y = 1 + x + (0.5 + 0.5 * x) * t + rng.normal(0, 0.2, n)
    frame = {"x": x, "t": t.astype(int), "y": y}
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-2, 4)), {"x": cv.Range(-1, 1)})
    found = {name: answered(frame, study, 6, estimand=name) for name in ("ATO", "ATE", "ATT", "ATC")}
    assert [one.estimand for one in found.values()] == ["ATO", "ATE", "ATT", "ATC"]
    assert "overlap-weighted" in str(found["ATO"])
    assert "overlap-weighted" not in str(found["ATE"])
    assert "on those who received it" in " ".join(str(found["ATT"]).split())
    assert all(one.interval_target is None for one in found.values())
    tau = 0.5 + 0.5 * x
    assert found["ATE"].estimate == pytest.approx(tau.mean(), abs=0.03)
    assert found["ATT"].estimate == pytest.approx(tau[t].mean(), abs=0.04)
    assert found["ATC"].estimate == pytest.approx(tau[~t].mean(), abs=0.04)
    assert found["ATC"].estimate < found["ATE"].estimate < found["ATT"].estimate


@pytest.mark.parametrize(
    ("method", "protects"),
    [(method, "record") for method in ("sample_and_aggregate", "stratified", "trial")]
    + [
        (method, "outcome")
        for method in ("auto", "weighting", "matching", "difference_in_means", "stratified")
    ],
)
def test_other_methods_refuse_the_overlap_weighted_effect(method, protects):
    with pytest.raises(ParameterError, match="CV-P401"):
        ask(confounded(), estimand="ATO", method=method, protects=protects)


def test_an_unaffordable_adjustment_is_refused_and_nothing_is_spent():
    data = synth(1, 1000)
    with cv.Session(data.frame, data.study, budget=cv.Budget(3, DELTA)) as session:
        with pytest.raises(ParameterError, match="too small to adjust") as refusal:
            session.ate(protects="record", epsilon=1, delta=DELTA, method="doubly_robust")
        assert refusal.value.code == "CV-P404"
        assert session.remaining().epsilon == 3
    assert "rows" in str(refusal.value)


def test_a_declared_bound_buys_an_unadjusted_answer_that_says_so_first():
    data = synth(1, 1000)
    settings = cv.settings.DoublyRobust(kappa=0.25)
    result = ask(data, epsilon=1, settings=settings)
    assert result.details["adjusted"] is False
    assert str(result).splitlines()[1].startswith("*** NOT ADJUSTED: adjusted=False")
    assert result.condition == NotAdjusted(0.25)
    assert result.not_covered[0] == ConfoundingBeyond(0.25)
    low, high = result.interval()
    assert high - low > 2 * result.details["confounding_bound"]
    assert low <= EFFECT <= high
    narrower = ask(data, epsilon=1, settings=cv.settings.DoublyRobust(kappa=0.05))
    ends = narrower.interval()
    assert ends[1] - ends[0] < high - low
    again = type(result).from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result


def test_covariates_are_needed():
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)))
    frame = {"t": [0, 1] * 50, "y": [0.0, 1.0] * 50}
    with pytest.raises(StudyError, match="needs covariates"):
        answered(frame, study)


def test_too_many_features_are_refused_before_anything_is_read():
    names = [f"x{k}" for k in range(60)]
    rng = np.random.default_rng(0)
    frame = {name: rng.random(100) for name in names} | {"t": [0, 1] * 50, "y": rng.random(100)}
    study = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), dict.fromkeys(names, cv.Range(0, 1))
    )
    with pytest.raises(ParameterError, match="CV-P405"):
        answered(frame, study, delta=0, epsilon=1, settings=cv.settings.DoublyRobust(degree=2))


def test_the_public_rule_is_the_documented_one():
    # Rows from which a budget affords d features at delta 1e-6.
    known = ((5, 1, 229), (20, "0.5", 2974), (20, 1, 1560), (20, 4, 441), (20, 8, 241), (58, 2, 3918))
    for d, epsilon, rows in known:
        assert fewest_rows(Design(10, d, Budget(epsilon, DELTA), "gaussian")) == pytest.approx(rows, rel=0.01)
    pure = Design(14_000, 20, Budget(1), "staircase")
    assert fewest_rows(pure) == pytest.approx(13_983, rel=0.03)
    assert gram_noise_norm(pure) > gram_noise_norm(Design(14_000, 20, Budget(1, DELTA), "gaussian"))
    assert affordable(Design(1560, 20, Budget(1, DELTA), "gaussian"))


@pytest.mark.parametrize("mechanism", ["gaussian", "staircase"])
def test_shares_add_up_and_small_budgets_spend_them_on_the_matrix(mechanism):
    budgets = {"gaussian": (Budget(1, DELTA), Budget(8, DELTA)), "staircase": (Budget(2), Budget(50))}
    found = [split(Design(10_000, 20, budget, mechanism)) for budget in budgets[mechanism]]
    for one in found:
        assert sum(share for _, share in one.shares) == Fraction(1)
    small, large = (dict(one.shares) for one in found)
    assert small["gram"] > large["gram"]
    assert small["score"] < large["score"]


@pytest.mark.parametrize(("least", "seen"), [(0.5, True), (0.01, False)])
def test_directions_that_no_model_sees_whole_stay_in_the_interval(least, seen):
    matrix = np.diag([1.0, 1.0, least])
    moments = SecondMoments(
        matrix, np.array([0.0, 0.05, 0.05 * least]), np.array([0.0, 0.1, 0.1 * least]), 0.25, 0.05, 0.1,
        0.01, 1e-6, 1e-6, 1e-6, 1e-6,
    )  # fmt: skip
    nuisances = first_models(moments, Scaling(0.5, 0.0, 0.5, 1.0, 1.0, 1.0), floored(matrix, 1e-6, 0.2))
    assert (nuisances.raised_bias == 0) == seen
    again = refined(nuisances, ResidualProducts(np.array([0.0, 0.0, 1e-4]), 0.05, 1e-6, 1e-6))
    # A correction with the same matrix sees them no better; of the noise's part little is left.
    assert again.raised_bias >= 0.7 * nuisances.raised_bias
    assert again.noise_bias < nuisances.noise_bias
    assert again.bias == again.noise_bias + again.raised_bias


ROWS = records((0.5, 1, "u", 1, 0.3))
SIZE = ROWS.features.size
STANDARD = Standard(np.zeros(SIZE), np.ones(SIZE), 2.0, 4.0)
# Bounds and lengths that differ from one another and from one, so that none can stand for another.
SCALING = Scaling(0.4, 0.1, 0.6, 0.8, 1.5, 2.5)
NONE = np.zeros(SIZE + 1)
MODELS = LinearModels(0.5, 0.0, NONE, NONE, NONE, 0.0)
DRAWS = 400


def drawn(name, release):
    """Return many draws of one release that has the whole budget."""
    plan = Plan.split(Budget(2, "1e-3"), {name: Fraction(1)}, "gaussian", {name: Kind.VECTOR})
    source = SeededNoise(5)
    return [release(Gate(plan, source)) for _ in range(DRAWS)]


def assert_sd(found, expected, *names):
    """Assert that the named numbers vary by `expected`; entries of a vector are taken together."""
    for name in names:
        values = np.array([getattr(one, name) for one in found], dtype=float).reshape(DRAWS, -1)
        sd = np.sqrt(values.var(axis=0, ddof=1).mean())
        assert sd == pytest.approx(expected, rel=0.12), name


def test_moments():
    found = drawn("centre", lambda gate: release_moments(gate, ROWS, counted_features(ROWS.features)))
    sd, weight, square = found[0].sd, found[0].weight, float(SQUARE_WEIGHT)
    assert weight != 1
    assert_sd(found, sd, "means")
    assert_sd(found, sd / weight, "treatment", "outcome")
    assert_sd(found, sd / weight / square, "outcome_square")


def test_second_moments():
    found = drawn("gram", lambda gate: release_gram(gate, ROWS, STANDARD, SCALING))
    above = np.array([one.matrix[np.triu_indices(SIZE + 1, 1)] for one in found])
    assert np.sqrt(above.var(axis=0).mean()) == pytest.approx(found[0].entry_sd, rel=0.12)
    assert_sd(found, found[0].treatment_sd, "with_treatment")
    assert_sd(found, found[0].outcome_sd, "with_outcome")
    assert_sd(found, found[0].both_sd, "both")
    assert_sd(found, found[0].square_sd, "outcome")


def test_residuals():
    found = drawn("r", lambda gate: release_residuals(gate, "r", ROWS, STANDARD, MODELS, 0.3))
    assert_sd(found, found[0].sd, "products")
    assert_sd(found, found[0].square_sd, "square")


RARE_ROWS = 20_000


def frame(seed, control, treated):
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=(RARE_ROWS, 3)), rng.uniform(size=RARE_ROWS) < 0.5
    y = (rng.uniform(size=RARE_ROWS) < np.where(t, treated, control)).astype(float)
    return {"t": t.astype(int), "y": y} | {f"x{j}": x[:, j] for j in range(3)}


def study():
    covariates = {f"x{j}": cv.Range(0, 1) for j in range(3)}
    return cv.Study(
        treatment=cv.Treatment("t", control=0), outcome=cv.Outcome("y", (0, 1)), covariates=covariates
    )


SHARES = [(0.02, 0.04), (0.1, 0.2), (0.15, 0.2), (0.98, 0.95)]
RARE = [(*shares, epsilon) for shares in SHARES for epsilon in (1, 4)]


@pytest.mark.parametrize(
    ("control", "treated", "epsilon"), thinned_rows(RARE, (0.02, 0.04, 1), (0.98, 0.95, 4))
)
def test_rare_events_are_not_clipped_away(control, treated, epsilon):
    asked = {"epsilon": epsilon, "estimand": "ATE"}
    results = [answered(frame(seed, control, treated), study(), seed, **asked) for seed in range(4)]
    truth = treated - control
    # Four samples are off by this much themselves.
    room = 0.25 * abs(truth)
    assert np.mean([result.estimate for result in results]) == pytest.approx(truth, abs=room)
    covered = sum(result.interval()[0] <= truth <= result.interval()[1] for result in results)
    assert covered >= 3


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize(("amount", "most_length"), [(1, 0.04), (80, 30.0)])
def test_what_noise_hides_is_in_the_interval(delta, amount, most_length):
    # 120 and 20 events: fewer than the noise of a cell, or little more.
    declared = study()._changed(outcome_range=(Fraction(0), Fraction(1 if amount == 1 else 500)))
    for seed in range(2):
        data = frame(seed, 0.012, 0.002)
        data["y"] = amount * data["y"]
        found = answered(data, declared, seed, delta=delta, estimand="ATE")
        assert found.interval(0.99)[0] <= -0.01 * amount <= found.interval(0.99)[1]
        assert np.ptp(found.interval()) < most_length


@pytest.mark.parametrize("delta", ["0", "1e-6"])
@pytest.mark.parametrize("estimand", thinned(["ATE", "ATO"], "ATE"))
def test_outcomes_far_out_of_a_range_that_holds_them_are_in_the_interval(estimand, delta):
    declared = study()._changed(outcome_range=(Fraction(-20), Fraction(80)))
    covered = []
    for seed in range(8):
        rng = np.random.default_rng(700 + seed)
        x, t = rng.uniform(size=(RARE_ROWS, 3)), rng.uniform(size=RARE_ROWS) < 0.5
        # Forty standard deviations out: 6 of 1,000 treated and 2 of 1,000 others.
        far = 40 * (rng.random(RARE_ROWS) < np.where(t, 0.006, 0.002))
        y = x[:, 0] + rng.normal(size=RARE_ROWS) + far
        data = {"t": t.astype(int), "y": y} | {f"x{j}": x[:, j] for j in range(3)}
        found = answered(data, declared, seed, epsilon=1, delta=delta, estimand=estimand)
        covered.append(found.interval()[0] <= 40 * 0.004 <= found.interval()[1])
    assert sum(covered) >= 7


def heavy(seed):
    """Outcomes around the middle of their range whose effect lies in a long tail, and the effect in these rows."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(size=(RARE_ROWS, 3)), rng.uniform(size=RARE_ROWS) < 0.5
    y = np.minimum(10 * np.exp(1.2 * rng.normal(size=RARE_ROWS)) * np.where(t, 1.3, 1.0) + x[:, 0], 500)
    data = {"t": t.astype(int), "y": y} | {f"x{j}": x[:, j] for j in range(3)}
    return data, y[t].mean() - y[~t].mean()


@pytest.mark.parametrize("epsilon", thinned([4, 16], 4))
def test_heavy_tails_keep_their_effect(epsilon):
    covariates = {f"x{j}": cv.Range(0, 1) for j in range(3)}
    declared = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-500, 500)), covariates)
    errors = []
    for seed in range(4):
        data, effect = heavy(seed)
        result = answered(data, declared, seed, epsilon=epsilon, estimand="ATE")
        errors.append((result.estimate - effect) / effect)
    # A clip at four standard deviations would take a sixth of the effect away.
    assert np.mean(errors) == pytest.approx(0, abs=0.08)
