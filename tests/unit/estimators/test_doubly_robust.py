"""The orthogonal private effect through the front door."""

import json
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.curator import SeededNoise
from counterveil.datasets import synth
from counterveil.errors import ParameterError, StudyError
from counterveil.estimators.ate.doubly_robust_models import first_models, refined
from counterveil.estimators.ate.doubly_robust_plan import Design, affordable, fewest_rows, gram_index, split
from counterveil.estimators.ate.doubly_robust_releases import Residuals, Scaling, SecondMoments
from counterveil.estimators.ate.doubly_robust_run import knobs
from counterveil.kernels.spectral_shrinkage import floored
from counterveil.privacy import Budget

EFFECT = 0.5
DELTA = "1e-6"


def ask(data, seed=0, **extra):
    arguments = {"epsilon": 2, "delta": DELTA} | extra
    return cv.ate(
        data.frame,
        data.study,
        protects="record",
        method="doubly_robust",
        noise=SeededNoise(seed),
        **arguments,
    )


def least_squares(x, t, y):
    """Return the coefficient of treatment and its standard error."""
    z = np.column_stack([t, np.ones(len(t)), x]).astype(float)
    slopes = np.linalg.lstsq(z, y, rcond=None)[0]
    left = y - z @ slopes
    return slopes[0], np.sqrt((left**2).sum() / (len(y) - z.shape[1]) * np.linalg.inv(z.T @ z)[0, 0])


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


@pytest.fixture(scope="module")
def confounded():
    """A study in which a plain comparison is far off."""
    return max((synth(seed, 4000) for seed in range(6)), key=lambda data: abs(difference(data) - EFFECT))


@pytest.fixture(scope="module")
def mixed():
    """Numbers, two labels and several, all of them confounding."""
    rng = np.random.default_rng(4)
    n = 6000
    x, b, c = rng.uniform(18, 65, n), rng.random(n) < 0.4, rng.integers(0, 3, n)
    drive = (x - 40) / 25 + 1.2 * b - 0.8 * (c == 0)
    t = rng.random(n) < 1 / (1 + np.exp(-drive))
    y = 2 + 0.05 * x + 1.5 * b - (c == 0) + EFFECT * t + rng.normal(0, 0.5, n)
    frame = {"x": x, "b": b.astype(int), "c": np.array(["u", "v", "w"])[c], "t": t.astype(int), "y": y}
    study = cv.Study(
        "t",
        "y",
        (0, 10),
        {"x": cv.Range(18, 65), "b": cv.Binary(), "c": cv.Categories(["u", "v", "w"])},
        control=0,
    )
    return frame, study


@pytest.mark.parametrize(("epsilon", "delta"), [(2, DELTA), (8, 0)])
def test_it_removes_confounding_and_covers(confounded, epsilon, delta):
    found = [ask(confounded, seed, epsilon=epsilon, delta=delta) for seed in range(12)]
    errors = np.array([one.estimate - EFFECT for one in found])
    assert np.sqrt((errors**2).mean()) < 0.15 * abs(difference(confounded) - EFFECT)
    assert covered(found, least_squares(*columns(confounded))[0]) >= 11
    assert all(one.details["adjusted"] is True for one in found)


def test_with_a_vast_budget_it_is_ordinary_least_squares(confounded):
    reference, error = least_squares(*columns(confounded))
    sharp = ask(confounded, epsilon=2000)
    assert sharp.estimate == pytest.approx(reference, abs=3e-4)
    assert sharp.std_error.total == pytest.approx(error, rel=0.1)
    assert sharp.std_error.noise < 0.1 * sharp.std_error.sampling


def test_collinear_covariates_and_rare_labels_are_no_exception():
    rng = np.random.default_rng(8)
    n = 5000
    first = rng.uniform(0, 1, n)
    second = np.clip(first + rng.normal(0, 0.05, n), 0, 1)
    rare = rng.random(n) < 0.01
    t = rng.random(n) < 1 / (1 + np.exp(-4 * (first - 0.5) - 2 * rare))
    y = 1 + first - second + 2 * rare + EFFECT * t + rng.normal(0, 0.1, n)
    frame = {"a": first, "b": second, "c": rare.astype(int), "t": t.astype(int), "y": y}
    ranges = {"a": cv.Range(0, 1), "b": cv.Range(0, 1), "c": cv.Binary()}
    study = cv.Study("t", "y", (-1, 5), ranges, control=0)
    arguments = {"protects": "record", "method": "doubly_robust", "delta": DELTA}
    sharp = cv.ate(frame, study, epsilon=5000, noise=SeededNoise(0), **arguments)
    reference, error = least_squares(np.column_stack([first, second, rare]), t, y)
    assert sharp.estimate == pytest.approx(reference, abs=error / 2)
    found = [cv.ate(frame, study, epsilon=1, noise=SeededNoise(s), **arguments) for s in range(8)]
    assert covered(found, reference) >= 7


