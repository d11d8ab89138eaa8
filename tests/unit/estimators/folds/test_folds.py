"""Estimates from folds: any learner, nothing said about the rows, and how many folds there are."""

import logging
import warnings
from fractions import Fraction

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.errors import ParameterError, StudyError
from counterveil.estimators.folds.aggregation import folding_of, released_clip, uncertainty_of
from counterveil.estimators.folds.clip import Clip, FoldDesign, chosen_clip, typical_centre
from counterveil.numerics.fold_learners import ols_effect
from counterveil.privacy import Budget
from counterveil.questions.ate import AteArguments
from counterveil.rows.folds.quiet_learners import effect_of_fold
from counterveil.rows.moments.weighted_moments import WeightedMeans
from counterveil.session import Plan, SeededNoise
from counterveil.settings import ModelPair

STUDY = cv.Study(
    treatment=cv.Treatment("t", control=0),
    outcome=cv.Outcome("y", (0, 2)),
    covariates={"a": cv.Range(0, 1), "b": cv.Binary()},
)  # fmt: skip


def people(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.random(n), rng.integers(0, 2, n)
    t = (rng.random(n) < 0.3 + 0.4 * a).astype(int)
    return {"a": a, "b": b, "t": t, "y": 0.3 + 0.8 * a + 0.5 * t + 0.2 * rng.random(n)}


def ask_for(method="sample_and_aggregate", **extra):
    given = {"epsilon": 4, "noise": SeededNoise(1)} | extra
    return cv.ate(people(), STUDY, protects="record", method=method, **given)


def question(method="sample_and_aggregate", **extra):
    return AteArguments(protects="record", method=method, **({"epsilon": 4} | extra)).about(STUDY)


class Line:
    """An estimator in scikit-learn's style."""

    def fit(self, x, y):
        self.slopes_ = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]
        return self

    def predict(self, x):
        return np.column_stack([np.ones(len(x)), x]) @ self.slopes_

    def predict_proba(self, x):
        p = np.clip(self.predict(x), 0.05, 0.95)
        return np.column_stack([1 - p, p])


@pytest.mark.parametrize("learner", ["ols", "aipw", ModelPair(Line(), Line()), ols_effect])
@pytest.mark.parametrize("delta", [0, 1e-6])
def test_the_effect_is_found_with_any_learner(learner, delta):
    settings = cv.settings.Folds(learner=learner, folds=30)
    result = ask_for(epsilon=200, delta=delta, settings=settings)
    assert result.estimate == pytest.approx(0.5, abs=0.03)
    low, high = result.interval()
    assert high - low < 0.15
    assert (result.interval_target is None) == isinstance(learner, str)
    # What is promised rests on a learner that is not ours, and the result says so.
    assert any("rests on the learner" in text for text in result.guarantee.remarks) != isinstance(
        learner, str
    )


def shouting(x, t, y):
    print("row", y[0])
    warnings.warn(f"row {y[0]}", stacklevel=1)
    logging.getLogger("learner").critical("row %s", y[0])
    np.float64(1) / np.zeros(1)
    raise RuntimeError(f"row {y[0]}")


def leaving(x, t, y):
    raise SystemExit(3)


def endless(x, t, y):
    return float("inf")


@pytest.mark.parametrize("learner", [shouting, leaving, endless])
def test_a_failing_learner_counts_as_zero_and_says_nothing(learner, capfd, caplog, recwarn):
    x = np.zeros((4, 1))
    assert effect_of_fold(learner, x, np.array([0.0, 1, 0, 1]), np.arange(4.0)) == 0.0
    out, err = capfd.readouterr()
    assert out == err == ""
    assert caplog.records == []
    assert len(recwarn) == 0
    assert logging.root.manager.disable == logging.NOTSET


class Remembering:
    """A learner with state: without a copy for each fold, later folds would see earlier ones."""

    def __init__(self):
        self.seen = 0.0

    def __call__(self, x, t, y):
        self.seen += float(y.sum())
        return self.seen


class Drawing:
    """Draws from a generator of its own, more often where there are more treated rows."""

    def __init__(self):
        self.generator = np.random.default_rng(0)

    def __call__(self, x, t, y):
        return float(sum(self.generator.random() for _ in range(1 + int(t.sum()))))


