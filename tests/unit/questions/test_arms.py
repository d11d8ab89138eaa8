"""Several arms against a reference: the front door, the adjusted methods, intervals, renderings, the ledger."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.unit.questions.arm_trials import GAINS, ask, study, trial
from tools.loose_study import study_of

import counterveil as cv
from counterveil.errors import BudgetError, ParameterError, StudyError


@pytest.mark.parametrize("method", ["weighting", "matching"])
def test_adjusted_methods_remove_what_covariates_confound(method):
    data = trial(n=6000, confounded=True)
    declared = study(randomised=False)
    raw = ask(data, declared, epsilon=10_000, method="difference_in_means")
    adjusted = ask(data, declared, epsilon=10_000, method=method)
    truth = GAINS[1:]
    wrong = [abs(effect.estimate - t) for effect, t in zip(raw.table, truth, strict=True)]
    right = [abs(effect.estimate - t) for effect, t in zip(adjusted.table, truth, strict=True)]
    assert max(wrong) > 2
    # Three standard errors of the adjusted estimate, which are a fraction of the bias removed.
    assert all(off < 3 * effect.std_error.sampling for off, effect in zip(right, adjusted.table, strict=True))
    before, after = (
        max(abs(row[f"difference_{when}"]) for row in adjusted.diagnostics["balance"])
        for when in ("before", "after")
    )
    assert after < before / 4
    assert "CONFOUNDING" in str(raw)


def test_matching_is_the_average_of_nearest_neighbours():
    """With one neighbour, everybody's outcome in an arm is that of the nearest on the score who may still be used."""
    data = trial(n=60, confounded=True)
    settings = cv.settings.Arms(neighbours=1)
    result = ask(data, study(), epsilon=10_000, method="matching", settings=settings)
    from counterveil.data import Table
    from counterveil.data.features import covariate_features
    from counterveil.numerics.propensity import fit_multinomial

    table = Table.attach(data, study())
    scores = fit_multinomial(covariate_features(table).values, table.arm, 3, 1 / 60).scores
    y = np.clip(data["y"], 0, 100)
    limits = [int(each.split(": ")[1]) for each in result.details["max_uses"].split("; ")]
    for code, mean in enumerate(result.means):
        logit = np.log(scores[:, code] / (1 - scores[:, code]))
        left, imputed = dict.fromkeys(np.flatnonzero(table.arm == code), limits[code]), []
        for i in range(60):
            nearest = i if i in left else min(left, key=lambda j: (left[j] == 0, abs(logit[j] - logit[i])))
            if nearest != i:
                left[nearest] -= 1
            imputed.append(y[nearest])
        assert mean.estimate == pytest.approx(np.mean(imputed), abs=1e-2)


@pytest.mark.parametrize("arms", [3, 5])
@pytest.mark.parametrize("mechanism", ["laplace", "staircase", "gaussian"])
def test_noise_is_smaller_than_that_of_contrasts_that_each_pay_a_part(arms, mechanism):
    labels = tuple(range(arms))
    data = {"arm": np.tile(labels, 400), "y": np.linspace(0, 1, 400 * arms)}
    declared = cv.Study(
        cv.Treatment("arm", arms=labels, reference=0), cv.Outcome("y", (0, 1)), assignment=cv.Trial()
    )
    delta = Fraction(1, 10**6) if mechanism == "gaussian" else 0
    whole = {"epsilon": 1, "delta": delta, "mechanism": mechanism}
    result = cv.arms(data, declared, protects="outcome", noise=cv.SeededNoise(1), **whole)
    two = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 1)), assignment=cv.Trial())
    pair = {"arm": np.tile([0, 1], 400), "y": np.linspace(0, 1, 800)}
    part = {"epsilon": Fraction(1, arms - 1), "delta": delta / (arms - 1), "mechanism": mechanism}
    naive = cv.ate(pair, two, protects="outcome", noise=cv.SeededNoise(1), **part)
    for effect in result.table:
        assert effect.known.uncertainty.noise.variance < 0.8 * naive.uncertainty.noise.variance
    if mechanism == "laplace":
        shares = [float(one) for one in result.details["variance_budget_share"].split("; ")]
        assert len(shares) == arms
        kept = 1 - shares[0]
        assert result.table[0].known.uncertainty.noise.variance == pytest.approx(4 * (1 / 400 / kept) ** 2)


