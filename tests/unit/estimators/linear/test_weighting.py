"""Optimal public weights, outcome-private: estimates, the features and the score they balance, and trimming."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from tests.plain_questions import question
from tests.unit.rows.exact_gate import public_rows

import counterveil as cv
from counterveil.data import Table
from counterveil.datasets import synth
from counterveil.errors import ParameterError, StudyError
from counterveil.estimators.linear.kernels.treatment_leaves import treatment_leaves
from counterveil.estimators.linear.kernels.treatment_terms import treatment_terms
from counterveil.estimators.linear.kernels.weight_features import FeatureShares, parted_features
from counterveil.estimators.linear.matching_design import scored
from counterveil.estimators.linear.spline_score import spline_score
from counterveil.estimators.linear.trimming import crump_limit, trimmed
from counterveil.estimators.linear.variance_choice import chosen_residual_variance, fitting_shape
from counterveil.estimators.linear.weighting import residual_rows, weighting_design
from counterveil.estimators.linear.weighting_design import weighted
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Caveat, KeptPeople, KnownScore
from counterveil.questions.plan import AssumedPeople, simulate
from counterveil.questions.pooling.documents import check_document
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.public import private_table

ESTIMANDS = ("ATE", "ATT", "ATC")
NO_NOISE = 100_000


def ask(data, epsilon=2, seed=1, **more):
    settings = more.pop("settings", None)
    return cv.ate(
        data.frame, more.pop("study", data.study), protects="outcome", epsilon=epsilon, method="weighting",
        settings=settings, noise=cv.SeededNoise(seed), **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def confounded():
    return synth(0)


@pytest.mark.parametrize("score", [None, "x"])
@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_one_outcome_moves_the_estimate_by_at_most_the_sensitivity(estimand, score):
    rng = np.random.default_rng(4)
    t, x = np.arange(14) % 2, 0.05 + 0.9 * rng.random(14)
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        {"x": cv.Range("0.01", "0.99")},
        assignment=None if score is None else cv.Propensity(score),
    )
    table = public_rows(Table.attach({"t": t, "y": np.zeros(14), "x": x}, study))
    settings = cv.settings.Weighting()
    found = weighted(table, weighting_design(table, settings), settings, Estimand.parse(estimand), 1.0)
    form = linear_form(found.weights)
    moves = [abs(form.total(np.eye(14, dtype=np.int64)[row] * 2**24)) / 2**24 for row in range(14)]
    assert max(moves) == form.largest
    for arm, total in ((t == 1, 1), (t == 0, -1)):
        assert found.weights[arm].sum() == pytest.approx(total)
        assert (found.weights[arm] * total >= 0).all()


@pytest.mark.parametrize(
    ("bias", "randomised", "covariates", "allowed"),
    [
        (None, False, 0, 0.5), (None, False, 25, 0.5), (None, False, 40, 0.8), (None, False, 58, 1.0),
        (None, True, 58, 0.0), (0.2, False, 58, 0.2),
    ],
)  # fmt: skip
def test_intervals_allow_for_more_bias_with_many_covariates(bias, randomised, covariates, allowed):
    settings = cv.settings.Weighting(bias=bias), cv.settings.Arms(bias=bias)
    assert [one.allowed_bias(randomised, covariates) for one in settings] == [allowed, allowed]


@pytest.mark.parametrize("variance_by", ["arm", "row"])
def test_the_variance_of_either_kind_is_about_that_of_the_outcomes(variance_by):
    rng = np.random.default_rng(8)
    n = 4000
    x = rng.random(n)
    t = rng.random(n) < 0.3 + 0.4 * x
    y = np.clip(rng.normal(0.4 + 0.1 * t, 0.1, n), 0, 1)
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"x": cv.Range(0, 1)})
    frame = {"t": t.astype(int), "y": y, "x": x}
    result = cv.ate(
        frame, study, protects="outcome", epsilon=50, method="weighting", noise=cv.SeededNoise(2),
        settings=cv.settings.Weighting(variance_by=variance_by, bias=0),
    )  # fmt: skip
    sizes = [row["effective"] for row in result.diagnostics["effective_size"]]
    assert result.std_error.sampling == pytest.approx(0.1 * sum(1 / size for size in sizes) ** 0.5, rel=0.08)


def test_what_covariates_explain_leaves_the_variance_where_that_is_worth_its_noise(confounded):
    by_arm, by_row = (
        ask(confounded, epsilon=NO_NOISE, settings=cv.settings.Weighting(variance_by=variance_by))
        for variance_by in ("arm", "row")
    )
    # Covariates explain 99 % of the variance within an arm of `synth`, so that a standard error could fall to a tenth;
    # a quarter of that factor is asked for.
    assert by_arm.std_error.sampling < by_row.std_error.sampling / 2.5
    linear, variance_page = (
        "rows/linear/linear_estimate.proof.md",
        "rows/linear/residual_variance.proof.md",
    )
    assert by_arm.guarantee.pages[:2] == (linear, variance_page)
    assert by_row.guarantee.pages[0] == linear
    assert variance_page not in by_row.guarantee.pages


def predicted(data, error=0.02):
    """Return the data with a column that predicts the outcome without the effect, and a study with it."""
    rng = np.random.default_rng(9)
    y, t = np.asarray(data.frame["y"]), np.asarray(data.frame["treated"])
    guess = y - 0.5 * t + rng.uniform(-error, error, len(y))
    study = cv.Study(
        cv.Treatment("treated", control=0),
        cv.Outcome("y", (0, 5)),
        dict(data.study.covariates) | {"guess": cv.Range(0, 5)},
    )
    return {**data.frame, "guess": guess}, study


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_slopes_are_fitted_until_just_room_for_the_imbalance_is_left(confounded, epsilon):
    table = public_rows(Table.attach(confounded.frame, confounded.study))
    settings = cv.settings.Weighting()
    found = weighted(table, weighting_design(table, settings), settings, Estimand.ATE, 2 / epsilon**2)
    asked = question("outcome", "weighting", epsilon=epsilon)
    loading = chosen_residual_variance(found, table.treated, asked).loading
    assert found.imbalance**2 <= loading <= 1.1 * found.imbalance**2


def test_what_is_left_of_covariates_and_of_squares_follows_the_imbalance_of_each(confounded):
    table = public_rows(Table.attach(confounded.frame, confounded.study))
    settings = cv.settings.Weighting()
    found = weighted(table, weighting_design(table, settings), settings, Estimand.ATE, 0.1)
    shape = fitting_shape(found)
    variances = found.features.var(axis=0, dtype=float)
    assert shape @ variances == pytest.approx(1.0, rel=1e-3)
    covariates, squares = slice(0, 20), slice(20, 40)
    for block in (covariates, squares):
        # Features of one variance are fitted alike.
        assert np.ptp(shape[block]) < 1e-6 * shape[block].mean()
    left = [found.gaps[block].sum() / variances[block].sum() for block in (covariates, squares)]
    # The weights leave more imbalance in squares, which are therefore fitted less closely.
    assert left[0] < left[1]
    assert shape[0] * variances[0] > shape[20] * variances[20]


def test_a_public_prediction_shrinks_the_noise_with_its_residuals_range(confounded):
    frame, study = predicted(confounded)
    settings = cv.settings.Weighting(prediction="guess", residual_range=(-0.1, 0.7))
    plain = ask(confounded, epsilon=1)
    result = cv.ate(
        frame, study, protects="outcome", epsilon=1, method="weighting", settings=settings,
        noise=cv.SeededNoise(2),
    )  # fmt: skip
    assert result.std_error.noise < 0.25 * plain.std_error.noise
    low, high = result.interval()
    assert low < 0.5 < high
    assert any("guess" in remark for remark in result.guarantee.remarks)
    assert Caveat.CLAMPING_OF_PREDICTED in result.not_covered


def test_residuals_are_clamped_to_their_range_row_by_row(confounded):
    frame, study = predicted(confounded)
    settings = cv.settings.Weighting(prediction="guess", residual_range=("0", "1/4"))
    moved = private_table(residual_rows(public_rows(Table.attach(frame, study)), settings))
    expected = np.clip(np.asarray(frame["y"]) - frame["guess"], 0, 0.25) / 0.25
    assert moved.outcome / 2**24 == pytest.approx(expected, abs=2e-6)
    assert moved.study.outcome_range == (0, 0.25)


def test_a_prediction_that_is_no_covariate_is_refused(confounded):
    settings = cv.settings.Weighting(prediction="guess", residual_range=(-1, 1))
    with pytest.raises(ParameterError, match="CV-P222"):
        ask(confounded, settings=settings)


def test_refused_without_covariates_and_at_record_level(confounded):
    bare = cv.Study(cv.Treatment("treated", control=0), cv.Outcome("y", (0, 5)))
    with pytest.raises(StudyError, match="CV-S051"):
        ask(confounded, study=bare)
    with pytest.raises(ParameterError, match="CV-P018"):
        cv.ate(confounded.frame, confounded.study, protects="record", epsilon=1, method="weighting")


def test_degenerate_tables_get_an_answer():
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        {"x": cv.Range(0, 1), "k": cv.Categories(["a", "b", "c"])},
    )
    for x in (np.full(4, 0.5), np.array([0.0, 0.0, 1.0, 1.0])):
        frame = {"t": [0, 0, 1, 1], "y": [0.0, 1.0, 0.0, 1.0], "x": x, "k": ["a"] * 4}
        for variance_by in ("arm", "row"):
            result = cv.ate(
                frame, study, protects="outcome", epsilon=1, method="weighting",
                settings=cv.settings.Weighting(variance_by=variance_by),
            )  # fmt: skip
            assert np.isfinite(result.interval()).all()


def test_outcomes_from_0_to_1_are_taken_for_yes_and_no():
    # Suppose little and imbalance stays that goes with outcomes; an outcome of yes and no spreads as far as any can.
    declared = cv.Study(
        treatment="t",
        outcome=cv.Outcome("y", (0, 1)),
        covariates={f"x{k}": cv.Range(0, 1) for k in range(5)},
    )  # fmt: skip
    assumed = AssumedPeople.of(declared, mean=0.3, effect=0.1, explained=0.3, confounding=0.7, binary=True)
    errors = {"default": [], "small": []}
    for draw in range(12):
        people = simulate(declared, 500, assumed, np.random.default_rng([5, draw]))
        for name, assumed_sd in (("default", None), ("small", 1 / 16)):
            found = cv.ate(
                people.frame, declared, protects="outcome", epsilon=0.25, method="weighting",
                settings=cv.settings.Weighting(signal=assumed_sd, residual=assumed_sd), noise=cv.SeededNoise(draw),
            )  # fmt: skip
            errors[name].append(found.estimate - people.effect(Estimand.ATE))
    assert np.mean(errors["small"]) > 0.06
    assert np.mean(errors["default"]) < 0.04


@pytest.mark.parametrize(("bounds", "sd"), [((0, 1), 3 / 8), ((0, 10), 1 / 8), ((-1, 1), 1 / 8)])
def test_what_is_supposed_of_outcomes_follows_from_declarations(bounds, sd):
    declared = cv.Study(treatment="t", outcome=cv.Outcome("y", bounds))
    assert cv.settings.Weighting().assumed_sds(declared.outcome_range) == (sd, sd)
    assert cv.settings.Weighting(signal=0.2).assumed_sds(declared.outcome_range) == (0.2, sd)


def test_an_interval_is_cut_to_the_range_of_the_outcome_not_of_residuals(confounded):
    slopes = sum(confounded.frame[name] for name in confounded.study.covariates)
    declared = cv.Study(
        treatment=cv.Treatment("treated", control=0),
        outcome=cv.Outcome("y", (0, 5)),
        covariates={**confounded.study.covariates, "guess": cv.Range(0, 5)},
    )  # fmt: skip
    settings = cv.settings.Weighting(prediction="guess", residual_range=(-1, 2))
    found = ask(
        replace(confounded, frame={**confounded.frame, "guess": 0.2 * slopes}, study=declared),
        settings=settings,
    )
    assert found.limits == (-5, 5)


def lottery(seed, n=400):
    """Return people whose chance of treatment and outcome follow something that nobody declared."""
    rng = np.random.default_rng(seed)
    hidden, x = rng.integers(0, 2, n), rng.random(n)
    chance = 0.25 + 0.5 * hidden
    t = rng.random(n) < chance
    y = 0.2 + 0.3 * hidden + 0.1 * x + 0.1 * t + 0.1 * rng.standard_normal(n)
    return {"t": t.astype(int), "y": y, "x": x, "chance": chance}


def test_a_known_score_covers_what_covariates_do_not():
    both = {"x": cv.Range(0, 1), "chance": cv.Range("0.25", "0.75")}
    known = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (-1, 2)), both, assignment=cv.Propensity("chance")
    )
    blind = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-1, 2)), {"x": cv.Range(0, 1)})
    for level, method in (
        ("outcome", "weighting"),
        ("outcome", "matching"),
        ("treatment and outcome", "auto"),
    ):
        words = {
            "protects": level,
            "method": method,
            "epsilon": 8,
            "delta": "1e-6" if method == "auto" else 0,
        }
        missed = []
        for study in (known, blind):
            found = [cv.ate(lottery(k), study, noise=cv.SeededNoise(k), **words).interval() for k in range(4)]
            missed.append(sum(not low <= 0.1 <= high for low, high in found))
        assert (missed[0] <= 1, missed[1]) == (True, 4)


def test_weights_near_inverse_scores_are_allowed_little_bias():
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (-1, 2)),
        {"chance": cv.Range("0.25", "0.75")},
        assignment=cv.Propensity("chance"),
    )
    data = lottery(0, 4000)
    words = {"protects": "outcome", "method": "weighting", "noise": cv.SeededNoise(1)}
    near, far = (cv.ate(data, study, epsilon=epsilon, **words) for epsilon in (100, 0.1))
    assert near.assumptions == KnownScore("chance")
    assert Caveat.CONFOUNDING not in near.not_covered
    assert near.details["bias_allowance"] < 0.05 * near.uncertainty.sampling_sd
    assert far.details["bias_allowance"] > 2 * near.details["bias_allowance"]
    with pytest.raises(ParameterError) as caught:
        cv.ate(data, study, protects="record", epsilon=1)
    assert caught.value.code == "CV-P031"


KINDS = ["number", "binary", "label", "number"]


def covariates(n=900, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(50, 9, n), rng.random(n) < 0.2, rng.integers(0, 4, n), rng.exponential(size=n)]
    ).astype(float)
    scores = 1 / (1 + np.exp(-(0.03 * (X[:, 0] - 50) + X[:, 1] - 0.3 * X[:, 2])))
    return X, scores


def test_variances_are_the_shares():
    X, scores = covariates()
    features, *_ = parted_features(X, KINDS, scores, FeatureShares(0.6, 0.3, 0.1), dtype=np.float64)
    # Four covariates, the label as four indicators; two squares; the logit score.
    assert features.shape == (900, 3 + 4 + 2 + 1)
    variances = features.var(axis=0)
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-13)
    np.testing.assert_allclose(variances[:3], 0.6 / 4, rtol=1e-10)
    assert variances[3:7].sum() == pytest.approx(0.6 / 4, rel=1e-10)
    np.testing.assert_allclose(variances[7:9], 0.3 / 2, rtol=1e-10)
    assert variances[9] == pytest.approx(0.1, rel=1e-10)


def test_products_are_of_the_covariates_nearest_to_the_score():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 6))
    X[:, 4] = rng.integers(0, 3, 3000)  # labels make no products
    X[:, 5] = 2.0  # nor do constants
    scores = 1 / (1 + np.exp(-(X[:, 0] - 0.8 * X[:, 1] + 0.6 * X[:, 3] + 0.05 * X[:, 2])))
    kinds = ["number", "number", "number", "number", "label", "number"]
    shares = FeatureShares(0.0, 0.0, 0.0, products=0.3, products_of=3)
    features, *_ = parted_features(X, kinds, scores, shares, dtype=np.float64)
    Z = np.clip((X[:, :4] - X[:, :4].mean(axis=0)) / X[:, :4].std(axis=0), -3, 3)
    expected = np.column_stack([Z[:, i] * Z[:, j] for i, j in ((0, 1), (0, 3), (1, 3))])
    expected -= expected.mean(axis=0)
    np.testing.assert_allclose(features, expected * np.sqrt(0.1) / expected.std(axis=0), atol=1e-10)


def test_bends_are_cosines_of_the_rank_of_the_score_and_slow_ones_have_more():
    X, scores = covariates()
    shares = FeatureShares(0.0, 0.0, 0.0, cosines=0.5, cosines_count=3)
    features, *_ = parted_features(X, KINDS, scores, shares, dtype=np.float64)
    rank = (np.argsort(np.argsort(scores)) + 0.5) / len(scores)
    parts = np.array([1 / 4, 1 / 9, 1 / 16])
    np.testing.assert_allclose(features.var(axis=0), 0.5 * parts / parts.sum(), rtol=1e-10)
    for column, j in zip(features.T, (2, 3, 4), strict=True):
        assert np.corrcoef(column, np.cos(np.pi * j * rank))[0, 1] > 0.999


def test_columns_are_what_they_say():
    X, scores = covariates()
    features, *_ = parted_features(X, KINDS, scores, dtype=np.float64)

    def correlation(j, values):
        return np.corrcoef(features[:, j], values)[0, 1]

    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    assert correlation(0, X[:, 0]) == pytest.approx(1)
    assert correlation(1, X[:, 1]) == pytest.approx(1)
    assert correlation(2, X[:, 3]) == pytest.approx(1)
    for level in range(4):
        assert correlation(3 + level, X[:, 2] == level) == pytest.approx(1)
    assert correlation(7, np.clip(standard[:, 0], -3, 3) ** 2) == pytest.approx(1)
    assert correlation(8, np.clip(standard[:, 3], -3, 3) ** 2) == pytest.approx(1)
    assert correlation(9, np.log(scores / (1 - scores))) == pytest.approx(1)


@pytest.mark.parametrize(
    "shares",
    [{"linear": -0.1}, {"squares": math.nan}, {"linear": 0, "squares": 0, "score": 0}, {"strata_count": 1}],
)
def test_wrong_shares_are_refused(shares):
    with pytest.raises(ParameterError, match="CV-P265"):
        FeatureShares(**shares)


def attached(t, **columns):
    domains = {name: cv.Range(-1000, 1000) for name in columns}
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), domains)
    return public_rows(Table.attach({"t": t.astype(int), "y": np.zeros(len(t)), **columns}, study))


def score_of(table):
    return spline_score(table).score


def test_a_logit_that_bends_is_followed_better_than_by_a_straight_one():
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, 5000))
    truth = 1 / (1 + np.exp(1 - 2 * np.maximum(x, 0) - z))
    table = attached(rng.random(5000) < truth, x=x, z=z)
    straight = scored(table).score
    assert np.abs(score_of(table) - truth).mean() < 0.85 * np.abs(straight - truth).mean()


def test_a_few_far_rows_do_not_decide_a_slope():
    rng = np.random.default_rng(3)
    x = rng.normal(size=2000)
    treated = rng.random(2000) < 1 / (1 + np.exp(-x))
    far = x.copy()
    far[:10] = 30.0
    treated[:10] = False
    robust, plain = score_of(attached(treated, x=far)), scored(attached(treated, x=far)).score
    truth = 1 / (1 + np.exp(-x))
    assert np.abs(robust - truth)[10:].mean() < 0.5 * np.abs(plain - truth)[10:].mean()


def test_constant_columns_and_labels_are_no_trouble():
    rng = np.random.default_rng(4)
    treated = np.arange(60) % 2 == 1
    study = cv.Study(
        cv.Treatment("t", control=0),
        cv.Outcome("y", (0, 1)),
        {"x": cv.Range(0, 1), "c": cv.Range(0, 1), "g": cv.Categories(["a", "b", "d"])},
    )  # fmt: skip
    frame = {"t": treated.astype(int), "y": np.zeros(60), "x": rng.random(60), "c": np.full(60, 0.25)}
    table = public_rows(Table.attach({**frame, "g": rng.choice(["a", "b", "d"], 60)}, study))
    score = score_of(table)
    assert ((score > 0) & (score < 1)).all()
    assert score.mean() == pytest.approx(0.5, abs=0.02)


N = 4000


def columns(d=8, n=N, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (d, n)).astype(np.float32)


def drawn(x, logit, seed=1):
    return np.random.default_rng(seed).uniform(size=x.shape[1]) < expit(logit)


def test_a_group_between_two_jumps_is_found():
    x = columns()
    group = (x[2] > 0.25) & (x[5] < 0.0)
    leaves = treatment_leaves(x, drawn(x, 1.5 * group - 0.5), np.full(N, 0.4))
    # Cuts lie at sixteenths of the rows, so that a neighbouring leaf stands in for the group.
    assert max(np.corrcoef(leaf, group)[0, 1] for leaf in leaves) > 0.75


def test_treatment_is_off_its_scores_in_every_leaf():
    x = columns()
    treated, score = drawn(x, x[0] + (x[1] > 0.5) * x[3]), np.full(N, 0.5)
    leaves = treatment_leaves(x, treated, score)
    errors = [(treated[leaf].mean() - 0.5) / np.sqrt(0.25 / leaf.sum()) for leaf in leaves]
    assert len(leaves) >= 4
    assert np.abs(errors).min() > 1.9
    # Scores that hold all there is leave fewer groups, those that chance makes.
    assert len(treatment_leaves(x, treated, expit(x[0] + (x[1] > 0.5) * x[3]))) < 0.6 * len(leaves)


def test_labels_and_constants():
    codes = np.random.default_rng(3).integers(0, 2, (3, N)).astype(np.float32)
    leaves = treatment_leaves(codes, drawn(codes, 2.0 * codes[0] * codes[1] - 1.0), np.full(N, 0.4))
    both = codes[0] * codes[1]
    assert any(not (leaf & (both == 0)).any() for leaf in leaves)
    assert treatment_leaves(np.zeros((2, N), np.float32), codes[0] > 0, np.full(N, 0.5)).shape == (0, N)
    few = treatment_leaves(codes[:, :60], codes[0, :60] > 0, np.full(60, 0.5))
    assert few.shape == (0, 60)


def term_columns(d=8, n=N, seed=0):
    x = np.random.default_rng(seed).uniform(-1, 1, (d, n)).astype(np.float32)
    return x - x.mean(axis=1, keepdims=True)


def terms(x, logit, seed=1):
    """Return the terms of treatments drawn with these log-odds, beyond the line with the slopes of `x[0]`."""
    treated = np.random.default_rng(seed).uniform(size=x.shape[1]) < expit(logit)
    return treatment_terms(x, np.arange(len(x)), treated, expit(0.8 * x[0]))


def correlation(column, other):
    return abs(float(np.corrcoef(column, other)[0, 1]))


@pytest.mark.parametrize(
    "bend", [lambda x: x[2] ** 2, lambda x: x[3] > 0.3, lambda x: x[1] * x[4], lambda x: x[5] ** 3]
)
def test_a_bend_or_product_that_moves_treatment_is_found(bend):
    x = term_columns()
    moved = bend(x).astype(float)
    moved = (moved - moved.mean()) / moved.std()
    found = terms(x, 0.8 * x[0] + moved)
    # A neighbouring step can stand in for one that is not among the candidates.
    assert max(correlation(column, moved) for column in found.columns) > 0.75
    assert correlation(found.direction, moved) > 0.75


def test_constant_columns_are_no_trouble():
    x = term_columns()
    x[6] = 0.0
    found = terms(x, 0.8 * x[0] + 2 * x[1] * x[2])
    assert np.isfinite(found.columns).all()
    nothing = terms(np.zeros((2, 50), np.float32), np.zeros(50))
    assert nothing.columns.shape == (0, 50)
    assert nothing.direction is None


STUDY = cv.Study("t", cv.Outcome("y", (0, 1)), {"x": cv.Range(-3, 3)})


def rows(n=2000, seed=0, slope=2.0, bend=0.1):
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal(n), -3, 3)
    chance = 1 / (1 + np.exp(-slope * x))
    t = (rng.random(n) < chance).astype(int)
    y = np.clip(0.5 + 0.1 * x + (0.1 + bend * np.abs(x)) * t + 0.05 * rng.standard_normal(n), 0, 1)
    return {"x": x, "t": t, "y": y}


def test_the_limit_of_least_variance_is_that_of_the_definition():
    score = np.random.default_rng(1).beta(0.4, 0.4, 5000)
    limit = crump_limit(score)
    g = 1 / (score * (1 - score))

    def variance(a):
        kept = (score >= a) & (score <= 1 - a)
        return g[kept].mean() / kept.sum()

    tried = np.linspace(0.0, 0.4, 401)
    best = tried[np.argmin([variance(a) for a in tried])]
    assert limit == pytest.approx(best, abs=0.01)
    assert 0.05 < limit < 0.2
    kept = (score >= limit) & (score <= 1 - limit)
    assert 1 / (limit * (1 - limit)) == pytest.approx(2 * g[kept].mean(), rel=0.01)
    assert crump_limit(np.full(100, 0.5)) == 0.0


def test_rows_within_the_limits_are_kept_and_named():
    table = public_rows(Table.attach(rows(), STUDY))
    part = trimmed(table, 0.1)
    assert 0 < part.kept.rows < table.rows
    assert part.population == KeptPeople(part.kept.rows, 2000, 0.1)
    assert np.abs(part.kept.covariates["x"]).max() < np.abs(table.covariates["x"]).max()
    assert trimmed(table, 1e-6).population is None
    assert trimmed(table, "optimal").limit == pytest.approx(0.1, abs=0.06)


def test_the_effect_is_that_of_those_kept_and_says_so_first():
    data = rows(4000)
    found = cv.ate(data, STUDY, protects="outcome", epsilon=8, trim=0.2, noise=cv.SeededNoise(1))
    table = public_rows(Table.attach(data, STUDY))
    part = trimmed(table, 0.2)
    kept = part.kept.covariates["x"]
    truth = 0.1 + 0.1 * np.abs(kept).mean()
    everyone = 0.1 + 0.1 * np.abs(table.covariates["x"]).mean()
    low, high = found.interval()
    assert low - 0.01 <= truth <= high + 0.01
    assert everyone > high + 0.01
    assert found.details["rows"] == part.kept.rows
    assert found.details["rows_before_trimming"] == 4000
    first = str(found).splitlines()
    assert "SIMULATED" in first[0]
    assert first[1].startswith("*** TRIMMED: the effect is that of the")
    for text in (found.full(), found.write_up(), found.to_latex(), repr(found)):
        assert "TRIMMED" in text
    assert "everyone in the study" not in found.summary()
    assert found.tidy()[0]["population"] in found.warning
    assert found.table[0].name == "ATE, trimmed"
    assert cv.results.Result.from_dict(found.to_dict()) == found
    check_document(found.to_dict())
    assert "rows/linear/trimmed_rows.proof.md" in found.guarantee.pages


def test_outcomes_do_not_choose_rows_and_those_left_out_move_nothing():
    """All outcomes of a small table: the same rows are kept, and only their outcomes count."""
    x = np.array([-3.0, -1.0, -0.5, 0.0, 0.2, 0.5, 1.0, 3.0])
    t = np.array([0, 0, 1, 0, 1, 0, 1, 1])
    kept, means = set(), {}
    for y in itertools.product((0.0, 1.0), repeat=8):
        part = trimmed(public_rows(Table.attach({"x": x, "t": t, "y": np.array(y)}, STUDY)), 0.4)
        kept.add(tuple(part.kept.covariates["x"]))
        outcome = private_table(part.kept).outcome
        own = outcome / outcome.max() if outcome.max() else outcome
        inside = tuple(value for value, place in zip(y, x, strict=True) if place in part.kept.covariates["x"])
        means.setdefault(inside, set()).add(
            float(own[part.kept.treated].mean() - own[~part.kept.treated].mean())
        )
    assert len(kept) == 1
    assert 4 <= len(next(iter(kept))) < 8
    assert all(len(found) == 1 for found in means.values())
    # One outcome moves the difference of the arms' means by at most one over the smaller arm.
    treated = sum(t[list(x).index(place)] for place in next(iter(kept)))
    smaller = min(treated, len(next(iter(kept))) - treated)
    for inside, (value,) in means.items():
        for place in range(len(inside)):
            other = (*inside[:place], 1.0 - inside[place], *inside[place + 1 :])
            assert abs(next(iter(means[other])) - value) <= 1 / smaller + 1e-12


@pytest.mark.parametrize("trim", [0, 0.5, -0.1, "best", True])
def test_limits_that_are_none_are_refused(trim):
    with pytest.raises(ParameterError, match="CV-P669"):
        cv.ate(rows(50), STUDY, protects="outcome", epsilon=1, trim=trim)


def test_private_scores_and_arms_without_overlap_are_refused():
    with pytest.raises(ParameterError, match="CV-P668"):
        cv.ate(rows(50), STUDY, protects="record", epsilon=1, trim=0.1)
    apart = {"x": np.repeat([-3.0, 3.0], 50), "t": np.repeat([0, 1], 50), "y": np.zeros(100)}
    with pytest.raises(StudyError, match="CV-S065"):
        cv.ate(apart, STUDY, protects="outcome", epsilon=1, trim=0.3)


def test_trimmed_results_are_pooled_with_trimmed_ones_alone():
    asked = {"protects": "outcome", "epsilon": 2, "noise": cv.SeededNoise(1)}
    one = cv.ate(rows(seed=1), STUDY, trim=0.1, **asked)
    other = cv.ate(rows(seed=2), STUDY, trim=0.1, **asked)
    pooled = cv.pool({"a": one, "b": other})
    assert "TRIMMED" in str(pooled)
    with pytest.raises(ParameterError, match="CV-P503"):
        cv.pool({"a": one, "b": cv.ate(rows(seed=2), STUDY, **asked)})