@pytest.mark.parametrize("learner", [Remembering(), Drawing()])
def test_nothing_is_carried_from_one_fold_to_the_next(learner):
    x, t = np.zeros((4, 1)), np.array([0.0, 1, 0, 1])
    alone = effect_of_fold(learner, x, t, np.ones(4))
    assert alone > 0
    for other in (np.zeros(4), np.ones(4) * 9):
        effect_of_fold(learner, x, other > 0, other)
        assert effect_of_fold(learner, x, t, np.ones(4)) == alone


def test_a_learner_cannot_change_the_rows():
    def vandal(x, t, y):
        x[:], y[:] = 0, 0
        return 1.0

    table, asked = (
        Table.attach(people(300), STUDY),
        question(settings=cv.settings.Folds(learner=vandal, folds=3)),
    )
    folding = folding_of(STUDY, 300, asked)
    outcome = table.outcome.copy()
    folding.effects(Clip(3, folding.width)).steps(table)
    assert np.array_equal(table.outcome, outcome)


def test_effects_of_folds_are_clipped_to_the_bound():
    table = Table.attach(people(300), STUDY)
    for answer, expected in ((99.0, 2**24), (-99.0, -(2**24)), (0.25, 2**23)):
        settings = cv.settings.Folds(learner=lambda x, t, y, answer=answer: answer, folds=3, bound="0.5")
        folding = folding_of(STUDY, 300, question(settings=settings))
        clip = released_clip(None, STUDY, 300, folding)
        assert folding.effects(clip).steps(table).tolist() == [expected] * 3
        # Around a centre, what is clipped is the distance from it.
        moved = Clip(3, Fraction(1, 2), Fraction(1, 4))
        assert (
            folding.effects(moved).steps(table).tolist()
            == [max(-(2**24), min(2**24, int(2**25 * (answer - 0.25))))] * 3
        )


def test_without_a_bound_effects_are_clipped_around_the_released_comparison():
    wide = STUDY._changed(outcome_range=(Fraction(-20), Fraction(20)))
    found = {}
    for name, settings in (("centred", None), ("whole", cv.settings.Folds(bound=40))):
        found[name] = cv.ate(
            people(), wide, protects="record", method="sample_and_aggregate", epsilon=4, settings=settings,
            noise=SeededNoise(1),
        )  # fmt: skip
    bound = {name: result.details["fold_bound"] for name, result in found.items()}
    assert bound["whole"] == 40
    assert bound["centred"] < 8
    width = {name: np.ptp(result.interval()) for name, result in found.items()}
    assert width["centred"] < width["whole"] / 3
    # The comparison of the arms is confounded; the effect that comes out is not.
    assert found["centred"].details["fold_bound_centre"] > 0.55
    assert found["centred"].std_error.noise < found["whole"].std_error.noise / 3
    assert len(found["centred"].releases) == len(found["whole"].releases) + 1


def test_other_learners_are_not_clipped_around_a_comparison_they_may_have_nothing_to_do_with():
    assert cv.settings.Folds().bound is None
    for learner, centred in (("ols", True), ("aipw", True), (ols_effect, False)):
        asked = question(settings=cv.settings.Folds(learner=learner))
        assert folding_of(STUDY, 300, asked).centred == centred


def test_noise_that_hides_the_comparison_leaves_the_whole_range():
    result = ask_for(epsilon=0.02)
    assert result.details["fold_bound"] == 2
    assert result.details["fold_bound_centre"] == 0


@pytest.mark.parametrize(("mean", "sd"), [(0.0, 0.3), (0.5, 0.3), (-0.8, 0.4), (1.0, 0.0)])
def test_what_clipping_takes_away_is_that_of_a_normal_law(mean, sd):
    clip = Clip(10, Fraction(2), Fraction(1))
    draws = mean + sd * np.random.default_rng(0).standard_normal(400_000)
    lost = abs(2 * (draws.mean() - np.clip(draws, -1, 1).mean()))
    assert clip.lost(mean, mean**2 + sd**2) == pytest.approx(lost, abs=3e-3)