def test_all_arms_cost_one_budget():
    with cv.open_ledger(":memory:", create=True) as ledger:
        ledger.register("trial", cv.Budget(1))
        cv.arms(trial(300), study(), protects="outcome", epsilon=1, ledger=ledger)
        assert ledger.account("trial").spent.epsilon == 1
        with pytest.raises(BudgetError):
            cv.arms(trial(300), study(), protects="outcome", epsilon="1/10", ledger=ledger)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"protects": "record", "method": "weighting"}, "CV-P016"),
        ({"method": "magic"}, "CV-P016"),
        ({"settings": cv.settings.Arms()}, "CV-P019"),
        ({"settings": 5, "method": "matching"}, "CV-P019"),
    ],
)
def test_wrong_arguments_are_refused_before_the_data_are_looked_at(wrong, code):
    with pytest.raises(ParameterError, match=code):
        cv.arms("no such file.csv", study(), **({"protects": "outcome", "epsilon": 1} | wrong))


@pytest.mark.parametrize(
    ("declared", "method", "code"),
    [
        ({"randomised": None, "covariates": {}}, "auto", "CV-S050"),
        ({"covariates": {}}, "weighting", "CV-S051"),
        ({"arms": None, "reference": None}, "auto", "CV-S064"),
    ],
)
def test_studies_that_do_not_fit_the_question(declared, method, code):
    with pytest.raises(StudyError, match=code):
        cv.arms("no such file.csv", study(**declared), protects="outcome", epsilon=1, method=method)


def test_the_automatic_choice_weights_where_nobody_declared_a_trial():
    observed = study(randomised=None)
    auto, named = (
        cv.arms(trial(), observed, protects="outcome", epsilon=1, method=method, noise=cv.SeededNoise(1))
        for method in ("auto", "weighting")
    )
    assert [effect.estimate for effect in auto.table] == [effect.estimate for effect in named.table]


def test_pairs_of_arms_print_as_a_table():
    found = cv.arms(trial(), study(), protects="outcome", epsilon=1, noise=cv.SeededNoise(1)).pairwise()
    heading, *rows = str(found).splitlines()
    assert "simultaneous 95%" in heading
    assert [row.split("  ")[0] for row in map(str.strip, rows)] == [effect.name for effect in found]
    assert [row["contrast"] for row in found.tidy()] == [effect.name for effect in found]
    assert isinstance(found, tuple)


def test_a_question_about_two_arms_is_refused():
    for method in ("auto", "difference_in_means"):
        with pytest.raises(StudyError, match="CV-S063"):
            cv.ate("no such file.csv", study(), protects="outcome", epsilon=1, method=method)


def test_the_slope_over_doses_is_that_of_least_squares():
    rng = np.random.default_rng(3)
    dose = rng.choice([0, 5, 20], 3000, p=[0.5, 0.3, 0.2])
    data = {"dose": dose, "y": np.clip(0.3 + 0.01 * dose + rng.normal(0, 0.1, 3000), 0, 1)}
    doses_of = cv.Study(
        cv.Treatment("dose", arms=[0, 5, 20], reference=0),
        cv.Outcome("y", (0, 1)),
        assignment=cv.Trial(),
    )
    found = cv.arms(data, doses_of, protects="outcome", epsilon=10**5, noise=cv.SeededNoise(1))
    slope = found.slope()
    assert slope.estimate == pytest.approx(np.polyfit(dose, data["y"], 1)[0], rel=1e-3)
    halved = found.slope({0: 0, 5: np.int64(10), 20: np.float64(40)})
    assert np.array(halved.interval()) * 2 == pytest.approx(np.array(slope.interval()))
    assert slope.test("superiority", margin=0.005).met
    for doses in ({0: 1}, {0: 1, 5: 1, 20: 1}, {0: "a", 5: 2, 20: 3}, [1, 2], 5, {0: 0, 5: 1, 20: 1e300}):
        with pytest.raises(ParameterError, match="CV-P797"):
            found.slope(doses)


def test_an_arm_too_small_for_its_variance_spends_all_on_its_mean_and_counts_by_its_noise():
    dose = np.repeat([0, 5, 20], [600, 380, 20])
    data = {"dose": dose, "y": np.where(np.arange(1000) % 2, 0.3, 0.6) + 0.01 * dose}
    doses_of = cv.Study(
        cv.Treatment("dose", arms=[0, 5, 20], reference=0),
        cv.Outcome("y", (0, 1)),
        assignment=cv.Trial(),
    )
    found = cv.arms(data, doses_of, protects="outcome", epsilon=1, noise=cv.SeededNoise(1))
    known = [mean.known.uncertainty for mean in found.means]
    assert [one.variance_noise is None for one in known] == [False, False, True]
    assert found.details["variance_budget_share"].endswith("; 0")
    # One change of all outcomes of an arm moves the slope by its weight.
    moved = [replace(one, known=replace(one.known, estimate=one.estimate + 1)) for one in found.means]
    weights = [
        replace(found, means=(*found.means[:k], moved[k], *found.means[k + 1 :])).slope().estimate
        - found.slope().estimate
        for k in range(3)
    ]
    sizes = np.array([600, 380, 20])
    noisy = np.array([float(one.noise.variance) for one in known])
    worth = sizes / (1 + sizes * noisy * 36)
    x = np.array([0, 5, 20]) - worth @ [0, 5, 20] / worth.sum()
    assert weights == pytest.approx(worth * x / (worth @ x**2))


