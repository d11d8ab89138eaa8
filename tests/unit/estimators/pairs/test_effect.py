"""Effects where treatment and outcome are private: splits, refusals, answers of every kind of study, their models."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, softmax
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import CounterveilError, ParameterError
from counterveil.estimators.outcome_place import DISTANCES, Spread
from counterveil.estimators.pairs.budget import choices, chosen
from counterveil.estimators.pairs.features import feature_sets
from counterveil.estimators.pairs.limits import INNERMOST, score_amounts
from counterveil.estimators.pairs.models import ReleasedSums, fit_models
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import Budget, Estimand, Unit
from counterveil.privacy.caveats import KnownScore, LinearScores
from counterveil.results.result import measure_terms
from counterveil.rows.outcome_window import WHOLE, Place
from counterveil.rows.pairs.moments import pair_sums
from counterveil.session import Kind

LEVEL = "treatment and outcome"
N = 4000


def people(n=N, events=False, randomised=False):
    rng = np.random.default_rng(11)
    x = rng.uniform(-1, 1, (n, 3))
    e = np.full(n, 0.4) if randomised else expit(0.9 * x[:, 0] - 0.5 * x[:, 1])
    t = rng.uniform(size=n) < e
    mean = 0.3 + 0.15 * x[:, 0] + 0.1 * t
    y = rng.uniform(size=n) < mean if events else mean + 0.2 * rng.normal(size=n)
    return {"t": t.astype(int), "y": y.astype(float)} | {f"x{j}": x[:, j] for j in range(3)}


def study(events=False, covariates=3, **more):
    bounds = (0, 1) if events else (-3, 4)
    names = {f"x{j}": cv.Range(-1, 1) for j in range(covariates)}
    return study_of("t", "y", bounds, names, treated=1, control=0, **({"randomised": False} | more))


def ask(data, declared, **more):
    words = {"protects": LEVEL, "epsilon": 4, "delta": "1e-6", "noise": cv.SeededNoise(7)} | more
    return cv.ate(data, declared, **words)


@pytest.mark.parametrize("estimand", [one.value for one in Estimand])
@pytest.mark.parametrize("events", [False, True], ids=["numbers", "events"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_every_estimand_is_answered_around_the_truth(estimand, events, delta):
    found = ask(people(events=events), study(events), estimand=estimand, delta=delta)
    half = found.uncertainty.half_width(0.95)
    assert abs(found.estimate - 0.1) < half
    assert half < 0.1
    assert found.guarantee.unit.value == LEVEL
    assert isinstance(found.assumptions, LinearScores)
    drawn = [words.split("; ")[1] for _, words in found.releases]
    sums = ["Gaussian noise"] if float(delta) else ["l2-ball noise"]
    places = [] if events else 2 * (sums if float(delta) else ["Laplace noise"])
    assert drawn == places + sums + ["Laplace noise"]


@pytest.mark.parametrize("randomised", [False, True], ids=["observational", "trial"])
def test_measures_of_both_means_come_from_one_release(randomised):
    data, declared = people(events=True, randomised=randomised), study(True, randomised=randomised)
    found, plain = ask(data, declared, measure="ratio"), ask(data, declared)
    low, high = found.interval()
    assert low < 4 / 3 < high < 1.7
    odds = found.as_measure("odds_ratio").interval()
    assert odds[0] < 14 / 9 < odds[1]
    difference = found.difference
    assert difference.estimate == pytest.approx(plain.estimate, abs=0.02)
    # Two noises with a quarter more sensitivity each: not much more than the one of the difference.
    assert np.diff(difference.interval()) < 1.3 * np.diff(plain.interval())
    assert [words for words, _ in found.releases][-1].endswith("squares")
    again = type(found).from_dict(found.to_dict())
    assert (again.interval(), again.full()) == (found.interval(), found.full())


def test_a_measure_holds_what_models_left_out():
    found = ask(people(events=True), study(True), measure="ratio")
    one, other = found.means.known
    moved = replace(found.means, known=(replace(one, bias=0.02), other))
    low, high = found.interval()
    longer = type(found).of("ratio", moved, **measure_terms(found)).interval()
    assert longer[0] < low - 0.02
    assert longer[1] > high + 0.02


def test_trials_take_the_declared_share_and_need_no_covariates():
    data = people(randomised=True)
    free = ask(data, study(randomised=True))
    told = ask(data, study(randomised=True, treated_share="0.4"))
    bare = ask(data, study(covariates=0, randomised=True))
    for found in (free, told, bare):
        assert abs(found.estimate - 0.1) < found.uncertainty.half_width(0.95)
        assert found.assumptions is None
    assert told.details["se_models"] == 0.0


@pytest.mark.parametrize("events", [False, True])
def test_the_plan_spends_the_whole_budget_and_delta_on_sums(events):
    assert DISTANCES[0] == INNERMOST
    table = Table.attach(people(events=events), study(events))
    for budget in (Budget(1), Budget(1, "1e-6")):
        plan = chosen(table, budget).plan
        assert sum(plan.parts.values()) == pytest.approx(1.0)
        assert plan.kind("models") is (Kind.VECTOR if budget.pure else Kind.NORMAL)
        assert plan.kind("score") is Kind.CELLS
        assert ("centre" in plan.parts) is not events
        assert dict(plan.amounts)["score"] in score_amounts(budget, not events)
        normal = [amount for name, amount in plan.amounts if plan.kind(name) is Kind.NORMAL]
        pure = sum(amount for _, amount in plan.amounts) - sum(normal)
        assert len(normal) == (0 if budget.pure else 1 if events else 3)
        # Places share the delta of the vector.
        if normal:
            assert sum(mu**2 for mu in normal) <= mu_of(budget.epsilon - pure, budget.delta) ** 2
        assert pure <= budget.epsilon


def test_more_budget_and_more_rows_expect_shorter_intervals():
    table = Table.attach(people(), study())
    lengths = [choices(table, Budget(e, "1e-6"))[0].length for e in (1, 2, 4)]
    assert lengths == sorted(lengths, reverse=True)
    small = Table.attach(people(1000), study())
    assert choices(small, Budget(1, "1e-6"))[0].length > lengths[0]


def test_too_small_a_budget_is_refused_before_anything_is_spent():
    for rows, epsilon, code in ((300, "0.2", "CV-P408"), (12, 4, "CV-P407")):
        with pytest.raises(ParameterError) as caught:
            ask(people(rows), study(), epsilon=epsilon, delta=0)
        assert caught.value.code == code


def test_refusals_read_no_private_column():
    data, other = people(300), people(300)
    other["t"], other["y"] = 1 - other["t"], np.zeros(300)
    told = []
    for columns in (data, other):
        with pytest.raises(ParameterError) as caught:
            ask(columns, study(), epsilon="0.2", delta=0)
        told.append(str(caught.value))
    assert told[0] == told[1]


def test_lines_alone_are_said():
    table = Table.attach(people(1200), study())
    assert int(chosen(table, Budget("0.9")).features.order.max()) == 1
    found = ask(table, study(), epsilon="0.9", delta=0)
    assert found.assumptions == LinearScores(False, False, False)


@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_a_declared_score_is_not_released_and_leaves_no_model_assumed(delta):
    data = people()
    e = expit(0.9 * data["x0"] - 0.5 * data["x1"])
    names = {"e": cv.Range("0.1", "0.9"), **{f"x{j}": cv.Range(-1, 1) for j in range(3)}}
    declared = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (-3, 4)), names, assignment=cv.Propensity("e")
    )
    found = ask(data | {"e": e}, declared, epsilon=1, delta=delta)
    fitted = ask(data | {"e": e}, declared._changed(score=None), epsilon=1, delta=delta)
    half = found.uncertainty.half_width(0.95)
    assert abs(found.estimate - 0.1) < 1.5 * half
    assert half < fitted.uncertainty.half_width(0.95)
    assert found.assumptions == KnownScore("e")
    assert found.details["se_models"] == 0.0
    table = Table.attach(data | {"e": e}, declared)
    rows = chosen(table, Budget(1)).features
    assert (
        len(pair_sums(rows, table.treated, [(table.outcome, WHOLE)], propensity_known=True))
        == 2 * rows.z.shape[1]
    )


def test_few_outcomes_far_from_the_others_are_covered():
    """One in a hundred of one arm at the far end of a range 20 times too wide: noise hides them from the search."""
    n, covered = 2000, 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        t = np.arange(n) % 2
        far = 90.0 * (rng.uniform(size=n) < 0.01) * t
        data = {"t": t, "y": rng.normal(0.5 * t, 1, n) + far}
        declared = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (-99, 101)), assignment=cv.Trial())
        low, high = ask(data, declared, epsilon=1, delta=0, noise=cv.SeededNoise(seed)).interval()
        covered += low <= 1.4 <= high
    assert covered >= 6


EFFECTS = np.array([0.0, 0.1, -0.1])


def arm_people(n=4000, events=False):
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (n, 2))
    chance = softmax(np.column_stack([np.zeros(n), 0.8 * x[:, 0], -0.6 * x[:, 1]]), axis=1)
    arm = (rng.random((n, 1)) > chance.cumsum(axis=1)).sum(axis=1)
    mean = 0.4 + 0.15 * x[:, 0] + EFFECTS[arm]
    y = rng.random(n) < mean if events else mean + 0.2 * rng.standard_normal(n)
    return {"t": arm, "y": y.astype(float), "a": x[:, 0], "b": x[:, 1]}


def arm_study(bounds=(-1, 2), **more):
    names = {"a": cv.Range(-1, 1), "b": cv.Range(-1, 1)}
    return study_of("t", "y", bounds, names, arms=(0, 1, 2), reference=0, **more)


def ask_arms(data, declared, **more):
    words = {"protects": LEVEL, "epsilon": 4, "delta": "1e-6", "noise": cv.SeededNoise(3)} | more
    return cv.arms(data, declared, **words)


@pytest.mark.parametrize("events", [False, True], ids=["numbers", "events"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_effects_of_all_arms_are_answered_around_the_truth(events, delta):
    found = ask_arms(arm_people(events=events), arm_study((0, 1) if events else (-1, 2)), delta=delta)
    for arm, (low, high) in found.interval().items():
        assert low < EFFECTS[arm] < high < low + 0.12
    assert found.guarantee.unit is Unit.TREATMENT_AND_OUTCOME
    assert found.assumptions is not None
    assert len(found.releases) == (2 if events else 4)
    assert all(mean.size is None for mean in found.means)
    assert "cv.overlap" not in found.to_html()
    again = type(found).from_dict(found.to_dict())
    assert (again.interval(), again.full()) == (found.interval(), found.full())


def test_contrasts_hold_the_errors_of_models_of_both_means():
    found = ask_arms(arm_people(), arm_study())
    reference, one = (mean.known.uncertainty for mean in found.means[:2])
    both = found.table[0].known.uncertainty
    assert both.extra == one.extra + reference.extra > 0
    assert both.bias == one.bias + reference.bias


def test_a_trial_needs_no_covariates_and_what_has_no_form_is_refused():
    plain = cv.Study(
        cv.Treatment("t", arms=(0, 1, 2), reference=0), cv.Outcome("y", (-1, 2)), assignment=cv.Trial()
    )
    assert ask_arms(arm_people(), plain).assumptions is None
    with_clusters = arm_study(cluster="school")
    for declared, more, code in (
        (plain._changed(randomised=None), {}, "CV-S051"),
        (arm_study(), {"method": "weighting"}, "CV-P016"),
        (arm_study(), {"settings": cv.settings.Arms()}, "CV-P019"),
        (with_clusters, {}, "CV-P018"),
    ):
        with pytest.raises(CounterveilError) as caught:
            ask_arms(arm_people(100), declared, **more)
        assert caught.value.code == code


# Where noise is all but absent, models differ from exact ones by a ridge and by rounding of features.
NEAR = 2e-3
AROUND = Spread(WHOLE, 0.3)


def model_people(curved):
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (N, 3))
    bend = curved * (x[:, 0] * x[:, 1] * 3)
    t = rng.uniform(size=N) < expit(0.8 * x[:, 0] + 0.4 * x[:, 2] + bend)
    y = np.clip(0.3 * x[:, 0] + 0.3 * bend + 0.2 * t + 0.3 * rng.normal(size=N), -2, 2)
    covariates = {f"x{j}": cv.Range(-1, 1) for j in range(3)}
    study = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (-2, 2)), covariates, assignment=cv.Observational()
    )
    columns = {"t": t.astype(int), "y": y} | {f"x{j}": x[:, j] for j in range(3)}
    return Table.attach(columns, study)


def fitted(table, rows, variance, rng=None, place=AROUND):
    exact = np.array([float(v) for v in pair_sums(rows, table.treated, [(table.outcome, WHOLE)])])
    noise = 0.0 if rng is None else np.sqrt(variance) * rng.normal(size=len(exact))
    sums = ReleasedSums.of(exact + noise, variance, rows)
    return fit_models(rows, sums, place, by_design=None, constant=False)


def test_without_noise_scores_and_arms_solve_their_equations():
    table = model_people(curved=0)
    rows = feature_sets(table)[0]
    models = fitted(table, rows, 1e-9)
    e, w = models.propensity, rows.z * rows.weight[:, None]
    t, y = table.treated.astype(float), table.outcome / 2**23 - 1
    assert (w.T @ (e - t)) / N == pytest.approx(0, abs=NEAR)
    left = t * y - e * (rows.z @ models.arms[0].coefficients)
    assert (w.T @ left) / N == pytest.approx(0, abs=NEAR)
    assert np.abs(models.arms[0].left).max() < 0.05
    assert models.score is not None
    assert models.score.freedom == pytest.approx(rows.z.shape[1], rel=0.02)


def test_a_product_that_stands_out_is_kept_and_others_are_not():
    table = model_people(curved=1)
    rows = feature_sets(table)[-1]
    models = fitted(table, rows, 60.0**2, np.random.default_rng(1))
    assert models.score is not None
    sizes = np.abs(models.score.coefficients)
    product = int(np.flatnonzero(rows.order == 3)[0])
    assert sizes[product] > 0.4
    others = (rows.order >= 2) & (np.arange(len(sizes)) != product)
    assert sizes[others].max() < 0.1


def test_what_shrinkage_leaves_is_seen_where_noise_allows():
    table = model_people(curved=1)
    rows = feature_sets(table)[-1]
    weights = np.ones(N) / 2, np.ones(N) / 2
    sharp = fitted(table, rows, 1.0)
    blunt = fitted(table, rows, 3000.0**2, np.random.default_rng(2))
    assert sharp.products(weights, rows)[2] < blunt.products(weights, rows)[2] / 100
    assert blunt.products(weights, rows)[0] > sharp.products(weights, rows)[0]


def test_known_propensities_leave_no_product_of_errors():
    table = model_people(curved=0)
    rows = feature_sets(table)[0]
    exact = np.array([float(v) for v in pair_sums(rows, table.treated, [(table.outcome, WHOLE)], True)])
    known = np.full(N, 0.3)
    models = fit_models(
        rows, ReleasedSums.of(exact, 1.0, rows, known), Spread(WHOLE, 0.0), by_design=known, constant=True
    )
    assert set(models.propensity) == {0.3}
    assert models.products((np.ones(N), np.ones(N)), rows) == (0.0, 0.0, 0.0)
    # The share of an outcome from -1 to 1 that is halfway gives its largest standard deviation.
    assert models.sd == pytest.approx(1.0, abs=0.01)


def test_clipped_outcomes_are_corrected_for():
    # (0.25^2 + 0.5 * 1) / (0.25^2 + 0.5^2)
    half = Place(WHOLE.centre, WHOLE.half_width // 2)
    spread = Spread(half, 0.5, np.array([0.25, 1.0]), np.array([0.5, 0.5]))
    assert spread.stretch == pytest.approx(1.8)
    table = model_people(curved=0)
    plain = fitted(table, feature_sets(table)[0], 1e-9, place=Spread(half, 0.5)).arms[0]
    longer = fitted(table, feature_sets(table)[0], 1e-9, place=spread).arms[0]
    assert longer.coefficients == pytest.approx(1.8 * plain.coefficients)
    more = 2 * 0.8**2 * np.outer(plain.coefficients, plain.coefficients)
    assert longer.covariance == pytest.approx(1.8**2 * plain.covariance + more)