def test_what_clipping_took_is_counted_whatever_the_centre_is():
    """A released centre may be 0; a bound that was declared, or the whole range, is another matter."""
    mechanism = Plan.split(Budget(1), {"effect": Fraction(1)}, "laplace").noise("effect", Fraction(1, 100))
    weighted = WeightedMeans(0.9, 0.9**2 + 0.01, 100, 100.0, 0.0, mechanism, mechanism)
    centres = Fraction(0), Fraction(1, 3)
    chosen = [
        uncertainty_of(Clip(10, Fraction(1), centre, chosen=True), weighted, 0.95).bias for centre in centres
    ]
    assert chosen[0] == chosen[1] > 0
    assert uncertainty_of(Clip(10, Fraction(1)), weighted, 0.95).bias == 0


def test_intervals_cover_where_arms_are_confounded_and_outcomes_are_yes_or_no():
    study = cv.Study(
        cv.Treatment("t", control=0), cv.Outcome("y", (0, 1)), {"a": cv.Range(0, 1), "b": cv.Binary()}
    )
    missed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        a, b = rng.random(2000), rng.integers(0, 2, 2000)
        t = (rng.random(2000) < 0.1 + 0.8 * a).astype(int)
        y = (rng.random(2000) < 0.1 + 0.6 * a + 0.1 * b + 0.1 * t).astype(float)
        result = cv.ate(
            {"a": a, "b": b, "t": t, "y": y}, study, protects="record", method="sample_and_aggregate", epsilon=8,
            noise=SeededNoise(seed),
        )  # fmt: skip
        low, high = result.interval()
        missed += not low <= 0.1 <= high
    assert missed <= 4


def test_intervals_between_folds_cover():
    # A learner whose fold effects are known to have mean 0.5: the interval must cover it.
    missed = 0
    for seed in range(40):
        settings = cv.settings.Folds(folds=12, bound=1)
        result = cv.ate(
            people(600, seed=seed), STUDY, protects="record", method="sample_and_aggregate", epsilon=20,
            settings=settings, noise=SeededNoise(seed),
        )  # fmt: skip
        low, high = result.interval()
        missed += not low <= 0.5 <= high
    assert missed <= 6


def test_folds_are_chosen_from_public_numbers():
    counts = {}
    for epsilon in (0.1, 1, 50):
        folding = folding_of(STUDY, 20_000, question(epsilon=epsilon))
        clip = chosen_clip(
            typical_centre(folding.plan, 20_000), FoldDesign(folding.plan, 20_000, 4), width=Fraction(1)
        )
        counts[epsilon] = clip.folds
        assert 5 <= clip.folds <= 1000
    # More noise asks for more folds.
    assert counts[0.1] >= counts[1] >= counts[50]
    assert counts[0.1] > counts[50]


def test_other_estimands_and_missing_covariates_are_refused():
    with pytest.raises(ParameterError, match="CV-P427"):
        ask_for(estimand="ATT")
    bare = cv.Study(treatment=cv.Treatment("t", control=0), outcome=cv.Outcome("y", (0, 2)))
    with pytest.raises(StudyError, match="CV-S051"):
        cv.ate(people(), bare, protects="record", method="sample_and_aggregate", epsilon=1)
    few = {name: column[:8] for name, column in people().items()}
    few["t"] = np.array([0, 1] * 4)
    with pytest.raises(ParameterError, match="CV-P424"):
        cv.ate(few, STUDY, protects="record", method="sample_and_aggregate", epsilon=1)


def test_folds_hold_enough_people_of_an_arm_that_is_found_to_be_small():
    """A line of three covariates needs more than four people of a tenth of all."""
    draw = np.random.default_rng(3)
    x = draw.random((10_000, 3))
    rows = {"t": (draw.random(10_000) < 0.1).astype(int), "y": x.sum(axis=1)} | dict(
        zip("abc", x.T, strict=True)
    )
    study = cv.Study(cv.Treatment("t", control=0), cv.Outcome("y", (0, 10)), dict.fromkeys("abc", (0, 1)))
    asked = {"protects": "record", "epsilon": 3, "method": "sample_and_aggregate"}
    found = cv.ate(rows, study, noise=cv.SeededNoise(1), **asked)
    assert 0.1 * 10_000 / found.details["folds"] > 7