def test_numbers_labels_and_categories_are_adjusted_for(mixed):
    frame, study = mixed
    t, y = frame["t"] == 1, frame["y"]
    raw = y[t].mean() - y[~t].mean()
    assert raw - EFFECT > 0.8
    found = [
        cv.ate(
            frame,
            study,
            protects="record",
            method="doubly_robust",
            epsilon=1,
            delta=DELTA,
            noise=SeededNoise(s),
        )
        for s in range(8)
    ]
    assert np.abs([one.estimate - EFFECT for one in found]).mean() < 0.1 * (raw - EFFECT)
    assert found[0].details["features"] == 4
    flags = np.column_stack([frame["x"], frame["b"], frame["c"] == "u", frame["c"] == "v"])
    assert covered(found, least_squares(flags, frame["t"], y)[0]) == 8


def test_degree_two_removes_what_lines_cannot(mixed):
    frame, study = mixed
    x = (frame["x"] - 41.5) / 23.5
    rng = np.random.default_rng(0)
    t = rng.random(len(x)) < 1 / (1 + np.exp(-3 * (x**2 - 0.33)))
    bent = frame | {"t": t.astype(int), "y": 4 + 2 * x**2 + EFFECT * t + rng.normal(0, 0.3, len(x))}
    found = {}
    for degree in (1, 2, "auto"):
        settings = cv.DoublyRobustSettings(degree=degree)
        found[degree] = cv.ate(
            bent,
            study,
            protects="record",
            method="doubly_robust",
            epsilon=8,
            delta=DELTA,
            settings=settings,
            noise=SeededNoise(3),
        )
    assert abs(found[1].estimate - EFFECT) > 0.3
    assert abs(found[2].estimate - EFFECT) < 0.05
    # Four features, their squares where they are numbers, and products across covariates.
    assert found[2].details["features"] == found["auto"].details["features"] == 4 + 1 + 5


def test_auto_degree_stays_with_lines_where_products_cost_too_much(confounded):
    assert ask(confounded, settings=cv.DoublyRobustSettings(degree="auto")).details["features"] == 20


def test_targets_are_named_and_differ_where_effects_vary():
    rng = np.random.default_rng(5)
    n = 20_000
    x = rng.uniform(-1, 1, n)
    e = 1 / (1 + np.exp(-1.5 * x))
    t = rng.random(n) < e
    y = 1 + x + (0.5 + 0.5 * x) * t + rng.normal(0, 0.2, n)
    frame = {"x": x, "t": t.astype(int), "y": y}
    study = cv.Study("t", "y", (-2, 4), {"x": cv.Range(-1, 1)}, control=0)
    cases = {"ATE": None, "ATT": None, "ATC": None, "everyone": "ate"}
    found = {}
    for name, target in cases.items():
        found[name] = cv.ate(
            frame,
            study,
            protects="record",
            method="doubly_robust",
            epsilon=2,
            delta=DELTA,
            estimand="ATE" if target else name,
            settings=cv.DoublyRobustSettings(target=target),
            noise=SeededNoise(6),
        )
    assert [one.details["target"] for one in found.values()] == ["overlap", "att", "atc", "ate"]
    assert "overlap-weighted" in str(found["ATE"])
    assert "weighted to the treated" in found["ATT"].method
    tau = 0.5 + 0.5 * x
    assert found["everyone"].estimate == pytest.approx(tau.mean(), abs=0.03)
    assert found["ATT"].estimate == pytest.approx(tau[t].mean(), abs=0.04)
    assert found["ATC"].estimate == pytest.approx(tau[~t].mean(), abs=0.04)
    assert found["ATC"].estimate < found["everyone"].estimate < found["ATT"].estimate


def test_weighted_targets_claim_no_interval_where_the_weights_matter_more_than_noise():
    data = synth(1, 4000, 2, outcome_range=(0, 2))
    wide = ask(data, estimand="ATT")
    assert wide.interval_of is None
    sharp = ask(data, estimand="ATT", epsilon=30)
    assert "linearly" in sharp.interval_of
    assert str(sharp).splitlines()[1].startswith("*** NO VALID INTERVAL")
    assert ask(data, epsilon=30).interval_of is None


def test_an_unaffordable_adjustment_is_refused_and_nothing_is_spent():
    data = synth(1, 1000)
    with cv.Curator(data.frame, data.study, budget=cv.Budget(3, DELTA)) as curator:
        with pytest.raises(ParameterError, match="not affordable") as refusal:
            curator.ate(protects="record", epsilon=1, delta=DELTA, method="doubly_robust")
        assert refusal.value.code == "CV-P404"
        assert curator.remaining().epsilon == 3
    assert "rows" in str(refusal.value)


