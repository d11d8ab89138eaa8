"""Optimal public weights, outcome-private."""

from dataclasses import replace

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.datasets import synth
from counterveil.errors import ParameterError, StudyError
from counterveil.numerics.products import linear_form
from counterveil.privacy import Estimand
from counterveil.privacy.caveats import Caveat, KnownScore
from counterveil.questions.plan import Assumptions, simulate
from counterveil.results.question import Question
from counterveil.statistics.linear.effect import chosen_residual_variance, fitting_shape
from counterveil.statistics.linear.weighting import adjusted_table, weighting_design
from counterveil.statistics.linear.weighting_design import weighted

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
    study = cv.Study("t", "y", (0, 1), {"x": cv.Range("0.01", "0.99")}, control=0, score=score)
    table = Table.attach({"t": t, "y": np.zeros(14), "x": x}, study)
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
    study = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)}, control=0)
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
    linear, variance_by = (
        "statistics/linear/linear_estimate.proof.md",
        "statistics/linear/kernels/residual_variance.proof.md",
    )
    assert by_arm.guarantee.pages[:2] == (linear, variance_by)
    assert by_row.guarantee.pages[0] == linear
    assert variance_by not in by_row.guarantee.pages


def predicted(data, error=0.02):
    """Return the data with a column that predicts the outcome without the effect, and a study with it."""
    rng = np.random.default_rng(9)
    y, t = np.asarray(data.frame["y"]), np.asarray(data.frame["treated"])
    guess = y - 0.5 * t + rng.uniform(-error, error, len(y))
    study = cv.Study(
        "treated", "y", (0, 5), dict(data.study.covariates) | {"guess": cv.Range(0, 5)}, control=0
    )
    return {**data.frame, "guess": guess}, study


@pytest.mark.parametrize("epsilon", [1, 2, 4])
def test_slopes_are_fitted_until_just_room_for_the_imbalance_is_left(confounded, epsilon):
    table = Table.attach(confounded.frame, confounded.study)
    question = Question.ask(
        protects="outcome", epsilon=epsilon, delta=0, estimand="ATE", method="weighting", level=0.95,
        mechanism=None, request_id=None,
    )  # fmt: skip
    settings = cv.settings.Weighting()
    found = weighted(table, weighting_design(table, settings), settings, Estimand.ATE, 2 / epsilon**2)
    loading = chosen_residual_variance(found, table.treated, question).loading
    assert found.imbalance**2 <= loading <= 1.1 * found.imbalance**2


def test_what_is_left_of_covariates_and_of_squares_follows_the_imbalance_of_each(confounded):
    table = Table.attach(confounded.frame, confounded.study)
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
    moved = adjusted_table(Table.attach(frame, study), settings)
    expected = np.clip(np.asarray(frame["y"]) - frame["guess"], 0, 0.25) / 0.25
    assert moved.outcome / 2**24 == pytest.approx(expected, abs=2e-6)
    assert moved.study.outcome_range == (0, 0.25)


def test_a_prediction_that_is_no_covariate_is_refused(confounded):
    settings = cv.settings.Weighting(prediction="guess", residual_range=(-1, 1))
    with pytest.raises(ParameterError, match="CV-P222"):
        ask(confounded, settings=settings)


def test_refused_without_covariates_and_at_record_level(confounded):
    bare = cv.Study("treated", "y", (0, 5), control=0)
    with pytest.raises(StudyError, match="CV-S051"):
        ask(confounded, study=bare)
    with pytest.raises(ParameterError, match="CV-P018"):
        cv.ate(confounded.frame, confounded.study, protects="record", epsilon=1, method="weighting")


def test_degenerate_tables_get_an_answer():
    study = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1), "k": cv.Categories(["a", "b", "c"])}, control=0)
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
        treatment="t", outcome="y", outcome_range=(0, 1), covariates={f"x{k}": cv.Range(0, 1) for k in range(5)},
    )  # fmt: skip
    assumed = Assumptions.of(declared, mean=0.3, effect=0.1, explained=0.3, confounding=0.7, binary=True)
    errors = {"usual": [], "small": []}
    for draw in range(12):
        people = simulate(declared, 500, assumed, np.random.default_rng([5, draw]))
        for name, variance_by in (("usual", None), ("small", 1 / 16)):
            found = cv.ate(
                people.frame, declared, protects="outcome", epsilon=0.25, method="weighting",
                settings=cv.settings.Weighting(signal=variance_by, residual=variance_by), noise=cv.SeededNoise(draw),
            )  # fmt: skip
            errors[name].append(found.estimate - people.effect(Estimand.ATE))
    assert np.mean(errors["small"]) > 0.06
    assert np.mean(errors["usual"]) < 0.04


@pytest.mark.parametrize(("bounds", "sd"), [((0, 1), 3 / 8), ((0, 10), 1 / 8), ((-1, 1), 1 / 8)])
def test_what_is_supposed_of_outcomes_follows_from_declarations(bounds, sd):
    declared = cv.Study(treatment="t", outcome="y", outcome_range=bounds)
    assert cv.settings.Weighting().assumed_sds(declared.outcome_range) == (sd, sd)
    assert cv.settings.Weighting(signal=0.2).assumed_sds(declared.outcome_range) == (0.2, sd)


def test_an_interval_is_cut_to_the_range_of_the_outcome_not_of_residuals(confounded):
    slopes = sum(confounded.frame[name] for name in confounded.study.covariates)
    declared = cv.Study(
        treatment="treated", outcome="y", outcome_range=(0, 5),
        covariates={**confounded.study.covariates, "guess": cv.Range(0, 5)}, control=0,
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
    known = cv.Study("t", "y", (-1, 2), both, control=0, score="chance")
    blind = cv.Study("t", "y", (-1, 2), {"x": cv.Range(0, 1)}, control=0)
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
    study = cv.Study("t", "y", (-1, 2), {"chance": cv.Range("0.25", "0.75")}, control=0, score="chance")
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