@pytest.mark.parametrize("protects", ["outcome", "treatment and outcome", "record"])
def test_a_dose_that_is_cut_is_a_study_of_its_cells(protects, tmp_path):
    rng = np.random.default_rng(3)
    dose = rng.uniform(-1, 11, 900).round(2)
    dose[:3] = 2, 5, 10  # a cut point is in the upper cell, the end of the range in the last
    y = np.clip(2 + 0.2 * dose + rng.normal(0, 1, 900), -5, 10)
    declared = cv.Study(
        cv.Treatment("dose", arms=cv.Range(0, 10).cut(2, 5)),
        cv.Outcome("y", (-5, 10)),
        assignment=cv.Trial(),
    )
    assert declared.arms == (1, 3.5, 7.5)
    assert cv.Study.from_dict(declared.to_dict()) == declared

    def asked(data, one):
        return cv.arms(data, one, protects=protects, epsilon=4, noise=cv.SeededNoise(4))

    found = asked({"dose": dose, "y": y}, declared)
    middles = np.array(declared.arms)[np.digitize(dose, [2, 5])]
    cells = cv.Study(
        cv.Treatment("dose", arms=declared.arms, reference=1),
        cv.Outcome("y", (-5, 10)),
        assignment=cv.Trial(),
    )
    same = asked({"dose": middles, "y": y}, cells)
    assert found.slope().interval() == same.slope().interval()
    assert found.dose_response() == same.dose_response()
    assert found.slope().estimate == pytest.approx(0.2, abs=0.15)
    file = tmp_path / "doses.csv"
    file.write_text("dose,y\n" + "\n".join(f"{one},{other}" for one, other in zip(dose, y, strict=True)))
    assert asked(file, declared).interval() == found.interval()


def test_a_dose_has_three_cells_and_a_reference_in_one_of_them():
    asked = {"treatment": "dose", "outcome": "y", "outcome_range": (0, 1)}
    assert study_of(arms=cv.Range(0, 10).cut(2, 5), reference=4, **asked).reference == 3.5
    for arms, reference, code in (
        (cv.Range(0, 10).cut(2), None, "CV-S131"),
        (cv.Range(0, 10).cut(2, 5), "high", "CV-S062"),
    ):
        with pytest.raises(cv.CounterveilError, match=code):
            study_of(arms=arms, reference=reference, **asked)


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_private_records_of_observational_studies_are_adjusted(delta):
    data, declared = trial(n=12_000, confounded=True), study(randomised=False)
    words = {"protects": "record", "delta": delta}
    found = ask(data, declared, epsilon=8, **words)
    raw = ask(data, declared, epsilon=8, method="difference_in_means", **words)
    intervals = [found.interval(), raw.interval()]
    for arm, truth in zip(found.means[1:], GAINS[1:], strict=True):
        (low, high), (least, most) = (each[arm.name] for each in intervals)
        assert low < truth < high < low + 3
        assert not least < truth < most
    assert found.method == "doubly robust with moments by arm"
    assert "moments by arm" not in raw.method
    assert type(found).from_dict(found.to_dict()).interval() == found.interval()
    # Who is in the sample moves all means alike.
    apart = found.means[0].known.uncertainty, found.means[1].known.uncertainty
    assert found.table[0].known.uncertainty.variance < apart[0].variance + apart[1].variance
    assert found.table[0].known.uncertainty.extra < apart[0].extra + apart[1].extra


@pytest.mark.parametrize("epsilon", [10**5, 10**10])
def test_without_noise_private_arms_are_those_of_augmented_weights(epsilon):
    data = trial(n=6000, confounded=True)
    found = ask(data, study(randomised=False), epsilon=epsilon, protects="record")
    for effect, truth in zip(found.table, GAINS[1:], strict=True):
        assert abs(effect.estimate - truth) < 3 * effect.std_error.sampling
        assert effect.std_error.noise < 0.1 * effect.std_error.sampling


def test_an_adjustment_of_private_arms_that_is_not_affordable_is_refused_and_nothing_is_spent():
    with cv.open_ledger(":memory:", create=True) as ledger:
        ledger.register("study", cv.Budget(1))
        with pytest.raises(ParameterError, match="CV-P404") as refused:
            cv.arms(trial(200), study(randomised=False), protects="record", epsilon="1/2", ledger=ledger)
        assert "kappa" not in str(refused.value)
        assert ledger.account("study").spent.epsilon == 0