def test_a_declared_bound_buys_an_unadjusted_answer_that_says_so_first():
    data = synth(1, 1000)
    settings = cv.DoublyRobustSettings(unaffordable="contrast", kappa=0.25)
    result = ask(data, epsilon=1, settings=settings)
    assert result.details["adjusted"] is False
    assert str(result).splitlines()[1].startswith("*** NOT ADJUSTED: adjusted=False")
    assert "kappa <= 0.25" in result.caution
    assert result.not_covered[0].startswith("CONFOUNDING beyond the declared kappa")
    low, high = result.interval()
    assert high - low > 2 * result.details["bound on confounding"]
    assert low <= EFFECT <= high
    narrower = ask(data, epsilon=1, settings=cv.DoublyRobustSettings(unaffordable="contrast", kappa=0.05))
    ends = narrower.interval()
    assert ends[1] - ends[0] < high - low
    again = type(result).from_dict(json.loads(json.dumps(result.to_dict())))
    assert again == result


def test_a_hopeless_adjustment_falls_back_only_where_a_bound_was_declared():
    data = synth(1, 1100)
    tight = cv.DoublyRobustSettings(kappa=0.01)
    fallen = ask(data, seed=2, epsilon="1.6", settings=tight)
    assert fallen.details["adjusted"] is False
    assert fallen.condition is not None
    assert "adjusted=False" in str(fallen).splitlines()[1]
    kept = ask(data, seed=2, epsilon="1.6")
    assert kept.details["adjusted"] is True
    assert kept.caution is None
    # A loose bound is no reason to leave covariates out.
    assert ask(data, seed=2, epsilon="1.6", settings=cv.DoublyRobustSettings(kappa=0.5)).caution is None


def test_public_correlations_lower_the_price():
    data = synth(3, 1500)
    identity = tuple(tuple(row) for row in np.eye(20))
    known = cv.DoublyRobustSettings(covariance=identity)
    located = cv.DoublyRobustSettings(covariance=identity, means=(0.5,) * 20, sds=(12**-0.5,) * 20)
    with pytest.raises(ParameterError, match="not affordable"):
        ask(data, epsilon=1)
    widths = []
    for settings in (known, located):
        found = [ask(data, seed, epsilon=1, settings=settings) for seed in range(6)]
        widths.append(np.median([np.diff(one.interval())[0] for one in found]))
        assert covered(found, least_squares(*columns(data))[0]) >= 5
    assert widths[1] < widths[0]
    with pytest.raises(ParameterError) as refusal:
        ask(data, settings=cv.DoublyRobustSettings(covariance=np.eye(19)))
    assert refusal.value.code == "CV-P403"


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "everyone"},
        {"degree": 3},
        {"degree": True},
        {"unaffordable": "guess"},
        {"unaffordable": "contrast"},
        {"kappa": 0},
        {"kappa": 1.5},
        {"least_propensity": 0.6},
        {"means": (0.0,)},
        {"covariance": ((1.0,),), "means": (0.0,), "sds": (0.0,)},
        {"covariance": ((1.0,),), "degree": 2},
    ],
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ParameterError) as refusal:
        cv.DoublyRobustSettings(**wrong)
    assert refusal.value.code == "CV-P400"


@pytest.mark.parametrize("matrix", [((1.0, 2.0), (2.0, 1.0)), ((1.0, 0.5),), "no matrix", ((2.0,),)])
def test_what_is_no_correlation_matrix_is_refused(matrix):
    with pytest.raises(ParameterError) as refusal:
        cv.DoublyRobustSettings(covariance=matrix)
    assert refusal.value.code == "CV-P402"


def test_target_and_estimand_must_agree(confounded):
    with pytest.raises(ParameterError) as refusal:
        ask(confounded, estimand="ATT", settings=cv.DoublyRobustSettings(target="overlap"))
    assert refusal.value.code == "CV-P401"


def test_covariates_are_needed():
    study = cv.Study("t", "y", (0, 1), control=0)
    frame = {"t": [0, 1] * 50, "y": [0.0, 1.0] * 50}
    with pytest.raises(StudyError, match="needs covariates"):
        cv.ate(frame, study, protects="record", method="doubly_robust", epsilon=1)


def test_too_many_features_are_refused_before_anything_is_read():
    names = [f"x{k}" for k in range(60)]
    rng = np.random.default_rng(0)
    frame = {name: rng.random(100) for name in names} | {"t": [0, 1] * 50, "y": rng.random(100)}
    study = cv.Study("t", "y", (0, 1), dict.fromkeys(names, cv.Range(0, 1)), control=0)
    with pytest.raises(ParameterError) as refusal:
        cv.ate(
            frame,
            study,
            protects="record",
            method="doubly_robust",
            epsilon=1,
            settings=cv.DoublyRobustSettings(degree=2),
        )
    assert refusal.value.code == "CV-P405"


def test_the_public_rule_is_the_documented_one():
    # Rows from which a budget affords d features at delta 1e-6.
    for d, epsilon, rows in ((5, 1, 229), (20, 1, 1560), (20, 8, 241), (58, 2, 3918)):
        assert fewest_rows(Design(10, d, Budget(epsilon, DELTA), "gaussian")) == pytest.approx(rows, rel=0.01)
    pure = Design(14_000, 20, Budget(1), "staircase")
    assert fewest_rows(pure) == pytest.approx(13_983, rel=0.03)
    assert gram_index(pure) > gram_index(Design(14_000, 20, Budget(1, DELTA), "gaussian"))
    assert affordable(Design(1560, 20, Budget(1, DELTA), "gaussian"))


@pytest.mark.parametrize("law", ["gaussian", "staircase"])
def test_shares_add_up_and_small_budgets_spend_them_on_the_matrix(law):
    budgets = {"gaussian": (Budget(1, DELTA), Budget(8, DELTA)), "staircase": (Budget(2), Budget(50))}[law]
    found = [split(Design(10_000, 20, budget, law)) for budget in budgets]
    for one, budget in zip(found, budgets, strict=True):
        assert sum(share for _, share in one.shares) == Fraction(1)
        assert one.plan(budget, law).budget == budget
    small, large = (dict(one.shares) for one in found)
    assert small["gram"] > large["gram"]
    assert small["score"] < large["score"]


def test_more_noise_shortens_more_rows():
    designs = [Design(rows, 20, Budget(1), "staircase") for rows in (7000, 12_000, 20_000, 50_000, 10**6)]
    indices, shares = [gram_index(design) for design in designs], [knobs(design)[1] for design in designs]
    assert indices == sorted(indices, reverse=True)
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.2
    assert shares[-1] == 0.001
    # With public correlations no matrix is released, and what is public says how long rows are.
    assert knobs(Design(7000, 20, Budget(1), "staircase", known_covariance=True))[1] == 0.05


@pytest.mark.parametrize(("least", "seen"), [(0.5, True), (0.01, False)])
def test_directions_that_no_model_sees_whole_stay_in_the_interval(least, seen):
    matrix = np.diag([1.0, 1.0, least])
    moments = SecondMoments(
        matrix, np.array([0.0, 0.05, 0.05 * least]), np.array([0.0, 0.1, 0.1 * least]), 0.25, 0.05, 0.1,
        0.01, 1e-6, 1e-6, 1e-6, 1e-6,
    )  # fmt: skip
    nuisances = first_models(moments, Scaling(0.5, 0.0, 0.5, 1.0, 1.0, 1.0), floored(matrix, 1e-6, 0.2))
    assert (nuisances.raised_bias == 0) == seen
    again = refined(nuisances, Residuals(np.array([0.0, 0.0, 1e-4]), 0.05, 1e-6, 1e-6))
    # A correction with the same matrix sees them no better; of the noise's part little is left.
    assert again.raised_bias >= 0.7 * nuisances.raised_bias
    assert again.noise_bias < nuisances.noise_bias
    assert again.bias == again.noise_bias + again.raised_bias


def test_a_question_asked_again_costs_nothing(confounded):
    with cv.Curator(confounded.frame, confounded.study, budget=cv.Budget(2, DELTA), noise=None) as curator:
        arguments = {"protects": "record", "epsilon": 2, "delta": DELTA, "method": "doubly_robust"}
        first = curator.ate(**arguments, request_id="one")
        assert curator.ate(**arguments, request_id="one") == first
        assert first.guarantee.proof.value == "finite-sample"
        assert "sensitivity/free_gram.proof.md" in first.guarantee.pages


def test_more_features_than_one_release_holds_leave_the_declared_bound():
    names = [f"x{k}" for k in range(150)]
    rng = np.random.default_rng(0)
    frame = {name: rng.random(200) for name in names} | {"t": [0, 1] * 100, "y": rng.random(200)}
    study = cv.Study("t", "y", (0, 1), dict.fromkeys(names, cv.Range(0, 1)), control=0)
    words = {"protects": "record", "epsilon": 1, "delta": DELTA}
    with pytest.raises(ParameterError, match="CV-P405"):
        cv.ate(frame, study, **words)
    found = cv.ate(frame, study, settings=cv.AutoSettings(kappa=0.2), **words)
    assert found.details["adjusted"] is False
    assert found.details["kappa"] == 0.2
